"""Where Claude Code keeps its history, and which files there tell of what."""

import os
import re
import stat
from collections.abc import Collection, Iterator
from operator import attrgetter
from pathlib import Path

from backscroll.config import Machine
from backscroll.model import Unit

__all__ = ["NAME", "roots", "units", "units_at", "watched"]

NAME = "claude-code"

_SUBAGENTS = "subagents"
_SIDECAR = ".meta.json"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_NAME = attrgetter("name")
_join = os.path.join  # a Path costs more than the asking, ten thousand times
_is_link = os.path.islink


def roots(machine: Machine) -> list[Path]:
    """Every folder that may hold ``projects/``: what the environment names, else the usual places."""
    named = machine.environ.get("CLAUDE_CONFIG_DIR", "").strip()
    if named:
        found = [
            _without_projects(machine.expanded(item.strip())) for item in named.split(",") if item.strip()
        ]
    else:
        config = machine.folder("XDG_CONFIG_HOME", machine.home / ".config")
        found = [machine.home / ".claude", config / "claude"]
        found += [
            machine.expanded(item)
            for item in machine.environ.get("CLAUDE_CONFIG_DIRS", "").split(":")
            if item
        ]
        found += _siblings(machine.home)
    found += _desktop_roots(machine)
    return list(dict.fromkeys(found))


def _without_projects(path: Path) -> Path:
    return path.parent if path.name == "projects" else path


def _siblings(home: Path) -> list[Path]:
    """Folders such as ``~/.claude-work`` that hold a history of their own."""
    try:
        names = sorted(entry.name for entry in os.scandir(home) if entry.name.startswith(".claude"))
    except OSError:
        return []
    found = [home / name for name in names if name != ".claude"]
    return [path for path in found if (path / "projects").is_dir() or (path / "history.jsonl").is_file()]


def _desktop_roots(machine: Machine) -> list[Path]:
    """Claude Desktop's agent mode keeps a root per session, with the same files inside."""
    if machine.system == "darwin":
        base = machine.home / "Library" / "Application Support" / "Claude"
    elif machine.system == "win32":
        base = machine.folder("APPDATA", machine.home / "AppData" / "Roaming") / "Claude"
    else:
        return []
    return sorted(base.glob("local-agent-mode-sessions/**/local_*/.claude"))


def watched(root: Path) -> list[Path]:
    """What is written to while a session is held."""
    return [root / "projects", root / "history.jsonl"]


def units(root: Path) -> Iterator[Unit]:
    """Every transcript below the root, and the log of prompts. Links to folders are not followed."""
    base = str(root)
    for project in _entries(_join(base, "projects")):
        if project.is_dir(follow_symlinks=False):
            yield from _below_project(base, project.path)
    yield from _prompts(base)


def units_at(root: Path, paths: Collection[str]) -> list[Unit]:
    """The units that changes at these paths bear on; of a folder, all that are in it."""
    base = str(root)
    start = f"{base}{os.sep}"
    found: dict[str, Unit] = {}
    for path in paths:
        if path.startswith(start):
            found |= {unit.path: unit for unit in _at(base, Path(path[len(start) :]).parts)}
        elif path == base:
            return list(units(root))
    return list(found.values())


def _at(root: str, parts: tuple[str, ...]) -> Iterator[Unit]:
    match parts:
        case ["history.jsonl"]:
            yield from _prompts(root)
        case ["projects"]:
            yield from units(Path(root))
        case ["projects", project, *below] if not _is_link(folder := _join(root, "projects", project)):
            match below:
                case []:
                    yield from _below_project(root, folder)
                case [name] if name.endswith((".jsonl", _SIDECAR)):
                    name = name.removesuffix(_SIDECAR).removesuffix(".jsonl") + ".jsonl"
                    path = _join(folder, name)
                    if (status := _status(Path(path))) is not None:
                        yield _flat(root, path, name, status)
                case [session, *_] if _UUID.fullmatch(session) and not _is_link(_join(folder, session)):
                    yield from _below_session(root, _join(folder, session, _SUBAGENTS), session)


def _below_project(root: str, folder: str) -> Iterator[Unit]:
    is_id = _UUID.fullmatch
    for entry in _entries(folder):
        name = entry.name
        if name.endswith(".jsonl"):
            if (status := _status(entry)) is not None:
                yield _flat(root, entry.path, name, status)
        elif is_id(name) and entry.is_dir(follow_symlinks=False):
            yield from _below_session(root, f"{entry.path}{os.sep}{_SUBAGENTS}", name)


def _flat(root: str, path: str, name: str, status: os.stat_result) -> Unit:
    """A file that lies directly in a project's folder."""
    stem = name[:-6]
    if _UUID.fullmatch(stem):
        token = f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"
        return Unit(NAME, root, path, "", token, status.st_size, "session", stem)
    if name.startswith("agent-"):
        return _agent(root, path, status, _status(Path(f"{path[:-6]}{_SIDECAR}")), None)
    return Unit(NAME, root, path, "", _token(status), status.st_size, "other")


def _below_session(root: str, folder: str, session_id: str) -> Iterator[Unit]:
    """Subagents at any depth; each belongs to the session named before the last ``subagents``."""
    entries = _entries(folder)
    if entries and _is_link(folder):
        return
    waiting = [(entries, session_id)]
    while waiting:
        entries, parent = waiting.pop()
        beside = {entry.name: entry for entry in entries if entry.name.endswith(_SIDECAR)}
        for entry in entries:
            name = entry.name
            if name.endswith(".jsonl"):
                if (status := _status(entry)) is None:
                    continue
                if name.startswith("agent-"):
                    sidecar = beside.get(f"{name[:-6]}{_SIDECAR}")
                    yield _agent(root, entry.path, status, sidecar and _status(sidecar), parent)
                else:
                    yield Unit(NAME, root, entry.path, "", _token(status), status.st_size, "journal", parent)
            elif entry.is_dir(follow_symlinks=False):
                waiting.append((_entries(entry.path), _parent(entry.path) or session_id))


def _parent(folder: str) -> str | None:
    parts = Path(folder).parts
    for at in range(len(parts) - 1, 0, -1):
        if parts[at] == _SUBAGENTS:
            return parts[at - 1] if _UUID.fullmatch(parts[at - 1]) else None
    return None


def _prompts(root: str) -> Iterator[Unit]:
    path = _join(root, "history.jsonl")
    if (status := _status(Path(path))) is not None:
        yield Unit(NAME, root, path, "", _token(status), status.st_size, "prompts")


def _agent(
    root: str, path: str, status: os.stat_result, beside: os.stat_result | None, parent: str | None
) -> Unit:
    token = _token(status)
    if beside is not None:
        token = f"{token}-{beside.st_mtime_ns}"
    return Unit(NAME, root, path, "", token, status.st_size, "agent", parent)


def _token(status: os.stat_result) -> str:
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"


def _status(path: Path | os.DirEntry[str]) -> os.stat_result | None:
    """A regular file's status; a link to one is followed, a file that vanished is silence."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=_NAME)
    except OSError:
        return []
