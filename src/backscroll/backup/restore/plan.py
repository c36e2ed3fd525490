"""Plan a restore: which files of a backup go where, and what exists there already."""

import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.backup.reader import BackupReader
from backscroll.backup.restore.options import (
    RestoreOptions,
    involved_roots,
    is_selected,
    target_root,
    wanted_sessions,
)
from backscroll.backup.restore.relocation import Relocations
from backscroll.backup.restore.session_copies import extract_all, reduce_folder
from backscroll.backup.snapshot import take_snapshot
from backscroll.backup.verify import check_files
from backscroll.changes.files import file_hash
from backscroll.errors import ArchiveError, BackscrollError, ChangeConflictError, RestoreError
from backscroll.model.safekeeping.backup import (
    BackupFile,
    BackupManifest,
    BackupRoot,
    InsertPlan,
    ProgressCallback,
    RestoreAction,
    RestoredFile,
)
from backscroll.model.safekeeping.changes import Content
from backscroll.readers.file_hash import file_sha256
from backscroll.sources import named
from backscroll.sources.capabilities import BackupContents, SessionInsertion, SessionSelection
from backscroll.sources.capability_lookup import capability, required_capability

__all__ = ["PlannedFile", "PlannedInsert", "RestorePlan", "make_plan"]

_ARCHIVE_WARNING = (
    "The archive in the backup is not restored, because an archive exists already."
    " To restore a session that only the backup contains, use --session."
)


class PlannedFile(Struct, frozen=True):
    """A file of a backup, and what to do with it."""

    file: BackupFile
    source: str  # empty for the archive
    root: Path  # to which the files of its root are restored
    target: Path
    action: RestoreAction
    content: Content
    current_hash: str | None = None  # of the file at the target
    reason: str | None = None

    def to_result(self) -> RestoredFile:
        return RestoredFile(str(self.target), self.action, self.file.size, self.reason)


class PlannedInsert(Struct, frozen=True):
    """Sessions that are added to files with other sessions, below one root."""

    source: str
    root: Path
    session_ids: frozenset[str]
    plan: InsertPlan


class RestorePlan(Struct, frozen=True):
    """Everything that a restore changes."""

    files: tuple[PlannedFile, ...]
    inserts: tuple[PlannedInsert, ...]
    warnings: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[RestoredFile, ...]:
        inserted = (result for insert in self.inserts for result in insert.plan.results)
        return (*(one.to_result() for one in self.files), *inserted)


def make_plan(
    reader: BackupReader, options: RestoreOptions, folder: Path, progress: ProgressCallback | None = None
) -> RestorePlan:
    """Check the selected files and compare them with those at their targets.

    Private copies are written into ``folder``, which must exist until the plan is applied. Nothing else is
    written. Raises `RestoreError` if nothing is selected, or a target is not clear.
    """
    manifest = reader.manifest
    wanted = wanted_sessions(manifest, options)
    is_partial = wanted is not None or manifest.is_filtered
    roots = {root.name: root for root in manifest.roots}
    involved = involved_roots(manifest, options, wanted)
    files = [
        file
        for file in manifest.files
        if file.root in involved and is_selected(manifest, file, options, wanted)
    ]
    if not files:
        raise RestoreError(f"{reader.path} contains nothing that was selected.", reader.path)
    _check_paths(files, roots, reader.path)
    relocations = Relocations(reader, options, folder)
    planned: list[PlannedFile] = []
    warnings: list[str] = []
    shared: dict[str, list[BackupFile]] = {}
    for file, check in zip(files, check_files(reader, tuple(files), progress), strict=True):
        one = _planned_file(reader, file, roots[file.root], options, relocations)
        if check.status == "invalid":
            planned.append(replace(one, action="damaged", reason=check.reason))
        elif is_partial and file.is_shared:
            shared.setdefault(file.root, []).append(file)
        elif file.kind == "archive" and one.target.exists() and (is_partial or not _is_empty(one.target)):
            # It may contain sessions that were deleted everywhere else, so not even `force` replaces it.
            warnings.append(_ARCHIVE_WARNING)
        else:
            content, digest = relocations.content(roots[file.root], file)
            one = _compare(replace(one, content=content), digest, options)
            is_same = one.action in ("kept", "replace") and _has_same_rows(one, manifest, options, folder)
            planned.append(replace(one, action="unchanged", reason=None) if is_same else one)
    _check_targets(planned, reader.path)
    inserts = [
        _plan_insert(reader, roots[name], found, wanted, options, relocations, folder / str(number))
        for number, (name, found) in enumerate(shared.items())
    ]
    return RestorePlan(tuple(planned), tuple(inserts), (*warnings, *relocations.warnings))


def _planned_file(
    reader: BackupReader,
    file: BackupFile,
    root: BackupRoot,
    options: RestoreOptions,
    relocations: Relocations,
) -> PlannedFile:
    """Return where a file goes: its root and its path, both mapped. The archive goes to its folder."""
    folder = options.archive_folder if file.kind == "archive" else target_root(root, options)
    target = folder.joinpath(*PurePosixPath(relocations.path(root, file)).parts)
    return PlannedFile(file, root.source, folder, target, "create", partial(reader.blocks, file))


def _check_paths(files: Iterable[BackupFile], roots: Mapping[str, BackupRoot], backup: Path) -> None:
    """Raise `RestoreError` if a file is not part of a history, such as settings with commands."""
    for file in files:
        source = roots[file.root].source
        contents = capability(named(source), BackupContents) if source else None
        if contents is not None and not contents.is_history_path(file.path):
            raise RestoreError(f"{file.path} in {backup} is not part of the history of {source}.", backup)


def _has_same_rows(one: PlannedFile, manifest: BackupManifest, options: RestoreOptions, folder: Path) -> bool:
    """Return whether a database has the content of the backup. Its file differs from a copy in any case."""
    contents = capability(named(one.source), BackupContents) if one.file.kind == "database" else None
    if contents is None or options.maps:
        return False
    remove_secrets = None if manifest.has_secrets else contents.remove_secrets
    try:
        copy = take_snapshot(one.target, folder, remove_secrets)
    except (BackscrollError, sqlite3.Error):
        return False
    try:
        return copy is not None and file_sha256(copy) == one.file.sha256
    finally:
        if copy is not None:
            copy.unlink()


def _compare(one: PlannedFile, digest: str, options: RestoreOptions) -> PlannedFile:
    """Compare a file with the one at its target. ``digest`` is the SHA-256 of its content."""
    try:
        current = file_hash(one.target)
    except (OSError, ChangeConflictError) as error:
        return replace(one, action="kept", reason=str(error))
    if current is None:
        return one
    if current == digest:
        return replace(one, action="unchanged", current_hash=current)
    if options.force or one.file.kind == "archive":  # an archive at the target is empty
        return replace(one, action="replace", current_hash=current)
    return replace(one, action="kept", reason="exists and differs", current_hash=current)


def _is_empty(path: Path) -> bool:
    """Return whether an archive contains nothing, as after the first command on a new machine."""
    try:
        with closing(Archive(path)) as archive:
            return archive.maintenance.is_empty()
    except ArchiveError:  # damaged, or of a newer version
        return False


def _check_targets(planned: Iterable[PlannedFile], backup: Path) -> None:
    """Raise `RestoreError` if two files have the same target."""
    seen: set[str] = set()
    for one in planned:
        target = os.path.normcase(one.target)
        if target in seen:
            raise RestoreError(f"Two files of {backup} would be restored to {one.target}.", backup)
        seen.add(target)


def _plan_insert(
    reader: BackupReader,
    root: BackupRoot,
    files: list[BackupFile],
    wanted: frozenset[str] | None,
    options: RestoreOptions,
    relocations: Relocations,
    folder: Path,
) -> PlannedInsert:
    """Plan to add the sessions of a root to files that may contain others."""
    source = named(root.source)
    copy = extract_all(reader, files, folder / "original")
    ids = frozenset(session_id for file in files for session_id in file.session_ids)
    if wanted is not None:
        ids = wanted
        copy = reduce_folder(required_capability(source, SessionSelection), copy, ids, folder / "selected")
    copy = relocations.relocate_folder(root, copy, folder / "mapped")
    target = target_root(root, options)
    plan = required_capability(source, SessionInsertion).plan_insert(copy, target, force=options.force)
    return PlannedInsert(root.source, target, ids, plan)
