"""The change log: check and apply a plan, list changes, undo, recover after a crash."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from backscroll.changes import rows
from backscroll.changes.change_record import (
    ChangeRecord,
    FileOperation,
    LineOperation,
    has_record,
    read_record,
    read_rows,
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
    set_modified_at,
    sync_folder,
    write_file,
)
from backscroll.errors import ChangeConflictError, ChangeNotFoundError, DestinationError
from backscroll.model.change import Change, ChangePlan, FileChange, LineChange
from backscroll.readers.file_lock import try_lock

_LOCK_FILE = "changes.lock"
_SPARE_BYTES = 50_000_000  # free space that must be left after a change


class ChangeLog:
    """All changes that were made to the tools' stores, in a folder next to the archive.

    ``check`` raises an error if a running process prevents a change. It is called while the lock is held.
    """

    def __init__(self, folder: Path, check: Callable[[Change], None] | None = None) -> None:
        self.folder = folder
        self._check = check if check is not None else _no_check

    def entries(self) -> list[Change]:
        """Return all changes, newest first. One that was only prepared has changed nothing."""
        return [record.to_change() for record in self._records() if record.state != "preparing"]

    def find(self, change_id: str | None = None) -> Change:
        """Return a change by its id or a prefix; by default the newest that is not undone."""
        return self._find(change_id).to_change()

    def apply(self, plan: ChangePlan) -> Change:
        """Apply a plan completely, or not at all.

        Raises `ChangeConflictError` if something is no longer as it was when the plan was made.
        """
        with self._lock():
            self._recover()
            _check_current(plan)
            record, folder = self._prepare(plan)
            try:
                self._check(record.to_change())
                record.state = "applying"
                record.write(folder)
                _apply(record, folder, plan)
            except BaseException:
                self._roll_back(record, folder)
                raise
            record.state = "applied"
            record.write(folder)
            return record.to_change()

    def undo(self, change_id: str | None = None) -> Change:
        """Restore everything that a change touched, the newest change by default.

        Raises `ChangeConflictError` if a file, line or row has changed since; then nothing is restored.
        """
        with self._lock():
            self._recover()
            record = self._find(change_id)
            if record.state == "undone":
                raise ChangeNotFoundError(f"Change {record.id} is undone already.", record.id)
            folder = self.folder / record.id
            self._check(record.to_change())
            _check_unchanged(record, folder)
            record.state = "undoing"
            record.write(folder)
            _revert(record, folder)
            record.state = "undone"
            record.write(folder)
            return record.to_change()

    def recover(self) -> list[str]:
        """Finish what a crash interrupted. Return the descriptions of the changes that were rolled back."""
        if not self.folder.is_dir() or all(record.is_finished for record in self._records()):
            return []
        with self._lock():
            return self._recover()

    def forget(self, session_ref: str) -> None:
        """Delete the saved files and rows of all changes of a session. They can no longer be undone."""
        if self.folder.is_dir():
            with self._lock():
                for record in list(self._records()):
                    if session_ref in record.sessions:
                        shutil.rmtree(self.folder / record.id)

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
            for folder in sorted(self.folder.iterdir(), reverse=True):
                record = read_record(folder)
                if record is not None:
                    yield record

    def _find(self, change_id: str | None) -> ChangeRecord:
        records = [record for record in self._records() if record.state in ("applied", "undone")]
        if change_id is None:
            found = [record for record in records if record.state == "applied"][:1]
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
        change_id = f"{now:%Y%m%d-%H%M%S-%f}"  # sorts by time; the lock makes it unique
        _check_space(plan, self.folder)
        folder = self.folder / change_id
        folder.mkdir(mode=0o700)
        new_paths = [change.path for change in plan.files if change.content is not None]
        created = {parent: None for path in new_paths for parent in missing_folders(path.parent)}
        record = ChangeRecord(
            id=change_id,
            at=now,
            what=plan.what,
            sessions=plan.sessions,
            batch=plan.batch,
            copies=plan.copies,
            state="preparing",
            files=[_new_operation(change, change_id, number) for number, change in enumerate(plan.files)],
            lines=[LineOperation(str(change.path), change.before, change.after) for change in plan.lines],
            row_count=len(plan.rows),
            databases=[str(database) for database in rows.by_database(plan.rows)],
            created_folders=[str(path) for path in created],
            emptied_folders=_emptied_folders(plan),
        )
        record.write(folder)
        try:
            for path in created:
                path.mkdir(mode=0o700, exist_ok=True)
            for change, operation in zip(plan.files, record.files, strict=True):
                _save_and_stage(change, operation, folder)
            write_rows_file(folder, plan.rows)
        except BaseException as error:
            self._roll_back(record, folder)
            if isinstance(error, OSError):
                path = error.filename or folder
                raise DestinationError(f"{path} cannot be written: {error.strerror}.", path) from error
            raise
        return record, folder

    def _roll_back(self, record: ChangeRecord, folder: Path) -> None:
        if record.state == "applying":
            _revert(record, folder)
        for operation in record.files:
            if operation.staged is not None:
                Path(operation.staged).unlink(missing_ok=True)
        remove_empty(Path(path) for path in record.created_folders)
        shutil.rmtree(folder)

    def _recover(self) -> list[str]:
        rolled_back: list[str] = []
        for folder in sorted(self.folder.iterdir()):
            record = read_record(folder)
            if record is None:
                if folder.is_dir() and not has_record(folder):  # killed before its first record
                    shutil.rmtree(folder)
            elif record.state == "undoing":
                self._check(record.to_change())
                _revert(record, folder)
                record.state = "undone"
                record.write(folder)
            elif record.state in ("preparing", "applying"):
                if record.state == "applying":
                    self._check(record.to_change())
                self._roll_back(record, folder)
                rolled_back.append(record.what)
        return rolled_back


def _no_check(change: Change) -> None:
    """Allow every change."""


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

    for change in plan.files:
        if change.content is not None:
            add(change.path.parent, change.size)
        if change.before is not None:
            add(folder, change.path.stat().st_size)
    for place, size in needed.values():
        free = shutil.disk_usage(place).free
        if free < size + _SPARE_BYTES:
            needed_mb = (size + _SPARE_BYTES) / 1e6
            raise DestinationError(
                f"{place} has {free / 1e6:,.0f} MB of free space; {needed_mb:,.0f} MB are needed.", place
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
        rows.write_rows(database, changed)
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


def _revert(record: ChangeRecord, folder: Path) -> None:
    """Restore everything, from any intermediate state. Operations that were not done are skipped."""
    for operation in record.files:
        if operation.staged is None:
            _restore(operation, record, folder)
    for database, changed in reversed(rows.by_database(list(read_rows(folder))).items()):
        if database.exists():
            is_committed = str(database) in record.committed_databases
            rows.revert_rows(database, changed, is_committed=is_committed)
    for path, changes in _by_path([operation.to_change() for operation in record.lines]).items():
        inverses = [inverse_line(change) for change in changes]
        missing = missing_lines(path, inverses)
        done = [inverse for inverse in inverses if inverse not in missing]
        apply_lines(path, done, _staged_lines(path, record))
    for operation in reversed(record.files):
        if operation.staged is not None:
            _restore(operation, record, folder)
    remove_empty(Path(path) for path in record.created_folders)


def _is_as_changed(path: Path, operation: FileOperation) -> bool:
    """Return whether a file is as the change left it: to the byte, or to the row for a new database."""
    if file_hash(path) == operation.after:
        return True
    return operation.content_hash is not None and rows.content_hash(path) == operation.content_hash


def _restore(operation: FileOperation, record: ChangeRecord, folder: Path) -> None:
    """Restore one file if it is as the change left it."""
    path = Path(operation.path)
    temporary = path.with_name(f".{record.id}-{operation.saved}.restored.part")
    temporary.unlink(missing_ok=True)  # of an interrupted undo
    if operation.after == operation.before or not _is_as_changed(path, operation):
        return
    if operation.saved is None:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    copy_file(folder / operation.saved, temporary, operation.mode)
    set_modified_at(temporary, operation.modified_at)
    temporary.replace(path)
    sync_folder(path.parent)
