"""``watch`` and ``tail`` as text and as JSON, until Ctrl-C."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import IO, Any

import pytest

from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.run_command import COMMAND, Shell
from tests.forked_process import ForkedProcess

TIMEOUT_SECONDS = 20.0
ONE = "10000000-0000-4000-8000-000000000000"

pytestmark = pytest.mark.skipif(
    os.name == "nt", reason="Ctrl-C cannot be sent to a single process on Windows"
)


class Running:
    """Running command and the lines it prints."""

    def __init__(self, process: ForkedProcess) -> None:
        self.process = process
        self.out: Queue[str] = Queue()
        self.err: Queue[str] = Queue()
        self._readers = [
            Thread(target=_pump, args=pair)
            for pair in ((process.stdout, self.out), (process.stderr, self.err))
        ]
        for reader in self._readers:
            reader.start()

    def line(self) -> str:
        return self.out.get(timeout=TIMEOUT_SECONDS)

    def message(self) -> str:
        """Return the next line of standard error."""
        return self.err.get(timeout=TIMEOUT_SECONDS)

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        code = self.process.wait(TIMEOUT_SECONDS)
        for reader in self._readers:
            reader.join()
        return code


def _pump(stream: IO[str], lines: "Queue[str]") -> None:
    with stream:
        for line in stream:
            lines.put(line.rstrip("\n"))


class WatchShell(Shell):
    """Runs the command on a session that is being written."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.session = Transcript(ONE, seed=1, cwd="/home/zoe/ferry").user("Why is it late?").assistant("Hm.")
        self.path = self.session.write(self.root)

    def append(self) -> None:
        """Append the new records to the file."""
        size = self.path.stat().st_size
        with self.path.open("ab") as file:
            file.write(self.session.lines()[size:])

    @contextmanager
    def start(self, *arguments: str) -> Iterator[Running]:
        process = ForkedProcess(
            [COMMAND, *self.options, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TZ": "UTC", "PYTHONUTF8": "1"},
        )
        running = Running(process)
        try:
            yield running
        finally:
            running.end(signal.SIGKILL)


@pytest.fixture
def shell(tmp_path: Path) -> WatchShell:
    return WatchShell(tmp_path)


def test_watch_prints_one_line_per_change_until_ctrl_c(shell: WatchShell) -> None:
    with shell.start("watch") as watch:
        assert watch.message() == "Watching for changes. Press Ctrl-C to stop."
        shell.session.user("And now?").assistant("Now it is on time.")
        shell.append()
        time, title, what = watch.line().split("  ")
        assert (len(time), title, what) == (8, "Why is it late?", "+2 messages")
        assert watch.end() == 0
        assert (watch.out.qsize(), watch.err.qsize()) == (0, 0)


def test_watch_json_prints_one_object_per_line(shell: WatchShell) -> None:
    with shell.start("watch", "--json") as watch:
        watch.message()
        shell.session.user("And now?")
        shell.append()
        change: dict[str, Any] = json.loads(watch.line())
    assert change["session_ref"] == f"claude-code:{ONE}"
    assert (change["messages_added"], change["what"], change["is_new"]) == (1, "+1 message", False)
    assert change["session"]["message_count"] == 3


def test_watch_removes_control_characters_from_titles(shell: WatchShell) -> None:
    with shell.start("watch") as watch:
        watch.message()
        other = Transcript("20000000-0000-4000-8000-000000000000", seed=2)
        other.user("\x1b]0;owned\x07\x1b[31mred\u202e title").write(shell.path.parents[2])
        assert "  red title  new session, +1 message" in watch.line()


@pytest.mark.parametrize("command", [["watch"], ["tail", ONE]])
def test_json_lines_escape_control_characters(shell: WatchShell, command: list[str]) -> None:
    with shell.start(*command, "--json") as running:
        first = running.message() if command == ["watch"] else running.line()
        shell.session.user("\u202eevil\x1b[31m").ai_title("\u202eevil")
        shell.append()
        while "evil" not in (line := running.line()):
            assert first
        assert "\\u202eevil" in line


def test_a_killed_watch_leaves_an_intact_archive(shell: WatchShell) -> None:
    for attempt in range(4):
        with shell.start("watch") as watch:
            watch.message()
            for _ in range(3):
                shell.session.user(f"word {attempt}").assistant("yes")
                shell.append()
            if attempt % 2:
                watch.line()
    assert shell.run("archive", "verify").out == "The archive is intact.\n"
    shown = json.loads(shell.run("show", ONE, "--json").out)
    assert len(shown["messages"]) == 2 + 4 * 3 * 2
    found = json.loads(shell.run("search", "word", "--by", "message", "--json", "--limit", "100").out)
    assert found["pagination"]["total"] == 12


def test_other_commands_read_while_watch_runs(shell: WatchShell) -> None:
    shell.run("sync")
    with shell.start("watch") as watch, shell.start("watch") as second:
        watch.message()
        second.message()
        shell.session.user("zeppelin")
        shell.append()
        listed = shell.run("list", "--json")
        assert listed.code == 0
        message_count = json.loads(listed.out)["data"][0]["message_count"]
        assert message_count == 3 or (message_count == 2 and "Another process is syncing" in listed.err)
        assert "+1 message" in watch.line()
        assert "+1 message" in second.line()
        assert shell.json("list")["data"][0]["message_count"] == 3
        assert (watch.end(), second.end()) == (0, 0)


def test_tail_starts_with_the_last_messages_and_follows_new_ones(shell: WatchShell) -> None:
    with shell.start("tail", "--lines", "1") as tail:
        assert tail.line().endswith("── assistant")
        assert tail.line() == "Hm."
        shell.session.user("\x1b[31mLook\x1b[0m again")
        shell.append()
        assert tail.line().endswith("── user")
        assert tail.line() == "Look again"
        shell.session.assistant(tools=[tool_calls.bash("ls -l")])
        shell.append()
        assert tail.line().endswith("── Bash · pending  command=ls -l")
        shell.session.result(shell.session.tool_ids[-1], "a.py\nb.py")
        shell.append()
        assert tail.line().endswith("── Bash · completed → a.py b.py")
        assert tail.end() == 0
        assert (tail.out.qsize(), tail.err.qsize()) == (0, 0)


def test_tail_json_prints_one_object_per_message(shell: WatchShell) -> None:
    with shell.start("tail", "1000", "--json") as tail:
        first = [json.loads(tail.line()) for _ in range(2)]
        shell.session.assistant(tools=[tool_calls.bash("ls")])
        shell.append()
        pending = json.loads(tail.line())
        shell.session.result(shell.session.tool_ids[-1], "")
        shell.append()
        completed = json.loads(tail.line())
    assert [message["position"] for message in first] == [0, 1]
    assert (pending["position"], pending["status"], pending["tool_result"]) == (2, "pending", None)
    assert (completed["position"], completed["status"]) == (2, "completed")


def test_tail_waits_for_a_session_that_does_not_exist_yet(shell: WatchShell) -> None:
    content = shell.path.read_bytes()
    shell.path.unlink()
    shell.run("sync")
    with shell.start("tail") as any_one:
        assert any_one.message() == "Waiting for a session to start. Press Ctrl-C to stop."
        other = Transcript("20000000-0000-4000-8000-000000000000", seed=2).user("Another session")
        other.write(shell.path.parents[2])
        assert any_one.line().endswith("── user")
        assert any_one.line() == "Another session"
        assert any_one.end() == 0
    with shell.start("tail", ONE) as this_one:
        assert this_one.message() == f"Waiting for {ONE} to start. Press Ctrl-C to stop."
        shell.path.write_bytes(content)
        lines = [this_one.line() for _ in range(4)]
        assert (lines[0][8:], lines[1]) == (" ── user", "Why is it late?")
        assert (lines[2][8:], lines[3]) == (" ── assistant", "Hm.")
        assert this_one.end() == 0


def test_tail_reports_an_unknown_session(shell: WatchShell) -> None:
    result = shell.run("tail", "zzz")
    assert (result.code, result.out) == (1, "")
    assert "zzz" in result.err
