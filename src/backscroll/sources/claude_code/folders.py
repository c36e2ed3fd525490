"""Folders with Claude Code's files. Listing costs one stat per file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from backscroll import __version__
from backscroll.readers.file_names import escape_name, is_utf8

if TYPE_CHECKING:
    from backscroll.model import Unit

__all__ = [
    "DATABASE",
    "NAME",
    "NOTES",
    "STORE",
    "SUBAGENTS",
    "Folder",
    "below_project",
    "below_session",
    "desktop_notes",
    "every_folder",
    "in_root",
    "is_id",
    "noted_in",
    "remembered_sessions",
    "single_file",
]

NAME = "claude-code"

SUBAGENTS = "subagents"
STORE = "store"  # unit kind of the database of version 0.2
DATABASE = "__store.db"
_LOG = f"{DATABASE}-wal"
# Folders in which Claude Desktop stores session metadata: of normal sessions and of its agent mode.
NOTES = ("claude-code-sessions", "local-agent-mode-sessions")
_NOTE = "local_"
_SIDECAR = ".meta.json"
_PROMPTS = "history.jsonl"
_HEX = "[0-9a-fA-F]"  # twice as fast as re.IGNORECASE
_ID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
is_id = re.compile(_ID).fullmatch
_SEP = os.sep
_VERSION = f"{__version__}\n".encode()
_KIND, _REGULAR = 0o170000, 0o100000  # as in stat.S_IFMT and stat.S_IFREG
_GONE = (FileNotFoundError, NotADirectoryError)
_OPENS_FOLDERS = os.stat in os.supports_dir_fd and os.scandir in os.supports_fd
_is_folder, _is_link = os.path.isdir, os.path.islink
_stat, _open, _close, _scandir = os.stat, os.open, os.close, os.scandir  # faster than Path methods


class Folder:
    """A listed folder. Each file is a row: its name, a slash, and its fingerprint.

    Rows are strings because most folders are unchanged; then nothing is parsed.
    """

    __slots__ = ("_beside", "_is_text", "_outermost", "_root", "_rows", "_session", "is_unreadable", "path")

    def __init__(
        self,
        root: str,
        path: str,
        rows: list[str],
        beside: list[str],
        *,
        session: str | None = None,
        outermost: str | None = None,
        is_unreadable: bool = False,
    ) -> None:
        self.is_unreadable = is_unreadable  # it exists and could not be listed
        self.path = f"{escape_name(path)}{_SEP}"
        self._is_text = is_utf8(path)
        self._root = root
        rows.sort()
        beside.sort()
        self._rows = rows
        self._beside = beside  # rows of sidecar files
        self._session = session  # parent session of the subagents in this folder
        self._outermost = outermost  # the folder above that must not be a link

    @property
    def unit_count(self) -> int:
        """Return the number of units in the folder."""
        return len(self._rows)

    @property
    def fingerprint(self) -> bytes:
        """Return a value that changes with any file, and with the version of the code that selects files."""
        rows = [*self._rows, *self._beside] if self._beside else self._rows
        return _VERSION + "\n".join(rows).encode("utf-8", "surrogatepass")

    def units(self) -> Iterator[Unit]:
        """Return a unit per file, sorted by name."""
        from backscroll.model import Unit

        if self._outermost is not None and os.path.islink(self._outermost):  # noqa: PTH114 - as above
            return
        if self.is_unreadable:
            yield Unit(NAME, self._root, self.path[:-1], kind="closed")
        times = {name: _time(token) for name, _, token in (row.partition("/") for row in self._beside)}
        for row in self._rows:
            name, _, token = row.partition("/")
            kind, session = self._told_by(name)
            if not self._is_text or not is_utf8(name):
                name, kind, session = escape_name(name), "unnamed", None
            if kind == "agent" and (time := times.get(f"{name[:-6]}{_SIDECAR}")) is not None:
                token = f"{token}-{time}"
            if kind == STORE:
                from backscroll.sources.claude_code.legacy_db import units

                yield from units(self._root, f"{self.path}{name}", f"{token}-{times.get(_LOG, '')}")
                continue
            size = int(token.partition("-")[0])
            yield Unit(NAME, self._root, f"{self.path}{name}", "", token, size, kind, session)

    def sessions(self, before: int) -> list[str]:
        """Return the sessions last written before a time, in nanoseconds since 1970."""
        return _written_before(before, "\n".join(self._rows)) if self._session is None else []

    def _told_by(self, name: str) -> tuple[str, str | None]:
        """Return the unit kind and the session of a file name."""
        if self._session is not None:
            return ("agent" if name.startswith("agent-") else "journal"), self._session
        if self.path == f"{self._root}{_SEP}":
            return ("prompts" if name == _PROMPTS else STORE), None
        if not name.endswith(".jsonl"):
            return "notes", None
        stem = name[:-6]
        if is_id(stem):
            return "session", stem
        return ("agent" if name.startswith("agent-") else "other"), None


def every_folder(root: str) -> Iterator[Folder]:
    """Return every folder with transcripts, and the root with the prompt log. Links are not followed."""
    base = f"{root}{_SEP}projects"
    projects = _folders_in(base)
    if projects is None:
        yield Folder(root, base, [], [], is_unreadable=True)
    for project in projects or ():
        yield from below_project(root, f"{base}{_SEP}{project}")
    yield from desktop_notes(root)
    yield from in_root(root, _PROMPTS, DATABASE)


def below_project(root: str, folder: str) -> Iterator[Folder]:
    """Return a project's folder and those of its subagents."""
    listed = _listed(folder)
    if listed is None:
        yield Folder(root, folder, [], [], is_unreadable=True)
        return
    rows, beside, inner = listed
    if rows:
        yield Folder(root, folder, rows, beside)
    for name in sorted(filter(is_id, inner)):
        yield from below_session(root, f"{folder}{_SEP}{name}{_SEP}{SUBAGENTS}", name)


def below_session(root: str, folder: str, session_id: str) -> Iterator[Folder]:
    """Return folders of subagents at any depth.

    Each belongs to the session before the last ``subagents``.
    """
    waiting = [(folder, session_id)]
    while waiting:
        path, session = waiting.pop()
        listed = _listed(path)
        if listed is None:
            yield Folder(root, path, [], [], is_unreadable=True)
            continue
        rows, beside, inner = listed
        if rows:
            yield Folder(root, path, rows, beside, session=session, outermost=folder)
        for name in inner:
            below = f"{path}{_SEP}{name}"
            waiting.append((below, _parent(below) or session_id))


def remembered_sessions(root: str, fingerprints: Mapping[str, bytes | None], before: int) -> Iterator[str]:
    """Return `Folder.sessions` of every project from stored fingerprints. Folders without one are listed."""
    depth = root.count(_SEP) + 3  # root, "projects", project and the trailing separator
    for path, fingerprint in fingerprints.items():
        if path.count(_SEP) == depth:
            if fingerprint is not None:
                yield from _written_before(before, fingerprint.decode("utf-8", "surrogatepass"))
            elif (listed := _listed(path)) is not None:
                yield from _written_before(before, "\n".join(listed[0]))


def _written_before(time: int, rows: str) -> list[str]:
    """Return the sessions of rows with a modification time before a time."""
    found = re.findall(rf"^({_ID})\.jsonl/[0-9]+-(-?[0-9]+)-", rows, re.MULTILINE)
    return [name for name, written in found if int(written) < time]


def single_file(root: str, folder: str, name: str) -> Iterator[Folder]:
    """Return a project's folder with only one file in it."""
    if (row := _row(folder, name)) is not None:
        beside = _row(folder, f"{name[:-6]}{_SIDECAR}")
        yield Folder(root, folder, [row], [beside] if beside is not None else [])


def in_root(root: str, *names: str) -> Iterator[Folder]:
    """Return the root with those of the given files that exist: the prompt log, the database of 0.2."""
    rows = [row for name in names if (row := _row(root, name)) is not None]
    if rows:
        log = _row(root, _LOG) if rows[-1].startswith(f"{DATABASE}/") else None
        yield Folder(root, root, rows, [log] if log is not None else [])


def desktop_notes(root: str) -> Iterator[Folder]:
    """Return the folders with Claude Desktop's metadata files, at any depth."""
    waiting = [path for name in NOTES if _is_folder(path := f"{root}{_SEP}{name}") and not _is_link(path)]
    while waiting:
        path = waiting.pop()
        yield from noted_in(root, path)
        waiting += [f"{path}{_SEP}{name}" for name in _folders_in(path) or () if not name.startswith(_NOTE)]


def noted_in(root: str, folder: str) -> Iterator[Folder]:
    """Return one of these folders without subfolders."""
    try:
        with _scandir(folder) as found:
            names = [one.name for one in found if one.name.startswith(_NOTE)]
    except OSError:
        return
    rows = [row for name in sorted(names) if name.endswith(".json") and (row := _row(folder, name))]
    if rows:
        yield Folder(root, folder, rows, [])


def _listed(folder: str) -> tuple[list[str], list[str], list[str]] | None:
    """Return rows of transcripts, rows of sidecars, and names of subfolders that are not links.

    Only regular files and links to them count. A file or folder that disappeared is ignored. None if the
    folder exists and cannot be listed.
    """
    rows: list[str] = []
    beside: list[str] = []
    inner: list[str] = []
    try:
        # Names relative to an open folder are resolved faster than paths. Not all systems support that.
        opened = _open(folder, os.O_RDONLY | os.O_DIRECTORY) if _OPENS_FOLDERS else None
        start = "" if opened is not None else f"{folder}{_SEP}"
    except _GONE:
        return rows, beside, inner
    except OSError:
        return None
    try:
        with _scandir(folder if opened is None else opened) as found:
            for entry in found:
                name = entry.name
                if name.endswith(".jsonl"):
                    kept = rows
                elif name.endswith(_SIDECAR):
                    kept = beside
                else:
                    if entry.is_dir(follow_symlinks=False):
                        inner.append(name)
                    continue
                # Not DirEntry.stat: on Windows it lacks the inode and may be out of date.
                try:
                    status = _stat(start + name, dir_fd=opened)
                except OSError:
                    continue
                if status.st_mode & _KIND == _REGULAR:
                    kept.append(f"{name}/{status.st_size}-{status.st_mtime_ns}-{status.st_ino}")
    except _GONE:
        return [], [], []
    except OSError:
        return None
    finally:
        if opened is not None:
            _close(opened)
    return rows, beside, inner


def _row(folder: str, name: str) -> str | None:
    try:
        status = _stat(f"{folder}{_SEP}{name}")
    except OSError:
        return None
    if status.st_mode & _KIND != _REGULAR:
        return None
    return f"{name}/{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"


def _folders_in(folder: str) -> list[str] | None:
    """Return the names of subfolders that are not links; None if the folder cannot be listed."""
    try:
        with _scandir(folder) as found:
            return sorted(entry.name for entry in found if entry.is_dir(follow_symlinks=False))
    except _GONE:
        return []
    except OSError:
        return None


def _parent(folder: str) -> str | None:
    parts = folder.split(_SEP)
    for at in range(len(parts) - 1, 0, -1):
        if parts[at] == SUBAGENTS:
            return parts[at - 1] if is_id(parts[at - 1]) else None
    return None


def _time(token: str) -> str:
    """Return the modification time from a fingerprint of size, time and inode. It can be negative."""
    return token[token.index("-") + 1 : token.rindex("-")]
