"""Files of the Cursor CLI that a backup contains, all or of some sessions, and credentials in its stores."""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from sqlite3 import Connection

import msgspec

from backscroll.model.backup import InsertPlan, SelectedFiles, SourceFile
from backscroll.readers.files import files_below
from backscroll.readers.sqlite import as_bytes, copy_rows, copy_schema, quoted, table_names
from backscroll.sources.cursor_cli.locations import parse_transcript_path
from backscroll.sources.cursor_cli.store_rows import meta_row
from backscroll.sources.cursor_cli.writing import relocate as relocate
from backscroll.sources.row_inserts import create_file, insert_rows

_TRACKING, _PROMPTS = "ai-tracking/ai-code-tracking.db", "prompt_history.json"
_DATABASE_SUFFIXES = ("-wal", "-shm", "-journal")
_TOOL_OUTPUT = re.compile(rb"agent-tools[/\\]{1,2}([^\"'\\/\s]+)")
_SESSION_COLUMN = b"conversationId"
_OF_SESSIONS = "conversationId in (select value from json_each(?))"
_PROJECT_FOLDERS = {"agent-transcripts", "agent-tools"}  # transcripts, and tool output they refer to


def backup_files(root: Path) -> Iterator[SourceFile]:
    """Return stores, transcripts, plans, prompt lists and the code tracking database."""
    for folder, depth in (("chats", 2), ("acp-sessions", 1)):
        for path in files_below(root / folder):
            if not path.endswith(_DATABASE_SUFFIXES):
                parts = Path(path).relative_to(root).parts
                session_id = parts[depth] if len(parts) > depth + 1 else None
                yield SourceFile(path, session_id, path.endswith(".db"))
    for path in files_below(root / "projects"):
        if set(Path(path).relative_to(root).parts[2:3]) <= _PROJECT_FOLDERS:
            parsed = parse_transcript_path(path)
            yield SourceFile(path, (parsed.parent or parsed.id) if parsed else None)
    yield from map(SourceFile, files_below(root / "plans"))
    tracking, prompts = root / _TRACKING, root / _PROMPTS
    if tracking.is_file():
        yield SourceFile(str(tracking), is_database=True, is_shared=True)
    if prompts.is_file():
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


def copy_secrets(current: Connection, restored: Connection) -> None:
    """Copy metadata with secret names, and secret fields of metadata that is otherwise the same."""
    if not _has_metadata(restored):
        return
    for key, value, kind, blanked in _secret_rows(current):
        if blanked is None:
            insert = f"insert or replace into meta (key, value) values (cast(? as text), cast(? as {kind}))"  # noqa: S608
            restored.execute(insert, [key, value])
        else:
            update = (
                f"update meta set value = cast(? as {kind})"  # noqa: S608 - a constant
                " where key = cast(? as text) and cast(value as blob) = ?"
            )
            restored.execute(update, [value, key, blanked])


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


# Selected sessions


def select_files(root: Path, session_ids: Collection[str], paths: Collection[str]) -> SelectedFiles:
    """Return the files of some sessions. ``paths`` are the files that the sessions were read from.

    The folder of a subagent is selected if its store was read for one of the sessions. Tool output is
    selected if a transcript names it.
    """
    found = list(backup_files(root))
    ids = frozenset(session_ids) | {
        file.session_id for file in found if file.session_id is not None and file.path in paths
    }
    selected = [file for file in found if file.is_shared or file.session_id in ids or file.path in paths]
    outputs = [file for file in found if Path(file.path).parent.name == "agent-tools"]
    if outputs:
        named = _named_outputs(file.path for file in selected)
        selected += [file for file in outputs if Path(file.path).name in named]
    return SelectedFiles(tuple(selected), ids)


def _named_outputs(paths: Iterable[str]) -> set[str]:
    """Return the names of the files with tool output to which transcripts refer."""
    found: set[str] = set()
    for path in paths:
        if path.endswith((".jsonl", ".txt")):
            with open(path, "rb") as opened:  # noqa: PTH123 - a text
                for line in opened:
                    found.update(name.decode("utf-8", "replace") for name in _TOOL_OUTPUT.findall(line))
    return found


def copy_sessions(path: str, source: Connection, target: Connection, session_ids: Collection[str]) -> bool:
    """Copy the rows of some sessions in the code tracking database. Other tables are empty in the copy."""
    copy_schema(source, target)
    ids = msgspec.json.encode(list(session_ids)).decode()
    count = 0
    for table in table_names(source):
        columns = source.execute(f"pragma table_info({quoted(table)})").fetchall()
        if any(as_bytes(column[1]) == _SESSION_COLUMN for column in columns):
            count += copy_rows(source, target, table, _OF_SESSIONS, [ids])
    return count > 0


def select_records(path: str, content: Iterable[bytes], session_ids: Collection[str]) -> bytes:
    """Return no bytes: no file has records of several sessions."""
    return b""


def plan_insert(copy: Path, root: Path, *, force: bool) -> InsertPlan:
    """Plan to add rows to the code tracking database, or to create it."""
    name = Path(_TRACKING)
    if not (copy / name).is_file():
        return InsertPlan()
    if not (root / name).exists():
        result, change = create_file(copy / name, root / name)
        return InsertPlan(results=(result,), files=(change,))
    result, rows = insert_rows(copy / name, root / name)
    return InsertPlan(results=(result,), rows=tuple(rows))
