"""Base of a source that stores each session in a file of its own.

A source declares the paths of its files as `FilePattern`, and implements `roots` and `parse`. It inherits the
listing with fingerprints, the lookup of changed paths, the bytes and side files that the archive keeps, the
records for bug reports, backups, and the restore of a session. If it also declares `JsonFields`, sessions can
be moved and copied.

Listing costs one stat per file. This module is light, because an idle sync loads it.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from backscroll import __version__
from backscroll.model.store import SESSION, Unit, UnitKind
from backscroll.readers.files import escape_name, files_below, is_utf8
from backscroll.sources.protocols import (
    UNREADABLE,
    FolderListing,
    PathLookup,
    RawRecords,
    RawRows,
    Source,
    Watchable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from backscroll.model.stream import Checkpoint, Item, RawRow
    from backscroll.sources.capabilities import Backup, SessionWriter

MAX_FILE_BYTES = 4 * 1024 * 1024  # of a side file
_MAX_SESSION_BYTES = 32 * 1024 * 1024  # of all side files of a session
UNNAMED = UnitKind("unnamed", is_single=False)  # a file whose name is not UTF-8

_SEP = os.sep
_VERSION = f"{__version__}\n".encode()
_TYPE_MASK, _REGULAR_FILE = 0o170000, 0o100000  # as in stat.S_IFMT and stat.S_IFREG
_NOT_FOUND = (FileNotFoundError, NotADirectoryError)
_SUPPORTS_DIR_FD = os.stat in os.supports_dir_fd and os.scandir in os.supports_fd
_stat, _open, _close, _scandir, _is_link = os.stat, os.open, os.close, os.scandir, os.path.islink  # fast


class FilePattern(NamedTuple):
    """Files that are units, by their path below the root, with forward slashes.

    ``*`` matches a part of a name, and ``**`` any number of folders. ``{id}`` matches the id of the session,
    and ``{uuid}`` an id that is a UUID. In ``beside`` and ``sides``, these stand for the id, and ``{stem}``
    for the name of the file without its suffix.
    """

    path: str  # "sessions/**/rollout-*-{uuid}.jsonl"
    kind: str = SESSION.name  # of the units
    beside: tuple[str, ...] = ()  # files in the same folder. If one changes, the unit is read again
    sides: tuple[str, ...] = ()  # paths of more files, or of folders with them, that the archive keeps
    is_database: bool = False  # not kept byte for byte


class JsonFields(NamedTuple):
    """Members of JSON records whose strings are replaced in a move or copy, by the ``type`` of the record.

    The key "" is for all records. Names of nested members are separated by dots: "payload.cwd".
    """

    folders: Mapping[str, tuple[str, ...]]  # paths of the folder in which work was done
    ids: Mapping[str, tuple[str, ...]] | None = None  # ids of the session; None if it cannot be copied


# Folders


class FileFolder:
    """Listed folder. Each file is a row: its name, a slash, and its fingerprint.

    Rows are strings because most folders are unchanged, and then no row is parsed.
    """

    __slots__ = ("_is_text", "_root", "_rows", "_side_rows", "_source_name", "is_unreadable", "path")

    def __init__(
        self,
        source_name: str,
        root: str,
        path: str,
        rows: list[str],
        side_rows: list[str],
        *,
        is_unreadable: bool = False,
    ) -> None:
        self.is_unreadable = is_unreadable  # it exists, but could not be listed
        self.path = f"{escape_name(path)}{_SEP}"
        self._is_text = is_utf8(path)
        self._source_name = source_name
        self._root = root
        rows.sort()
        side_rows.sort()
        self._rows = rows
        self._side_rows = side_rows  # of the files beside those in the rows

    @property
    def unit_count(self) -> int:
        """Return the number of units in the folder."""
        return len(self._rows)

    @property
    def fingerprint(self) -> bytes:
        """Return a value that changes with any file, and with the version of this program."""
        rows = [*self._rows, *self._side_rows] if self._side_rows else self._rows
        return _VERSION + "\n".join(rows).encode("utf-8", "surrogatepass")

    def classify(self, name: str) -> tuple[str, str | None, tuple[str, ...]]:
        """Return the unit kind of a file, the session id, and the names of the files beside it."""
        raise NotImplementedError

    def units(self) -> Iterator[Unit]:
        """Return a unit per file, sorted by name."""
        if self.is_unreadable:
            yield Unit(self._source_name, self._root, self.path[:-1], kind=UNREADABLE.name)
        side_rows = (row.partition("/") for row in self._side_rows)
        side_times = {name: _modification_time(fingerprint) for name, _, fingerprint in side_rows}
        for row in self._rows:
            name, _, fingerprint = row.partition("/")
            kind, session_id, beside = self.classify(name)
            if not self._is_text or not is_utf8(name):
                name, kind, session_id, beside = escape_name(name), UNNAMED.name, None, ()
            size = int(fingerprint[: fingerprint.index("-")])
            modified_at = int(_modification_time(fingerprint))
            for side in beside:
                if (time := side_times.get(side)) is not None:
                    fingerprint = f"{fingerprint}-{time}"
            yield Unit(
                self._source_name,
                self._root,
                f"{self.path}{name}",
                fingerprint=fingerprint,
                size=size,
                kind=kind,
                session_id=session_id,
                modified_at=modified_at,
            )


def list_folder(
    folder: str,
    ends: str | tuple[str, ...],
    side_ends: str | tuple[str, ...],
    is_file: Callable[[str], object] | None = None,
) -> tuple[list[str], list[str], list[str]] | None:
    """Return rows of files, rows of files beside them, and names of subfolders that are not links.

    A file is selected by the end of its name and, if given, ``is_file``. Rows include only regular files and
    links to them. Files and folders that do not exist are ignored. Return None if the folder exists but
    cannot be listed.
    """
    rows: list[str] = []
    side_rows: list[str] = []
    subfolders: list[str] = []
    try:
        # Names relative to an open folder are resolved faster than paths. Windows does not support it.
        folder_fd = _open(folder, os.O_RDONLY | os.O_DIRECTORY) if _SUPPORTS_DIR_FD else None
        prefix = "" if folder_fd is not None else f"{folder}{_SEP}"
    except _NOT_FOUND:
        return rows, side_rows, subfolders
    except OSError:
        return None
    try:
        with _scandir(folder if folder_fd is None else folder_fd) as found:
            for entry in found:
                name = entry.name
                if name.endswith(ends) and (is_file is None or is_file(name)):
                    target = rows
                elif name.endswith(side_ends):
                    target = side_rows
                else:
                    if entry.is_dir(follow_symlinks=False):
                        subfolders.append(name)
                    continue
                # Not DirEntry.stat: on Windows it lacks the inode and may be out of date.
                try:
                    status = _stat(prefix + name, dir_fd=folder_fd)
                except PermissionError:
                    return None  # the folder can be listed, but not entered
                except OSError:
                    continue
                if status.st_mode & _TYPE_MASK == _REGULAR_FILE:
                    target.append(f"{name}/{status.st_size}-{status.st_mtime_ns}-{status.st_ino}")
    except _NOT_FOUND:
        return [], [], []
    except OSError:
        return None
    finally:
        if folder_fd is not None:
            _close(folder_fd)
    return rows, side_rows, subfolders


def stat_row(folder: str, name: str) -> str | None:
    """Return the row of a file; None if it is not a regular file."""
    try:
        status = _stat(f"{folder}{_SEP}{name}")
    except OSError:
        return None
    if status.st_mode & _TYPE_MASK != _REGULAR_FILE:
        return None
    return f"{name}/{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"


def _stat_rows(folder: str, names: Iterable[str]) -> list[str]:
    """Return the rows of those files that exist."""
    return [row for name in names if (row := stat_row(folder, name)) is not None]


def _modification_time(fingerprint: str) -> str:
    """Return the modification time from a fingerprint of size, time and inode. It can be negative."""
    return fingerprint[fingerprint.index("-") + 1 : fingerprint.rindex("-")]


# The source


class SessionFiles(Source, FolderListing, PathLookup, RawRecords, RawRows, Watchable):
    """Source with a file per session."""

    unit_kinds: ClassVar[tuple[UnitKind, ...]] = (SESSION, UNNAMED, UNREADABLE)
    files: ClassVar[tuple[FilePattern, ...]]
    other_files: ClassVar[tuple[str, ...]] = ()  # paths of more files for a backup, as in `FilePattern`
    json_fields: ClassVar[JsonFields | None] = None  # None if sessions cannot be moved
    type_field: ClassVar[str] = "type"  # member with the type of a record

    @abstractmethod
    def parse(self, unit: Unit, since: Checkpoint | None) -> Iterator[Item]:
        """Parse a file, from a checkpoint if there is one. An `OSError` becomes a problem."""

    def moved_path(self, path: Path, root: Path, target: Path) -> Path:
        """Return where a file of a session is stored if the session belongs to another folder."""
        return path

    # Reading

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        from backscroll.readers import read_faults  # start-up: not needed to list units

        if unit.kind == UNNAMED.name:
            return read_faults.read_unnamed_file(unit)
        if unit.kind == UNREADABLE.name:
            return read_faults.read_unlisted_folder(unit)
        return read_faults.read_or_report(unit, self.parse(unit, since))

    def file_ends(self) -> tuple[str, ...]:
        return tuple(sorted({_fixed_end(one.path.rpartition("/")[2]) for one in self.files} - {""}))

    def keeps_file(self, unit: Unit) -> bool:
        pattern = self.pattern_of(unit)
        return pattern is not None and not pattern.is_database

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the side files of a session, with their paths below the root."""
        return _side_file_rows(unit, self.side_paths(unit))

    def side_paths(self, unit: Unit) -> Iterator[str]:
        """Return the paths of the side files of a session that may exist. They contain no messages."""
        pattern = self.pattern_of(unit)
        if pattern is not None and not pattern.is_database:
            folder = os.path.dirname(unit.path)  # noqa: PTH120 - as in the path of the unit
            name = unit.path[len(folder) + 1 :]
            found = [f"{folder}{_SEP}{side}" for side in _named(pattern.beside, name, unit.session_id)]
            for side in _named(pattern.sides, name, unit.session_id):
                path = f"{unit.root}{_SEP}{side.replace('/', _SEP)}"
                found += [path] if os.path.isfile(path) else files_below(path)  # noqa: PTH113 - a string
            yield from (path for path in dict.fromkeys(found) if path != unit.path and is_utf8(path))

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Return every JSON line, or the JSON document, with its type."""
        from backscroll.readers.jsonl import records  # start-up: not needed to list units

        if self.keeps_file(unit):
            for record in records(Path(unit.path)):
                kind = record.get(self.type_field)
                yield kind if isinstance(kind, str) else "(no type)", record

    def pattern_of(self, unit: Unit) -> FilePattern | None:
        """Return the pattern that matches a unit; None for one that is not a file."""
        if unit.kind in (UNNAMED.name, UNREADABLE.name):
            return None
        found = self.find_pattern(unit.path[len(unit.root) + 1 :].replace(_SEP, "/"))
        return found[0] if found is not None else None

    def find_pattern(self, path: str) -> tuple[FilePattern, re.Match[str]] | None:
        """Return the first pattern that matches a path below the root, with forward slashes."""
        for pattern in self.files:
            if (found := path_expression(pattern.path).fullmatch(path)) is not None:
                return pattern, found
        return None

    # Listing

    def units(self, root: Path) -> Iterator[Unit]:
        """Return the files below the root that match a pattern."""
        for folder in self.folders(root):
            yield from folder.units()

    def folders(self, root: Path) -> Iterator[FileFolder]:
        """Return the folders with such files. Links to folders are followed only if a pattern names them."""
        return self._walk(str(root), str(root), self._top)

    def units_at(self, root: Path, paths: Collection[str]) -> list[Unit]:
        """Return the units affected by changes at these paths. A path of a folder affects all units in it."""
        base = str(root)
        start = f"{base}{_SEP}"
        found: dict[tuple[str, str], Unit] = {}
        for path in paths:
            if path == base:
                return list(self.units(root))
            if path.startswith(start):
                folders = self.folders_at(base, tuple(path[len(start) :].rstrip(_SEP).split(_SEP)))
                found |= {(unit.path, unit.key): unit for folder in folders for unit in folder.units()}
        return list(found.values())

    def folders_at(self, root: str, parts: tuple[str, ...]) -> Iterator[FileFolder]:
        """Return the folders affected by a change of a path, with the affected files only."""
        folder, level = root, self._top
        *parents, name = parts
        for parent in parents:
            folder = f"{folder}{_SEP}{parent}"
            if parent not in level.names and _is_link(folder):
                return
            level = level.below(parent)
        if level.is_file(name):
            yield from self._some_files(root, folder, [name])
        elif name.endswith(level.side_ends):
            # A file beside another one, which may be deleted.
            listed = list_folder(folder, level.ends, (), level.is_file)
            names = [row.partition("/")[0] for row in listed[0]] if listed is not None else []
            of_folder = _PatternFolder(self, root, folder, [], [])
            yield from self._some_files(
                root, folder, [one for one in names if name in of_folder.classify(one)[2]]
            )
        elif name in level.names or not _is_link(f"{folder}{_SEP}{name}"):
            yield from self._walk(root, f"{folder}{_SEP}{name}", level.below(name))

    def watched_paths(self, root: Path) -> list[Path]:
        """Return the folders and files with which the patterns begin."""
        paths = [path for one in self.files for path in (one.path, *(() if "/" in one.path else one.beside))]
        names = dict.fromkeys(path.partition("/")[0] for path in paths)
        return [root] if any(map(_is_variable, names)) else [root / name for name in names]

    def _walk(self, root: str, path: str, level: _Level) -> Iterator[FileFolder]:
        subfolders: list[str] = []
        if level.needs_listing:
            listed = list_folder(path, level.ends, level.side_ends, level.is_file)
            if listed is None:
                yield _PatternFolder(self, root, path, [], [], is_unreadable=True)
                return
            rows, side_rows, subfolders = listed
            if rows:
                yield _PatternFolder(self, root, path, rows, side_rows)
        for name in sorted({*subfolders, *level.names}):
            if (below := level.below(name)).rests:
                yield from self._walk(root, f"{path}{_SEP}{name}", below)

    def _some_files(self, root: str, folder: str, names: Iterable[str]) -> Iterator[FileFolder]:
        """Return a folder with some of its files; nothing if none exists."""
        if rows := _stat_rows(folder, names):
            listed = _PatternFolder(self, root, folder, rows, [])
            beside = [side for row in rows for side in listed.classify(row.partition("/")[0])[2]]
            yield _PatternFolder(self, root, folder, rows, _stat_rows(folder, beside))

    @cached_property
    def _top(self) -> _Level:
        return _level(tuple((tuple(one.path.split("/")), one.beside) for one in self.files))

    # Capabilities, imported on first use

    def backup(self) -> Backup:
        from backscroll.sources.session_file_changes import SessionFileBackup

        return SessionFileBackup(self)

    def writer(self) -> SessionWriter:
        from backscroll.sources.session_file_changes import SessionFileWriter

        return SessionFileWriter(self)


class _PatternFolder(FileFolder):
    """Listed folder, whose files are classified by the patterns of a source."""

    __slots__ = ("_source",)

    def __init__(
        self,
        source: SessionFiles,
        root: str,
        path: str,
        rows: list[str],
        side_rows: list[str],
        *,
        is_unreadable: bool = False,
    ) -> None:
        super().__init__(source.name, root, path, rows, side_rows, is_unreadable=is_unreadable)
        self._source = source

    def classify(self, name: str) -> tuple[str, str | None, tuple[str, ...]]:
        path = f"{self.path[len(self._root) + 1 :]}{name}".replace(_SEP, "/")
        found = self._source.find_pattern(path)
        if found is None:
            return UNNAMED.name, None, ()
        pattern, match = found
        session_id = _session_id_of(match)
        return pattern.kind, session_id, _named(pattern.beside, name, session_id)


# Patterns

_Rest = tuple[tuple[str, ...], tuple[str, ...]]  # remaining parts of a path, and the files beside it


class _Level:
    """What can still match in one folder: names of files, and of folders."""

    def __init__(self, rests: tuple[_Rest, ...]) -> None:
        # Any number of folders includes none.
        shorter = tuple((parts[1:], beside) for parts, beside in rests if parts[0] == "**")
        self.rests = tuple(dict.fromkeys((*rests, *shorter)))
        last = [(parts[0], beside) for parts, beside in self.rests if len(parts) == 1]
        self.ends = tuple({_fixed_end(name) for name, _ in last})
        self.side_ends = tuple({_fixed_end(side) for _, beside in last for side in beside})
        folders = [parts[0] for parts, _ in self.rests if len(parts) > 1]
        self.names = tuple(name for name in folders if not _is_variable(name))
        self.needs_listing = bool(last) or len(self.names) < len(folders)
        self.is_file = re.compile("|".join(_expression(name) for name, _ in last) or "(?!)").fullmatch

    def below(self, name: str) -> _Level:
        """Return what can match in a folder of this name."""
        found: list[_Rest] = []
        for parts, beside in self.rests:
            if parts[0] == "**":
                found.append((parts, beside))
            elif len(parts) > 1 and re.fullmatch(_expression(parts[0]), name):
                found.append((parts[1:], beside))
        return _level(tuple(found))


@cache
def _level(rests: tuple[_Rest, ...]) -> _Level:
    return _Level(rests)


_PLACEHOLDERS = {
    "*": "[^/]*",
    "{id}": "[^/]+",
    "{uuid}": "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "{stem}": "[^/]*",
}
_PLACEHOLDER = r"(\*|\{\w+\})"  # compiled on first use


def _expression(name: str) -> str:
    """Return the regular expression of a name."""
    return "".join(_PLACEHOLDERS.get(part) or re.escape(part) for part in re.split(_PLACEHOLDER, name))


@cache
def path_expression(path: str) -> re.Pattern[str]:
    """Return the regular expression of a path. The id is a group. If it occurs again, it must be the same."""
    parts = [r"(?:[^/]+/)*" if part == "**" else f"{_expression(part)}/" for part in path.split("/")]
    found = "".join(parts).removesuffix("/")
    for name in ("id", "uuid"):
        id_ = _PLACEHOLDERS[f"{{{name}}}"]
        if f"{{{name}}}" in path:
            first, *others = found.split(id_)
            found = f"{first}(?P<{name}>{id_})" + f"(?P={name})".join(others)
    return re.compile(found, re.DOTALL)


def _is_variable(name: str) -> bool:
    return "*" in name or "{" in name


def _fixed_end(name: str) -> str:
    """Return the part of a name after all placeholders."""
    return re.split(r"[*}]", name)[-1]


def _session_id_of(match: re.Match[str]) -> str | None:
    """Return the id in a matched path; None if the pattern has none."""
    return next((value for value in match.groupdict().values() if value is not None), None)


def _named(names: Iterable[str], name: str, session_id: str | None) -> tuple[str, ...]:
    """Return the names or paths of files of a session, without placeholders."""
    stem = name.rpartition(".")[0] or name
    values = {"stem": stem, "id": session_id or "", "uuid": session_id or ""}
    return tuple(one.format_map(values) for one in names)


# Side files


def _side_file_rows(unit: Unit, paths: Iterable[str]) -> Iterator[RawRow]:
    """Yield the side files of a session with their paths below the root. Links are not followed.

    They are archived as they are, so that a deleted session can be restored with them. Files above the limits
    are left out.
    """
    from backscroll.model.stream import RawRow  # start-up: not needed to list units

    remaining = _MAX_SESSION_BYTES
    for path in paths:
        content = _read_side_file(path, min(MAX_FILE_BYTES, remaining))
        if content is not None:
            remaining -= len(content)
            below = path[len(unit.root) :].lstrip(_SEP).replace(_SEP, "/")
            yield RawRow(table="", key="", value=content, path=below, is_text=False)


def _read_side_file(path: str, max_bytes: int) -> bytes | None:
    """Return the content of a regular file; None if it is too large or cannot be read."""
    try:
        status = os.lstat(path)
        if status.st_mode & _TYPE_MASK != _REGULAR_FILE or status.st_size > max_bytes:
            return None
        with open(path, "rb") as file:  # noqa: PTH123 - faster than Path
            return file.read(max_bytes)
    except OSError:
        return None
