"""The change log: check and apply a plan, list changes, undo, recover after a crash."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from backscroll.changes import rows
from backscroll.changes.change_record import (
    ChangeRecord,
    FileOperation,
    LineOperation,
    TableOperation,
    has_record,
    read_record,
    read_rows,
    rewrite_rows_file,
    write_rows_file,
)
from backscroll.changes.files import (
    apply_lines,
    copy_file,
    file_hash,
    inverse_line,
    missing_folders,
    missing_lines,
    publish_new,
    remove_empty,
    remove_file,
    set_modified_at,
    sync_folder,
    write_file,
)
from backscroll.changes.plan_check import check_plan
from backscroll.errors import (
    BackscrollError,
    ChangeConflictError,
    ChangeNotFoundError,
    DestinationError,
    ToolRunningError,
)
from backscroll.model.change import (
    Change,
    ChangePlan,
    FileChange,
    FolderMove,
    LineChange,
    NewTable,
    RowChange,
)
from backscroll.model.text import pluralize
from backscroll.readers.file_lock import try_lock

_LOCK_FILE = "changes.lock"
_BLOCK_BYTES = 1 << 20
_SPARE_BYTES = 50_000_000  # free space that must be left after a change


class ChangeLog:
    """All changes that were made to the tools' stores, in a folder next to the archive.

    ``check`` raises an error if a running process prevents a change. ``move`` moves sessions in the archive,
    or moves them back if its second argument is True; repeating it has no effect. Both are called while the
    lock is held.
    """

    def __init__(
        self,
        folder: Path,
        check: Callable[[Change], None] | None = None,
        move: Callable[[Sequence[FolderMove], bool], None] | None = None,
    ) -> None:
        self.folder = folder
        self._move = move if move is not None else _no_moves
        self._check = check if check is not None else _no_check
        self._failures: dict[str, BackscrollError] = {}  # why unfinished changes could not be rolled back

    def entries(self) -> list[Change]:
        """Return all changes in any state, newest first."""
        return [record.to_change() for record in self._records()]

    def find(self, change_id: str | None = None) -> Change:
        """Return a change by its id or a prefix; by default the newest that is not undone."""
        return self._find(change_id).to_change()

    def apply(self, plan: ChangePlan) -> Change:
        """Apply a plan completely, or not at all.

        Raises `ChangeConflictError` if something is no longer as it was when the plan was made, and the
        errors of `check_plan`.
        """
        with self._lock():
            self._recover()
            self._check_unfinished(plan)
            check_plan(plan)
            _check_current(plan)
            record, folder = self._prepare(plan)
            try:
                self._check(record.to_change())
                record.state = "applying"
                record.write(folder)
                _apply(record, folder, plan)
                self._move(record.moves, False)
            except BaseException as error:
                self._roll_back_after(error, record, folder)
                raise
            record.state = "applied"
            record.write(folder)
            return record.to_change()

    def undo(self, change_id: str | None = None, *, is_final: bool = True) -> Change:
        """Restore everything that a change touched, the newest change by default.

        Raises `ChangeConflictError` if a file, line or row has changed since, or if a later change concerns
        the same session; then nothing is restored. A change that was interrupted is ended in any case: what
        could not be restored is in ``problems`` of the result.

        Without ``is_final``, the undo counts as interrupted until `end_undo`: after a crash before that,
        `recover` returns it.
        """
        with self._lock():
            self._recover()
            record = self._find(change_id)
            if record.state == "undone":
                raise ChangeNotFoundError(f"Change {record.id} is undone already.", record.id)
            folder = self.folder / record.id
            self._check(record.to_change())
            if not record.is_finished:
                return self._end(record, folder)
            self._check_later(record)
            _check_unchanged(record, folder)
            record.state = "undoing"
            record.write(folder)
            self._revert(record, folder)
            record.state = "undone"
            if is_final:
                record.write(folder)
            return record.to_change()

    def end_undo(self, change_id: str) -> None:
        """Record that an undo is complete."""
        with self._lock():
            record = self._find(change_id)
            if record.state == "undoing":
                record.state = "undone"
                record.write(self.folder / record.id)

    def made_by(self, command: str) -> list[Change]:
        """Return the changes that a command made, in any batch, and that are not undone. Newest first."""
        return [
            record.to_change()
            for record in self._records()
            if record.command == command and record.state == "applied"
        ]

    def open_batch(self, command: str) -> list[Change]:
        """Return the changes of the last command if it was this one and was interrupted. Newest first."""
        applied = [record for record in self._records() if record.state == "applied"]
        found = [record for record in applied if record.batch and record.batch == applied[0].batch]
        is_open = not any(record.is_batch_end for record in found)
        return [record.to_change() for record in found if record.command == command] if is_open else []

    def end_batch(self, batch: str) -> None:
        """Record that the command of a batch is complete."""
        with self._lock():
            record = next(
                (one for one in self._records() if one.batch == batch and one.state == "applied"), None
            )
            if record is not None:
                record.is_batch_end = True
                record.write(self.folder / record.id)

    def recover(self) -> list[Change]:
        """Finish what a crash interrupted. Return the changes that were rolled back or undone.

        A change that cannot be rolled back stays. `unfinished` returns it with the reason.
        """
        if not self.folder.is_dir() or all(record.is_finished for record in self._records()):
            return []
        with self._lock():
            return self._recover()

    def unfinished(self) -> list[tuple[Change, BackscrollError]]:
        """Return the changes that `recover` could not roll back, each with the reason, newest first."""
        records = [record for record in self._records() if not record.is_finished]
        return [(record.to_change(), self._failure_of(record)) for record in records]

    def forget(self, session_ref: str) -> None:
        """Delete what is saved of a session in all changes. That part can no longer be undone."""
        if self.folder.is_dir():
            with self._lock():
                for record in list(self._records()):
                    if session_ref in record.sessions:
                        _forget_part(record, self.folder / record.id, session_ref)

    # Folders and lock

    @contextmanager
    def _lock(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        held = try_lock(self.folder / _LOCK_FILE)
        if held is None:
            raise ChangeConflictError(
                "Another process is changing files of a tool. Wait until it is done.", self.folder
            )
        try:
            yield
        finally:
            held.close()

    def _records(self) -> Iterator[ChangeRecord]:
        """Yield the records of all changes, newest first."""
        if self.folder.is_dir():
            records = [record for folder in self.folder.iterdir() if (record := read_record(folder))]
            yield from sorted(records, key=lambda record: record.order, reverse=True)

    def _find(self, change_id: str | None) -> ChangeRecord:
        records = list(self._records())
        if change_id is None:
            found = [record for record in records if record.state != "undone"][:1]
        else:
            found = [record for record in records if record.id.startswith(change_id)]
        if not found:
            name = f"No change has the id '{change_id}'." if change_id else "There is nothing to undo."
            raise ChangeNotFoundError(f"{name} Run 'backscroll changes' to see all changes.", change_id or "")
        if len(found) > 1:
            ids = ", ".join(record.id for record in found[:5])
            raise ChangeNotFoundError(f"'{change_id}' matches several changes: {ids}.", change_id or "")
        return found[0]

    # Prepare, roll back, recover

    def _prepare(self, plan: ChangePlan) -> tuple[ChangeRecord, Path]:
        """Save what will change and stage new files. Nothing of the tool changes yet."""
        now = datetime.now(UTC)
        _check_space(plan, self.folder)
        folder = _new_folder(self.folder, now)
        change_id = folder.name
        new_paths = [change.path for change in plan.files if change.content is not None]
        created = {parent: None for path in new_paths for parent in missing_folders(path.parent)}
        record = ChangeRecord(
            id=change_id,
            at=now,
            what=plan.what,
            sessions=plan.sessions,
            batch=plan.batch,
            command=plan.command,
            copies=plan.copies,
            state="preparing",
            number=max((record.number for record in self._records()), default=0) + 1,
            files=[_new_operation(change, change_id, number) for number, change in enumerate(plan.files)],
            lines=[LineOperation(str(change.path), change.before, change.after) for change in plan.lines],
            row_count=len(plan.rows),
            databases=[str(database) for database in rows.by_database(plan.rows)],
            moves=plan.moves,
            tables=[TableOperation(str(one.database), one.name, one.statement) for one in plan.tables],
            created_folders=[str(path) for path in created],
            emptied_folders=_emptied_folders(plan),
        )
        try:
            record.write(folder)
            for path in created:
                path.mkdir(mode=0o700, exist_ok=True)
            for change, operation in zip(plan.files, record.files, strict=True):
                _save_and_stage(change, operation, folder)
            write_rows_file(folder, plan.rows)
        except BaseException as error:
            self._roll_back_after(error, record, folder)
            if isinstance(error, OSError):
                path = error.filename or folder
                raise DestinationError(f"{path} cannot be written: {error.strerror}.", path) from error
            raise
        return record, folder

    def _roll_back_after(self, error: BaseException, record: ChangeRecord, folder: Path) -> None:
        """Roll back a change that failed. If that fails too, the change stays, and the error says so."""
        try:
            self._roll_back(record, folder)
        except (BackscrollError, OSError) as second:
            error.add_note(f"Change {record.id} could not be rolled back: {second}")

    def _roll_back(self, record: ChangeRecord, folder: Path) -> None:
        if record.state == "applying":
            self._revert(record, folder)
        _remove_staged(record)
        shutil.rmtree(folder)

    def _recover(self) -> list[Change]:
        """Roll back or undo all unfinished changes, newest first. Keep why one of them failed."""
        self._failures = {}
        for folder in self.folder.iterdir():
            if folder.is_dir() and not has_record(folder):  # killed before its first record
                shutil.rmtree(folder)
        ended: list[Change] = []
        for record in list(self._records()):
            if record.is_finished:
                continue
            folder = self.folder / record.id
            try:
                if record.state != "preparing":
                    self._check(record.to_change())
                if record.state == "undoing":
                    self._revert(record, folder)
                    record.state = "undone"
                    record.write(folder)
                else:
                    self._roll_back(record, folder)
                ended.append(record.to_change())
            except BackscrollError as error:
                self._failures[record.id] = error
            except OSError as error:
                path = error.filename or folder
                reason = f"{path} cannot be written: {error.strerror}."
                self._failures[record.id] = DestinationError(reason, path)
        return ended

    def _revert(self, record: ChangeRecord, folder: Path, problems: list[str] | None = None) -> None:
        with _collecting(problems):
            self._move(record.moves, True)
        _revert(record, folder, problems)

    def _end(self, record: ChangeRecord, folder: Path) -> Change:
        """End an interrupted change: restore what can be restored, and record what cannot."""
        self._revert(record, folder, record.problems)
        with _collecting(record.problems):
            _remove_staged(record)
        record.state = "undone"
        record.write(folder)
        return record.to_change()

    def _check_unfinished(self, plan: ChangePlan) -> None:
        """Raise an error if an unfinished change touches the same files."""
        planned = {str(change.path) for change in plan.files}
        planned |= {str(change.path) for change in plan.lines}
        planned |= {str(row.database) for row in plan.rows}
        for record in self._records():
            if not record.is_finished and not planned.isdisjoint(record.paths):
                raise self._failure_of(record)

    def _failure_of(self, record: ChangeRecord) -> BackscrollError:
        error = self._failures.get(record.id)
        if isinstance(error, ToolRunningError):
            return error
        reason = f": {error}" if error is not None else "."
        return ChangeConflictError(
            f"The change {record.id} ({record.what}) was interrupted and cannot be rolled back{reason}",
            self.folder / record.id,
            hint=f"Run 'backscroll undo {record.id}' to end it.",
        )

    def _check_later(self, record: ChangeRecord) -> None:
        """Raise `ChangeConflictError` if a later change concerns a session of this one."""
        for later in self._records():
            if later.order <= record.order:
                return
            if later.state == "applied" and (common := later.affected & record.affected):
                raise ChangeConflictError(
                    f"{min(common)} was changed again later, by {later.id} ({later.what}).",
                    self.folder / record.id,
                    hint=f"Run 'backscroll undo {later.id}' first.",
                )


def _no_check(change: Change) -> None:
    """Allow every change."""


def _no_moves(moves: Sequence[FolderMove], is_undo: bool) -> None:
    """Raise an error if there is something to move: this log has no archive."""
    if moves:
        raise ChangeConflictError("The archive of this change is unknown.", "")


def _new_folder(parent: Path, now: datetime) -> Path:
    """Create the folder of a change. Its name is the time; a number follows if the clock went back."""
    stem, number = f"{now:%Y%m%d-%H%M%S-%f}", 1
    folder = parent / stem
    while True:
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
            folder = parent / f"{stem}-{number}"
        else:
            return folder


@contextmanager
def _collecting(problems: list[str] | None) -> Iterator[None]:
    """Add an error to the problems; without a list, raise it."""
    try:
        yield
    except (BackscrollError, OSError) as error:
        if problems is None:
            raise
        if isinstance(error, OSError) and error.filename is not None:
            problems.append(f"{error.filename}: {error.strerror}.")
        else:
            problems.append(str(error))


# Prepare


def _check_current(plan: ChangePlan) -> None:
    """Raise `ChangeConflictError` unless every file and line is as the plan expects."""
    for change in plan.files:
        current = file_hash(change.path)
        if current == change.before:
            continue
        if change.before is None:
            raise ChangeConflictError(f"{change.path} exists already. Nothing was changed.", change.path)
        raise ChangeConflictError(f"{change.path} has changed meanwhile. Nothing was changed.", change.path)
    for path, changes in _by_path(plan.lines).items():
        if missing_lines(path, changes):
            raise ChangeConflictError(f"{path} has changed meanwhile. Nothing was changed.", path)


def _check_space(plan: ChangePlan, folder: Path) -> None:
    """Raise `DestinationError` if a disk has too little space for new and saved files."""
    needed: dict[int, tuple[Path, int]] = {}

    def add(place: Path, size: int) -> None:
        while not place.exists():
            place = place.parent
        device = place.stat().st_dev
        needed[device] = (place, needed.get(device, (place, 0))[1] + size)

    add(folder, 0)  # the archive is there, too: it is updated after the change
    for change in plan.files:
        if change.content is not None:
            add(change.path.parent, change.size)
        if change.before is not None:
            add(folder, change.path.stat().st_size)
    for row in plan.rows:
        before, after = rows.size_of(row.before), rows.size_of(row.after)
        add(row.database.parent, max(0, after - before))
        add(folder, before + after)
    for place, size in needed.values():
        free = shutil.disk_usage(place).free
        if free < size + _SPARE_BYTES:
            needed_mb = (size + _SPARE_BYTES) / 1e6
            raise DestinationError(
                f"{place} has {free / 1e6:,.0f} MB of free space; {needed_mb:,.0f} MB are needed."
                " Nothing was changed. Free some space and try again.",
                place,
            )


def _new_operation(change: FileChange, change_id: str, number: int) -> FileOperation:
    """Return the record of one planned operation."""
    operation = FileOperation(
        path=str(change.path),
        before=change.before,
        is_left_if_changed=change.is_left_if_changed,
        modified_at=change.modified_at,
    )
    if change.before is not None:
        operation.mode = change.path.stat().st_mode & 0o777
        operation.saved = str(number)
    if change.content is not None:
        operation.staged = str(change.path.with_name(f".{change_id}-{number}.part"))
    return operation


def _save_and_stage(change: FileChange, operation: FileOperation, folder: Path) -> None:
    """Save the current file and write the new one next to its target."""
    if operation.saved is not None and copy_file(change.path, folder / operation.saved) != operation.before:
        raise ChangeConflictError(f"{change.path} has changed meanwhile. Nothing was changed.", change.path)
    if change.content is not None and operation.staged is not None:
        operation.after = write_file(Path(operation.staged), change.content(), operation.mode)
        set_modified_at(Path(operation.staged), operation.modified_at)
        if change.is_left_if_changed:
            operation.content_hash = rows.content_hash(Path(operation.staged))


def _emptied_folders(plan: ChangePlan) -> list[str]:
    """Return the folders of deleted files and their parents, if the plan deletes everything in them."""
    deleted = {change.path for change in plan.files if change.content is None}
    emptied: set[Path] = set()
    for folder in sorted({path.parent for path in deleted}, key=lambda one: len(one.parts), reverse=True):
        current = folder
        while current.is_dir() and all(path in deleted or path in emptied for path in current.iterdir()):
            emptied.add(current)
            current = current.parent
    return [str(path) for path in sorted(emptied)]


def _by_path(changes: Iterable[LineChange]) -> dict[Path, list[LineChange]]:
    """Group changes of lines by file."""
    grouped: dict[Path, list[LineChange]] = {}
    for change in changes:
        grouped.setdefault(change.path, []).append(change)
    return grouped


# Apply


def _apply(record: ChangeRecord, folder: Path, plan: ChangePlan) -> None:
    """Create and replace files, change lines and rows, delete files."""
    for operation in record.files:
        if operation.staged is not None:
            _publish(operation)
    for path, changes in _by_path(plan.lines).items():
        apply_lines(path, changes, _staged_lines(path, record))
    for database, changed in rows.by_database(plan.rows).items():
        rows.write_rows(database, changed, _tables_of(database, record))
        record.committed_databases.append(str(database))
        record.write(folder)
    for operation in record.files:
        if operation.staged is None:
            _delete(operation)
    remove_empty(Path(path) for path in record.emptied_folders)


def _publish(operation: FileOperation) -> None:
    staged, target = Path(operation.staged or ""), Path(operation.path)
    if operation.before is None:
        try:
            publish_new(staged, target)
        except FileExistsError as error:
            raise ChangeConflictError(f"{target} exists already. Nothing was changed.", target) from error
        return
    if file_hash(target) != operation.before:
        raise ChangeConflictError(f"{target} has changed meanwhile. Nothing was changed.", target)
    staged.replace(target)
    sync_folder(target.parent)


def _delete(operation: FileOperation) -> None:
    path = Path(operation.path)
    if file_hash(path) != operation.before:
        raise ChangeConflictError(f"{path} has changed meanwhile. Nothing was changed.", path)
    path.unlink()
    sync_folder(path.parent)


def _tables_of(database: Path, record: ChangeRecord) -> list[NewTable]:
    return [one.to_change() for one in record.tables if one.database == str(database)]


def _staged_lines(path: Path, record: ChangeRecord) -> Path:
    return path.with_name(f".{record.id}-{path.name}.part")


# Undo


def _check_unchanged(record: ChangeRecord, folder: Path) -> None:
    """Raise `ChangeConflictError` if anything is no longer as the change left it."""
    for operation in record.files:
        current = file_hash(Path(operation.path))
        if current not in (operation.after, operation.before) and not operation.is_left_if_changed:
            raise ChangeConflictError(
                f"{operation.path} has changed since. Undo would lose that change.",
                operation.path,
                hint=rows.MOVE_BACK_HINT,
            )
    for database, changed in rows.by_database(list(read_rows(folder))).items():
        rows.check_rows(database, changed)


def _revert(record: ChangeRecord, folder: Path, problems: list[str] | None = None) -> None:
    """Restore everything, from any intermediate state. Operations that were not done are skipped.

    With ``problems``, an operation that cannot be reverted is added there, and the others are reverted.
    """
    for operation in record.files:
        if operation.staged is None:
            with _collecting(problems):
                _restore(operation, record, folder, problems)
    for database, changed in reversed(rows.by_database(list(read_rows(folder))).items()):
        with _collecting(problems):
            _revert_rows(database, changed, record, problems)
    for path, changes in _by_path([operation.to_change() for operation in record.lines]).items():
        with _collecting(problems):
            inverses = [inverse_line(change) for change in changes]
            missing = missing_lines(path, inverses)
            done = [inverse for inverse in inverses if inverse not in missing]
            apply_lines(path, done, _staged_lines(path, record))
    for operation in reversed(record.files):
        if operation.staged is not None:
            with _collecting(problems):
                _restore(operation, record, folder, problems)
    remove_empty(Path(path) for path in record.created_folders)


def _revert_rows(
    database: Path, changed: list[RowChange], record: ChangeRecord, problems: list[str] | None
) -> None:
    if not database.exists():
        return
    is_committed = str(database) in record.committed_databases
    tables = _tables_of(database, record)
    left = rows.revert_rows(database, changed, tables, is_committed=is_committed)
    if left and problems is not None:
        problems.append(f"{database}: {pluralize(left, 'row')} changed meanwhile and stay as they are.")


def _remove_staged(record: ChangeRecord) -> None:
    """Delete the new files that were not published, and the folders that were created for them."""
    for operation in record.files:
        if operation.staged is not None:
            remove_file(Path(operation.staged))
    remove_empty(Path(path) for path in record.created_folders)


def _is_as_changed(path: Path, operation: FileOperation) -> bool:
    """Return whether a file is as the change left it: to the byte, or to the row for a new database."""
    if file_hash(path) == operation.after:
        return True
    return operation.content_hash is not None and rows.content_hash(path) == operation.content_hash


def _restore(
    operation: FileOperation, record: ChangeRecord, folder: Path, problems: list[str] | None
) -> None:
    """Restore one file if it is as the change left it."""
    path = Path(operation.path)
    temporary = path.with_name(f".{record.id}-{operation.saved}.restored.part")
    remove_file(temporary)  # of an interrupted undo
    if operation.after == operation.before:
        return
    if not _is_as_changed(path, operation):
        if problems is not None and file_hash(path) != operation.before:
            problems.append(f"{path} changed meanwhile and stays as it is.")
        return
    if operation.saved is None:
        if os.path.lexists(path):
            path.unlink()
            sync_folder(path.parent)
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    copy_file(folder / operation.saved, temporary, operation.mode)
    set_modified_at(temporary, operation.modified_at)
    temporary.replace(path)
    sync_folder(path.parent)


# Forget


def _forget_part(record: ChangeRecord, folder: Path, session_ref: str) -> None:
    """Delete what a change keeps of one session: its operations, saved files and rows.

    An operation belongs to the session if it names it. A change of this session only is deleted.
    """
    others = [ref for ref in record.sessions if ref != session_ref]
    if not others:
        shutil.rmtree(folder)
        return
    mark = session_ref.partition(":")[2].encode()
    kept: list[FileOperation] = []
    for operation in record.files:
        saved = folder / operation.saved if operation.saved is not None else None
        if mark in os.fsencode(operation.path) or (saved is not None and _contains(saved, mark)):
            if saved is not None:
                remove_file(saved)
        else:
            kept.append(operation)
    record.files = kept
    record.lines = [one for one in record.lines if mark not in (one.before or b"") + (one.after or b"")]
    kept_rows = [row for row in read_rows(folder) if not _names(row, session_ref, mark)]
    record.row_count = len(kept_rows)
    record.sessions = tuple(others)
    record.moves = tuple(one for one in record.moves if one.session != session_ref)
    record.copies = tuple(ref for ref in record.copies if ref != session_ref)
    rewrite_rows_file(folder, kept_rows)
    record.write(folder)


def _contains(path: Path, mark: bytes) -> bool:
    """Return whether a saved file contains some bytes."""
    rest = b""
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            if mark in rest + block:
                return True
            rest = block[-len(mark) :]
    return False


def _names(row: RowChange, session_ref: str, mark: bytes) -> bool:
    """Return whether a row belongs to a session, or mentions it."""
    if row.session == session_ref:
        return True
    for value in (*row.key.values(), *(row.before or {}).values(), *(row.after or {}).values()):
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        if isinstance(data, bytes) and mark in data:
            return True
    return False
