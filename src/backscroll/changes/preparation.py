"""Check a plan, save what it changes and stage new files. Nothing of the tool changes."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from backscroll.changes import lines, rows
from backscroll.changes.change_record import FileOperation
from backscroll.changes.files import copy_file, file_hash, set_modified_at, write_file
from backscroll.errors import ChangeConflictError, DestinationError
from backscroll.model.safekeeping.changes import ChangePlan, FileChange, LineChange

__all__ = ["by_path", "check_current", "check_space", "emptied_folders", "new_operation", "save_and_stage"]

_SPARE_BYTES = 50_000_000  # free space that must be left after a change


def check_current(plan: ChangePlan) -> None:
    """Raise `ChangeConflictError` unless every file and line is as the plan expects."""
    for change in plan.files:
        current = file_hash(change.path)
        if current == change.before:
            continue
        if change.before is None:
            raise ChangeConflictError(f"{change.path} exists already. Nothing was changed.", change.path)
        raise ChangeConflictError(f"{change.path} has changed meanwhile. Nothing was changed.", change.path)
    for path, changes in by_path(plan.lines).items():
        if lines.missing_lines(path, changes):
            raise ChangeConflictError(f"{path} has changed meanwhile. Nothing was changed.", path)


def check_space(plan: ChangePlan, folder: Path) -> None:
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


def new_operation(change: FileChange, change_id: str, number: int) -> FileOperation:
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


def save_and_stage(change: FileChange, operation: FileOperation, folder: Path) -> None:
    """Save the current file and write the new one next to its target."""
    if operation.saved is not None and copy_file(change.path, folder / operation.saved) != operation.before:
        raise ChangeConflictError(f"{change.path} has changed meanwhile. Nothing was changed.", change.path)
    if change.content is not None and operation.staged is not None:
        operation.after = write_file(Path(operation.staged), change.content(), operation.mode)
        set_modified_at(Path(operation.staged), operation.modified_at)
        if change.is_left_if_changed:
            operation.content_hash = rows.content_hash(Path(operation.staged))


def emptied_folders(plan: ChangePlan) -> list[str]:
    """Return the folders of deleted files and their parents, if the plan deletes everything in them."""
    deleted = {change.path for change in plan.files if change.content is None}
    emptied: set[Path] = set()
    for folder in sorted({path.parent for path in deleted}, key=lambda one: len(one.parts), reverse=True):
        current = folder
        while current.is_dir() and all(path in deleted or path in emptied for path in current.iterdir()):
            emptied.add(current)
            current = current.parent
    return [str(path) for path in sorted(emptied)]


def by_path(changes: Iterable[LineChange]) -> dict[Path, list[LineChange]]:
    """Group changes of lines by file."""
    grouped: dict[Path, list[LineChange]] = {}
    for change in changes:
        grouped.setdefault(change.path, []).append(change)
    return grouped
