"""What a person waits for who reads a session of 40,000 messages."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from backscroll.testing.claude_code import Transcript, tool_calls
from benchmarks.figures import Figure, lasted
from benchmarks.histories import FOLDER, made
from benchmarks.measure import Took, fastest, run
from benchmarks.stage import BACKSCROLL, Stage

__all__ = ["figures"]

_MESSAGES = 40_000
_ID = "b1900000-0000-4000-8000-000000000000"
_SCREEN = 24
_RUNS = 9
_ASKED = (
    ("show-first-screen", "its first screen: backscroll show", ("show", _ID), 200),
    ("show-last-turn", "its last turn: backscroll show --turn -1", ("show", _ID, "--turn", "-1"), 200),
    ("show-message", "from a message near its end on", ("show", _ID, "--message", "39000"), 200),
)


def figures(stage: Stage) -> Iterator[Figure]:
    """From the start of the command until a screen is full, with the sync before it."""
    root = made("long-session", _write)
    home = FOLDER / "home-long-session"
    places = ["--home", str(home), "--root", f"claude-code={root}"]
    run([*BACKSCROLL, *places, "sync"])
    for key, what, words, wanted in _ASKED:
        took = fastest(_first_screen([*BACKSCROLL, *places, *words]) for _ in range(_RUNS))
        yield lasted(key, what, took.wall, processor=took.processor, wanted=wanted)
    typed = {"_BACKSCROLL_COMPLETE": "bash_complete", "COMP_WORDS": "backscroll show b", "COMP_CWORD": "2"}
    env = {**os.environ, **typed, "BACKSCROLL_HOME": str(home)}
    ran = fastest(run(BACKSCROLL, env=env) for _ in range(_RUNS))
    yield lasted("completion", "completing a ref", ran.wall, processor=ran.processor, wanted=100)


def _first_screen(command: list[str]) -> Took:
    """Until so many lines have come; the processor's time is that of the whole command, which ends then."""
    began, before = time.perf_counter(), os.times()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(_SCREEN):
            process.stdout.readline()
        wall = time.perf_counter() - began
        process.stdout.close()
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Took(wall, used)


def _write(folder: Path) -> None:
    session = Transcript(_ID, seed=1, cwd="/home/zoe/ferry")
    said = number = 0
    while said < _MESSAGES:
        number += 1
        session.user(f"Why is departure {number} late?")
        for log in range(8):
            found = "\n".join(f"line {line} about departure {number}" for line in range(20))
            session.run(
                tool_calls.bash(f"grep -n {number} log/{log}.txt", found), text=f"Looking at log {log}."
            )
        session.assistant(
            f"# Departure {number}\n\nIts **zone** is wrong.\n\n```python\nzone = {number}\n```\n"
        )
        said += 18
    session.write(folder)
