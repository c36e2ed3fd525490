"""Run commands the way a page shows them, and write the command reference from what they print."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from backscroll.cli.app import app

__all__ = ["expected", "fits", "run", "shown", "write_reference"]

_MAIN = "import sys; sys.argv[0] = 'backscroll'; from backscroll.cli import main; main()"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CUT = "…"
_ALL = (
    "backscroll --root claude-code=~/demo/.claude --root cursor=~/demo/.config/Cursor"
    " --root cursor-cli=~/demo/.cursor doctor"
)

# Every command with what to show of it: a line to type, and how much of its output.
_EXAMPLES: dict[str, list[tuple[str, str, int]]] = {
    "demo": [
        ("", "backscroll demo ~/demo", 100),
        ("A folder that has something in it is left alone:", "backscroll demo ~/demo", 100),
    ],
    "doctor": [
        ("", _ALL, 100),
        (
            "A history written by a newer version of the tool, with a line that a crash cut short:",
            "backscroll --root claude-code=~/newer/.claude doctor",
            100,
        ),
        (
            "The same as JSON, one document on standard output:",
            "backscroll --root claude-code=~/newer/.claude doctor --json",
            100,
        ),
        ("What records look like:", "backscroll --root claude-code=~/demo/.claude doctor --shape", 24),
    ],
}

_INTRODUCTION = """\
# The command line

Written by `pytest tests/test_docs.py --update-golden` and checked by the tests: every output on this page
is what the command prints.

What is asked for goes to standard output, messages go to standard error. Exit codes:

| code | means |
|---|---|
| 0 | done |
| 1 | could not be done; the message says why |
| 2 | wrong usage |
| 3 | done, and something was not understood (`doctor`) |
| 130 | stopped with Ctrl-C |
"""


def run(line: str, home: Path) -> tuple[str, int]:
    """What a command prints and its exit code, with that home; the home's path is shown as ``~``."""
    words = [f"{home}{word[1:]}" if word.startswith("~/") else word for word in shlex.split(line)]
    assert words[0] == "backscroll", line
    done = subprocess.run(
        [sys.executable, "-c", _MAIN, *words[1:]],
        cwd=home,
        env=os.environ
        | {"HOME": str(home), "USERPROFILE": str(home), "COLUMNS": "80", "PYTHONUTF8": "1", "TZ": "UTC"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return done.stdout.replace(str(home), "~").rstrip("\n"), done.returncode


def shown(page: str) -> Iterator[tuple[str, str]]:
    """Every command in a page's console blocks, and what it is said to print."""
    for block in _BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            yield line, output.rstrip("\n")


def fits(said: str, printed: str) -> bool:
    """Whether a page says what was printed; a line with nothing but ``…`` stands for any lines."""
    return re.fullmatch(expected(said), printed) is not None


def expected(said: str) -> str:
    """A pattern for an output as a page shows it."""
    pieces = re.split(rf"^{_CUT}$", said, flags=re.MULTILINE)
    return r"(?s:.*)".join(map(re.escape, pieces))


def write_reference(home: Path) -> str:
    """The whole page. The home must be empty; the demo and a damaged history are written into it."""
    _write_newer(home)
    context = click.Context(app, info_name="backscroll")
    parts = [_INTRODUCTION, "## backscroll\n", _console("backscroll --help", home), ""]
    for name in app.list_commands(context):
        parts += [f"## backscroll {name}\n", _console(f"backscroll {name} --help", home), ""]
        for remark, line, most in _EXAMPLES[name]:
            parts += [f"{remark}\n"] if remark else []
            parts += [_console(line, home, most), ""]
    return "\n".join(parts)


def _console(line: str, home: Path, most: int = 100) -> str:
    output, code = run(line, home)
    lines = output.split("\n")
    told = lines if len(lines) <= most else [*lines[:most], _CUT]
    status = ["$ echo $?", str(code)] if code else []
    return "\n".join(["```console", f"$ {line}", *told, *status, "```"])


def _write_newer(home: Path) -> None:
    """A transcript with a record of a type that does not exist, and another cut off in the middle."""
    session = "5e551011-0000-4000-8000-0000000000aa"
    path = home / "newer" / ".claude" / "projects" / "-home-zoe-ferry" / f"{session}.jsonl"
    path.parent.mkdir(parents=True)
    said = {
        "type": "user",
        "uuid": "10000000-0000-4000-8000-000000000001",
        "parentUuid": None,
        "sessionId": session,
        "timestamp": "2026-10-03T07:00:00.120Z",
        "cwd": "/home/zoe/ferry",
        "message": {"role": "user", "content": "Why is the timetable off by one hour?"},
    }
    unknown = {"type": "telepathy", "sessionId": session}
    whole = "".join(f"{json.dumps(record)}\n" for record in (said, unknown))
    path.write_text(whole + json.dumps(said)[:80], encoding="utf-8")
