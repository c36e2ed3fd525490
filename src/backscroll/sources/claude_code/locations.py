"""Find Claude Code's history: its roots, and the units below a root."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.readers.file_names import is_utf8
from backscroll.sources.claude_code.folders import (
    DESKTOP_FOLDERS,
    LEGACY_DATABASE,
    NAME,
    SUBAGENTS,
    Folder,
    is_id,
    list_all_folders,
    list_desktop_folder,
    list_desktop_folders,
    list_project_folders,
    list_root,
    list_single_file,
    list_subagent_folders,
)

if TYPE_CHECKING:
    from backscroll.config import Machine
    from backscroll.model import Unit

__all__ = ["NAME", "roots", "units", "units_at", "watched_paths"]

_join = os.path.join
_is_link = os.path.islink


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


def _desktop_roots(machine: Machine) -> list[Path]:
    """Return Claude Desktop's folder if it has session metadata, and a root per agent mode session."""
    if machine.system == "darwin":
        base = machine.home / "Library" / "Application Support" / "Claude"
    elif machine.system == "win32":
        base = machine.folder("APPDATA", machine.home / "AppData" / "Roaming") / "Claude"
    else:
        return []
    found = sorted(base.glob("local-agent-mode-sessions/**/local_*/.claude"))
    return [base, *found] if any((base / name).is_dir() for name in DESKTOP_FOLDERS) else found


def watched_paths(root: Path) -> list[Path]:
    """Return the paths that are written to during a session."""
    return [root / name for name in ("projects", "history.jsonl", *DESKTOP_FOLDERS, LEGACY_DATABASE)]


def units(root: Path) -> Iterator[Unit]:
    """Return all transcripts below the root, the prompt log and metadata files. Links are not followed."""
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
            yield from list_root(root, "history.jsonl")
        case ["__store.db" | "__store.db-wal"]:
            yield from list_root(root, LEGACY_DATABASE)
        case [folder, *_, name] if folder in DESKTOP_FOLDERS and name.endswith(".json"):
            yield from list_desktop_folder(root, _join(root, *parts[:-1]))
        case [folder, *_] if folder in DESKTOP_FOLDERS:
            yield from list_desktop_folders(root)
        case ["projects"]:
            yield from list_all_folders(root)
        case ["projects", project, *below] if not _is_link(folder := _join(root, "projects", project)):
            match below:
                case []:
                    yield from list_project_folders(root, folder)
                case [name] if name.endswith((".jsonl", ".meta.json")):
                    name = name.removesuffix(".meta.json").removesuffix(".jsonl") + ".jsonl"
                    yield from list_single_file(root, folder, name)
                case [session, *_] if is_id(session) and not _is_link(_join(folder, session)):
                    yield from list_subagent_folders(root, _join(folder, session, SUBAGENTS), session)
