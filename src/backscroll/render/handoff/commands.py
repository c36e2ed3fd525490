"""Which commands were run, and how they ended."""

import re
import shlex
from collections.abc import Iterator

from msgspec import Struct

from backscroll.model import Status, ToolCall
from backscroll.render.handoff.types import Candidate
from backscroll.render.tool_calls import exit_status

__all__ = ["CommandLog", "CommandRun", "split_words"]

_PARAMS = ("command", "cmd")
_COMMIT = re.compile(r"\bgit\b[^&|;\n]*\bcommit\b")
_SUBJECT = re.compile(r"(?:-m|--message=?)\s*(\"(?:[^\"\\]|\\.)+\"|'[^']+')")
_COMMITTED = re.compile(r"^\[\S.* [0-9a-f]{7,40}\] (.+)$", re.MULTILINE)  # as git itself says it
_CHECKING = re.compile(
    r"\b(?:test|tests|pytest|check|lint|build|mypy|ruff|clippy|tsc|vet|spec|jest|vitest)\b"
)
_FAILURE = re.compile(
    r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\bFAILED\b|\bERR[_!]|^error(?:\[\w+\])?: "
    r"|failed with exit code [1-9]",
    re.MULTILINE,
)
_WRAPPING = re.compile(r"</?[a-z]+_[a-z_]+>")  # what a tool puts around what it hands back
_TAIL = 2000  # characters at the end of what a command printed that say how it went
_OUTCOME = 160  # of these that are told
_LONGEST = 4000  # characters of a command that are looked at
_KEPT = 200  # commands, the last of them
_LATE = 4  # commands that are the last ones


class CommandRun(Struct, frozen=True):
    """A command, and what came of it."""

    command: str
    status: Status
    exit: int | None
    is_check: bool
    is_failed: bool
    last_line: str
    subject: str | None  # of the commit that it made
    position: int

    @property
    def typed(self) -> str:
        """The command in a line."""
        lines = self.command.strip().splitlines()
        return f"`{lines[0] if lines else ''}`" + (" …" if len(lines) > 1 else "")

    @property
    def told(self) -> str:
        """The command in a line, with how it ended."""
        ended = f" (exit {self.exit})" if self.exit else ""
        return f"{self.typed}{ended}" + (f": {self.last_line}" if self.last_line else "")


class CommandLog:
    """The last commands of a session, of each the last time it was run."""

    def __init__(self) -> None:
        self.commit: CommandRun | None = None  # the last one
        self._runs: dict[str, CommandRun] = {}

    def see(self, tool: ToolCall, position: int) -> CommandRun | None:
        """Take note of a call, if it ran a command."""
        command = next(
            (tool.params[name] for name in _PARAMS if isinstance(tool.params.get(name), str)), None
        )
        if command is None:
            return None
        run = _run(command[:_LONGEST], tool, position)
        self._runs.pop(run.command, None)
        self._runs[run.command] = run
        if len(self._runs) > _KEPT:
            del self._runs[next(iter(self._runs))]
        if run.subject is not None:
            self.commit = run
        return run

    def candidates(self) -> Iterator[Candidate]:
        """What there is to say of them."""
        runs = [run for run in self._runs.values() if run is not self.commit]  # that is the last state
        for place, run in enumerate(runs):
            is_late = place >= len(runs) - _LATE
            if run.status == "pending":
                if is_late:
                    yield Candidate("open_ends", f"Had not ended: {run.typed}", 88, run.position)
            elif run.is_failed:
                again = any(not later.is_failed and _is_alike(run, later) for later in runs[place + 1 :])
                weight = 22 if again else 72 if run.is_check else 58 if is_late else 16
                word = "failed at first" if again else "failed"
                yield Candidate("commands", f"{word}: {run.told}", weight, run.position)
            elif run.is_check:
                yield Candidate("commands", f"passed: {run.told}", 50 if is_late else 24, run.position)
            elif is_late:
                yield Candidate("commands", f"ran: {run.told}", 20, run.position)
        if self.commit is not None:
            yield Candidate("last_state", f"Last commit: {self.commit.subject}", 62, self.commit.position)


def _run(command: str, tool: ToolCall, position: int) -> CommandRun:
    status = exit_status(tool)
    tail = _WRAPPING.sub("", (tool.result or "")[-_TAIL:])
    is_check = _CHECKING.search(command) is not None
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    # A check says itself that it failed when what it printed went through a pipe.
    is_failed = tool.status == "failed" or bool(status) or (is_check and _FAILURE.search(tail) is not None)
    return CommandRun(
        command,
        tool.status,
        status,
        is_check,
        is_failed,
        lines[-1][:_OUTCOME] if lines else "",
        _subject(command, tool) if tool.status == "completed" and _COMMIT.search(command) else None,
        position,
    )


def _subject(command: str, tool: ToolCall) -> str:
    found = _COMMITTED.search((tool.result or "")[:_TAIL]) or _SUBJECT.search(command)
    return found[1].strip("\"'") if found else "(no subject given)"


def _is_alike(one: CommandRun, other: CommandRun) -> bool:
    """Whether two commands do the same for all that can be seen: most of their words are the same."""
    first, second = set(split_words(one.command)), set(split_words(other.command))
    return len(first & second) * 2 >= min(len(first), len(second))


def split_words(text: str) -> list[str]:
    """The words of a command."""
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is never closed
        return text.split()
