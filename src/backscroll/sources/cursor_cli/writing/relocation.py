"""Restore files of a backup onto another machine, with other folders."""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Raw

from backscroll.model.safekeeping.backup import BackupFolder
from backscroll.model.safekeeping.path_maps import PathMaps
from backscroll.sources.capabilities import Relocation
from backscroll.sources.cursor_cli.workspace import project_slugs
from backscroll.sources.cursor_cli.writing.store_files import folder_hash

__all__ = ["relocate"]

_META = "meta.json"


def relocate(files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> Relocation:
    """Return the new paths and contents of the files of a root."""
    return CursorCliRelocation(files, maps)


class CursorCliRelocation(Relocation):
    """New paths and contents of files that are restored from a backup onto another machine."""

    def __init__(self, files: BackupFolder, maps: PathMaps) -> None:
        self._maps = maps
        self._folders: dict[tuple[str, str], str] = {}  # names below ``chats`` and ``projects``
        self.warnings = ()
        workspaces = {*files.workspaces, *_recorded_folders(files)}
        mapped = {one: new for one in sorted(workspaces) if (new := maps.path(one)) is not None}
        names = {PurePosixPath(path).parts[:2] for path in files.paths}
        for folder, new in mapped.items():
            self._folders["chats", folder_hash(folder)] = folder_hash(new)
            for old_slug, new_slug in zip(project_slugs(folder), project_slugs(new), strict=True):
                if ("projects", old_slug) in names:
                    self._folders.setdefault(("projects", old_slug), new_slug)

    def path(self, path: str) -> str:
        first, *rest = PurePosixPath(path).parts
        if len(rest) > 1 and (new := self._folders.get((first, rest[0]))) is not None:
            return "/".join((first, new, *rest[1:]))
        return path

    def content(self, path: str, blocks: Iterable[bytes]) -> Iterable[bytes] | None:
        if PurePosixPath(path).name != _META:
            return None
        content = b"".join(blocks)
        new = self._maps.path(_cwd_of(content))
        if new is None:
            return [content]
        fields = msgspec.json.decode(content, type=dict[str, Raw])
        return [msgspec.json.encode({**fields, "cwd": new})]

    def edit_database(self, path: str, connection: sqlite3.Connection) -> None:
        """Do nothing: a store names its folder only in what the model has seen."""


def _recorded_folders(files: BackupFolder) -> Iterator[str]:
    """Yield the working directories in the metadata of sessions."""
    for path in files.paths:
        if PurePosixPath(path).name == _META and (cwd := _cwd_of(b"".join(files.read(path)))):
            yield cwd


def _cwd_of(content: bytes) -> str:
    try:
        fields = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return ""
    cwd = fields.get("cwd") if isinstance(fields, dict) else None
    return cwd if isinstance(cwd, str) else ""
