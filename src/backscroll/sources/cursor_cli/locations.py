"""Find the history of the Cursor CLI: roots, units and the paths of transcripts."""

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from backscroll.config import Machine
from backscroll.model.store import Unit
from backscroll.readers.files import change_token, is_utf8, lacks_database
from backscroll.sources.protocols import LOG, UNREADABLE

SOURCE = "cursor-cli"
_STORE_FILES = ("store.db", "store.db-wal", "store.db-journal")
_TRANSCRIPT_FOLDER = "agent-transcripts"
_SUBAGENT_FOLDER = "subagents"
_MAX_FOLDER_DEPTH = 4  # enough for a subagent of a subagent
_WINDOWS_HOMES = Path("/mnt/c/Users")
_join = os.path.join


class TranscriptPath(NamedTuple):
    """The parts of a transcript's path."""

    project: str  # slug of the workspace path, which cannot be converted back
    id: str
    parent: str | None = None  # the session that a subagent belongs to
    parent_agent: str | None = None  # the subagent that started it, if not the session itself


def roots(machine: Machine) -> list[Path]:
    """Return the folders that may contain ``chats/``, ``acp-sessions/`` and ``projects/``."""
    home = machine.home / ".cursor"
    candidates = [
        machine.folder("CURSOR_CONFIG_DIR", home),
        machine.folder("CURSOR_DATA_DIR", home),
        home,
        machine.folder("XDG_CONFIG_HOME", machine.home / ".config") / "cursor",
    ]
    if machine.system == "linux":
        candidates += _windows_roots(_WINDOWS_HOMES)
    found: dict[str, Path] = {}
    for path in candidates:
        found.setdefault(os.path.realpath(path), path)  # one may be a link to another
    return list(found.values())


def _windows_roots(homes: Path) -> list[Path]:
    try:
        return sorted(path for path in homes.glob("*/.cursor") if path.is_dir())
    except OSError:
        return []


def watched_paths(root: Path) -> list[Path]:
    """Return the paths that ``cursor-agent`` writes to."""
    return [root / name for name in ("chats", "acp-sessions", "projects", "prompt_history.json")]


def find_units(root: Path) -> Iterator[Unit]:
    """Return the stores, drafts, transcripts and prompt lists below a root, each sorted by name.

    A folder without permission to list it is a unit too, without a fingerprint.
    """
    base = str(root)
    denied: list[str] = []
    for folder in _folders(_join(base, "chats"), root, denied):
        for session in _folders(folder, root, denied):
            yield from _session_units(session, root, denied)
    for session in _folders(_join(base, "acp-sessions"), root, denied):
        yield from _session_units(session, root, denied)
    yield from _transcript_units(root, denied)
    yield from _prompt_units(base, root)
    yield from (Unit(SOURCE, base, path, kind=UNREADABLE.name) for path in denied)


def find_units_at(root: Path, paths: Collection[str]) -> list[Unit] | None:
    """Return the units affected by changes at these paths.

    Return None for a transcript: it may affect other transcripts of the same session.
    """
    folders: set[str] = set()
    for path in map(Path, paths):
        match path.relative_to(root).parts if path.is_relative_to(root) else ():
            case ("chats", workspace, session, *_):
                folders.add(str(root / "chats" / workspace / session))
            case ("acp-sessions", session, *_):
                folders.add(str(root / "acp-sessions" / session))
            case ("prompt_history.json",):
                folders.add(str(root))
            case ("projects", _, other, *_) if other != _TRANSCRIPT_FOLDER:
                continue
            case _:
                return None
    found: list[Unit] = []
    denied: list[str] = []
    for folder in sorted(folders):
        if folder == str(root):
            found += _prompt_units(folder, root)
        elif folder in _folders(os.path.dirname(folder), root, denied):  # noqa: PTH120 - compared as strings
            found += _session_units(folder, root, denied)
    return found if not denied else None


def _session_units(folder: str, root: Path, denied: list[str]) -> Iterator[Unit]:
    entries = {
        entry.name: entry
        for entry in _entries(folder, denied)
        if _is_kind(entry, "file") and (not entry.is_symlink() or _is_inside(entry, root))
    }
    name = os.path.basename(folder)  # noqa: PTH119 - creating a Path takes longer than all other steps
    if (store := entries.get("store.db")) is not None:
        if store.is_symlink():
            path = Path(store.path)
            stamps = [_file_token(store)]
            tokens, size = [change_token(path)], stamps[0][1]  # its log is beside the target
        else:
            stamps = [_file_token(entries.get(each)) for each in _STORE_FILES]
            tokens, size = [token for token, _ in stamps], sum(size for _, size in stamps[:2])
        tokens.append(_file_token(entries.get("meta.json"))[0])
        yield Unit(
            SOURCE,
            str(root),
            store.path,
            fingerprint="/".join(tokens),
            size=size,
            session_id=name,
            modified_at=max(_modified_at(token) for token, _ in stamps),
        )
    else:
        log = entries.get("store.db-wal")
        if log is not None and lacks_database(_join(folder, "store.db")):
            yield Unit(SOURCE, str(root), log.path, kind=LOG.name, session_id=name)
        if (meta := entries.get("meta.json")) is not None:
            yield _file_unit(meta.path, root, kind="session", session_id=name)
    if "prompt_history.json" in entries:
        yield from _prompt_units(folder, root)


def _file_token(entry: os.DirEntry[str] | str | None) -> tuple[str, int]:
    """Return the change token and the size of a file; "-" and 0 if it does not exist."""
    try:
        status = os.stat(entry) if entry is not None else None  # noqa: PTH116 - as above
    except OSError:
        status = None
    return (f"{status.st_size}-{status.st_mtime_ns}", status.st_size) if status is not None else ("-", 0)


def _modified_at(token: str) -> int:
    """Return the modification time in the change token of a file; 0 if the file does not exist."""
    return int(token.partition("-")[2] or 0)


def _prompt_units(folder: str, root: Path) -> Iterator[Unit]:
    path = _join(folder, "prompt_history.json")
    if os.path.isfile(path):  # noqa: PTH113 - as above
        yield _file_unit(path, root, kind="prompts", session_id=None)


def _transcript_units(root: Path, denied: list[str]) -> Iterator[Unit]:
    for (_, id), paths in find_transcripts(root, denied).items():
        units = [_file_unit(path, root, kind="transcript", session_id=id) for path in paths]
        if len(units) > 1:
            # All of them decide which one is active, so they share a fingerprint.
            fingerprint = "/".join(unit.fingerprint for unit in units)
            units = [unit._replace(fingerprint=fingerprint) for unit in units]
        yield from units


def store_name(folder: Path) -> str:
    """Return the store that a session's folder belongs to."""
    return "acp" if folder.parent.name == "acp-sessions" else "store"


def find_transcripts(root: Path, denied: list[str] | None = None) -> dict[tuple[str | None, str], list[str]]:
    """Return the transcripts below a root, by the ids of parent session and session.

    Folders without permission to list them are appended to ``denied``.
    """
    denied = denied if denied is not None else []
    return _group_by_session(
        path
        for project in _folders(_join(root, "projects"), root, denied)
        for path in _files(_join(project, _TRANSCRIPT_FOLDER), root, denied)
    )


def _group_by_session(paths: Iterable[str]) -> dict[tuple[str | None, str], list[str]]:
    """Group transcripts by session. If a session has JSON lines, its plain text is omitted."""
    found: dict[tuple[str | None, str], list[str]] = {}
    for path in paths:
        parsed = parse_transcript_path(path)
        if parsed is not None:
            found.setdefault((parsed.parent, parsed.id), []).append(path)
    for key, of_session in found.items():
        found[key] = [path for path in of_session if path.endswith(".jsonl")] or of_session
    return found


def parse_transcript_path(path: Path | str) -> TranscriptPath | None:
    """Parse ``<id>.txt``, ``<id>.jsonl``, ``<id>/<id>.jsonl`` or ``<parent>/subagents/<id>.jsonl``.

    Return None for any other path.
    """
    *parts, name = str(path).split(os.sep)  # noqa: PTH206 - creating a Path takes longer than all other steps
    id_, _, suffix = name.rpartition(".")
    if not id_ or suffix not in ("jsonl", "txt") or _TRANSCRIPT_FOLDER not in parts:
        return None
    last = len(parts) - 1 - parts[::-1].index(_TRANSCRIPT_FOLDER)
    folders = parts[last + 1 :]
    project = parts[last - 1] if last else ""
    if _SUBAGENT_FOLDER in folders[1:]:
        last_subagents = len(folders) - 1 - folders[::-1].index(_SUBAGENT_FOLDER)
        starter = folders[last_subagents - 1]
        return TranscriptPath(project, id_, folders[0], starter if starter != folders[0] else None)
    # The folder of a session may contain text files that are not transcripts.
    if suffix == "txt" and folders and folders[-1] != id_:
        return None
    return TranscriptPath(project, id_)


def _file_unit(path: str, root: Path, *, kind: str, session_id: str | None) -> Unit:
    token, size = _file_token(path)
    return Unit(
        SOURCE,
        str(root),
        path,
        fingerprint=token,
        size=size,
        kind=kind,
        session_id=session_id,
        modified_at=_modified_at(token),
    )


def _files(folder: str, root: Path, denied: list[str], *, depth: int = 0) -> Iterator[str]:
    entries = _entries(folder, denied)
    for entry in entries:
        if _is_kind(entry, "file") and _is_inside(entry, root):
            yield entry.path
    if depth < _MAX_FOLDER_DEPTH:
        for inner in _folders(folder, root, denied, entries):
            yield from _files(inner, root, denied, depth=depth + 1)


def _folders(
    folder: str, root: Path, denied: list[str], entries: Iterable[os.DirEntry[str]] | None = None
) -> Iterator[str]:
    """Return the folders in a folder, without links to folders beside them."""
    for entry in _entries(folder, denied) if entries is None else entries:
        if _is_kind(entry, "folder") and _is_inside(entry, root):
            path = Path(entry.path) if entry.is_symlink() else None
            if path is None or path.resolve().parent != path.parent.resolve():
                yield entry.path


def _is_kind(entry: os.DirEntry[str], kind: Literal["file", "folder"]) -> bool:
    try:
        return entry.is_file() if kind == "file" else entry.is_dir()
    except OSError:  # a link to itself
        return False


def _entries(folder: str, denied: list[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted((entry for entry in entries if is_utf8(entry.name)), key=lambda entry: entry.name)
    except PermissionError:
        denied.append(folder)
        return []
    except OSError:
        return []


def _is_inside(entry: os.DirEntry[str], root: Path) -> bool:
    """Return whether an entry is below the root, after following links."""
    return not entry.is_symlink() or Path(entry.path).resolve().is_relative_to(root.resolve())
