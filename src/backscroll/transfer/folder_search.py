"""Find the folders that may be a moved workspace: a bounded search, never of a whole disk."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["FolderSearch", "nearest_existing"]

_NEAR_DEPTH = 2
_BESIDE_DEPTH = 1
_GIVEN_DEPTH = 6
_MAX_FOLDERS = 20_000  # per searched folder: about half a second
_SKIPPED_NAMES = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "Library"})
_SKIPPED_PATHS = frozenset({"/proc", "/sys", "/dev", "/run"})


class FolderSearch:
    """Lists folders. Each folder is read once. Hidden folders and links are skipped.

    Folders inside a repository are not listed: a moved project is rarely inside another one.
    """

    def __init__(self) -> None:
        self.is_complete = True
        self._searched: dict[tuple[str, int], list[str]] = {}
        self._names: dict[str, frozenset[str]] = {}

    @property
    def searched(self) -> list[str]:
        """The folders below which folders were listed."""
        return sorted({folder for folder, _ in self._searched})

    def near(self, folder: Path) -> list[str]:
        """Return the folders around one that is gone.

        Two levels below the nearest parent that exists, and below its parent unless that is the top.
        """
        parent = nearest_existing(folder)
        found = self._list(str(parent), _NEAR_DEPTH)
        if len(parent.parts) > 2:
            found = [*found, *self._list(str(parent.parent), _NEAR_DEPTH)]
        return found

    def beside(self, folder: Path) -> list[str]:
        """Return a folder and the folders beside it."""
        return self._list(str(folder.parent), _BESIDE_DEPTH)

    def below(self, folder: Path) -> list[str]:
        """Return the folders below one that the user named, up to six levels."""
        return self._list(str(folder), _GIVEN_DEPTH)

    def names_in(self, folder: str) -> frozenset[str]:
        """Return the names of everything in a folder; none if it cannot be read."""
        if folder not in self._names:
            self._read(folder)
        return self._names[folder]

    def _list(self, folder: str, depth: int) -> list[str]:
        if (folder, depth) not in self._searched:
            self._searched[folder, depth] = list(self._walk(folder, depth))
        return self._searched[folder, depth]

    def _walk(self, folder: str, depth: int) -> Iterator[str]:
        """Yield folders, those of the first level first."""
        count = 0
        waiting = deque([(folder, 1)])
        while waiting:
            parent, level = waiting.popleft()
            for child in self._read(parent):
                count += 1
                if count > _MAX_FOLDERS:
                    self.is_complete = False
                    return
                yield child
                if level < depth and ".git" not in self.names_in(child):
                    waiting.append((child, level + 1))

    def _read(self, folder: str) -> list[str]:
        """Return the visible subfolders, and remember all names."""
        names: list[str] = []
        found: list[str] = []
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                names.append(entry.name)
                is_visible = not entry.name.startswith(".") and entry.name not in _SKIPPED_NAMES
                with suppress(OSError):
                    if (
                        is_visible
                        and entry.path not in _SKIPPED_PATHS
                        and entry.is_dir(follow_symlinks=False)
                    ):
                        found.append(entry.path)
        self._names[folder] = frozenset(names)
        return sorted(found)


def nearest_existing(folder: Path) -> Path:
    """Return the nearest parent of a folder that exists."""
    return next((parent for parent in folder.parents if parent.is_dir()), Path(folder.anchor))
