"""Plan a restore: which files of a backup go where, and what exists there already."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from backscroll.backup.reader import BackupReader
from backscroll.backup.verify import check_files
from backscroll.changes.files import file_hash
from backscroll.errors import ChangeConflictError, RestoreError
from backscroll.model.backup import (
    BackupFile,
    BackupManifest,
    ProgressCallback,
    RestoreAction,
    RestoredFile,
)

__all__ = ["PlannedFile", "RestoreOptions", "plan_files"]


class RestoreOptions(Struct, frozen=True, kw_only=True):
    """What to restore, and where."""

    archive_folder: Path
    source: str | None = None
    sessions: tuple[str, ...] = ()  # ids or prefixes of ids, with or without the source
    maps: tuple[tuple[str, str], ...] = ()  # old and new folder
    force: bool = False  # replace files that differ


class PlannedFile(Struct, frozen=True):
    """A file of a backup, and what to do with it."""

    file: BackupFile
    source: str  # empty for the archive
    target: Path
    action: RestoreAction
    current_hash: str | None = None  # of the file at the target
    reason: str | None = None

    def to_result(self) -> RestoredFile:
        return RestoredFile(str(self.target), self.action, self.file.size, self.reason)


def plan_files(
    reader: BackupReader, options: RestoreOptions, progress: ProgressCallback | None = None
) -> list[PlannedFile]:
    """Check the selected files and compare them with those at their targets. Nothing is written.

    Raises `RestoreError` if nothing is selected, or a target is not clear.
    """
    manifest = reader.manifest
    wanted = _wanted_sessions(manifest, options)
    files = [file for file in manifest.files if _is_selected(manifest, file, options, wanted)]
    if not files:
        raise RestoreError(f"{reader.path} contains nothing that was selected.", reader.path)
    checks = check_files(reader, tuple(files), progress)
    sources = {root.name: root.source for root in manifest.roots}
    planned: list[PlannedFile] = []
    for file, check in zip(files, checks, strict=True):
        target = _target(manifest, file, options)
        if check.status == "invalid":
            planned.append(PlannedFile(file, sources[file.root], target, "damaged", reason=check.reason))
        elif wanted is not None and not set(file.session_ids) <= wanted:
            reason = "contains other sessions too; restore its source as a whole"
            planned.append(PlannedFile(file, sources[file.root], target, "shared", reason=reason))
        else:
            planned.append(_compare(file, sources[file.root], target, options))
    _check_targets(planned, reader.path)
    return planned


def _compare(file: BackupFile, source: str, target: Path, options: RestoreOptions) -> PlannedFile:
    try:
        current = file_hash(target)
    except (OSError, ChangeConflictError) as error:
        return PlannedFile(file, source, target, "kept", reason=str(error))
    if current is None:
        return PlannedFile(file, source, target, "create")
    if current == file.sha256:
        return PlannedFile(file, source, target, "unchanged", current)
    if options.force:
        return PlannedFile(file, source, target, "replace", current)
    return PlannedFile(file, source, target, "kept", current, "exists and differs")


def _check_targets(planned: Iterable[PlannedFile], backup: Path) -> None:
    """Raise `RestoreError` if two files have the same target."""
    seen: set[str] = set()
    for one in planned:
        target = os.path.normcase(one.target)
        if target in seen:
            raise RestoreError(f"Two files of {backup} would be restored to {one.target}.", backup)
        seen.add(target)


def _wanted_sessions(manifest: BackupManifest, options: RestoreOptions) -> set[str] | None:
    """Return the ids of the selected sessions; None if all are selected."""
    if not options.sessions:
        return None
    known = {session_id for file in manifest.files for session_id in file.session_ids}
    wanted: set[str] = set()
    for ref in options.sessions:
        prefix = ref.rpartition(":")[2]
        found = {session_id for session_id in known if prefix and session_id.startswith(prefix)}
        if prefix in found:
            found = {prefix}
        if len(found) != 1:
            problem = "matches several sessions. Use a longer prefix" if found else "matches no session"
            raise RestoreError(f"{ref!r} {problem} of the backup.", ref)
        wanted |= found
    return wanted


def _is_selected(
    manifest: BackupManifest, file: BackupFile, options: RestoreOptions, wanted: set[str] | None
) -> bool:
    if wanted is not None:
        return file.kind != "archive" and not wanted.isdisjoint(file.session_ids)
    if options.source is None:
        return True
    return any(root.name == file.root and root.source == options.source for root in manifest.roots)


def _target(manifest: BackupManifest, file: BackupFile, options: RestoreOptions) -> Path:
    """Return where a file goes: its root, mapped, with its relative path. The archive goes to its folder."""
    if file.kind == "archive":
        return options.archive_folder / file.path
    root = next(root.path for root in manifest.roots if root.name == file.root)
    folder = Path(_mapped(root, options.maps))
    if not folder.is_absolute():
        raise RestoreError(
            f"{root} is not a folder on this system.",
            root,
            hint=f"Name the new folder with --map '{root}=NEW'.",
        )
    return folder.joinpath(*PurePosixPath(file.path).parts)


def _mapped(path: str, maps: Sequence[tuple[str, str]]) -> str:
    """Replace the start of a path, at the end of a component. The longest match wins."""
    parts = _parts(path)
    for old, new in sorted(maps, key=lambda pair: -len(_parts(pair[0]))):
        start = _parts(old)
        if parts[: len(start)] == start:
            return str(Path(new).absolute().joinpath(*parts[len(start) :]))
    return path


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").rstrip("/").split("/")
