"""Where Cursor keeps its history: one user-data folder per build, holding ``User/``."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from backscroll.config import Machine
from backscroll.readers.file_names import is_utf8

__all__ = [
    "TITLES",
    "Storage",
    "agent_home",
    "database_files",
    "databases",
    "global_database",
    "images",
    "is_file",
    "is_inside",
    "roots",
    "search_database",
    "side_databases",
    "storages",
    "tracking_database",
    "watched_paths",
]

TITLES = "titles"  # the kind of a database that knows what sessions are called, and holds none
_BUILDS = ("Cursor", "Cursor Nightly")
_WINDOWS_HOMES = Path("/mnt/c/Users")
_is_file, _is_link = os.path.isfile, os.path.islink


class Storage(NamedTuple):
    """What the editor keeps for one workspace."""

    id: str
    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / "state.vscdb"


def roots(machine: Machine) -> list[Path]:
    """The user-data folders of every build; on WSL those of the Windows side too, when there are any."""
    match machine.system:
        case "darwin":
            base = machine.home / "Library" / "Application Support"
        case "win32" | "cygwin":
            base = machine.folder("APPDATA", machine.home / "AppData" / "Roaming")
        case _:
            base = machine.folder("XDG_CONFIG_HOME", machine.home / ".config")
    found = [base / build for build in _BUILDS]
    if machine.system == "linux":
        found += _seen_from_wsl(_WINDOWS_HOMES)
    return found


def _seen_from_wsl(homes: Path) -> list[Path]:
    try:
        return sorted(
            path for build in _BUILDS for path in homes.glob(f"*/AppData/Roaming/{build}") if path.is_dir()
        )
    except OSError:
        return []


def global_database(root: Path) -> Path:
    return root / "User" / "globalStorage" / "state.vscdb"


def search_database(root: Path) -> Path:
    return root / "User" / "globalStorage" / "conversation-search.db"


def tracking_database(root: Path) -> Path | None:
    home = agent_home(root)
    return home / "ai-tracking" / "ai-code-tracking.db" if home else None


def side_databases(root: Path) -> list[Path]:
    """The databases that know titles of sessions, and hold none."""
    return [path for path in (search_database(root), tracking_database(root)) if path and is_file(path)]


def watched_paths(root: Path) -> list[Path]:
    """What is written to while a session is held."""
    return [root / "User" / "globalStorage", root / "User" / "workspaceStorage"]


def storages(root: Path) -> Iterator[Storage]:
    """The folders below ``workspaceStorage`` by name; links that lead elsewhere are not followed."""
    for entry in _folders(root):
        folder = Path(entry.path)
        if is_inside(folder, root):
            yield Storage(entry.name, folder)


def _folders(root: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root / "User" / "workspaceStorage") as found:
            named = (entry for entry in found if entry.is_dir() and is_utf8(entry.name))
            return sorted(named, key=lambda entry: entry.name)
    except OSError:
        return []


def databases(root: Path) -> Iterator[tuple[Path, str]]:
    """The databases that may hold sessions, with the workspace each is of: the global one first, of none."""
    for path, storage in database_files(root):
        yield Path(path), storage


def database_files(root: Path) -> Iterator[tuple[str, str]]:
    """As `databases`, for those who only look: a Path costs more than the asking."""
    path = str(global_database(root))
    if _is_file(path):
        yield path, ""
    for entry in _folders(root):
        path = f"{entry.path}{os.sep}state.vscdb"
        if _is_file(path) and (
            not (entry.is_symlink() or _is_link(path))
            or (is_inside(Path(entry.path), root) and is_inside(Path(path), root))
        ):
            yield path, entry.name


def is_inside(path: Path, root: Path) -> bool:
    """Whether a path, links resolved, is below the root."""
    if not path.is_symlink():
        return True
    try:
        return path.resolve().is_relative_to(root.resolve())
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Whether a file is there; one behind a folder that may not be entered is not."""
    return _is_file(path)  # Path.is_file raises where entering is not permitted


def images(storage: Storage) -> list[Path]:
    """The pasted images that a workspace still has."""
    folder = storage.folder / "images"
    try:
        return sorted(folder.iterdir()) if not folder.is_symlink() else []
    except OSError:
        return []


def agent_home(root: Path) -> Path | None:
    """The ``.cursor`` folder of the user whose user-data folder this is."""
    for folder in list(root.absolute().parents)[:3]:
        home = folder / ".cursor"
        if os.path.isdir(home):  # noqa: PTH112 - as above
            return home
    return None
