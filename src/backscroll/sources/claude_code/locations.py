"""Find Claude Code's history: its roots, and the units below a root. Listing costs one stat per file."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.model.store import Unit
from backscroll.readers.files import is_broken_link, is_utf8
from backscroll.sources.session_files import FileFolder, list_folder, stat_row

if TYPE_CHECKING:
    from backscroll.config import Machine

NAME = "claude-code"

SUBAGENTS = "subagents"
PROMPT_LOG = "history.jsonl"
SESSION_INDEX = "sessions-index.json"  # in the folder of a project, from 2.1.0 to 2.1.29
LEGACY_STORE = "store"  # unit kind of the database of version 0.2
LINE_KINDS = frozenset({"session", "agent", "prompts", "journal", "other"})  # kinds of files of lines
LEGACY_DATABASE = "__store.db"
_LEGACY_WAL = f"{LEGACY_DATABASE}-wal"
# Folders in which Claude Desktop stores metadata of normal sessions and of agent mode sessions.
DESKTOP_FOLDERS = ("claude-code-sessions", "local-agent-mode-sessions")
DESKTOP_PREFIX = "local_"
_SIDECAR = ".meta.json"

# Every sync compiles these patterns. One that spells out the five parts of an id takes three times as long.
_has_id_chars = re.compile("[-0-9a-fA-F]{36}").fullmatch
_SESSION_ROW = r"^(.{36})\.jsonl/[0-9]+-(-?[0-9]+)-"

_SEP = os.sep
_NOT_FOUND = (FileNotFoundError, NotADirectoryError)
# Faster than Path methods.
_is_file, _is_folder, _is_link, _join = os.path.isfile, os.path.isdir, os.path.islink, os.path.join
_scandir = os.scandir


def roots(machine: Machine) -> list[Path]:
    """Return every folder that can contain ``projects/``: from the environment, else the default folders."""
    configured = machine.environ.get("CLAUDE_CONFIG_DIR", "").strip()
    if configured:
        found = [
            _without_projects(machine.expanded(item.strip()))
            for item in configured.split(",")
            if item.strip()
        ]
    else:
        config = machine.folder("XDG_CONFIG_HOME", machine.home / ".config")
        found = [machine.home / ".claude", config / "claude"]
        found += [
            machine.expanded(item)
            for item in machine.environ.get("CLAUDE_CONFIG_DIRS", "").split(":")
            if item
        ]
        found += _sibling_roots(machine.home)
    found += _desktop_roots(machine)
    return list(dict.fromkeys(found))


def _without_projects(path: Path) -> Path:
    return path.parent if path.name == "projects" else path


def _sibling_roots(home: Path) -> list[Path]:
    """Return folders such as ``~/.claude-work`` that contain a history."""
    try:
        names = sorted(entry.name for entry in os.scandir(home) if entry.name.startswith(".claude"))
    except OSError:
        return []
    found = [home / name for name in names if name != ".claude" and is_utf8(name)]
    return [path for path in found if (path / "projects").is_dir() or (path / "history.jsonl").is_file()]


def desktop_folder(machine: Machine) -> Path:
    """Return Claude Desktop's folder."""
    if machine.system == "darwin":
        return machine.home / "Library" / "Application Support" / "Claude"
    if machine.system == "win32":
        return machine.folder("APPDATA", machine.home / "AppData" / "Roaming") / "Claude"
    return machine.folder("XDG_CONFIG_HOME", machine.home / ".config") / "Claude"


def _desktop_roots(machine: Machine) -> list[Path]:
    """Return Claude Desktop's folder if it has session metadata, and a root per agent mode session."""
    if machine.system not in ("darwin", "win32"):
        return []
    base = desktop_folder(machine)
    found = sorted(base.glob("local-agent-mode-sessions/**/local_*/.claude"))
    return [base, *found] if any((base / name).is_dir() for name in DESKTOP_FOLDERS) else found


def watched_paths(root: Path) -> list[Path]:
    """Return the paths that are written to during a session."""
    return [root / name for name in ("projects", "history.jsonl", *DESKTOP_FOLDERS, LEGACY_DATABASE)]


def units(root: Path) -> Iterator[Unit]:
    """Return all transcripts below the root, the prompt log and metadata files.

    Links to folders are followed in ``projects``, and nowhere below.
    """
    return chain.from_iterable(folder.units() for folder in list_all_folders(str(root)))


def units_at(root: Path, paths: Collection[str]) -> list[Unit]:
    """Return the units affected by changes at these paths. A path of a folder affects all units in it."""
    base = str(root)
    start = f"{base}{os.sep}"
    found: dict[tuple[str, str], Unit] = {}
    for path in paths:
        if path.startswith(start):
            folders = _list_folders_at(base, Path(path[len(start) :]).parts)
            found |= {(unit.path, unit.key): unit for folder in folders for unit in folder.units()}
        elif path == base:
            return list(units(root))
    return list(found.values())


def _list_folders_at(root: str, parts: tuple[str, ...]) -> Iterator[Folder]:
    match parts:
        case ["history.jsonl"]:
            yield from _list_root(root, "history.jsonl")
        case ["__store.db" | "__store.db-wal"]:
            yield from _list_root(root, LEGACY_DATABASE)
        case [folder, *_, name] if folder in DESKTOP_FOLDERS and name.endswith(".json"):
            yield from _list_desktop_folder(root, _join(root, *parts[:-1]))
        case [folder, *_] if folder in DESKTOP_FOLDERS:
            yield from _list_desktop_folders(root)
        case ["projects"]:
            yield from list_all_folders(root)
        case ["projects", project, *below] if _is_project(folder := _join(root, "projects", project)):
            match below:
                case []:
                    yield from _list_project_folders(root, folder)
                case [name] if name.endswith((".jsonl", ".meta.json")):
                    name = name.removesuffix(".meta.json").removesuffix(".jsonl") + ".jsonl"
                    yield from _list_single_file(root, folder, name)
                case [session, *_] if is_id(session) and not _is_link(_join(folder, session)):
                    yield from _list_subagent_folders(root, _join(folder, session, SUBAGENTS), session)


def is_id(name: str) -> bool:
    """Return whether a name is a UUID."""
    return _has_id_chars(name) is not None and name[8:24:5] == "----" and name.count("-") == 4


# Folders


class Folder(FileFolder):
    """Folder of transcripts, of metadata files, or the root. The side files are metadata of subagents."""

    __slots__ = ("_session", "_subagents_folder")

    def __init__(
        self,
        root: str,
        path: str,
        rows: list[str],
        sidecars: list[str],
        *,
        session: str | None = None,
        subagents_folder: str | None = None,
        is_unreadable: bool = False,
    ) -> None:
        super().__init__(NAME, root, path, rows, sidecars, is_unreadable=is_unreadable)
        self._session = session  # parent session of the subagents in this folder
        self._subagents_folder = subagents_folder  # this folder or one above; not followed if it is a link

    def units(self) -> Iterator[Unit]:
        """Return a unit per file, sorted by name."""
        is_linked = self._subagents_folder is not None and _is_link(self._subagents_folder)
        return iter(()) if is_linked else super().units()

    @property
    def session_rows(self) -> str:
        """Return the rows as text, for `find_old_sessions`; empty for a folder of subagents."""
        return "\n".join(self._rows) if self._session is None else ""

    def classify(self, name: str) -> tuple[str, str | None, tuple[str, ...]]:
        if self._session is not None:
            if not name.startswith("agent-"):
                return "journal", self._session, ()
            return "agent", self._session, (f"{name[:-6]}{_SIDECAR}",)
        if self.path == f"{self._root}{_SEP}":
            if name == PROMPT_LOG:
                return "prompts", None, ()
            return LEGACY_STORE, None, (_LEGACY_WAL,)
        if not name.endswith(".jsonl"):
            return "notes", None, ()
        stem = name[:-6]
        if is_id(stem):
            return "session", stem, ()
        if name.startswith("agent-"):
            return "agent", None, (f"{stem}{_SIDECAR}",)
        return "other", None, ()


class _RootFolder(Folder):
    """The root, with the prompt log and the database of version 0.2."""

    __slots__ = ()

    def units(self) -> Iterator[Unit]:
        """Return the unit of the prompt log, and those of the database."""
        for unit in super().units():
            if unit.kind == LEGACY_STORE:
                from backscroll.sources.claude_code.legacy_db import list_units

                end = "" if self._side_rows else "-"  # without a write-ahead log
                yield from list_units(unit.root, unit.path, unit.fingerprint + end)
            else:
                yield unit


def list_all_folders(root: str) -> Iterator[Folder]:
    """Yield all folders with transcripts or metadata, and the root."""
    base = f"{root}{_SEP}projects"
    projects = list_projects(base)
    if projects is None:
        yield Folder(root, base, [], [], is_unreadable=True)
    for project in projects or ():
        yield from _list_project_folders(root, f"{base}{_SEP}{project}")
    yield from _list_desktop_folders(root)
    yield from _list_root(root, PROMPT_LOG, LEGACY_DATABASE)


def list_projects(base: str) -> list[str] | None:
    """Return the names of the folders of projects; None if they cannot be listed.

    They come sorted, then those that are links, as a user makes them for a folder on another disk. A link is
    left out if its target is a project by another name, or contains all projects. Of two links to a folder,
    the one with its name counts. A broken link is included: its disk may not be mounted.
    """
    links: list[str] = []
    names = _list_subfolders(base, links)
    if not links or names is None:
        return names
    real_base = os.path.realpath(base)
    known = {_join(real_base, name) for name in names}
    targets = {name: os.path.realpath(_join(base, name)) for name in sorted(links)}
    for name, target in sorted(targets.items(), key=lambda item: not item[1].endswith(f"{_SEP}{item[0]}")):
        if target not in known and not f"{real_base}{_SEP}".startswith(f"{target.rstrip(_SEP)}{_SEP}"):
            known.add(target)
            names.append(name)
    return names


def _is_project(folder: str) -> bool:
    base, name = os.path.split(folder)
    return not _is_link(folder) or name in (list_projects(base) or ())


def _list_project_folders(root: str, folder: str) -> Iterator[Folder]:
    """Yield the folder of a project and those of its subagents."""
    listed = _list_folder(folder)
    if listed is None or (not any(listed) and is_broken_link(folder)):
        yield Folder(root, folder, [], [], is_unreadable=True)
        return
    rows, sidecars, subfolders = listed
    if rows:
        yield Folder(root, folder, rows, sidecars)
    for name in sorted(filter(is_id, subfolders)):
        yield from _list_subagent_folders(root, f"{folder}{_SEP}{name}{_SEP}{SUBAGENTS}", name)


def _list_subagent_folders(root: str, folder: str, session_id: str) -> Iterator[Folder]:
    """Yield the ``subagents`` folder of a session and its subfolders at any depth.

    A folder belongs to the session whose id precedes the last ``subagents`` in its path.
    """
    stack = [(folder, session_id)]
    while stack:
        path, session = stack.pop()
        listed = _list_folder(path)
        if listed is None:
            yield Folder(root, path, [], [], is_unreadable=True)
            continue
        rows, sidecars, subfolders = listed
        if rows:
            yield Folder(root, path, rows, sidecars, session=session, subagents_folder=folder)
        for name in subfolders:
            subfolder = f"{path}{_SEP}{name}"
            stack.append((subfolder, _parent_session(subfolder) or session_id))


def _list_single_file(root: str, folder: str, name: str) -> Iterator[Folder]:
    """Yield the folder of a project, with only one of its files; nothing if it does not exist."""
    if (row := stat_row(folder, name)) is not None:
        sidecar = stat_row(folder, f"{name[:-6]}{_SIDECAR}")
        yield Folder(root, folder, [row], [sidecar] if sidecar is not None else [])


def _list_root(root: str, *names: str) -> Iterator[Folder]:
    """Yield the root with those of the given files that exist: prompt log, database of version 0.2."""
    rows = [row for name in names if (row := stat_row(root, name)) is not None]
    if rows:
        wal = stat_row(root, _LEGACY_WAL) if rows[-1].startswith(f"{LEGACY_DATABASE}/") else None
        yield _RootFolder(root, root, rows, [wal] if wal is not None else [])


def _list_desktop_folders(root: str) -> Iterator[Folder]:
    """Yield the folders with Claude Desktop's metadata files, at any depth."""
    stack = [
        path for name in DESKTOP_FOLDERS if _is_folder(path := f"{root}{_SEP}{name}") and not _is_link(path)
    ]
    while stack:
        path = stack.pop()
        yield from _list_desktop_folder(root, path)
        stack += [
            f"{path}{_SEP}{name}"
            for name in _list_subfolders(path) or ()
            if not name.startswith(DESKTOP_PREFIX)
        ]


def _list_desktop_folder(root: str, folder: str) -> Iterator[Folder]:
    """Yield one folder with metadata files, without its subfolders; nothing if it has none."""
    try:
        with _scandir(folder) as found:
            names = [entry.name for entry in found if entry.name.startswith(DESKTOP_PREFIX)]
    except OSError:
        return
    rows = [row for name in sorted(names) if name.endswith(".json") and (row := stat_row(folder, name))]
    if rows:
        yield Folder(root, folder, rows, [])


def _list_folder(folder: str) -> tuple[list[str], list[str], list[str]] | None:
    """Return rows of transcripts, rows of sidecars, and names of subfolders that are not links."""
    return list_folder(folder, ".jsonl", _SIDECAR)


def _list_subfolders(folder: str, links: list[str] | None = None) -> list[str] | None:
    """Return the names of subfolders that are not links; None if the folder cannot be listed.

    Names of links to folders, and of broken links, are added to ``links``.
    """
    names: list[str] = []
    try:
        with _scandir(folder) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
                elif links is not None and entry.is_symlink() and not _is_file(entry.path):
                    links.append(entry.name)
        return sorted(names)
    except _NOT_FOUND:
        return []
    except OSError:
        return None


def _parent_session(folder: str) -> str | None:
    """Return the session id before the last ``subagents`` in a path."""
    parts = folder.split(_SEP)
    for index in range(len(parts) - 1, 0, -1):
        if parts[index] == SUBAGENTS:
            return parts[index - 1] if is_id(parts[index - 1]) else None
    return None


# Old sessions


def project_rows(root: str, fingerprints: Mapping[str, bytes | None]) -> Iterator[str]:
    """Yield `Folder.session_rows` of all projects. Only folders without a fingerprint are listed."""
    depth = root.count(_SEP) + 3  # root, "projects", project and the trailing separator
    for path, fingerprint in fingerprints.items():
        if path.count(_SEP) == depth:
            if fingerprint is not None:
                yield fingerprint.decode("utf-8", "surrogatepass")
            elif (listed := _list_folder(path)) is not None:
                yield "\n".join(listed[0])


def find_old_sessions(folders: Iterable[str], time_ns: int) -> tuple[str, ...]:
    """Return the ids of the sessions last written before a time, in nanoseconds since 1970.

    ``folders`` are the rows of each folder. A session can have files in several folders, and counts once. It
    is old if all its files are.
    """
    old: dict[str, None] = {}
    recent: set[str] = set()
    for rows in folders:
        for session_id, modified_ns in re.findall(_SESSION_ROW, rows, re.MULTILINE):
            if int(modified_ns) < time_ns:
                old[session_id] = None
            else:
                recent.add(session_id)
    return tuple(session_id for session_id in old if session_id not in recent and is_id(session_id))
