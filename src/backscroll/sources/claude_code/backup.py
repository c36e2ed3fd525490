"""Back up Claude Code's files, and restore them onto another machine with new paths. Nothing here writes."""

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from sqlite3 import Connection
from typing import Any

import msgspec

from backscroll.model.backup import BackupFolder, SourceFile
from backscroll.model.workspace import PathMaps
from backscroll.readers import lenient_json
from backscroll.readers.files import files_below
from backscroll.sources.capabilities import Relocation
from backscroll.sources.claude_code.legacy_db import MESSAGES
from backscroll.sources.claude_code.locations import (
    DESKTOP_FOLDERS,
    DESKTOP_PREFIX,
    LEGACY_DATABASE,
    PROMPT_LOG,
    SESSION_INDEX,
    is_id,
    list_projects,
)
from backscroll.sources.claude_code.moved_lines import with_new_folders
from backscroll.sources.claude_code.workspace import matches, path_on_disk, project_key
from backscroll.sources.json_edits import Members, edit_bytes, lines_of

# Folders beside ``projects``: versions of edited files, task lists, plans, pasted text and images. The others
# hold caches, logs and environment variables.
_SIDE_FOLDERS = ("file-history", "todos", "tasks", "plans", "paste-cache", "image-cache")
_FIRST_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CWD = re.compile(rb'"cwd":("(?:[^"\\]|\\.)*")')
_PROMPTS = Members({"": ("project",)})
_HEAD_BYTES = 256 * 1024


# All files


def backup_files(root: Path) -> Iterator[SourceFile]:
    """Return transcripts with their side folders, the prompt log, and the other stores of sessions."""
    for path in _project_files(root / "projects"):
        yield SourceFile(path, _session_of_path(path, root, depth=2), is_shared=path.endswith(SESSION_INDEX))
    for folder in _SIDE_FOLDERS:
        for path in files_below(root / folder, with_links=True):
            yield SourceFile(path, _session_of_path(path, root, depth=1))
    for folder in DESKTOP_FOLDERS:
        for path in files_below(root / folder):
            if _is_desktop_session(path):
                yield SourceFile(path)
    prompts, store = root / PROMPT_LOG, root / LEGACY_DATABASE
    if os.path.isfile(prompts):  # noqa: PTH113 - Path.is_file raises PermissionError
        yield SourceFile(str(prompts), is_shared=True)
    if os.path.isfile(store):  # noqa: PTH113 - Path.is_file raises PermissionError
        yield SourceFile(str(store), is_database=True, is_shared=True)


def _project_files(projects: Path) -> Iterator[str]:
    """Yield the files of all projects, also of linked ones, and the links that are not followed."""
    followed = {os.path.join(projects, name) for name in list_projects(str(projects)) or ()}  # noqa: PTH118
    for path in files_below(projects, with_links=True):
        if path in followed and os.path.isdir(path):  # noqa: PTH112 - a string
            yield from files_below(path, with_links=True)
        else:
            yield path


def is_history_path(path: str) -> bool:
    folder, separator, _ = path.partition("/")
    if not separator:
        return path in (PROMPT_LOG, LEGACY_DATABASE)
    return folder in ("projects", *_SIDE_FOLDERS) or (folder in DESKTOP_FOLDERS and _is_desktop_session(path))


def _is_desktop_session(path: str) -> bool:
    return Path(path).name.startswith(DESKTOP_PREFIX) and path.endswith(".json")


def _session_of_path(path: str, root: Path, *, depth: int) -> str | None:
    """Return the session id that the part of a path at this depth starts with."""
    part = Path(path).relative_to(root).parts[depth : depth + 1]
    found = _FIRST_ID.match(part[0]) if part else None
    return found[0] if found and is_id(found[0]) else None


def expected_tables(path: str) -> frozenset[str]:
    return frozenset({MESSAGES})


def remove_secrets(connection: Connection) -> None:
    """Do nothing: the database of version 0.2 has no credentials."""


# Restore onto another machine


def relocate(files: BackupFolder, maps: PathMaps, old_root: str, root: Path) -> Relocation:
    """Return the new paths and contents of the files of a root."""
    return _ClaudeCodeRelocation(files, maps, root)


class _ClaudeCodeRelocation(Relocation):
    """New paths and contents of the files of one root.

    The folder of a project is named after the path of its workspace, so it gets another name. Folders in
    lines are replaced as in a move. Text, tool inputs and tool results keep the old paths.
    """

    def __init__(self, files: BackupFolder, maps: PathMaps, root: Path) -> None:
        self._maps = maps
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
            edit = partial(_PROMPTS.edit, new_string=self._maps.path)
            return (edit_bytes(line, edit) for line in lines_of(blocks))
        if not path.startswith("projects/"):
            return [self._desktop_entry(b"".join(blocks))] if _is_desktop_session(path) else None
        if name == SESSION_INDEX:
            return [self._index(b"".join(blocks))]
        if not name.endswith(".jsonl"):
            return None
        return (with_new_folders(line, self._maps) for line in lines_of(blocks))

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

    def _index(self, content: bytes) -> bytes:
        document = lenient_json.load_object(content)
        if not document:
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
        document = lenient_json.load_object(content)
        if not self._replace(document, ("cwd", "originCwd", "worktreePath")):
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
