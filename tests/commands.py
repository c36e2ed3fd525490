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

__all__ = ["Shell", "fits", "settled", "shown", "subcommands", "write_reference"]

_MAIN = "import sys; sys.argv[0] = 'backscroll'; from backscroll.cli import main; main()"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CUT = "…"

# What another day, another machine or a longer path makes different: ages, sizes, durations, tokens.
_VARIES = re.compile(
    r"\d+ (?:min|h|d|w|mo|y) ago|just now|[\d,]+\.\d MB|[\d,]+ ms$|\d{4}-\d\d-\d\d \d\d:\d\d(?=\): )"
    r"|(?<=at least )[\d,]+|[\d,]+(?= tokens)|\d[\d.]*[kM](?= tokens|  )"
    r"|(?<=workspaceStorage/)[0-9a-f]{32}"
    r"|(?:counted|duplicate) +[\d, ]+|[\d, ]+× \$.*|^ +[\d,]+ +\$ +[\d.]+$|<?\$[\d,]+\.\d+"
    r"|[\d,]+(?= (?:given|answered|written|read))| +[\d.]+[kMG](?= )|(?<=_usd\": )[\d.]+"
    r'|(?<=_tokens": )\d+|(?<="took_ms": )[\d.]+'
    r'|(?<="since": ")[^"]+|(?<="written_at": ")[^"]+|(?<="score": )[\d.]+',
    re.MULTILINE,
)

# What every example of the reference begins with.
_SET_UP = (
    "backscroll demo ~/demo",
    "export BACKSCROLL_HOME=~/demo/archive",
    "export BACKSCROLL_ROOTS="
    "claude-code=~/demo/.claude:cursor=~/demo/.config/Cursor:cursor-cli=~/demo/.cursor",
    "backscroll sync",
)

# Every command with what to show of it: a remark, a line to type, and how much of its output.
_EXAMPLES: dict[str, list[tuple[str, str, int]]] = {
    "archive path": [("", "backscroll archive path", 100)],
    "archive status": [("", "backscroll archive status", 100)],
    "archive verify": [("", "backscroll archive verify", 100)],
    "archive extract": [
        ("", "backscroll archive extract ed6cfe7f --output ~/back", 100),
        (
            "Of a session that lies in a database its rows are written, as a folder that --root can read:",
            "backscroll archive extract 92d12695 --output ~/back",
            100,
        ),
    ],
    "completion": [("", "backscroll completion fish", 100)],
    "demo": [("A folder that has something in it is left alone:", "backscroll demo ~/demo", 100)],
    "doctor": [
        ("", "backscroll doctor", 100),
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
        ("What records look like:", "backscroll doctor --shape", 24),
    ],
    "export": [
        (
            "One session without a file goes to standard output:",
            "backscroll export 92d12695 --format txt",
            40,
        ),
        (
            "As pages, with an index:",
            "backscroll export --all --workspace tideline --format html -o ~/pages",
            100,
        ),
        ("Nothing is overwritten unasked:", "backscroll export 1 2 -o ~/notes", 100),
        ("", "backscroll export 1 2 -o ~/notes", 100),
    ],
    "list": [
        ("", "backscroll list --limit 5", 100),
        (
            "Only what fits all of these:",
            "backscroll list --workspace tideline --since 2026-10-01 --has-edits",
            100,
        ),
        ("As JSON:", "backscroll list --limit 1 --json", 100),
    ],
    "handoff": [("", "backscroll handoff 0a3150fd", 100)],
    "resume": [("What would be run:", "backscroll resume ed6cfe7f --print", 100)],
    "note": [
        ("", 'backscroll note 018da33b "struck out, not hidden: that is what passengers asked for"', 100),
        ("", "backscroll search struck out passengers --limit 1", 100),
    ],
    "recall": [("", "backscroll recall did we ever try asyncio for the poller --tokens 300", 100)],
    "rename": [("", 'backscroll rename 018da33b "Cancelled departures on the board"', 100)],
    "star": [("", "backscroll star 018da33b", 100), ("", "backscroll list --starred", 100)],
    "tag": [("", "backscroll tag 018da33b board later", 100), ("", "backscroll list --tag board", 100)],
    "untag": [("", "backscroll untag 018da33b later", 100)],
    "search": [
        ("", "backscroll search remind me clocks", 100),
        ("Newest first, and only this spelling:", "backscroll search --exact 'fold=0)' --limit 1", 100),
        ("As JSON:", "backscroll search remind me clocks --json", 100),
    ],
    "secrets": [
        ("", "backscroll secrets", 100),
        ("E-mail addresses as well, as JSON:", "backscroll secrets --emails --json", 30),
    ],
    "show": [
        ("", "backscroll show ed6cfe7f", 100),
        ("The last turn:", "backscroll show a4a9482e --turn -1", 100),
        ("What was asked and answered:", "backscroll show a4a9482e --only user,assistant", 100),
        ("A message unfolded, and what follows it:", "backscroll show a4a9482e --message 9", 24),
        ("The records behind it:", "backscroll show a4a9482e --turn 1 --only user --raw", 100),
        ("As JSON, with every message:", "backscroll show 92d12695 --json", 60),
        ("A place in the list is a ref too:", "backscroll show 5", 3),
        ("What fits no session, or several, is said:", "backscroll show zzz", 100),
        ("", "backscroll show claude-code:5", 100),
    ],
    "stats": [
        ("", "backscroll stats", 100),
        ("By month:", "backscroll stats --by month", 100),
        ("By tool, of one workspace:", "backscroll stats --by tool --workspace tideline", 100),
        ("Why it is so many:", "backscroll stats --explain ed6cfe7f", 100),
        ("A year on a page:", "backscroll stats --year 2026", 62),
        ("As JSON:", "backscroll stats --since 2026-11-01 --json", 100),
    ],
    "sync": [("", "backscroll sync", 100), ("", "backscroll sync --json", 100)],
    "tail": [],  # these two go on until they are stopped
}

_INTRODUCTION = """\
# The command line

Written by `pytest tests/test_docs.py --update-golden` and checked by the tests: every output on this page
is what the command prints, ages and sizes aside.

What is asked for goes to standard output, messages go to standard error. `list`, `search` and `show` bring
the archive up to date before they answer, unless `--no-sync` is given; while another process is doing that,
they answer from what is there and say so. `watch` and `tail` run until Ctrl-C. Exit codes:

| code | means |
|---|---|
| 0 | done |
| 1 | could not be done; the message says why |
| 2 | wrong usage |
| 3 | done, and something was not understood (`doctor`) or does not agree (`archive verify`) |
| 130 | stopped with Ctrl-C |

The examples look at the made-up history that `backscroll demo` writes:
"""


class Shell:
    """A shell in somebody's home folder; the folder's path is shown as ``~``."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self._environ: dict[str, str] = {}

    def run(self, line: str) -> tuple[str, int]:
        """What a command prints and its exit code. ``export`` sets a variable for the commands after it."""
        first, *words = shlex.split(line)
        if first == "export":
            (assignment,) = words
            name, _, value = assignment.partition("=")
            self._environ[name] = self._expanded(value)
            return "", 0
        assert first == "backscroll", line
        done = subprocess.run(
            [sys.executable, "-c", _MAIN, *map(self._expanded, words)],
            cwd=self.home,
            env=os.environ
            | {"HOME": str(self.home), "USERPROFILE": str(self.home), "COLUMNS": "80"}
            | {"PYTHONUTF8": "1", "TZ": "UTC"}
            | self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        match words:
            case ["demo", folder] if folder.startswith("~/") and not done.returncode:
                _keep_forever(Path(self._expanded(folder)))
        return done.stdout.replace(str(self.home), "~").rstrip("\n"), done.returncode

    def _expanded(self, word: str) -> str:
        return f"{self.home}{word[1:]}" if word.startswith("~/") else word


def shown(page: str) -> Iterator[tuple[str, str]]:
    """Every command in a page's console blocks, and what it is said to print."""
    for block in _BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            yield line, output.rstrip("\n")


def settled(text: str) -> str:
    """A text without what is different on another day or machine."""
    return _VARIES.sub("*", text)


def fits(said: str, printed: str) -> bool:
    """Whether a page says what was printed; a line with nothing but ``…`` stands for any lines, or none."""
    lines = [r"(?:.*\n)*" if line == _CUT else re.escape(f"{line}\n") for line in settled(said).split("\n")]
    return re.fullmatch("".join(lines), f"{settled(printed)}\n") is not None


def subcommands() -> Iterator[tuple[str, ...]]:
    """Every command as the words to type after ``backscroll``, groups before their members."""
    context = click.Context(app, info_name="backscroll")
    for name in app.list_commands(context):
        yield (name,)
        command = app.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((name, member) for member in command.commands)


def write_reference(home: Path) -> str:
    """The whole page. The home must be empty; the demo and a damaged history are written into it."""
    _write_newer(home)
    shell = Shell(home)
    parts = [_INTRODUCTION, _console(shell, *_SET_UP), ""]
    parts += ["## backscroll\n", _console(shell, "backscroll --help"), ""]
    for words in subcommands():
        name = " ".join(words)
        parts += [f"{'#' * (1 + len(words))} backscroll {name}\n"]
        parts += [_console(shell, f"backscroll {name} --help"), ""]
        for remark, line, most in _EXAMPLES.get(name, []):
            parts += [f"{remark}\n"] if remark else []
            parts += [_console(shell, line, most=most), ""]
    return "\n".join(parts)


def _console(shell: Shell, *typed: str, most: int = 100) -> str:
    told = ["```console"]
    for line in typed:
        output, code = shell.run(line)
        lines = output.split("\n") if output else []
        told += [f"$ {line}", *(lines if len(lines) <= most else [*lines[:most], _CUT])]
        told += ["$ echo $?", str(code)] if code else []
    return "\n".join([*told, "```"])


def _keep_forever(demo: Path) -> None:
    """Let the demo's tool delete nothing, or one day a sync would begin to warn of it."""
    settings = demo / ".claude" / "settings.json"
    settings.write_text('{"cleanupPeriodDays": 36500}', encoding="utf-8")


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
