"""A running Claude Code is found by its registry, its open files and its own command line."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from backscroll.readers.processes import command_lines
from backscroll.sources.claude_code.resume import blocking_processes, open_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
ID, OTHER = str(uuid4()), str(uuid4())  # tests run in parallel and see each other's processes
WAIT = "import time; time.sleep(60)"


@contextmanager
def running(*command: str, program: str = sys.executable) -> Iterator[int]:
    """Run a program under a command line of choice."""
    with subprocess.Popen(command, executable=program) as process:
        try:
            deadline = time.monotonic() + 10
            while (process.pid, list(command)) not in list(command_lines()):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield process.pid
        finally:
            process.kill()


def with_id(arguments: tuple[str, ...]) -> list[str]:
    return [one.replace("ID", ID) for one in arguments]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--resume", "ID"),
        ("--resume=ID",),
        ("-r", "ID"),
        ("-rID",),
        ("--session-id", "ID"),
        ("--resume", "/home/ada/.claude/projects/x/ID.jsonl"),
    ],
)
def test_a_resumed_session_is_found_by_the_command_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with running("/usr/local/bin/claude", "-c", WAIT, *with_id(arguments)) as pid:
        (blocking,) = blocking_processes(tmp_path, [OTHER, ID])
        assert (blocking.pid, ID in blocking.reason) == (pid, True)
        assert (open_process(tmp_path, ID), open_process(tmp_path, OTHER)) == (pid, None)
    assert blocking_processes(tmp_path, [ID]) == []


def test_a_script_that_node_runs_is_found(tmp_path: Path) -> None:
    script = tmp_path / "node_modules" / "@anthropic-ai" / "claude-code" / "cli.js"
    script.parent.mkdir(parents=True)
    script.write_text(WAIT)
    with running("node", str(script), "--resume", ID) as pid:
        assert open_process(tmp_path, ID) == pid


@pytest.mark.parametrize(
    "command",
    [
        ("grep", "-c", WAIT, "-r", "ID"),
        ("bash", "-c", WAIT, "claude --resume ID"),
        ("vim", "-c", WAIT, "ID.jsonl"),
        ("claude", "-c", WAIT, "--resume", "ID", "--fork-session"),
        ("claude", "-c", WAIT, "look at ID"),
    ],
)
def test_other_programs_and_arguments_hold_no_session(tmp_path: Path, command: tuple[str, ...]) -> None:
    with running(*with_id(command)):
        assert blocking_processes(tmp_path, [ID]) == []


@pytest.mark.parametrize("name", ["projects/ferry/ID.jsonl", "tasks/ID/.lock", "debug/ID.txt"])
@pytest.mark.parametrize("mode", ["a", "r"])
def test_only_a_process_that_writes_a_file_of_the_session_holds_it(
    tmp_path: Path, name: str, mode: str
) -> None:
    path = tmp_path / name.replace("ID", ID)
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    program = f"file = open({str(path)!r}, {mode!r}); print('open', flush=True); {WAIT}"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = [one.pid for one in blocking_processes(tmp_path, [ID, OTHER])]
        process.kill()
    assert found == ([process.pid] if mode == "a" else [])
