"""Plan a restore: which files of a backup go where, and what exists there already.

On another machine, files get new paths, and new paths in their contents. Of files with several sessions,
only the selected sessions are copied.
"""

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.backup.reader import BackupReader, FileDamagedError, check_files
from backscroll.backup.snapshot import selected_rows, take_snapshot
from backscroll.changes.files import file_hash
from backscroll.errors import ArchiveError, BackscrollError, ChangeConflictError, RestoreError
from backscroll.model.backup import (
    BackupFile,
    BackupFolder,
    BackupManifest,
    BackupRoot,
    InsertPlan,
    ProgressCallback,
    RestoreAction,
    RestoredFile,
)
from backscroll.model.change import Content
from backscroll.model.workspace import PathMaps
from backscroll.readers.files import file_sha256
from backscroll.sources import named
from backscroll.sources.capabilities import Backup, Relocation
from backscroll.sources.row_inserts import file_blocks

_ARCHIVE_WARNING = (
    "The archive in the backup is not restored, because an archive exists already."
    " To restore a session that only the backup contains, use --session."
)


class RestoreOptions(Struct, frozen=True, kw_only=True):
    """What to restore, and where."""

    archive_folder: Path
    source: str | None = None
    sessions: tuple[str, ...] = ()  # refs, or prefixes of ids
    archived_sessions: tuple[str, ...] = ()  # refs of selected sessions that only the archive contains
    maps: tuple[tuple[str, str], ...] = ()  # old and new folder
    is_resolved: bool = False  # the sessions are refs with complete ids
    force: bool = False  # replace what differs
    known_roots: frozenset[Path] = frozenset()  # the folders of the tools on this machine
    home: Path = Path("/")

    def is_trusted(self, folder: Path) -> bool:
        """Return whether a folder can be one of a tool.

        It is a known one, or it has the name of a known one and is in the home folder or in a mapped one.
        """
        if folder in self.known_roots:
            return True
        has_name = folder.name in {root.name for root in self.known_roots}
        parents = [self.home, *(Path(new).absolute() for _, new in self.maps)]
        return has_name and any(folder.is_relative_to(parent) for parent in parents)

    @property
    def path_maps(self) -> PathMaps:
        return PathMaps((old, str(Path(new).absolute())) for old, new in self.maps)


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
    wanted = _wanted_sessions(manifest, options)
    is_partial = wanted is not None or manifest.is_filtered
    roots = {root.name: root for root in manifest.roots}
    involved = _involved_roots(manifest, options, wanted)
    files = [
        file
        for file in manifest.files
        if file.root in involved and _is_selected(manifest, file, options, wanted)
    ]
    if not files:
        raise RestoreError(f"{reader.path} contains nothing that was selected.", reader.path)
    _check_paths(files, roots, reader.path)
    relocations = _Relocations(reader, options, folder)
    planned: list[PlannedFile] = []
    warnings: list[str] = []
    shared: dict[str, list[BackupFile]] = {}
    for file, check in zip(files, check_files(reader, tuple(files), folder, progress), strict=True):
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


def _wanted_sessions(manifest: BackupManifest, options: RestoreOptions) -> frozenset[str] | None:
    """Return the ids of the selected sessions; None if all are selected. Raises `RestoreError`."""
    if not options.sessions:
        return None
    known = {session_id for file in manifest.files for session_id in file.session_ids}
    sources = {root.source for root in manifest.roots}
    wanted: set[str] = set()
    for ref in options.sessions:
        source, _, prefix = ref.rpartition(":")
        if source in sources and prefix not in known and options.is_resolved:
            wanted.add(prefix)  # some files do not name their sessions
            continue
        found = {session_id for session_id in known if prefix and session_id.startswith(prefix)}
        if prefix in found:
            found = {prefix}
        if len(found) != 1:
            problem = "matches several sessions. Use a longer prefix" if found else "matches no session"
            raise RestoreError(f"{ref!r} {problem} of the backup.", ref)
        wanted |= found
    return frozenset(wanted)


def _involved_roots(
    manifest: BackupManifest, options: RestoreOptions, wanted: frozenset[str] | None
) -> frozenset[str]:
    """Return the names of the roots that may contain something of the selected sessions."""
    sources = {ref.rpartition(":")[0] for ref in options.sessions}
    return frozenset(
        file.root for file in manifest.files if wanted is None or not wanted.isdisjoint(file.session_ids)
    ) | {root.name for root in manifest.roots if root.source in sources}


def _is_selected(
    manifest: BackupManifest, file: BackupFile, options: RestoreOptions, wanted: frozenset[str] | None
) -> bool:
    """Return whether a file is restored. Files with several sessions are decided later."""
    source = next(root.source for root in manifest.roots if root.name == file.root)
    if options.source is not None and source != options.source:
        return False
    if wanted is None:
        return True
    return file.kind != "archive" and (file.is_shared or not wanted.isdisjoint(file.session_ids))


def _check_paths(files: Iterable[BackupFile], roots: Mapping[str, BackupRoot], backup: Path) -> None:
    """Raise `RestoreError` if a file is not part of a history, such as settings with commands."""
    for file in files:
        source = roots[file.root].source
        source_backup = named(source).backup() if source else None
        if source_backup is not None and not source_backup.is_history_path(file.path):
            raise RestoreError(f"{file.path} in {backup} is not part of the history of {source}.", backup)


class _Relocations:
    """New paths and contents of the files in a backup. Without maps, everything stays as it is."""

    def __init__(self, reader: BackupReader, options: RestoreOptions, folder: Path) -> None:
        self._reader = reader
        self._options = options
        self._folder = folder  # for private copies
        self._by_root: dict[str, Relocation | None] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        found = [one.warnings for one in self._by_root.values() if one is not None]
        return tuple(dict.fromkeys(warning for warnings in found for warning in warnings))

    def path(self, root: BackupRoot, file: BackupFile) -> str:
        """Return the new path of a file below its root."""
        relocation = self._of(root)
        return relocation.path(file.path) if relocation is not None else file.path

    def content(self, root: BackupRoot, file: BackupFile) -> tuple[Content, str]:
        """Return the content of a valid file and its SHA-256, with new paths."""
        if file.kind == "archive" and self._options.maps:
            return self._archive_content(file)
        relocation = self._of(root)
        if relocation is None:
            return partial(self._reader.blocks, file), file.sha256
        if file.kind == "database":
            number = self._reader.manifest.files.index(file)
            copy = self._reader.extract(file, self._folder / f"mapped-{number}.db")
            _edit_paths(relocation, file.path, copy)
            return partial(file_blocks, copy), file_sha256(copy)
        if relocation.content(file.path, ()) is None:
            return partial(self._reader.blocks, file), file.sha256
        content = partial(relocation.new_content, file.path, partial(self._reader.blocks, file))
        digest = sha256()
        for block in content():
            digest.update(block)
        return content, digest.hexdigest()

    def _archive_content(self, file: BackupFile) -> tuple[Content, str]:
        copy = self._reader.extract(file, self._folder / "mapped-archive.db")
        try:
            with closing(Archive(copy)) as archive:
                archive.maintenance.relocate(self._new_root, self._options.path_maps)
        except ArchiveError:  # of a newer version; it is restored as it is
            return partial(self._reader.blocks, file), file.sha256
        return partial(file_blocks, copy), file_sha256(copy)

    def _new_root(self, source: str, root: str) -> tuple[str, Callable[[str], str]] | None:
        """Return where the units of a root are on this machine. The backup may contain no files of it."""
        in_backup = (one for one in self._reader.manifest.roots if (one.source, one.path) == (source, root))
        found = next(in_backup, BackupRoot(f"{source} {root}", source, root))
        try:
            target = _target_root(found, self._options)
        except RestoreError:
            return None
        relocation = self._of(found)
        return (str(target), relocation.path) if relocation is not None else None

    def relocate_folder(self, root: BackupRoot, folder: Path, target: Path) -> Path:
        """Move the private copies of a root's files to their new paths in another folder, and edit them."""
        relocation = self._of(root)
        if relocation is None:
            return folder
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = path.relative_to(folder).as_posix()
            moved = target.joinpath(*PurePosixPath(relocation.path(name)).parts)
            moved.parent.mkdir(parents=True, exist_ok=True)
            with path.open("rb") as file:
                is_database = file.read(16) == b"SQLite format 3\0"
            if is_database:
                _edit_paths(relocation, name, path)
                path.replace(moved)
                continue
            blocks = relocation.new_content(name, partial(file_blocks, path))
            moved.write_bytes(b"".join(blocks))
        return target

    def _of(self, root: BackupRoot) -> Relocation | None:
        if not self._options.maps or not root.source:
            return None
        if root.name not in self._by_root:
            source_backup = named(root.source).backup()
            files = [file for file in self._reader.manifest.files if file.root == root.name]
            by_path = {file.path: file for file in files}
            paths = dict.fromkeys([*by_path, *self._archived.paths(root)])
            folder = BackupFolder(tuple(paths), partial(self._read, by_path), self._archived.workspaces)
            self._by_root[root.name] = (
                source_backup.relocate(
                    folder, self._options.path_maps, root.path, _target_root(root, self._options)
                )
                if source_backup is not None
                else None
            )
        return self._by_root[root.name]

    def _read(self, files: dict[str, BackupFile], path: str) -> Iterator[bytes]:
        """Yield the content of a file; a damaged one up to the damage. A file in the archive has none."""
        if path not in files:
            return
        try:
            yield from self._reader.blocks(files[path])
        except FileDamagedError:
            return

    @cached_property
    def _archived(self) -> "_ArchivedPaths":
        """The paths in the archive of the backup; none if it is missing or damaged."""
        file = next((file for file in self._reader.manifest.files if file.kind == "archive"), None)
        if file is None:
            return _ArchivedPaths()
        try:
            copy = self._reader.extract(file, self._folder / "archive" / "archive.db")
            with closing(Archive(copy)) as archive:
                workspaces = archive.sessions.workspaces()
                files = archive.originals.units_with_file()
        except (FileDamagedError, ArchiveError):
            return _ArchivedPaths()
        return _ArchivedPaths(
            tuple(workspace.path for workspace in workspaces if workspace.host is None),
            tuple((one.source, one.root, one.path) for one in files),
        )


class _ArchivedPaths(NamedTuple):
    """Paths in the archive of a backup."""

    workspaces: tuple[str, ...] = ()
    files: tuple[tuple[str, str, str], ...] = ()  # source, root and path; also of files that no longer exist

    def paths(self, root: BackupRoot) -> list[str]:
        """Return the paths of files below a root, relative to it."""
        return [
            path[len(root.path) :].replace("\\", "/").strip("/")
            for source, folder, path in self.files
            if (source, folder) == (root.source, root.path)
        ]


def _edit_paths(relocation: Relocation, path: str, copy: Path) -> None:
    """Change the paths in a private copy of a database. It keeps its journal mode."""
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.text_factory = bytes
        (mode,) = connection.execute("pragma journal_mode").fetchone()
        connection.execute("pragma journal_mode = delete")
        connection.execute("begin")
        relocation.edit_database(path, connection)
        connection.execute("commit")
        if mode == b"wal":
            connection.execute("pragma journal_mode = wal")


def _planned_file(
    reader: BackupReader,
    file: BackupFile,
    root: BackupRoot,
    options: RestoreOptions,
    relocations: _Relocations,
) -> PlannedFile:
    """Return where a file goes: its root and its path, both mapped. The archive goes to its folder."""
    folder = options.archive_folder if file.kind == "archive" else _target_root(root, options)
    target = folder.joinpath(*PurePosixPath(relocations.path(root, file)).parts)
    return PlannedFile(file, root.source, folder, target, "create", partial(reader.blocks, file))


def _target_root(root: BackupRoot, options: RestoreOptions) -> Path:
    """Return the folder to which the files of a root are restored.

    Raises `RestoreError` if it cannot be a folder of the tool: a backup could name any folder.
    """
    folder = Path(options.path_maps.path(root.path) or root.path)
    is_named = any(Path(old) == Path(root.path) for old, _ in options.maps)
    if not folder.is_absolute():
        raise RestoreError(
            f"{root.path} is not a folder on this system.",
            root.path,
            hint=f"Name the new folder with --map '{root.path}=NEW'.",
        )
    if ".." in folder.parts or not (is_named or options.is_trusted(folder)):
        raise RestoreError(
            f"{folder} is not a folder of {root.source} on this machine.",
            folder,
            hint=f"Name the folder with --map '{root.path}=NEW', or with --root {root.source}={folder}.",
        )
    return folder


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


def _has_same_rows(one: PlannedFile, manifest: BackupManifest, options: RestoreOptions, folder: Path) -> bool:
    """Return whether a database has the content of the backup. Its file differs from a copy in any case."""
    source_backup = named(one.source).backup() if one.file.kind == "database" else None
    if source_backup is None or options.maps:
        return False
    remove_secrets = None if manifest.has_secrets else source_backup.remove_secrets
    try:
        copy = take_snapshot(one.target, folder, remove_secrets)
    except (BackscrollError, sqlite3.Error):
        return False
    try:
        return copy is not None and file_sha256(copy) == one.file.sha256
    finally:
        if copy is not None:
            copy.unlink()


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
    relocations: _Relocations,
    folder: Path,
) -> PlannedInsert:
    """Plan to add the sessions of a root to files that may contain others."""
    source_backup = named(root.source).backup()
    assert source_backup is not None
    copy = _extract_all(reader, files, folder / "original")
    ids = frozenset(session_id for file in files for session_id in file.session_ids)
    if wanted is not None:
        ids = wanted
        copy = _reduce_folder(source_backup, copy, ids, folder / "selected")
    copy = relocations.relocate_folder(root, copy, folder / "mapped")
    target = _target_root(root, options)
    plan = source_backup.plan_insert(copy, target, force=options.force)
    return PlannedInsert(root.source, target, ids, plan)


def _extract_all(reader: BackupReader, files: Iterable[BackupFile], folder: Path) -> Path:
    """Write files of one root below a folder, as they were below the root."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        reader.extract(file, folder.joinpath(*PurePosixPath(file.path).parts))
    return folder


def _reduce_folder(source_backup: Backup, folder: Path, session_ids: Collection[str], target: Path) -> Path:
    """Copy the selected sessions of all files below a folder to another one."""
    target.mkdir(parents=True)
    selected = source_backup.select_files(folder, session_ids, ())
    for file in selected.files:
        path = Path(file.path)
        relative = path.relative_to(folder)
        copy = target / relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.is_database:
            copy_rows = selected_rows(source_backup, relative.as_posix(), selected.session_ids)
            if (reduced := take_snapshot(path, target, None, copy_rows)) is not None:
                reduced.replace(copy)
            continue
        with path.open("rb") as opened:
            records = source_backup.select_records(relative.as_posix(), opened, selected.session_ids)
        if records:
            copy.write_bytes(records)
    (target / "copy.db").unlink(missing_ok=True)  # of a database without any of the sessions
    return target
