"""Back up, restore, move and copy sessions of a source with a file per session. Nothing here writes.

`SessionFileBackup` and `SessionFileWriter` follow the declarations of a `SessionFiles` source. The functions
below them are also used by sources with a writer of their own.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from sqlite3 import Connection
from uuid import uuid4

from msgspec.structs import replace

from backscroll.errors import ChangeConflictError, DataNotFoundError, SessionNotFoundError, TransferError
from backscroll.model.backup import BackupFolder, SourceFile
from backscroll.model.change import ChangePlan, Content, FileChange, LineChange
from backscroll.model.store import SESSION
from backscroll.model.transfer import (
    ArchivedFile,
    ArchivedRows,
    ArchivedSession,
    BlockingProcess,
    SessionPlan,
    StoredSession,
)
from backscroll.model.workspace import PathMaps
from backscroll.readers.files import file_sha256
from backscroll.sources.capabilities import Relocation
from backscroll.sources.json_edits import Members, edit_bytes, lines_of
from backscroll.sources.session_files import SessionFiles, path_expression

_JSON_ENDS = (".json", ".jsonl")

# Backup


class SessionFileBackup:
    """Backup of the declared files: those of sessions, their side files, and other files of the history."""

    def __init__(self, source: SessionFiles) -> None:
        self._source = source

    def backup_files(self, root: Path) -> Iterator[SourceFile]:
        """Return every file of the history below a root, each once."""
        found: dict[str, SourceFile] = {}
        for unit in self._source.units(root):
            pattern = self._source.pattern_of(unit)
            is_database = pattern is not None and pattern.is_database
            found[unit.path] = SourceFile(unit.path, unit.session_id, is_database)
            for path in self._source.side_paths(unit):
                if os.path.isfile(path):  # noqa: PTH113 - a string
                    found.setdefault(path, SourceFile(path, unit.session_id))
        for declared in self._source.other_files:
            for one in sorted(root.glob(re.sub(r"\{\w+\}", "*", declared))):
                if one.is_file():
                    found.setdefault(str(one), SourceFile(str(one)))
        return iter(found.values())

    def is_history_path(self, path: str) -> bool:
        """Return whether `backup_files` may return a path below the root, with forward slashes."""
        return any(expression.fullmatch(path) for expression in self._expressions())

    def _expressions(self) -> Iterator[re.Pattern[str]]:
        for pattern in self._source.files:
            yield path_expression(pattern.path)
            folder = pattern.path.rpartition("/")[0]
            yield from (path_expression(f"{folder}/{side}".lstrip("/")) for side in pattern.beside)
            for side in pattern.sides:
                yield path_expression(side)
                yield path_expression(f"{side}/**/*")
        yield from map(path_expression, self._source.other_files)

    def expected_tables(self, path: str) -> frozenset[str]:
        """Return none: a source with a database overrides this."""
        return frozenset()

    def remove_secrets(self, connection: Connection) -> None:
        """Do nothing. A source with credentials in a database overrides this."""

    def relocate(self, files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> Relocation:
        """Return the new contents of the files of a root. Declared folders are replaced in JSON files."""
        return _FieldRelocation(self._source, maps)


class _FieldRelocation(Relocation):
    """Replaces folders in the declared members of JSON files. Files keep their paths."""

    def __init__(self, source: SessionFiles, maps: PathMaps) -> None:
        self._source = source
        self._edit = _folder_edit(source, maps)
        self.warnings = ()

    def path(self, path: str) -> str:
        return path

    def content(self, path: str, blocks: Iterable[bytes]) -> Iterable[bytes] | None:
        is_session = self._source.find_pattern(path) is not None
        return edited(path, blocks, self._edit) if is_session and self._edit else None

    def edit_database(self, path: str, connection: Connection) -> None:
        """Change nothing."""


_Edit = Callable[[str], str]


def _folder_edit(source: SessionFiles, maps: PathMaps) -> _Edit | None:
    """Return the function that replaces folders in a record; None if no members are declared."""
    fields = source.json_fields
    if fields is None or not fields.folders:
        return None
    return partial(Members(fields.folders, source.type_field).edit, new_string=maps.path)


# Restore, move and copy


class SessionFileWriter:
    """Plans to restore sessions byte for byte, and to move and copy them if `JsonFields` are declared."""

    def __init__(self, source: SessionFiles) -> None:
        self._source = source

    def blocking_processes(self, root: Path, session_ids: Collection[str]) -> list[BlockingProcess]:
        """Return none: how a running process is found depends on the tool."""
        return []

    def plan_restore(self, session: ArchivedSession, *, is_replacing: bool = False) -> SessionPlan:
        """Plan to create the files of a session that do not exist. Existing files stay as they are.

        ``is_replacing`` replaces those that differ.
        """
        if not session.files:
            raise DataNotFoundError(f"The archive has no file of {session.ref}.", session.root)
        paths = {file.path for file in session.files}
        for unit in self._source.units(session.root):
            is_session = unit.kind == SESSION.name and unit.session_id == session.id
            if is_session and unit.path not in paths:
                raise ChangeConflictError(f"{session.ref} is in the store already: {unit.path}", unit.path)
        root = session.root.resolve()
        files = [file for file in session.files if Path(file.path).resolve().is_relative_to(root)]
        files += archived_side_files(session)
        missing = {file.path: file for file in files if is_missing(file) or (is_replacing and differs(file))}
        plan = ChangePlan(
            what=f"Restore {session.ref}",
            sessions=(session.ref,),
            files=tuple(
                restored_file(file, file.content, file.label, modified_at=file.modified_at)
                for file in missing.values()
            ),
        )
        return SessionPlan(plan, session.id)

    def restore_planner(self, root: Path, check: Callable[[SessionPlan], None]) -> "FileRestorePlanner":
        """Return a planner that restores several sessions."""
        return FileRestorePlanner(self.plan_restore, check)

    def plan_move(self, session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
        """Plan to replace the folder in the files of a session, and to move files that belong elsewhere."""
        files = self._files(session)
        edit = None if keep_cwd else self._new_folder(session, target)
        changes: list[FileChange] = []
        for path in files:
            new_path = self._source.moved_path(path, session.root, target)
            modified_at = path.stat().st_mtime
            if new_path != path:
                check_free(new_path)
                changes.append(self._rewritten(path, new_path, edit, modified_at=modified_at))
                changes.append(
                    FileChange(path=path, content=None, before=file_sha256(path), modified_at=modified_at)
                )
            elif edit is not None:
                changes.append(self._rewritten(path, path, edit, modified_at=modified_at))
        if not changes:
            reason = "Its folder is only in its messages, which were to be kept."
            raise TransferError(f"{session.ref} cannot be moved. {reason}", session.id, "unsupported")
        plan = ChangePlan(
            what=f"Move {session.ref} to {target}", sessions=(session.ref,), files=tuple(changes)
        )
        return SessionPlan(plan, session.id)

    def plan_copy(self, session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
        """Plan to copy the files of a session under a new id. The original stays as it is."""
        files = self._files(session)
        fields = self._source.json_fields
        if fields is None or fields.ids is None:
            raise _refused(session, "copied", self._source.name)
        new_id = str(uuid4())
        edits: list[_Edit] = [partial(self._members(fields.ids).edit, new_string={session.id: new_id}.get)]
        if not keep_cwd:
            edits.append(self._new_folder(session, target))
        changes: list[FileChange] = []
        for path in files:
            below = str(path.relative_to(session.root)).replace(session.id, new_id)
            new_path = self._source.moved_path(session.root / below, session.root, target)
            if new_path == path:
                reason = f"{path} does not have its id in its name."
                raise TransferError(f"{session.ref} cannot be copied. {reason}", session.id, "unsupported")
            check_free(new_path)
            changes.append(self._rewritten(path, new_path, partial(_apply_all, edits)))
        copy = f"{session.ref.removesuffix(session.id)}{new_id}"
        plan = ChangePlan(
            what=f"Copy {session.ref} to {target}", sessions=(session.ref, copy), files=tuple(changes)
        )
        return SessionPlan(plan, new_id)

    def _files(self, session: StoredSession) -> list[Path]:
        """Return the files of a session and the files beside them. Raises an error if it cannot be moved."""
        if self._source.json_fields is None:
            raise _refused(session, "moved", self._source.name)
        wanted = set(session.paths)
        found: dict[Path, None] = {}
        for unit in self._source.units_at(session.root, session.paths):
            pattern = self._source.pattern_of(unit)
            if unit.path in wanted and pattern is not None and not pattern.is_database:
                if not unit.path.endswith(_JSON_ENDS):
                    raise TransferError(f"{unit.path} cannot be edited.", session.id, "unsupported")
                for path in map(Path, (unit.path, *self._source.side_paths(unit))):
                    if path.is_symlink():
                        raise link_error(path)
                    found |= {path: None} if path.is_file() else {}
        if not found:
            raise SessionNotFoundError(f"{session.ref} has no file below {session.root}.", session.id)
        return list(found)

    def _new_folder(self, session: StoredSession, target: Path) -> _Edit:
        """Return the function that replaces the session's folder in a record."""
        if session.folder is None:
            raise TransferError(
                f"The folder of {session.ref} is unknown, so it cannot be replaced.",
                session.id,
                "unsupported",
            )
        edit = _folder_edit(self._source, PathMaps([(session.folder, str(target))]))
        if edit is None:
            raise _refused(session, "moved", self._source.name)
        return edit

    def _rewritten(
        self, path: Path, new_path: Path, edit: _Edit | None, *, modified_at: float | None = None
    ) -> FileChange:
        return FileChange(
            path=new_path,
            content=partial(self._content, path, edit),
            before=file_sha256(path) if new_path == path else None,
            size=path.stat().st_size,
            label="session file",
            modified_at=modified_at,
        )

    def _content(self, path: Path, edit: _Edit | None) -> Iterable[bytes]:
        return read_lines(path) if edit is None else edited(str(path), read_lines(path), edit)

    def _members(self, names: Mapping[str, tuple[str, ...]]) -> Members:
        return Members(names, self._source.type_field)


class FileRestorePlanner:
    """Joins the plans of sessions that have files of their own.

    Of a file that several sessions need, the first plan counts. Files named ``joined`` have lines of several
    sessions.
    """

    def __init__(
        self,
        plan: Callable[[ArchivedSession], SessionPlan],
        check: Callable[[SessionPlan], None],
        joined: str | None = None,
    ) -> None:
        self._plan = plan
        self._check = check
        self._joined = joined
        self._files: dict[Path, FileChange] = {}
        self._lines: list[LineChange] = []

    def add(self, session: ArchivedSession) -> SessionPlan:
        plan = self._plan(session)
        self._check(plan)
        for file in plan.changes.files:
            if file.path.name == self._joined and file.path in self._files:
                self._files[file.path] = _joined(self._files[file.path], file)
            else:
                self._files.setdefault(file.path, file)
        self._lines += plan.changes.lines
        return plan

    def changes(self) -> ChangePlan:
        return ChangePlan(what="", files=tuple(self._files.values()), lines=tuple(self._lines))

    def close(self) -> None:
        """Do nothing: the files are opened when they are read."""


def _joined(first: FileChange, second: FileChange) -> FileChange:
    """Return the change that creates a file with the content of both."""

    def content() -> Iterator[bytes]:
        for change in (first, second):
            if change.content is not None:
                yield from change.content()

    return replace(first, content=content, size=first.size + second.size)


def _apply_all(edits: Iterable[_Edit], text: str) -> str:
    for edit in edits:
        text = edit(text)
    return text


def _refused(session: StoredSession, done: str, source_name: str) -> TransferError:
    reason = f"Sessions of {source_name} can be restored, but not {done}."
    return TransferError(f"{session.ref} cannot be {done}. {reason}", session.id, "unsupported")


# Files of sessions


def edited(path: str, content: Iterable[bytes], edit: _Edit) -> Iterable[bytes]:
    """Return a file with edited JSON objects: each line, or the whole file. Others stay as they are."""
    if path.endswith(".jsonl"):
        return (edit_bytes(line, edit) for line in lines_of(content))
    if path.endswith(".json"):
        return [edit_bytes(b"".join(content), edit)]
    return content


def archived_side_files(session: ArchivedSession) -> Iterator[ArchivedFile]:
    """Yield the archived side files of a session that belong below its root."""
    root = session.root.resolve()
    for unit in session.rows:
        for row in unit.rows():
            path = session.root / row.path
            is_file = not row.table and row.path and row.value is not None
            if is_file and path.resolve().is_relative_to(root):
                yield ArchivedFile(
                    str(path),
                    len(row.value or b""),
                    partial(_side_content, unit, row.path),
                    modified_at=unit.modified_at,
                )


def _side_content(unit: ArchivedRows, path: str) -> Iterator[bytes]:
    for row in unit.rows():
        if row.path == path and not row.table and row.value is not None:
            yield row.value


def restored_file(
    file: ArchivedFile, content: Content, label: str, *, modified_at: float | None = None
) -> FileChange:
    """Return the change that creates a missing file, or replaces an empty one."""
    path = Path(file.path)
    return FileChange(
        path=path,
        content=content,
        before=file_sha256(path) if path.exists() else None,
        size=file.size,
        label=label,
        modified_at=modified_at,
    )


def has_content(path: Path) -> bool:
    """Return whether a file exists and is not empty. Tools ignore empty ones."""
    return path.exists() and path.stat().st_size > 0


def is_missing(file: ArchivedFile) -> bool:
    """Return whether a file does not exist, or is empty and was not: tools ignore empty ones."""
    path = Path(file.path)
    return not path.exists() or (file.size > 0 and not has_content(path))


def differs(file: ArchivedFile) -> bool:
    """Return whether a file exists with other content than the archived one."""
    path = Path(file.path)
    if not path.is_file():
        return False
    digest = sha256()
    for block in file.content():
        digest.update(block)
    return digest.hexdigest() != file_sha256(path)


def check_free(path: Path) -> None:
    """Raise `ChangeConflictError` if a path exists."""
    if path.exists():
        raise ChangeConflictError(f"{path} exists already.", path)


def link_error(path: Path) -> ChangeConflictError:
    """Return the error for a link: it would be moved without what it points to."""
    return ChangeConflictError(f"{path} is a symbolic link. Replace it by what it points to.", path)


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, with their newlines."""
    with path.open("rb") as file:
        yield from file
