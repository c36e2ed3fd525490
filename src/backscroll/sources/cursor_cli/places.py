"""Where Cursor's command line keeps its history, and what is there."""

import os
from collections.abc import Iterator
from pathlib import Path

from backscroll.config import Machine
from backscroll.model import Unit
from backscroll.readers.sqlite import change_token

__all__ = ["SOURCE", "find_units", "roots"]

SOURCE = "cursor-cli"
_WINDOWS_HOMES = Path("/mnt/c/Users")


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
    return list(dict.fromkeys(found))


def _seen_from_wsl(homes: Path) -> list[Path]:
    try:
        return sorted(path for path in homes.glob("*/.cursor") if path.is_dir())
    except OSError:
        return []


def find_units(root: Path) -> Iterator[Unit]:
    """Stores, sessions that were never begun, transcripts and prompt lists, in order of their names."""
    for folder in _folders(root / "chats", root):
        for session in _folders(folder, root):
            yield from _session_units(session, root)
    for session in _folders(root / "acp-sessions", root):
        yield from _session_units(session, root)
    for project in _folders(root / "projects", root):
        yield from _transcripts(project / "agent-transcripts", root)
    yield from _prompt_units(root, root)


def _session_units(folder: Path, root: Path) -> Iterator[Unit]:
    names = {entry.name for entry in _entries(folder)}
    store, meta = folder / "store.db", folder / "meta.json"
    if "store.db" in names:
        size = sum(_size(path) for path in (store, folder / "store.db-wal"))
        token = f"{change_token(store)}/{_token(meta)}"
        yield Unit(SOURCE, str(root), str(store), fingerprint=token, size=size, session_id=folder.name)
    elif "meta.json" in names:
        yield _file_unit(meta, root, kind="session", session_id=folder.name)
    if "prompt_history.json" in names:
        yield from _prompt_units(folder, root)


def _prompt_units(folder: Path, root: Path) -> Iterator[Unit]:
    path = folder / "prompt_history.json"
    if path.is_file():
        yield _file_unit(path, root, kind="prompts", session_id=None)


def _transcripts(folder: Path, root: Path) -> Iterator[Unit]:
    """Transcripts of every layout; where one exists as ``.jsonl`` and ``.txt``, only the former."""
    found: dict[tuple[str, str], Path] = {}
    for path in _files(folder, root):
        if path.suffix not in (".jsonl", ".txt"):
            continue
        # A subagent's transcript lies below its parent's folder; two parents may have children of one name.
        above = path.parent.parent.name if path.parent.name == "subagents" else ""
        known = found.get((above, path.stem))
        if known is None or (known.suffix == ".txt" and path.suffix == ".jsonl"):
            found[above, path.stem] = path
    for path in found.values():
        yield _file_unit(path, root, kind="transcript", session_id=path.stem)


def _file_unit(path: Path, root: Path, *, kind: str, session_id: str | None) -> Unit:
    return Unit(
        SOURCE,
        str(root),
        str(path),
        fingerprint=_token(path),
        size=_size(path),
        kind=kind,
        session_id=session_id,
    )


def _files(folder: Path, root: Path, *, depth: int = 0) -> Iterator[Path]:
    entries = _entries(folder)
    yield from (folder / entry.name for entry in entries if entry.is_file() and _is_inside(entry, root))
    if depth < 4:
        for inner in _folders(folder, root):
            yield from _files(inner, root, depth=depth + 1)


def _folders(folder: Path, root: Path) -> Iterator[Path]:
    for entry in _entries(folder):
        if entry.is_dir() and _is_inside(entry, root):
            yield folder / entry.name


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _is_inside(entry: os.DirEntry[str], root: Path) -> bool:
    """Whether an entry stays below the root; a link may lead anywhere."""
    return not entry.is_symlink() or Path(entry.path).resolve().is_relative_to(root.resolve())


def _token(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "-"
    return f"{found.st_size}-{found.st_mtime_ns}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
