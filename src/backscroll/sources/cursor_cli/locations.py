"""Where Cursor's command line keeps its history, and what is there."""

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal

from backscroll.config import Machine
from backscroll.model import Unit
from backscroll.readers.file_names import is_utf8
from backscroll.readers.sqlite_change import change_token
from backscroll.sources.cursor_cli.transcript_paths import group_by_session

__all__ = ["SOURCE", "find_transcripts", "find_units", "find_units_at", "roots", "watched_paths"]

SOURCE = "cursor-cli"
_STORE_FILES = ("store.db", "store.db-wal", "store.db-journal")
_MAX_FOLDER_DEPTH = 4  # a subagent's subagent
_WINDOWS_HOMES = Path("/mnt/c/Users")
_join = os.path.join


def roots(machine: Machine) -> list[Path]:
    """The folders that may hold ``chats/``, ``acp-sessions/`` and ``projects/``."""
    home = machine.home / ".cursor"
    found = [
        machine.folder("CURSOR_CONFIG_DIR", home),
        machine.folder("CURSOR_DATA_DIR", home),
        home,
        machine.folder("XDG_CONFIG_HOME", machine.home / ".config") / "cursor",
    ]
    if machine.system == "linux":
        found += _seen_from_wsl(_WINDOWS_HOMES)
    places: dict[str, Path] = {}
    for path in found:
        places.setdefault(os.path.realpath(path), path)  # one may be a link to another
    return list(places.values())


def _seen_from_wsl(homes: Path) -> list[Path]:
    try:
        return sorted(path for path in homes.glob("*/.cursor") if path.is_dir())
    except OSError:
        return []


def find_units(root: Path) -> Iterator[Unit]:
    """Stores, sessions that were never begun, transcripts and prompt lists, in order of their names."""
    base = str(root)
    for folder in _folders(_join(base, "chats"), root):
        for session in _folders(folder, root):
            yield from _session_units(session, root)
    for session in _folders(_join(base, "acp-sessions"), root):
        yield from _session_units(session, root)
    yield from _transcript_units(root)
    yield from _prompt_units(base, root)


def watched_paths(root: Path) -> list[Path]:
    """What is written to while a session is held."""
    return [root / name for name in ("chats", "acp-sessions", "projects", "prompt_history.json")]


def find_units_at(root: Path, paths: Collection[str]) -> list[Unit] | None:
    """The units that changes at these paths bear on; None when one is a transcript, which may have rivals."""
    folders: set[str] = set()
    for path in map(Path, paths):
        match path.relative_to(root).parts if path.is_relative_to(root) else ():
            case ("chats", workspace, session, *_):
                folders.add(str(root / "chats" / workspace / session))
            case ("acp-sessions", session, *_):
                folders.add(str(root / "acp-sessions" / session))
            case ("prompt_history.json",):
                folders.add(str(root))
            case ("projects", _, other, *_) if other != "agent-transcripts":
                continue
            case _:
                return None
    found: list[Unit] = []
    for folder in sorted(folders):
        if folder == str(root):
            found += _prompt_units(folder, root)
        elif folder in _folders(os.path.dirname(folder), root):  # noqa: PTH120 - as it is spelt there
            found += _session_units(folder, root)
    return found


def _session_units(folder: str, root: Path) -> Iterator[Unit]:
    entries = {
        entry.name: entry
        for entry in _entries(folder)
        if _is_kind(entry, "file") and (not entry.is_symlink() or _is_inside(entry, root))
    }
    name = os.path.basename(folder)  # noqa: PTH119 - a Path costs more than all the rest
    if (store := entries.get("store.db")) is not None:
        if store.is_symlink():
            path = Path(store.path)
            tokens, size = [change_token(path)], _file_token(store)[1]  # what belongs to it lies elsewhere
        else:
            stamps = [_file_token(entries.get(each)) for each in _STORE_FILES]
            tokens, size = [token for token, _ in stamps], sum(size for _, size in stamps[:2])
        tokens.append(_file_token(entries.get("meta.json"))[0])
        yield Unit(SOURCE, str(root), store.path, fingerprint="/".join(tokens), size=size, session_id=name)
    elif (meta := entries.get("meta.json")) is not None:
        token, size = _file_token(meta)
        yield Unit(SOURCE, str(root), meta.path, fingerprint=token, size=size, session_id=name)
    if "prompt_history.json" in entries:
        yield from _prompt_units(folder, root)


def _file_token(entry: os.DirEntry[str] | str | None) -> tuple[str, int]:
    """What changes with a file, and its size; nothing and 0 for one that is not there."""
    try:
        found = os.stat(entry) if entry is not None else None  # noqa: PTH116 - as above
    except OSError:
        found = None
    return (f"{found.st_size}-{found.st_mtime_ns}", found.st_size) if found is not None else ("-", 0)


def _prompt_units(folder: str, root: Path) -> Iterator[Unit]:
    path = _join(folder, "prompt_history.json")
    if os.path.isfile(path):  # noqa: PTH113 - as above
        yield _file_unit(path, root, kind="prompts", session_id=None)


def find_transcripts(root: Path) -> dict[tuple[str | None, str], list[str]]:
    """The transcripts below a root, by the session that they tell of and the one that started it."""
    return group_by_session(
        path
        for project in _folders(_join(root, "projects"), root)
        for path in _files(_join(project, "agent-transcripts"), root)
    )


def _transcript_units(root: Path) -> Iterator[Unit]:
    for (_, id), paths in find_transcripts(root).items():
        units = [_file_unit(path, root, kind="transcript", session_id=id) for path in paths]
        if len(units) > 1:
            # Which of several counts depends on all of them.
            together = "/".join(unit.fingerprint for unit in units)
            units = [unit._replace(fingerprint=together) for unit in units]
        yield from units


def _file_unit(path: str, root: Path, *, kind: str, session_id: str | None) -> Unit:
    token, size = _file_token(path)
    return Unit(SOURCE, str(root), path, "", token, size, kind, session_id)


def _files(folder: str, root: Path, *, depth: int = 0) -> Iterator[str]:
    entries = _entries(folder)
    for entry in entries:
        if _is_kind(entry, "file") and _is_inside(entry, root):
            yield entry.path
    if depth < _MAX_FOLDER_DEPTH:
        for inner in _folders(folder, root, entries):
            yield from _files(inner, root, depth=depth + 1)


def _folders(folder: str, root: Path, entries: Iterable[os.DirEntry[str]] | None = None) -> Iterator[str]:
    """The folders in a folder. A link to one of the others leads nowhere new."""
    for entry in _entries(folder) if entries is None else entries:
        if _is_kind(entry, "folder") and _is_inside(entry, root):
            path = Path(entry.path) if entry.is_symlink() else None
            if path is None or path.resolve().parent != path.parent.resolve():
                yield entry.path


def _is_kind(entry: os.DirEntry[str], kind: Literal["file", "folder"]) -> bool:
    try:
        return entry.is_file() if kind == "file" else entry.is_dir()
    except OSError:  # a link to itself
        return False


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted((one for one in entries if is_utf8(one.name)), key=lambda entry: entry.name)
    except OSError:
        return []


def _is_inside(entry: os.DirEntry[str], root: Path) -> bool:
    """Whether an entry stays below the root; a link may lead anywhere."""
    return not entry.is_symlink() or Path(entry.path).resolve().is_relative_to(root.resolve())
