"""What was done to files, and which commands ended how."""

import re
import shlex
from collections.abc import Iterator
from pathlib import PurePath

from msgspec import Struct

from backscroll.model import Edit, Message, ToolCall
from backscroll.render.briefing.sentences import informs
from backscroll.render.briefing.value import Candidate
from backscroll.render.calls import exit_status

__all__ = ["Work"]

_COMMANDS = ("command", "cmd")
_PATHS = ("file_path", "filePath", "target_file", "targetFile", "path", "relative_workspace_path",
          "relativeWorkspacePath", "notebook_path")  # fmt: skip
_COMMIT = re.compile(r"\bgit\b[^&|;\n]*\bcommit\b")
_SUBJECT = re.compile(r"(?:-m|--message=?)\s*(\"(?:[^\"\\]|\\.)+\"|'[^']+')")
_COMMITTED = re.compile(r"^\[\S.* [0-9a-f]{7,40}\] (.+)$", re.MULTILINE)  # as git itself says it
_REMOVING = re.compile(r"(?:^|&&|;|\|\|)\s*(?:git\s+)?rm\s+([^&|;\n]+)")
_CHECKING = re.compile(
    r"\b(?:test|tests|pytest|check|lint|build|mypy|ruff|clippy|tsc|vet|spec|jest|vitest)\b"
)
_REMARK = re.compile(r"\s*(?:#|//|--|;;)\s+(?!type:|noqa|eslint|pragma)(\S.{28,300})$")
_FAILURE = re.compile(
    r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\bFAILED\b|\bERR[_!]|^error(?:\[\w+\])?: "
    r"|failed with exit code [1-9]",
    re.MULTILINE,
)
_WRAPPING = re.compile(r"</?[a-z]+_[a-z_]+>")  # what a tool puts around what it hands back
_TAIL = 2000  # characters at the end of what a command printed that say how it went
_NAMED = 8  # files that are named in a row
_LATE = 4  # commands that are the last ones
_OUTCOME = 160  # characters of what a command printed


class _File(Struct):
    path: str
    added: int = 0
    removed: int = 0
    edits: int = 0
    kind: str = "read"
    position: int = 0
    rejected: int = 0


class _Run(Struct):
    command: str
    tool: ToolCall
    position: int


class Work:
    """Files and commands of a session, as far as they were told."""

    def __init__(self, workspace: str | None) -> None:
        self._workspace = workspace
        self._files: dict[str, _File] = {}
        self._runs: dict[str, _Run] = {}  # the last of each command
        self._commit: _Run | None = None
        self._remarks: list[tuple[str, str, int]] = []  # comments that were put in: why something is as it is

    def see(self, message: Message, position: int) -> None:
        """Take note of a call."""
        tool = message.tool
        if tool is None:
            return
        for edit in tool.edits:
            file = self._file(edit.path, position)
            if tool.decision == "rejected" or tool.status == "cancelled":
                file.rejected += 1
                continue
            file.kind = {"create": "new", "delete": "deleted"}.get(
                edit.kind, "changed" if file.kind != "new" else "new"
            )
            file.added += edit.added
            file.removed += edit.removed
            file.edits += 1
            file.position = position
            if edit.kind == "update":
                self._remarks += [(file.path, text, position) for text in _remarks(edit)]
        if not tool.edits:
            for name in _PATHS:
                if isinstance(path := tool.params.get(name), str) and PurePath(path).suffix:
                    self._file(path, position)
        command = next(
            (tool.params[name] for name in _COMMANDS if isinstance(tool.params.get(name), str)), None
        )
        if command is not None:
            self._ran(command, tool, position)

    def _ran(self, command: str, tool: ToolCall, position: int) -> None:
        self._runs.pop(command, None)
        run = self._runs[command] = _Run(command, tool, position)
        if tool.status != "completed":
            return
        if _COMMIT.search(command):
            self._commit = run
        for found in _REMOVING.finditer(command):
            for word in _words(found[1]):
                if not word.startswith("-") and PurePath(word).suffix:
                    file = self._file(word, position)
                    file.kind, file.position = "deleted", position

    def _file(self, path: str, position: int) -> _File:
        name = self._relative(path)
        return self._files.setdefault(name, _File(name, position=position))

    def _relative(self, path: str) -> str:
        if self._workspace and PurePath(path).is_relative_to(self._workspace):
            return PurePath(path).relative_to(self._workspace).as_posix()
        return path

    def candidates(self) -> Iterator[Candidate]:
        """What there is to say of files and commands."""
        yield from self._told_files()
        yield from self._told_commands()
        yield from self._told_commit()
        for path, text, position in self._remarks:
            yield Candidate("decisions", f"In {path}: {text}", 26 + 4 * informs(text), position)

    def _told_files(self) -> Iterator[Candidate]:
        for file in self._files.values():
            times = f", {file.edits} edits" if file.edits > 1 else ""
            changed = f" (+{file.added:,} −{file.removed:,}{times})" if file.edits else ""
            weight = 12.0 if file.kind == "read" else 55 + min(5.0, (file.added + file.removed) / 40)
            if file.edits or file.kind != "read":
                yield Candidate("files", f"{file.path}: {file.kind}{changed}", weight, file.position)
            else:
                yield Candidate(
                    "files",
                    f"{file.path}: {'not changed' if file.rejected else 'read'}",
                    weight,
                    file.position,
                )
            if file.rejected:
                times = "an edit" if file.rejected == 1 else f"{file.rejected} edits"
                yield Candidate("decisions", f"Rejected: {times} of {file.path}", 66, file.position)

    def _told_commands(self) -> Iterator[Candidate]:
        runs = [run for run in self._runs.values() if run is not self._commit]  # that is the last state
        for place, run in enumerate(runs):
            text = _shown(run)
            is_late = place >= len(runs) - _LATE
            is_check = _CHECKING.search(run.command) is not None
            if run.tool.status == "pending":
                if is_late:
                    yield Candidate("open_ends", f"Had not ended: {_command(run)}", 88, run.position)
            elif _failed(run):
                again = any(_is_alike(run, later) and not _failed(later) for later in runs[place + 1 :])
                weight = 22 if again else 72 if is_check else 58 if is_late else 16
                yield Candidate(
                    "commands", f"{'failed at first' if again else 'failed'}: {text}", weight, run.position
                )
            elif is_check:
                yield Candidate("commands", f"passed: {text}", 50 if is_late else 24, run.position)
            elif is_late:
                yield Candidate("commands", f"ran: {text}", 20, run.position)

    def _told_commit(self) -> Iterator[Candidate]:
        after = self._commit.position if self._commit is not None else -1
        changed = [file for file in self._files.values() if file.kind != "read" and file.position > after]
        if self._commit is not None:
            told = _COMMITTED.search(self._commit.tool.result or "")
            subject = told or _SUBJECT.search(self._commit.command)
            said = subject[1].strip("\"'") if subject else "(no subject given)"
            yield Candidate("last_state", f"Last commit: {said}", 62, self._commit.position)
        if changed:
            names = ", ".join(file.path for file in changed[:_NAMED])
            names += f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
            since = "since the last commit" if self._commit is not None else "in this session"
            yield Candidate(
                "open_ends", f"Not committed {since}: {names}", 70, max(file.position for file in changed)
            )


def _remarks(edit: Edit) -> Iterator[str]:
    for hunk in edit.hunks:
        for line in hunk.added:
            found = _REMARK.match(line)
            if found is not None and line.strip() not in {old.strip() for old in hunk.removed}:
                yield found[1]


def _failed(run: _Run) -> bool:
    """Whether a command failed; a check says so itself when what it printed went through a pipe."""
    if run.tool.status == "failed" or (exit_status(run.tool) or 0) != 0:
        return True
    return bool(_CHECKING.search(run.command) and _FAILURE.search((run.tool.result or "")[-_TAIL:]))


def _is_alike(one: _Run, other: _Run) -> bool:
    """Whether two commands do the same for all that can be seen: most of their words are the same."""
    first, second = set(_words(one.command)), set(_words(other.command))
    return len(first & second) * 2 >= min(len(first), len(second))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _command(run: _Run) -> str:
    lines = run.command.strip().splitlines()
    return f"`{lines[0] if lines else ''}`" + (" …" if len(lines) > 1 else "")


def _shown(run: _Run) -> str:
    printed = _WRAPPING.sub("", (run.tool.result or "")[-_TAIL:])
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    status = exit_status(run.tool)
    ended = f" (exit {status})" if status else ""
    return f"{_command(run)}{ended}" + (f": {lines[-1][:_OUTCOME]}" if lines else "")
