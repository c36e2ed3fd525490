"""Files of the Cursor CLI that a backup contains, and credentials in its stores."""

import os
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection

from backscroll.model.backup import SourceFile
from backscroll.readers.files import files_below
from backscroll.readers.sqlite import as_bytes
from backscroll.sources.cursor_cli.locations import parse_transcript_path
from backscroll.sources.cursor_cli.store_rows import meta_row
from backscroll.sources.cursor_cli.writing import relocate as relocate

_TRACKING, _PROMPTS = "ai-tracking/ai-code-tracking.db", "prompt_history.json"
_DATABASE_SUFFIXES = ("-wal", "-shm", "-journal")
_PROJECT_FOLDERS = {"agent-transcripts", "agent-tools"}  # transcripts, and tool output they refer to


def backup_files(root: Path) -> Iterator[SourceFile]:
    """Return stores, transcripts, plans, prompt lists and the code tracking database."""
    for folder, depth in (("chats", 2), ("acp-sessions", 1)):
        for path in files_below(root / folder, with_links=True):
            if not path.endswith(_DATABASE_SUFFIXES):
                parts = Path(path).relative_to(root).parts
                session_id = parts[depth] if len(parts) > depth + 1 else None
                yield SourceFile(path, session_id, path.endswith(".db"))
    for path in files_below(root / "projects", with_links=True):
        if set(Path(path).relative_to(root).parts[2:3]) <= _PROJECT_FOLDERS:
            parsed = parse_transcript_path(path)
            yield SourceFile(path, (parsed.parent or parsed.id) if parsed else None)
    yield from map(SourceFile, files_below(root / "plans", with_links=True))
    tracking, prompts = root / _TRACKING, root / _PROMPTS
    if os.path.isfile(tracking):  # noqa: PTH113 - Path.is_file raises PermissionError
        yield SourceFile(str(tracking), is_database=True, is_shared=True)
    if os.path.isfile(prompts):  # noqa: PTH113 - Path.is_file raises PermissionError
        yield SourceFile(str(prompts))


def is_history_path(path: str) -> bool:
    folder, *below = path.split("/")
    if folder == "projects":
        return len(below) > 2 and below[1] in _PROJECT_FOLDERS
    if folder in ("chats", "acp-sessions", "plans"):
        return bool(below) and not path.endswith(_DATABASE_SUFFIXES)
    return path in (_TRACKING, _PROMPTS)


def expected_tables(path: str) -> frozenset[str]:
    return frozenset({"blobs", "meta"}) if path.endswith("/store.db") else frozenset()


def remove_secrets(connection: Connection) -> None:
    """Delete metadata with secret names, and blank secret fields of the other metadata."""
    for key, _, kind, blanked in _secret_rows(connection):
        if blanked is None:
            connection.execute("delete from meta where key = cast(? as text)", [key])
        else:
            update = f"update meta set value = cast(? as {kind}) where key = cast(? as text)"  # noqa: S608
            connection.execute(update, [blanked, key])


def _has_metadata(connection: Connection) -> bool:
    query = "select 1 from sqlite_master where type = 'table' and name = 'meta'"
    return connection.execute(query).fetchone() is not None


def _secret_rows(connection: Connection) -> list[tuple[bytes, bytes, str, bytes | None]]:
    """Return the rows with secrets: key, value, storage class, and the value to keep; None to keep none."""
    if not _has_metadata(connection):
        return []
    found: list[tuple[bytes, bytes, str, bytes | None]] = []
    for raw_key, raw_value, is_text in connection.execute(
        "select key, value, typeof(value) = 'text' from meta"
    ):
        key, value = as_bytes(raw_key) or b"", as_bytes(raw_value)
        row = next(meta_row(key.decode("utf-8", "replace"), value), None)
        if row is None or row.blanked:
            kept = row.value if row is not None else None
            found.append((key, value or b"", "text" if is_text else "blob", kept))
    return found
