"""Run the commands shown on a page, and generate the command reference from their output."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

from backscroll.cli.app import app
from tests.forked_process import ForkedProcess, run_forked
from tests.pseudo_terminal import open_terminal, read_terminal

# The ages in a list are those of one fixed day, because the width of its columns depends on them.
_MAIN = """
import sys
from datetime import UTC, datetime
from backscroll.cli import main
from backscroll.render import session_table

format_age = session_table.format_age
session_table.format_age = lambda at, now: format_age(at, datetime(2026, 11, 16, tzinfo=UTC))
sys.argv[0] = "backscroll"
main()
"""
_TERMINAL_WIDTH = 100  # columns
_HELP_WIDTH = 78  # of help texts on a terminal with 80 columns
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ELLIPSIS = "…"

# Output that depends on the date, the machine or the length of a path: ages, sizes, durations, tokens.
_VARIES = re.compile(
    r"\d+ (?:min|h|d|w|mo|y) ago|just now|[\d,]+\.\d MB|[\d,]+ ms$|\d{4}-\d\d-\d\d \d\d:\d\d(?=\): )"
    r"|(?<=at least )[\d,]+|[\d,]+(?= tokens)|\d[\d.]*[kM](?= tokens|  )"
    r"|(?<=workspaceStorage/)[0-9a-f]{32}"
    r"|(?:counted|duplicate) +[\d, ]+|[\d, ]+× \$.*|^ +(?:Total )? *[\d,]+ +\$ +[\d.]+$|<?\$[\d,]+\.\d+"
    r"|[\d,]+(?= (?:input|output|cache))| +[\d.]+[kMG](?= )|(?<=_usd\": )[\d.]+"
    r'|(?<=_tokens": )\d+|(?<="took_ms": )[\d.]+'
    r'|(?<="since": ")[^"]+|(?<="written_at": ")[^"]+|(?<="score": )[\d.]+'
    r"|(?<=created )[-\d]+ [:\d]+ on \w+"
    r'|(?<="vanished",\n        "at": ")[^"]+',
    re.MULTILINE,
)

# Commands that run before all examples.
_SET_UP = (
    "backscroll demo ~/demo",
    "export BACKSCROLL_HOME=~/demo/archive",
    "export BACKSCROLL_ROOTS="
    "claude-code=~/demo/.claude:cursor=~/demo/.config/Cursor:cursor-cli=~/demo/.cursor",
    "backscroll sync",
)

# Examples by command: remark, command line, maximum lines of output to show.
_EXAMPLES: dict[str, list[tuple[str, str, int]]] = {
    "archive path": [("", "backscroll archive path", 100)],
    "archive status": [("", "backscroll archive status", 100)],
    "archive verify": [("", "backscroll archive verify", 100)],
    "archive extract": [
        ("", "backscroll archive extract ed6cfe7f --output ~/back", 100),
        (
            "A session from a database is written as a folder that --root can read:",
            "backscroll archive extract 92d12695 --output ~/back",
            100,
        ),
    ],
    "backup create": [("", "backscroll backup create -o ~/history.zip", 100)],
    "backup verify": [("", "backscroll backup verify ~/history.zip", 100)],
    "backup restore": [
        ("", "backscroll backup restore ~/history.zip --source claude-code --yes", 100),
    ],
    "backup show": [("", "backscroll backup show ~/history.zip", 100)],
    "completion": [("", "backscroll completion fish", 100)],
    "demo": [("The folder must be empty:", "backscroll demo ~/demo", 100)],
    "doctor": [
        ("", "backscroll doctor", 100),
        (
            "A history with an unknown record type and a truncated line:",
            "backscroll --root claude-code=~/newer/.claude doctor",
            100,
        ),
        (
            "The same as JSON:",
            "backscroll --root claude-code=~/newer/.claude doctor --json",
            100,
        ),
        ("The structure of records:", "backscroll doctor --shape", 24),
    ],
    "export": [
        (
            "One session, to standard output:",
            "backscroll export 92d12695 --format txt",
            40,
        ),
        (
            "As HTML, with an index page:",
            "backscroll export --all --workspace tideline --format html -o ~/pages",
            100,
        ),
        ("Existing files are not overwritten:", "backscroll export 1 2 -o ~/notes", 100),
        ("", "backscroll export 1 2 -o ~/notes", 100),
    ],
    "changes": [("", "backscroll changes", 100)],
    "list": [
        ("", "backscroll list --limit 5", 100),
        (
            "With filters:",
            "backscroll list --workspace tideline --since 2026-10-01 --has-edits",
            100,
        ),
        ("The sessions with the most tokens:", "backscroll list --sort tokens -n 3", 100),
        ("In a pipe, columns are separated by tabs:", "backscroll list -n 3 --columns id,title | cat", 100),
        ("As JSON:", "backscroll list --limit 1 --json", 100),
    ],
    "handoff": [("", "backscroll handoff 0a3150fd", 100)],
    "resume": [("Print the command only:", "backscroll resume ed6cfe7f --print", 100)],
    "note": [
        ("", 'backscroll note 018da33b "struck out, not hidden: that is what passengers asked for"', 100),
        ("", "backscroll search struck out passengers --limit 1", 100),
    ],
    "recall": [("", "backscroll recall did we ever try asyncio for the poller --tokens 300", 100)],
    "rename": [("", 'backscroll rename 018da33b "Cancelled departures on the board"', 100)],
    "star": [("", "backscroll star 018da33b", 100), ("", "backscroll list --starred", 100)],
    "tags": [("", "backscroll tags | cat", 100)],
    "unstar": [("", "backscroll unstar 018da33b", 100)],
    "tag": [("", "backscroll tag 018da33b board later", 100), ("", "backscroll list --tag board", 100)],
    "untag": [("", "backscroll untag 018da33b later", 100)],
    "search": [
        ("", "backscroll search remind me clocks", 100),
        ("Exact text, newest first:", "backscroll search --exact 'fold=0)' --limit 1", 100),
        ("As JSON:", "backscroll search remind me clocks --json", 100),
    ],
    "secrets": [
        ("", "backscroll secrets", 100),
        ("With e-mail addresses, as JSON:", "backscroll secrets --emails --json", 30),
    ],
    "show": [
        ("", "backscroll show ed6cfe7f", 100),
        ("The last turn:", "backscroll show a4a9482e --turn -1", 100),
        ("Only prompts and answers:", "backscroll show a4a9482e --only user,assistant", 100),
        ("From a message on, shown in full:", "backscroll show a4a9482e --message 9", 24),
        ("Original records:", "backscroll show a4a9482e --turn 1 --only user --raw", 100),
        ("As JSON:", "backscroll show 92d12695 --json", 60),
        ("By list index:", "backscroll show 5", 3),
        ("Unknown and ambiguous refs:", "backscroll show zzz", 100),
        ("", "backscroll show claude-code:5", 100),
    ],
    "stats": [
        ("", "backscroll stats", 100),
        ("By month:", "backscroll stats --by month", 100),
        ("By tool, for one workspace:", "backscroll stats --by tool --workspace tideline", 100),
        ("Usage records of a session:", "backscroll stats --explain ed6cfe7f", 100),
        ("A year in review:", "backscroll stats --year 2026", 62),
        ("As JSON:", "backscroll stats --since 2026-11-01 --json", 100),
    ],
    "sync": [("", "backscroll sync", 100), ("", "backscroll sync --json", 100)],
    "tail": [],  # runs until Ctrl-C
}

_INTRODUCTION = """\
# The command line

Generated by `pytest tests/test_docs.py --update-golden` and checked by the tests: all output on this page is
the real output, except for ages and sizes.

Results go to standard output, messages to standard error. Commands that read sessions sync first, unless
`--no-sync` is given. If another process is syncing, they use the archive as it is and print a message.
Exit codes:

| code | meaning |
|---|---|
| 0 | success |
| 1 | failure; the message gives the reason |
| 2 | usage error |
| 3 | unparsed records (`sync`, `doctor`), damage (`verify`, `restore`), failed sessions (`migrate`) |
| 130 | interrupted with Ctrl-C |

The examples use the sample history that `backscroll demo` writes:
"""


class Shell:
    """Shell with its own home folder. The path of the folder is printed as ``~``."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self._environ: dict[str, str] = {}

    def run(self, line: str) -> tuple[str, int]:
        """Return a command's output and exit code. ``export`` sets a variable for later commands.

        ``list`` and ``search`` run on a terminal, unless their output is piped into ``cat``.
        """
        program, *arguments = shlex.split(line.removesuffix(" | cat"))
        if program == "export":
            (assignment,) = arguments
            name, _, value = assignment.partition("=")
            self._environ[name] = self._expand(value)
            return "", 0
        assert program == "backscroll", line
        if arguments[-1] == "--help":
            return _help(arguments), 0
        is_on_terminal = arguments[0] in ("list", "search") and not line.endswith(" | cat")
        output, code = (_run_on_terminal if is_on_terminal else _run_in_pipe)(
            [sys.executable, "-c", _MAIN, *map(self._expand, arguments)],
            self.home,
            os.environ
            | {"HOME": str(self.home), "USERPROFILE": str(self.home), "COLUMNS": "80"}
            | {"PYTHONUTF8": "1", "TZ": "UTC"}
            | self._environ,
        )
        match arguments:
            case ["demo", folder] if folder.startswith("~/") and not code:
                _set_long_retention(Path(self._expand(folder)))
        return output.replace(str(self.home), "~").rstrip("\n"), code

    def _expand(self, word: str) -> str:
        return f"{self.home}{word[1:]}" if word.startswith("~/") else word


def _help(arguments: list[str]) -> str:
    """Return the help of a command, in this process: a third of all examples are help texts."""
    result = CliRunner().invoke(app, arguments, prog_name="backscroll", terminal_width=_HELP_WIDTH)
    assert result.exit_code == 0
    return result.output.rstrip("\n")


def _run_in_pipe(command: list[str], folder: Path, environ: dict[str, str]) -> tuple[str, int]:
    done = run_forked(command, cwd=folder, env=environ, stderr=subprocess.STDOUT)
    return done.stdout, done.returncode


def _run_on_terminal(command: list[str], folder: Path, environ: dict[str, str]) -> tuple[str, int]:
    """Run with standard output on a terminal without colors."""
    environ = environ | {"COLUMNS": str(_TERMINAL_WIDTH), "NO_COLOR": "1", "PAGER": "cat", "TERM": "xterm"}
    controller, terminal = open_terminal(columns=_TERMINAL_WIDTH, lines=50)
    process = ForkedProcess(command, cwd=folder, env=environ, stdout=terminal, stderr=subprocess.PIPE)
    os.close(terminal)
    output = read_terminal(controller)
    _, errors = process.communicate()
    return output + errors, process.returncode


def shown(page: str) -> Iterator[tuple[str, str]]:
    """Yield every command in a page's console blocks with the output shown there."""
    for block in _BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            yield line, output.rstrip("\n")


def without_varying_parts(text: str) -> str:
    """Replace the parts of a text that vary by date or machine."""
    return _VARIES.sub("*", text)


def fits(shown_output: str, printed: str) -> bool:
    """Return True if the output shown on a page is the real one. A line ``…`` matches any number of lines."""
    lines = [
        r"(?:.*\n)*" if line == _ELLIPSIS else re.escape(f"{line}\n")
        for line in without_varying_parts(shown_output).split("\n")
    ]
    return re.fullmatch("".join(lines), f"{without_varying_parts(printed)}\n") is not None


def subcommands() -> Iterator[tuple[str, ...]]:
    """Yield every command as its words after ``backscroll``, groups before their members."""
    context = click.Context(app, info_name="backscroll")
    for name in app.list_commands(context):
        yield (name,)
        command = app.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((name, member) for member in command.commands)


def write_reference(home: Path) -> str:
    """Return the whole page. Writes the demo and a damaged history into the home, which must be empty."""
    _write_newer(home)
    shell = Shell(home)
    parts = [_INTRODUCTION, _console(shell, *_SET_UP), ""]
    parts += ["## backscroll\n", _console(shell, "backscroll --help"), ""]
    for words in subcommands():
        name = " ".join(words)
        parts += [f"{'#' * (1 + len(words))} backscroll {name}\n"]
        parts += [_console(shell, f"backscroll {name} --help"), ""]
        for remark, line, max_lines in _EXAMPLES.get(name, []):
            parts += [f"{remark}\n"] if remark else []
            parts += [_console(shell, line, max_lines=max_lines), ""]
    return "\n".join(parts)


def _console(shell: Shell, *command_lines: str, max_lines: int = 100) -> str:
    block = ["```console"]
    for line in command_lines:
        output, code = shell.run(line)
        lines = output.split("\n") if output else []
        block += [f"$ {line}", *(lines if len(lines) <= max_lines else [*lines[:max_lines], _ELLIPSIS])]
        block += ["$ echo $?", str(code)] if code else []
    return "\n".join([*block, "```"])


def _set_long_retention(demo: Path) -> None:
    """Set a long retention, so that sync does not warn about expiring sessions."""
    settings = demo / ".claude" / "settings.json"
    settings.write_text('{"cleanupPeriodDays": 36500}', encoding="utf-8")


def _write_newer(home: Path) -> None:
    """Write a transcript with a record of an unknown type and a truncated record."""
    session = "5e551011-0000-4000-8000-0000000000aa"
    path = home / "newer" / ".claude" / "projects" / "-home-zoe-ferry" / f"{session}.jsonl"
    path.parent.mkdir(parents=True)
    prompt = {
        "type": "user",
        "uuid": "10000000-0000-4000-8000-000000000001",
        "parentUuid": None,
        "sessionId": session,
        "timestamp": "2026-10-03T07:00:00.120Z",
        "cwd": "/home/zoe/ferry",
        "message": {"role": "user", "content": "Why is the timetable off by one hour?"},
    }
    unknown = {"type": "telepathy", "sessionId": session}
    whole = "".join(f"{json.dumps(record)}\n" for record in (prompt, unknown))
    path.write_text(whole + json.dumps(prompt)[:80], encoding="utf-8")
