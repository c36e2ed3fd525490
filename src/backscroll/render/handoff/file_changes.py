"""What was done to files, with the commands that were run meanwhile."""

import re
from collections import deque
from collections.abc import Iterator
from pathlib import PurePath

from msgspec import Struct

from backscroll.model import Edit, Message, ToolCall
from backscroll.render.handoff.commands import CommandLog, CommandRun, split_words
from backscroll.render.handoff.sentences import information_score
from backscroll.render.handoff.types import Candidate

__all__ = ["FileChanges"]

_PATHS = ("file_path", "filePath", "target_file", "targetFile", "path", "relative_workspace_path",
          "relativeWorkspacePath", "notebook_path")  # fmt: skip
_REMOVING = re.compile(r"(?:^|&&|;|\|\|)\s*(?:git\s+)?rm\s+([^&|;\n]+)")
_REMARK = re.compile(r"\s*(?:#|//|--|;;)\s+(?!type:|noqa|eslint|pragma)(\S.{28,300})$")
_KEPT = 200  # remarks, the last of them
_NAMED = 8  # files that are named in a row


class _File(Struct):
    path: str
    added: int = 0
    removed: int = 0
    edits: int = 0
    kind: str = "read"
    position: int = 0
    rejected: int = 0


class FileChanges:
    """Files and commands of a session, as far as they were told."""

    def __init__(self, workspace: str | None) -> None:
        self._below = f"{workspace.rstrip('/')}/" if workspace else None
        self._files: dict[str, _File] = {}
        self._commands = CommandLog()
        # Comments that were put into code: why something is as it is.
        self._remarks: deque[tuple[str, str, int]] = deque(maxlen=_KEPT)

    def see(self, message: Message, position: int) -> None:
        """Take note of a call."""
        tool = message.tool
        if tool is None:
            return
        for edit in tool.edits:
            self._edited(edit, tool, position)
        if not tool.edits:
            for name in _PATHS:
                if isinstance(path := tool.params.get(name), str) and PurePath(path).suffix:
                    self._file(path, position)
        run = self._commands.see(tool, position)
        if run is not None and tool.status == "completed":
            self._removed(run)

    def _edited(self, edit: Edit, tool: ToolCall, position: int) -> None:
        file = self._file(edit.path, position)
        if tool.decision == "rejected" or tool.status == "cancelled":
            file.rejected += 1
            return
        usual = "new" if file.kind == "new" else "changed"
        file.kind = {"create": "new", "delete": "deleted"}.get(edit.kind, usual)
        file.added += edit.added
        file.removed += edit.removed
        file.edits += 1
        file.position = position
        if edit.kind == "update":
            self._remarks.extend((file.path, text, position) for text in _remarks(edit))

    def _removed(self, run: CommandRun) -> None:
        for found in _REMOVING.finditer(run.command):
            for word in split_words(found[1]):
                if not word.startswith("-") and PurePath(word).suffix:
                    file = self._file(word, run.position)
                    file.kind, file.position = "deleted", run.position

    def _file(self, path: str, position: int) -> _File:
        name = path.removeprefix(self._below) if self._below is not None else path
        known = self._files.get(name)
        if known is None:
            known = self._files[name] = _File(name, position=position)
        return known

    def candidates(self) -> Iterator[Candidate]:
        """What there is to say of files and commands."""
        for file in self._files.values():
            yield from _told(file)
        yield from self._commands.candidates()
        yield from self._uncommitted()
        for path, text, position in self._remarks:
            yield Candidate("decisions", f"In {path}: {text}", 26 + 4 * information_score(text), position)

    def _uncommitted(self) -> Iterator[Candidate]:
        commit = self._commands.commit
        after = commit.position if commit is not None else -1
        changed = [file for file in self._files.values() if file.kind != "read" and file.position > after]
        if changed:
            names = ", ".join(file.path for file in changed[:_NAMED])
            names += f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
            since = "since the last commit" if commit is not None else "in this session"
            last = max(file.position for file in changed)
            yield Candidate("open_ends", f"Not committed {since}: {names}", 70, last)


def _told(file: _File) -> Iterator[Candidate]:
    if file.kind == "read":
        done = "not changed" if file.rejected else "read"
        yield Candidate("files", f"{file.path}: {done}", 12, file.position)
    else:
        times = f", {file.edits} edits" if file.edits > 1 else ""
        changed = f" (+{file.added:,} −{file.removed:,}{times})" if file.edits else ""
        weight = 55 + min(5.0, (file.added + file.removed) / 40)
        yield Candidate("files", f"{file.path}: {file.kind}{changed}", weight, file.position)
    if file.rejected:
        times = "an edit" if file.rejected == 1 else f"{file.rejected} edits"
        yield Candidate("decisions", f"Rejected: {times} of {file.path}", 66, file.position)


def _remarks(edit: Edit) -> Iterator[str]:
    for hunk in edit.hunks:
        for line in hunk.added:
            found = _REMARK.match(line)
            if found is not None and line.strip() not in {old.strip() for old in hunk.removed}:
                yield found[1]
