"""Paths of Cursor's history: one user-data folder per build, with a subfolder ``User/``."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from backscroll.config import Machine
from backscroll.readers.files import is_denied, is_utf8, lacks_database

SOURCE = "cursor"
_GLOBAL_STORAGE, _WORKSPACE_STORAGE = "User/globalStorage", "User/workspaceStorage"
GLOBAL_DATABASE = f"{_GLOBAL_STORAGE}/state.vscdb"
SEARCH_DATABASE = f"{_GLOBAL_STORAGE}/conversation-search.db"
TITLES_KIND = "titles"  # unit kind of a database with titles of sessions, but no sessions
_BUILDS = ("Cursor", "Cursor Nightly")
_WINDOWS_HOMES = Path("/mnt/c/Users")
_is_file, _is_link = os.path.isfile, os.path.islink


class WorkspaceStorage(NamedTuple):
    """Folder in which the editor stores the state of one workspace."""

    id: str
    folder: Path


def roots(machine: Machine) -> list[Path]:
    """Return the user-data folders of all builds. On WSL, include existing ones of Windows."""
    match machine.system:
        case "darwin":
            base = machine.home / "Library" / "Application Support"
        case "win32" | "cygwin":
            base = machine.folder("APPDATA", machine.home / "AppData" / "Roaming")
        case _:
            base = machine.folder("XDG_CONFIG_HOME", machine.home / ".config")
    found = [base / build for build in _BUILDS]
    if machine.system == "linux":
        found += _windows_roots(_WINDOWS_HOMES)
    return found


def _windows_roots(homes: Path) -> list[Path]:
    try:
        return sorted(
            path for build in _BUILDS for path in homes.glob(f"*/AppData/Roaming/{build}") if path.is_dir()
        )
    except OSError:
        return []


def global_database(root: Path) -> Path:
    return root / GLOBAL_DATABASE


def search_database(root: Path) -> Path:
    return root / SEARCH_DATABASE


def tracking_database(root: Path) -> Path | None:
    home = agent_home(root)
    return home / "ai-tracking/ai-code-tracking.db" if home else None


def side_databases(root: Path) -> list[Path]:
    """Return the existing databases that have titles of sessions, but no sessions."""
    return [path for path in (search_database(root), tracking_database(root)) if path and is_file(path)]


def watched_paths(root: Path) -> list[Path]:
    """Return the folders that Cursor writes to during a session."""
    return [root / _GLOBAL_STORAGE, root / _WORKSPACE_STORAGE]


def unreadable_folders(root: Path) -> list[Path]:
    """Return the folders with databases that the user may not list."""
    return [folder for folder in watched_paths(root) if is_denied(folder)]


def workspace_storages(root: Path) -> Iterator[WorkspaceStorage]:
    """Return the folders below ``workspaceStorage``, sorted by name. Links out of the root are skipped."""
    for entry in _storage_folders(root):
        folder = Path(entry.path)
        if is_inside(folder, root):
            yield WorkspaceStorage(entry.name, folder)


def outside_storages(root: Path) -> list[Path]:
    """Return the links below ``workspaceStorage`` that lead out of the root."""
    return [path for entry in _storage_folders(root) if not is_inside(path := Path(entry.path), root)]


def _storage_folders(root: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root / _WORKSPACE_STORAGE) as found:
            folders = (entry for entry in found if entry.is_dir() and is_utf8(entry.name))
            return sorted(folders, key=lambda entry: entry.name)
    except OSError:
        return []


def databases(root: Path) -> Iterator[tuple[Path, str]]:
    """Return the databases that can contain sessions, with their storage ids.

    The global database comes first. Its storage id is empty.
    """
    for path, storage_id in database_paths(root):
        yield Path(path), storage_id


def database_paths(root: Path) -> Iterator[tuple[str, str]]:
    """Like `databases`, but with paths as text: creating a Path costs more than checking the file."""
    path = str(global_database(root))
    if _is_file(path):
        yield path, ""
    for entry in _storage_folders(root):
        path = f"{entry.path}{os.sep}state.vscdb"
        if _is_file(path) and (
            not (entry.is_symlink() or _is_link(path))
            or (is_inside(Path(entry.path), root) and is_inside(Path(path), root))
        ):
            yield path, entry.name


def logs_without_database(root: Path) -> list[str]:
    """Return the write-ahead logs whose database does not exist."""
    paths = [str(global_database(root))]
    paths += [f"{entry.path}{os.sep}state.vscdb" for entry in _storage_folders(root)]
    return [f"{path}-wal" for path in paths if lacks_database(path)]


def is_inside(path: Path, root: Path) -> bool:
    """Return whether a path is below the root after links are resolved."""
    if not path.is_symlink():
        return True
    try:
        return path.resolve().is_relative_to(root.resolve())
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Return whether a file exists; False if its folder may not be entered."""
    return _is_file(path)  # Path.is_file raises PermissionError


def pasted_images(storage: WorkspaceStorage) -> list[Path]:
    """Return the image files that were pasted in a workspace and still exist."""
    folder = storage.folder / "images"
    try:
        return sorted(folder.iterdir()) if not folder.is_symlink() else []
    except OSError:
        return []


def pasted_image(root: Path, attached_path: str) -> Path | None:
    """Return the pasted image with the name of a path, None if there is none below the root."""
    name = attached_path.replace("\\", "/").rpartition("/")[2]
    for storage in workspace_storages(root) if name else ():
        for path in pasted_images(storage):
            if path.name == name and is_inside(path, root) and is_file(path):
                return path
    return None


def agent_home(root: Path) -> Path | None:
    """Return the ``.cursor`` folder of the user who owns a user-data folder; None if there is none."""
    for folder in list(root.absolute().parents)[:3]:
        home = folder / ".cursor"
        if os.path.isdir(home):  # noqa: PTH112 - Path.is_dir raises PermissionError
            return home
    return None
