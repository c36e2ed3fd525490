"""Plan a restore: which files of a backup go where, and what exists there already.

On another machine, files get new paths, and new paths in their contents. A file that exists is kept, or
replaced if the backup is preferred. A database that exists is never replaced: its sessions are added one by
one, see `transfer.restore`.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.connection import drop_foreign_triggers
from backscroll.backup.container import CONFIG_FILE, PRICES_FILE, is_change
from backscroll.backup.reader import MAX_TEXT_BYTES, BackupReader, FileDamagedError, check_files
from backscroll.changes.files import file_hash
from backscroll.config import Machine, Settings, settings
from backscroll.errors import ArchiveError, ChangeConflictError, RestoreError, UsageError
from backscroll.model.backup import (
    BackupFile,
    BackupFolder,
    BackupRoot,
    Prefer,
    ProgressCallback,
    RestoreAction,
    RestoredFile,
)
from backscroll.model.change import Content, LineChange
from backscroll.model.stream import RawRow
from backscroll.model.workspace import PathMaps
from backscroll.readers.files import file_sha256
from backscroll.sources import named
from backscroll.sources.capabilities import Relocation

_BLOCK_BYTES = 1 << 20
_PROMPT_LOG_SUFFIX = ".jsonl"  # of a file with lines of several sessions


class RestoreOptions(Struct, frozen=True, kw_only=True):
    """What to restore, and where."""

    archive_folder: Path
    source: str | None = None
    sessions: tuple[str, ...] = ()  # refs or prefixes of ids; empty for everything
    maps: tuple[tuple[str, str], ...] = ()  # old and new folder
    prefer: Prefer = "machine"  # which of two that differ is kept
    with_config: bool = False  # restore the settings, too
    known_roots: frozenset[Path] = frozenset()  # the folders of the tools on this machine
    home: Path = Path("/")

    def is_trusted(self, folder: Path) -> bool:
        """Return whether a folder can be one of a tool.

        It is a known one, or it has the name of a known one and is in the home folder or in a mapped one.
        """
        if folder in self.known_roots or folder in {Path(new).absolute() for _, new in self.maps}:
            return True
        has_name = folder.name in {root.name for root in self.known_roots}
        parents = [self.home, *(Path(new).absolute() for _, new in self.maps)]
        return has_name and any(folder.is_relative_to(parent) for parent in parents)

    def map_hint(self, root: str) -> str:
        """Return which ``--map`` to pass for a root of another machine: its home folder and this one."""
        for known in self.known_roots:
            if known.is_relative_to(self.home):
                tail = known.relative_to(self.home).as_posix()
                old = root.replace("\\", "/")
                if old.endswith(f"/{tail}") and Path(old) != known:
                    return f"Name the home folders with --map '{root[: -len(tail) - 1]}={self.home}'."
        return f"Name the new folder with --map '{root}=NEW'."

    @property
    def path_maps(self) -> PathMaps:
        return PathMaps((old, str(Path(new).absolute())) for old, new in self.maps)


class PlannedFile(Struct, frozen=True):
    """A file of a backup, and what to do with it."""

    file: BackupFile
    source: str  # empty for the folder of the archive
    root: Path  # to which the files of its root are restored
    target: Path
    action: RestoreAction
    content: Content
    current_hash: str | None = None  # of the file at the target
    reason: str | None = None
    lines: tuple[LineChange, ...] = ()  # to append
    is_equal: bool = False  # the one at the target has this content

    def to_result(self) -> RestoredFile:
        return RestoredFile(
            str(self.target), self.action, self.file.size, self.reason, row_count=len(self.lines)
        )


class RestorePlan(Struct, frozen=True):
    """The files that a restore changes."""

    files: tuple[PlannedFile, ...]
    warnings: tuple[str, ...] = ()
    merges_archive: bool = False  # the archive at the target is not empty

    @property
    def results(self) -> tuple[RestoredFile, ...]:
        return tuple(one.to_result() for one in self.files)


def make_plan(
    reader: BackupReader,
    options: RestoreOptions,
    relocations: "Relocations",
    folder: Path,
    progress: ProgressCallback | None = None,
) -> RestorePlan:
    """Check the selected files and compare them with those at their targets.

    Private copies are written into ``folder``, which must exist until the plan is applied. Nothing else is
    written. Raises `RestoreError` if nothing is selected, or a target is not clear.
    """
    manifest = reader.manifest
    roots = {root.name: root for root in manifest.roots}
    files = [file for file in manifest.files if _is_selected(file, roots[file.root], options)]
    if not files and not any(file.kind == "archive" for file in manifest.files):
        raise RestoreError(f"{reader.path} contains nothing that was selected.", reader.path)
    _check_paths(files, roots, reader.path)
    own_settings = _OwnSettings(reader, options, folder)
    planned: list[PlannedFile] = []
    # A part of the archive is always merged.
    merges_archive = not _is_whole(options) or _has_content(options.archive_folder)
    for file, check in zip(files, check_files(reader, tuple(files), folder, progress), strict=True):
        if file.kind == "archive" and merges_archive and check.status == "valid":
            continue
        one = _planned_file(reader, file, roots[file.root], options, relocations)
        if not one.source and file.path == PRICES_FILE:
            one = replace(one, target=options.archive_folder / own_settings.prices)
        if check.status == "invalid":
            planned.append(replace(one, action="damaged", reason=check.reason))
        else:
            content, digest = relocations.content(roots[file.root], file)
            planned.append(_compare(replace(one, content=content), digest, options))
    _check_targets(planned, reader.path)
    warnings = (*relocations.warnings, *own_settings.warnings())
    return RestorePlan(tuple(planned), warnings, merges_archive)


def _is_selected(file: BackupFile, root: BackupRoot, options: RestoreOptions) -> bool:
    """Return whether a file is restored. Single sessions come from the archive.

    The change log is not: a recovery would take an unfinished change in it for one of this machine.
    """
    if not root.source and (is_change(file.path) or (file.path == CONFIG_FILE and not options.with_config)):
        return False
    return not options.sessions and (options.source is None or root.source == options.source)


class _OwnSettings:
    """The settings in a backup. Raises `RestoreError` if they are to be restored and invalid."""

    def __init__(self, reader: BackupReader, options: RestoreOptions, folder: Path) -> None:
        self._options = options
        self._folder = folder
        sources = {root.name: root.source for root in reader.manifest.roots}
        files = (file for file in reader.manifest.files if not sources[file.root])
        self._file = next((file for file in files if file.path == CONFIG_FILE), None)
        self._settings: Settings | None = None
        if self._file is not None and _is_whole(options) and options.with_config:
            copy = folder / CONFIG_FILE
            try:
                if self._file.size > MAX_TEXT_BYTES:
                    raise RestoreError("The settings in the backup are too long.", reader.path)
                reader.extract(self._file, copy)
                self._settings = settings(folder, Machine(options.home))
            except FileDamagedError:
                return  # it is not restored
            except UsageError as error:
                reason = str(error).replace(str(copy), CONFIG_FILE)
                raise RestoreError(
                    f"The settings in the backup are invalid. {reason}", reader.path
                ) from error

    @property
    def prices(self) -> PurePath:
        """Where the price table goes in the folder of the archive: as the settings name it, if they do."""
        named = self._settings.prices if self._settings is not None else None
        if named is None or ".." in named.parts or not named.is_relative_to(self._folder):
            return PurePath(PRICES_FILE)
        is_table = named.suffix == Path(PRICES_FILE).suffix and named.name != CONFIG_FILE
        return named.relative_to(self._folder) if is_table else PurePath(PRICES_FILE)

    def warnings(self) -> Iterator[str]:
        if self._file is not None and _is_whole(self._options) and not self._options.with_config:
            target = self._options.archive_folder / CONFIG_FILE
            if not target.exists() or file_sha256(target) != self._file.sha256:
                yield (
                    f"The settings ({CONFIG_FILE}) are not restored. 'backscroll backup show' prints them,"
                    " and --config restores them."
                )
        named = self._settings.prices if self._settings is not None else None
        if named is not None and named != self._folder / self.prices:
            target = self._options.archive_folder / self.prices
            yield f"The settings name the price table {named}. The one in the backup goes to {target}."


def _is_whole(options: RestoreOptions) -> bool:
    """Return whether everything is restored, not only a source or some sessions."""
    return not options.sessions and options.source is None


def _has_content(folder: Path) -> bool:
    """Return whether a folder has an archive that contains something, or cannot be read."""
    path = folder / "archive.db"
    return path.exists() and not _is_empty(path)


def _check_paths(files: Iterable[BackupFile], roots: Mapping[str, BackupRoot], backup: Path) -> None:
    """Raise `RestoreError` if a file is not part of a history, such as settings with commands."""
    for file in files:
        source = roots[file.root].source
        source_backup = named(source).backup() if source else None
        if source_backup is not None and not source_backup.is_history_path(file.path):
            raise RestoreError(f"{file.path} in {backup} is not part of the history of {source}.", backup)


class Relocations:
    """New paths and contents of the files in a backup. Without maps, everything stays as it is."""

    def __init__(self, reader: BackupReader, options: RestoreOptions, folder: Path) -> None:
        self._reader = reader
        self._options = options
        self._folder = folder  # for private copies
        self._by_root: dict[str, Relocation | None] = {}
        self._roots: dict[str, BackupRoot] = {}

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
        if file.kind == "archive":
            if (copy := self.archive_copy) is None:  # of a newer version; it is restored as it is
                return partial(self._reader.blocks, file), file.sha256
            return partial(_file_blocks, copy), file_sha256(copy)
        relocation = self._of(root)
        if relocation is None:
            return partial(self._reader.blocks, file), file.sha256
        if file.kind == "database":
            number = self._reader.manifest.files.index(file)
            copy = self._reader.extract(file, self._folder / f"mapped-{number}.db")
            _edit_paths(relocation, file.path, copy)
            return partial(_file_blocks, copy), file_sha256(copy)
        if relocation.content(file.path, ()) is None:
            return partial(self._reader.blocks, file), file.sha256
        content = partial(relocation.new_content, file.path, partial(self._reader.blocks, file))
        digest = sha256()
        for block in content():
            digest.update(block)
        return content, digest.hexdigest()

    @cached_property
    def archive_copy(self) -> Path | None:
        """A private copy of the archive with new paths; None if it is missing, damaged or too new."""
        file = next((one for one in self._reader.manifest.files if one.kind == "archive"), None)
        if file is None:
            return None
        try:
            copy = self._reader.extract(file, self._folder / "mapped-archive.db")
            drop_foreign_triggers(copy)
            with closing(Archive(copy)) as archive:
                if self._options.maps:
                    archive.maintenance.relocate(self._new_root, self._options.path_maps)
        except (FileDamagedError, ArchiveError):
            return None
        return copy

    def row(self, source: str, root: str, row: RawRow) -> RawRow:
        """Return an archived row of a root on this machine with new paths."""
        for relocation, target in self._targets():
            if (relocation.source, str(target)) == (source, root):
                return relocation.relocation.row(row)
        return row

    def _targets(self) -> Iterator[tuple["_RootRelocation", Path]]:
        for name, relocation in self._by_root.items():
            if relocation is not None:
                root = self._roots[name]
                yield _RootRelocation(root.source, relocation), _target_root(root, self._options)

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

    def _of(self, root: BackupRoot) -> Relocation | None:
        if not self._options.maps or not root.source:
            return None
        if root.name not in self._by_root:
            self._roots[root.name] = root
            source_backup = named(root.source).backup()
            files = [file for file in self._reader.manifest.files if file.root == root.name]
            by_path = {file.path: file for file in files}
            sides = self._archived.side_files.get((root.source, root.path), {})
            paths = dict.fromkeys([*by_path, *self._archived.paths(root), *sides])
            read = partial(self._read, by_path, sides)
            folder = BackupFolder(tuple(paths), read, self._archived.workspaces)
            self._by_root[root.name] = (
                source_backup.relocate(
                    folder, self._options.path_maps, root.path, _target_root(root, self._options)
                )
                if source_backup is not None
                else None
            )
        return self._by_root[root.name]

    def _read(self, files: dict[str, BackupFile], sides: Mapping[str, bytes], path: str) -> Iterator[bytes]:
        """Yield the content of a file; a damaged one up to the damage. An archived transcript has none."""
        if path not in files:
            yield sides.get(path, b"")
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
            drop_foreign_triggers(copy)
            with closing(Archive(copy)) as archive:
                workspaces = archive.sessions.workspaces()
                files = archive.originals.units_with_file()
                side_files = _workspace_files(archive)
        except (FileDamagedError, ArchiveError):
            return _ArchivedPaths()
        return _ArchivedPaths(
            tuple(workspace.path for workspace in workspaces if workspace.host is None),
            tuple((one.source, one.root, one.path) for one in files),
            side_files,
        )


def _workspace_files(archive: Archive) -> dict[tuple[str, str], dict[str, bytes]]:
    """Return the archived files that name the folders of workspaces: by source and root, then by path."""
    found: dict[tuple[str, str], dict[str, bytes]] = {}
    for unit in archive.originals.units_with_rows():
        names = {path for path, _ in archive.originals.side_files(unit) if path.endswith("workspace.json")}
        known = found.setdefault((unit.source, unit.root), {})
        for row in archive.originals.rows(unit) if names - known.keys() else ():
            if not row.table and row.path in names and row.value is not None:
                known[row.path] = row.value
    return found


class _ArchivedPaths(NamedTuple):
    """Paths in the archive of a backup."""

    workspaces: tuple[str, ...] = ()
    files: tuple[tuple[str, str, str], ...] = ()  # source, root and path; also of files that no longer exist
    side_files: Mapping[tuple[str, str], Mapping[str, bytes]] = {}

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


class _RootRelocation(NamedTuple):
    source: str
    relocation: Relocation


def _planned_file(
    reader: BackupReader,
    file: BackupFile,
    root: BackupRoot,
    options: RestoreOptions,
    relocations: Relocations,
) -> PlannedFile:
    """Return where a file goes: its root and its path, both mapped. The archive goes to its folder."""
    folder = options.archive_folder if not root.source else _target_root(root, options)
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
            hint=options.map_hint(root.path),
        )
    if ".." in folder.parts or not (is_named or options.is_trusted(folder)):
        raise RestoreError(
            f"{folder} is not a folder of {root.source} on this machine.",
            folder,
            hint=f"{options.map_hint(root.path)} Or pass --root {root.source}={folder}.",
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
        return replace(one, action="unchanged", current_hash=current, is_equal=True)
    if one.file.kind == "database":  # its sessions are added one by one
        return replace(one, action="unchanged", current_hash=current)
    if one.file.kind == "archive":  # the one at the target is empty
        return replace(one, action="replace", current_hash=current)
    if one.file.is_shared and one.target.suffix == _PROMPT_LOG_SUFFIX:
        lines = _missing_lines(one)
        return replace(one, action="insert" if lines else "unchanged", current_hash=current, lines=lines)
    if options.prefer == "backup" and not one.file.is_shared:
        return replace(one, action="replace", current_hash=current)
    return replace(one, action="kept", reason="exists and differs", current_hash=current)


def _missing_lines(one: PlannedFile) -> tuple[LineChange, ...]:
    """Return the lines of a log that the one at the target does not have."""
    known = set(one.target.read_bytes().split(b"\n"))
    lines = dict.fromkeys(b"".join(one.content()).split(b"\n"))
    return tuple(
        LineChange(path=one.target, before=None, after=line, label="prompt")
        for line in lines
        if line and line not in known
    )


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


def _file_blocks(path: Path) -> Iterator[bytes]:
    """Yield the content of a file."""
    with path.open("rb") as file:
        yield from iter(lambda: file.read(_BLOCK_BYTES), b"")
