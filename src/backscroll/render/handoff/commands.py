"""Shell commands of a session: checks, failures and commits."""

import re
import shlex
from collections.abc import Iterator

from msgspec import Struct

from backscroll.model import Status, ToolCall
from backscroll.render.handoff.types import Candidate
from backscroll.render.tool_calls import command_param, exit_status

__all__ = ["CommandLog", "CommandRun", "is_similar", "split_words"]

_COMMIT = re.compile(r"\bgit\b[^&|;\n]*\bcommit\b")
_MESSAGE_OPTION = re.compile(r"(?:-m|--message=?)\s*(\"(?:[^\"\\]|\\.)+\"|'[^']+')")
_COMMIT_OUTPUT = re.compile(r"^\[\S.* [0-9a-f]{7,40}\] (.+)$", re.MULTILINE)  # output of git commit
_CHECK_COMMAND = re.compile(
    r"\b(?:test|tests|pytest|check|lint|build|mypy|ruff|clippy|tsc|vet|spec|jest|vitest)\b"
)
_FAILURE = re.compile(
    r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\bFAILED\b|\bERR[_!]|^error(?:\[\w+\])?: "
    r"|failed with exit code [1-9]",
    re.MULTILINE,
)
_RESULT_TAGS = re.compile(r"</?[a-z]+_[a-z_]+>")  # tags that a tool adds around its result
_OUTPUT_CHARS = 2000  # at the end of the output; enough to detect the outcome
_MAX_LAST_LINE_CHARS = 160
_MAX_COMMAND_CHARS = 4000
_MAX_COMMANDS = 200  # the last ones are kept
_RECENT_COMMANDS = 4


class CommandRun(Struct, frozen=True):
    """A command and its outcome."""

    command: str
    status: Status
    exit: int | None
    is_check: bool
    is_failed: bool
    last_line: str
    subject: str | None  # of the commit it created
    position: int

    @property
    def first_line(self) -> str:
        """The first line of the command."""
        lines = self.command.strip().splitlines()
        return f"`{lines[0] if lines else ''}`" + (" …" if len(lines) > 1 else "")

    @property
    def with_outcome(self) -> str:
        """The first line of the command with exit code and last line of output."""
        exit_code = f" (exit {self.exit})" if self.exit else ""
        return f"{self.first_line}{exit_code}" + (f": {self.last_line}" if self.last_line else "")


class CommandLog:
    """The last commands of a session; a repeated command is kept once."""

    def __init__(self) -> None:
        self.last_commit: CommandRun | None = None
        self._runs: dict[str, CommandRun] = {}

    def add(self, tool: ToolCall, position: int) -> CommandRun | None:
        """Add a call, if it ran a command."""
        param = command_param(tool)
        if param is None:
            return None
        run = _run(tool.params[param][:_MAX_COMMAND_CHARS], tool, position)
        self._runs.pop(run.command, None)
        self._runs[run.command] = run
        if len(self._runs) > _MAX_COMMANDS:
            del self._runs[next(iter(self._runs))]
        if run.subject is not None:
            self.last_commit = run
        return run

    def candidates(self) -> Iterator[Candidate]:
        """Yield points about commands and the last commit."""
        runs = [run for run in self._runs.values() if run is not self.last_commit]
        for index, run in enumerate(runs):
            is_recent = index >= len(runs) - _RECENT_COMMANDS
            if run.status == "pending":
                if is_recent:
                    yield Candidate("open_ends", f"Still running: {run.first_line}", 88, run.position)
            elif run.is_failed:
                passed_later = any(
                    not later.is_failed and is_similar(run, later) for later in runs[index + 1 :]
                )
                weight = 22 if passed_later else 72 if run.is_check else 58 if is_recent else 16
                label = "failed at first" if passed_later else "failed"
                yield Candidate("commands", f"{label}: {run.with_outcome}", weight, run.position)
            elif run.is_check:
                yield Candidate(
                    "commands", f"passed: {run.with_outcome}", 50 if is_recent else 24, run.position
                )
            elif is_recent:
                yield Candidate("commands", f"ran: {run.with_outcome}", 20, run.position)
        if self.last_commit is not None:
            yield Candidate(
                "last_state", f"Last commit: {self.last_commit.subject}", 62, self.last_commit.position
            )


def _run(command: str, tool: ToolCall, position: int) -> CommandRun:
    status = exit_status(tool)
    output = _RESULT_TAGS.sub("", (tool.result or "")[-_OUTPUT_CHARS:])
    is_check = _CHECK_COMMAND.search(command) is not None
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    # In a pipe the exit code of a check is lost; its output still reports failures.
    is_failed = tool.status == "failed" or bool(status) or (is_check and _FAILURE.search(output) is not None)
    return CommandRun(
        command,
        tool.status,
        status,
        is_check,
        is_failed,
        lines[-1][:_MAX_LAST_LINE_CHARS] if lines else "",
        _subject(command, tool) if tool.status == "completed" and _COMMIT.search(command) else None,
        position,
    )


def _subject(command: str, tool: ToolCall) -> str:
    found = _COMMIT_OUTPUT.search((tool.result or "")[:_OUTPUT_CHARS]) or _MESSAGE_OPTION.search(command)
    return found[1].strip("\"'") if found else "(no subject)"


def is_similar(run: CommandRun, other: CommandRun) -> bool:
    """Return whether two commands share at least half of their words."""
    first, second = set(split_words(run.command)), set(split_words(other.command))
    return len(first & second) * 2 >= min(len(first), len(second))


def split_words(text: str) -> list[str]:
    """Split a command into words."""
    try:
        return shlex.split(text)
    except ValueError:  # unbalanced quotes
        return text.split()
