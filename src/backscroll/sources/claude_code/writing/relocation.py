"""New paths and contents of files that are restored from a backup onto another machine.

The folder of a project is named after the path of its workspace, so it gets another name. Folders in lines
are replaced as in a move. Text, tool inputs and tool results keep the old paths.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from sqlite3 import Connection
from typing import Any

import msgspec

from backscroll.model.safekeeping.backup import BackupFolder
from backscroll.model.safekeeping.path_maps import PathMaps
from backscroll.readers import lenient_json
from backscroll.sources.capabilities import Relocation
from backscroll.sources.claude_code.backup import PROMPT_LOG, SESSION_INDEX
from backscroll.sources.claude_code.legacy_db import MESSAGES
from backscroll.sources.claude_code.project_key import matches, project_key
from backscroll.sources.claude_code.writing.path_map import PathMap
from backscroll.sources.claude_code.writing.raw_fields import edit_object, encode_text, fields_of
from backscroll.sources.claude_code.writing.target_folder import path_on_disk

__all__ = ["relocate"]

_CWD = re.compile(rb'"cwd":("(?:[^"\\]|\\.)*")')
_HEAD_BYTES = 256 * 1024
_DESKTOP_PREFIX = "local_"


class _Lines(PathMap):
    """Replaces the folders in lines with several pairs of folders."""

    def __init__(self, maps: PathMaps) -> None:
        self._maps = maps

    def path(self, path: str) -> str | None:
        return self._maps.path(path)


def relocate(files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> Relocation:
    """Return the new paths and contents of the files of a root."""
    return ClaudeCodeRelocation(files, maps, root)


class ClaudeCodeRelocation(Relocation):
    """New paths and contents of the files of one root."""

    def __init__(self, files: BackupFolder, maps: PathMaps, root: Path) -> None:
        self._maps = maps
        self._lines = _Lines(maps)
        self._root = root
        self._projects = dict(self._find_projects(files))
        self.warnings = ()

    def path(self, path: str) -> str:
        parts = PurePosixPath(path).parts
        if len(parts) > 2 and parts[0] == "projects" and parts[1] in self._projects:
            return "/".join((parts[0], self._projects[parts[1]], *parts[2:]))
        return path

    def content(self, path: str, blocks: Iterable[bytes]) -> Iterable[bytes] | None:
        name = PurePosixPath(path).name
        if path == PROMPT_LOG:
            return map(self._prompt, _lines(blocks))
        if not path.startswith("projects/"):
            is_desktop = name.startswith(_DESKTOP_PREFIX) and name.endswith(".json")
            return [self._desktop_entry(b"".join(blocks))] if is_desktop else None
        if name == SESSION_INDEX:
            return [self._index(b"".join(blocks))]
        return map(self._lines.line, _lines(blocks)) if name.endswith(".jsonl") else None

    def edit_database(self, path: str, connection: Connection) -> None:
        """Replace the folders of messages in the database of version 0.2."""
        query = f"select distinct cwd from {MESSAGES}"  # noqa: S608 - a constant
        for (cwd,) in connection.execute(query).fetchall():
            text = cwd.decode("utf-8", "replace") if isinstance(cwd, bytes) else cwd
            if isinstance(text, str) and (new := self._maps.path(text)) is not None:
                update = f"update {MESSAGES} set cwd = ? where cwd = cast(? as text)"  # noqa: S608
                connection.execute(update, [new, cwd])

    # Projects

    def _find_projects(self, files: BackupFolder) -> Iterator[tuple[str, str]]:
        """Yield the folder names of projects whose workspace is mapped, and their new names."""
        transcripts: dict[str, list[str]] = {}
        for path in files.paths:
            parts = PurePosixPath(path).parts
            if len(parts) > 2 and parts[0] == "projects":
                transcripts.setdefault(parts[1], []).extend([path] if path.endswith(".jsonl") else [])
        for name, paths in transcripts.items():
            known = (folder for folder in files.workspaces if matches(folder, name))
            folder = next(known, None) or next(_recorded_folders(files, paths, name), None)
            if folder is not None and (new := self._maps.path(folder)) is not None:
                yield name, self._project_name(new)

    def _project_name(self, folder: str) -> str:
        """Return the name of a project's folder: that of an existing one, or the one of the current tool."""
        path = path_on_disk(Path(folder)) if Path(folder).exists() else folder
        names = [project_key(path), project_key(unicodedata.normalize("NFC", path))]
        existing = (name for name in names if (self._root / "projects" / name).is_dir())
        return next(existing, names[0])

    # Contents

    def _prompt(self, line: bytes) -> bytes:
        try:
            text = line.decode("utf-8", "surrogateescape")
            fields = fields_of(text)
        except ValueError:
            return line
        project = fields.get("project")
        new = self._maps.path(project.value) if project and isinstance(project.value, str) else None
        if new is None:
            return line
        return edit_object(text, fields, {"project": encode_text(new)}).encode("utf-8", "surrogateescape")

    def _index(self, content: bytes) -> bytes:
        document = _load(content)
        if document is None:
            return content
        entries = document.get("entries")
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                self._replace(entry, ("projectPath",))
                entry.update(self._full_path(entry))
        self._replace(document, ("originalPath",))
        return msgspec.json.format(msgspec.json.encode(document))

    def _full_path(self, entry: Mapping[str, Any]) -> dict[str, str]:
        """Return the new path of a transcript below the root."""
        path = entry.get("fullPath")
        if not isinstance(path, str):
            return {}
        _, is_found, relative = path.replace("\\", "/").rpartition("/projects/")
        return {"fullPath": str(self._root / self.path(f"projects/{relative}"))} if is_found else {}

    def _desktop_entry(self, content: bytes) -> bytes:
        document = _load(content)
        if document is None or not self._replace(document, ("cwd", "originCwd", "worktreePath")):
            return content
        return json.dumps(document, ensure_ascii=False).encode()

    def _replace(self, fields: dict[str, Any], names: tuple[str, ...]) -> bool:
        """Replace folders in place. Return whether there were any."""
        found = {name: self._maps.path(fields[name]) for name in names if isinstance(fields.get(name), str)}
        changed = {name: new for name, new in found.items() if new is not None}
        fields.update(changed)
        return bool(changed)


def _recorded_folders(files: BackupFolder, paths: Iterable[str], name: str) -> Iterator[str]:
    """Yield the folders at the start of transcripts that fit the name of their project."""
    for path in paths:
        head = b""
        for block in files.read(path):
            head += block
            if len(head) >= _HEAD_BYTES:
                break
        for found in _CWD.findall(head):
            folder = json.loads(found)
            if matches(folder, name):
                yield folder


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines with their newlines; the last one as it is."""
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def _load(content: bytes) -> dict[str, Any] | None:
    try:
        document = lenient_json.load(content)
    except lenient_json.FAILURES:
        return None
    return document if isinstance(document, dict) else None
