"""Time to show a screen of a session with 40,000 messages."""

import os
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from starlette.testclient import TestClient

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript, tool_calls
from backscroll.web.app import create_app
from benchmarks.benchmark_context import BACKSCROLL_COMMAND, BenchmarkContext
from benchmarks.generated_histories import CACHE_FOLDER, cached_history
from benchmarks.measurement import Duration, fastest, run_process, time_best
from benchmarks.result_table import Result, duration_result

_MESSAGE_COUNT = 40_000
_MESSAGES_PER_TURN = 18
_SESSION_ID = "b1900000-0000-4000-8000-000000000000"
_SESSION_REF = f"claude-code:{_SESSION_ID}"
_SCREEN_LINES = 24
_RUNS = 9
_TARGET_MS = 200
_WEB_TARGET_MS = 300
_WEB_ADDRESS = "http://127.0.0.1:7433"
_WEB_PAGES = (  # key, label, path
    ("web-session", "web page of a session, 40,000 messages", f"/sessions/{_SESSION_REF}"),
    ("web-message", "web page of message 39000", f"/sessions/{_SESSION_REF}?at=39000"),
    ("web-window", "next 120 messages while scrolling", f"/sessions/{_SESSION_REF}/window?from=39000"),
    ("web-prompts", "list of all prompts", f"/sessions/{_SESSION_REF}/prompts?part=1"),
)
_COMMANDS = (  # key, label, arguments
    ("show-first-screen", "backscroll show, 40,000 messages", ("show", _SESSION_ID)),
    (
        "show-last-turn",
        "backscroll show --turn -1, 40,000 messages",
        ("show", _SESSION_ID, "--turn", "-1"),
    ),
    (
        "show-message",
        "backscroll show --message 39000, 40,000 messages",
        ("show", _SESSION_ID, "--message", "39000"),
    ),
)


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Measure from the start of the command to a full screen. This includes the sync before it."""
    root = cached_history("long-session", _write_session)
    home = CACHE_FOLDER / "home-long-session"
    options = ["--home", str(home), "--root", f"claude-code={root}"]
    run_process([*BACKSCROLL_COMMAND, *options, "sync"])
    for key, label, arguments in _COMMANDS:
        duration = fastest(
            _time_first_screen([*BACKSCROLL_COMMAND, *options, *arguments]) for _ in range(_RUNS)
        )
        yield duration_result(
            key, label, duration.wall_seconds, cpu_seconds=duration.cpu_seconds, target=_TARGET_MS
        )
    yield from _web_results(home, root)
    completion = {
        "_BACKSCROLL_COMPLETE": "bash_complete",
        "COMP_WORDS": "backscroll show b",
        "COMP_CWORD": "2",
    }
    env = {**os.environ, **completion, "BACKSCROLL_HOME": str(home)}
    run = fastest(run_process(BACKSCROLL_COMMAND, env=env) for _ in range(_RUNS))
    yield duration_result(
        "completion", "Shell completion of a ref", run.wall_seconds, cpu_seconds=run.cpu_seconds, target=100
    )


def _web_results(home: Path, root: Path) -> Iterator[Result]:
    """Measure responses of the web app, without the network and without rendering in a browser."""
    roots = [NamedRoot("claude-code", root)]
    app = create_app(lambda: History(home=home, roots=roots), "", auto_sync=False)
    with TestClient(app, base_url=_WEB_ADDRESS) as client:
        client.get(f"/sessions/{_SESSION_REF}")  # opens the archive
        for key, label, path in _WEB_PAGES:
            get = partial(client.get, path)
            assert get().status_code == 200
            duration = time_best(get, runs=_RUNS)
            yield duration_result(
                key, label, duration.wall_seconds, cpu_seconds=duration.cpu_seconds, target=_WEB_TARGET_MS
            )


def _time_first_screen(command: list[str]) -> Duration:
    """Return the wall time to the last line of the first screen, and the CPU time of the whole command."""
    start, before = time.perf_counter(), os.times()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(_SCREEN_LINES):
            process.stdout.readline()
        wall_seconds = time.perf_counter() - start
        process.stdout.close()
    after = os.times()
    cpu_seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return Duration(wall_seconds, cpu_seconds)


def _write_session(folder: Path) -> None:
    session = Transcript(_SESSION_ID, seed=1, cwd="/home/zoe/ferry")
    message_count = turn = 0
    while message_count < _MESSAGE_COUNT:
        turn += 1
        session.user(f"Why is departure {turn} late?")
        for log in range(8):
            output = "\n".join(f"line {line} about departure {turn}" for line in range(20))
            session.run(
                tool_calls.bash(f"grep -n {turn} log/{log}.txt", output), text=f"Looking at log {log}."
            )
        session.assistant(f"# Departure {turn}\n\nIts **zone** is wrong.\n\n```python\nzone = {turn}\n```\n")
        message_count += _MESSAGES_PER_TURN
    session.write(folder)
