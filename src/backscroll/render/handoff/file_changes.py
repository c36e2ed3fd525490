"""Changed files and commands of a session."""

import re
from collections import deque
from collections.abc import Iterator
from pathlib import PurePath

from msgspec import Struct

from backscroll.model import Edit, Message, ToolCall
from backscroll.model.text import pluralize
from backscroll.render.handoff.commands import CommandLog, CommandRun, split_words
from backscroll.render.handoff.sentences import information_score
from backscroll.render.handoff.types import Candidate

__all__ = ["FileChanges"]

_PATH_PARAMS = ("file_path", "filePath", "target_file", "targetFile", "path", "relative_workspace_path",
                "relativeWorkspacePath", "notebook_path")  # fmt: skip
_RM_COMMAND = re.compile(r"(?:^|&&|;|\|\|)\s*(?:git\s+)?rm\s+([^&|;\n]+)")
_COMMENT = re.compile(r"\s*(?:#|//|--|;;)\s+(?!type:|noqa|eslint|pragma)(\S.{28,300})$")
_MAX_COMMENTS = 200  # the last ones are kept
_MAX_LISTED_FILES = 8


class _File(Struct):
    path: str
    added: int = 0
    removed: int = 0
    edits: int = 0
    kind: str = "read"
    position: int = 0
    rejected: int = 0


class FileChanges:
    """Files and commands of the messages added so far."""

    def __init__(self, workspace: str | None) -> None:
        self._workspace_prefix = f"{workspace.rstrip('/')}/" if workspace else None
        self._files: dict[str, _File] = {}
        self._commands = CommandLog()
        # Comments added to code often explain a decision: path, text, position.
        self._comments: deque[tuple[str, str, int]] = deque(maxlen=_MAX_COMMENTS)

    def add(self, message: Message, position: int) -> None:
        """Add the edits and commands of a message."""
        tool = message.tool
        if tool is None:
            return
        for edit in tool.edits:
            self._add_edit(edit, tool, position)
        if not tool.edits:
            for name in _PATH_PARAMS:
                if isinstance(path := tool.params.get(name), str) and PurePath(path).suffix:
                    self._file(path, position)
        run = self._commands.add(tool, position)
        if run is not None and tool.status == "completed":
            self._add_removals(run)

    def _add_edit(self, edit: Edit, tool: ToolCall, position: int) -> None:
        file = self._file(edit.path, position)
        if tool.decision == "rejected" or tool.status == "cancelled":
            file.rejected += 1
            return
        unchanged_kind = "new" if file.kind == "new" else "changed"
        file.kind = {"create": "new", "delete": "deleted"}.get(edit.kind, unchanged_kind)
        file.added += edit.added
        file.removed += edit.removed
        file.edits += 1
        file.position = position
        if edit.kind == "update":
            self._comments.extend((file.path, text, position) for text in _added_comments(edit))

    def _add_removals(self, run: CommandRun) -> None:
        for found in _RM_COMMAND.finditer(run.command):
            for word in split_words(found[1]):
                if not word.startswith("-") and PurePath(word).suffix:
                    file = self._file(word, run.position)
                    file.kind, file.position = "deleted", run.position

    def _file(self, path: str, position: int) -> _File:
        name = path.removeprefix(self._workspace_prefix) if self._workspace_prefix is not None else path
        known = self._files.get(name)
        if known is None:
            known = self._files[name] = _File(name, position=position)
        return known

    def candidates(self) -> Iterator[Candidate]:
        """Yield points about files and commands."""
        for file in self._files.values():
            yield from _file_points(file)
        yield from self._commands.candidates()
        yield from self._uncommitted()
        for path, text, position in self._comments:
            yield Candidate(
                "decisions", f"Comment in {path}: {text}", 26 + 4 * information_score(text), position
            )

    def _uncommitted(self) -> Iterator[Candidate]:
        commit = self._commands.last_commit
        after = commit.position if commit is not None else -1
        changed = [file for file in self._files.values() if file.kind != "read" and file.position > after]
        if changed:
            names = ", ".join(file.path for file in changed[:_MAX_LISTED_FILES])
            names += (
                f" and {len(changed) - _MAX_LISTED_FILES} more" if len(changed) > _MAX_LISTED_FILES else ""
            )
            since = "since the last commit" if commit is not None else "in this session"
            last = max(file.position for file in changed)
            yield Candidate("open_ends", f"Uncommitted changes {since}: {names}", 70, last)


def _file_points(file: _File) -> Iterator[Candidate]:
    if file.kind == "read":
        state = "not changed" if file.rejected else "read"
        yield Candidate("files", f"{file.path}: {state}", 12, file.position)
    else:
        times = f", {pluralize(file.edits, 'edit')}" if file.edits > 1 else ""
        changed = f" (+{file.added:,} −{file.removed:,}{times})" if file.edits else ""
        weight = 55 + min(5.0, (file.added + file.removed) / 40)
        yield Candidate("files", f"{file.path}: {file.kind}{changed}", weight, file.position)
    if file.rejected:
        yield Candidate(
            "decisions", f"Rejected: {pluralize(file.rejected, 'edit')} of {file.path}", 66, file.position
        )


def _added_comments(edit: Edit) -> Iterator[str]:
    for hunk in edit.hunks:
        for line in hunk.added:
            found = _COMMENT.match(line)
            if found is not None and line.strip() not in {old.strip() for old in hunk.removed}:
                yield found[1]
