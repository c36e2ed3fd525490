"""Files of Claude Code that a backup contains."""

import re
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

from backscroll.model.safekeeping.backup import SourceFile
from backscroll.readers.file_access import files_below
from backscroll.sources.claude_code.folders import DESKTOP_FOLDERS, LEGACY_DATABASE, is_id

__all__ = [
    "PROMPT_LOG",
    "SESSION_INDEX",
    "backup_files",
    "copy_secrets",
    "is_history_path",
    "remove_secrets",
]

PROMPT_LOG, SESSION_INDEX = "history.jsonl", "sessions-index.json"

# Folders beside ``projects``: versions of edited files, task lists, plans, pasted text and images. The others
# hold caches, logs and environment variables.
_SIDE_FOLDERS = ("file-history", "todos", "tasks", "plans", "paste-cache", "image-cache")
_FIRST_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def backup_files(root: Path) -> Iterator[SourceFile]:
    """Return transcripts with their side folders, the prompt log, and the other stores of sessions."""
    for path in files_below(root / "projects"):
        yield SourceFile(path, _session_of(path, root, depth=2), is_shared=path.endswith(SESSION_INDEX))
    for folder in _SIDE_FOLDERS:
        for path in files_below(root / folder):
            yield SourceFile(path, _session_of(path, root, depth=1))
    for folder in DESKTOP_FOLDERS:
        for path in files_below(root / folder):
            if _is_desktop_session(path):
                yield SourceFile(path)
    prompts, store = root / PROMPT_LOG, root / LEGACY_DATABASE
    if prompts.is_file():
        yield SourceFile(str(prompts), is_shared=True)
    if store.is_file():
        yield SourceFile(str(store), is_database=True, is_shared=True)


def is_history_path(path: str) -> bool:
    folder, separator, _ = path.partition("/")
    if not separator:
        return path in (PROMPT_LOG, LEGACY_DATABASE)
    return folder in ("projects", *_SIDE_FOLDERS) or (folder in DESKTOP_FOLDERS and _is_desktop_session(path))


def _is_desktop_session(path: str) -> bool:
    return Path(path).name.startswith("local_") and path.endswith(".json")


def remove_secrets(connection: Connection) -> None:
    """Do nothing: the database of version 0.2 has no credentials."""


def copy_secrets(current: Connection, restored: Connection) -> None:
    """Do nothing, as in `remove_secrets`."""


def _session_of(path: str, root: Path, *, depth: int) -> str | None:
    """Return the session id that the part of a path at this depth starts with."""
    part = Path(path).relative_to(root).parts[depth : depth + 1]
    found = _FIRST_ID.match(part[0]) if part else None
    return found[0] if found and is_id(found[0]) else None
