"""Where Claude Code keeps its history, and which files there tell of what."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from backscroll.config import Machine
from backscroll.model import Unit

__all__ = ["NAME", "roots", "units"]

NAME = "claude-code"

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


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


def units(root: Path) -> Iterator[Unit]:
    """Every transcript below the root, and the log of prompts. Links to folders are not followed."""
    base = str(root)
    for project in _entries(os.path.join(base, "projects")):  # noqa: PTH118 - ten thousand times a second
        if not project.is_dir(follow_symlinks=False):
            continue
        for entry in _entries(project.path):
            name = entry.name
            if name.endswith(".jsonl"):
                unit = _transcript(base, entry)
                if unit is not None:
                    yield unit
            elif _UUID.fullmatch(name) and entry.is_dir(follow_symlinks=False):
                yield from _below_session(base, entry.path, name)
    history = root / "history.jsonl"
    if (status := _status(history)) is not None:
        yield _unit(base, str(history), status, "prompts", None)


def _transcript(root: str, entry: os.DirEntry[str]) -> Unit | None:
    status = _status(entry)
    if status is None:
        return None
    stem = entry.name.removesuffix(".jsonl")
    if _UUID.fullmatch(stem):
        return _unit(root, entry.path, status, "session", stem)
    kind = "agent" if entry.name.startswith("agent-") else "other"
    return _unit(root, entry.path, status, kind, None)


def _below_session(root: str, folder: str, session_id: str) -> Iterator[Unit]:
    """Subagents at any depth; each belongs to the session named before the last ``subagents``."""
    top = Path(folder, "subagents")
    waiting = [] if top.is_symlink() else [str(top)]
    while waiting:
        here = waiting.pop()
        parent = _parent(here) or session_id
        for entry in _entries(here):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.name.endswith(".jsonl") and (status := _status(entry)) is not None:
                kind = "agent" if entry.name.startswith("agent-") else "journal"
                yield _unit(root, entry.path, status, kind, parent)


def _parent(folder: str) -> str | None:
    parts = Path(folder).parts
    for at in range(len(parts) - 1, 0, -1):
        if parts[at] == "subagents":
            return parts[at - 1] if _UUID.fullmatch(parts[at - 1]) else None
    return None


def _unit(root: str, path: str, status: os.stat_result, kind: str, session_id: str | None) -> Unit:
    fingerprint = f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"
    if kind == "agent":
        beside = _status(Path(f"{path.removesuffix('.jsonl')}.meta.json"))
        fingerprint += f"-{beside.st_mtime_ns}" if beside is not None else ""
    return Unit(NAME, root, path, "", fingerprint, status.st_size, kind, session_id)


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
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []
