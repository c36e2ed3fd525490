"""Decoded records of a unit without secrets, for bug reports."""

from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from msgspec import Raw

from backscroll.readers.sqlite.connection import as_bytes
from backscroll.sources.cursor.database import session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, decode
from backscroll.sources.cursor.database.keys import has_table
from backscroll.sources.cursor.database.session_rows import RelatedRows
from backscroll.sources.cursor.user_data import UserData

__all__ = ["list_records", "session_records"]

_SECRET_FIELDS = frozenset({"blobEncryptionKey", "speculativeSummarizationEncryptionKey"})
_RELATED_FAMILIES = ("codeBlockDiff", "codeBlockPartialInlineDiffFates", "messageRequestContext")


def session_records(user_data: UserData, path: Path, session_id: str) -> Iterator[tuple[str, Any]]:
    """Return the rows of a session with their key families."""
    rows = user_data.row_loader(path).load_session(session_id)
    yield from _decode_record("composerData", rows.composer_value())
    for _, value in rows.bubble_values(rows.bubble_rowids):
        yield from _decode_record("bubbleId", value)
    for family in _RELATED_FAMILIES:
        if rows.related_counts.get(family):
            for value in RelatedRows(user_data.row_loader(path), session_id).values(family):
                yield from _decode_record(family, value)


def list_records(user_data: UserData, path: Path) -> Iterator[tuple[str, Any]]:
    """Return the lists of a database with their keys. Unknown keys of ``ItemTable`` are not read."""
    for kind, value in user_data.database(path).read(_read_lists):
        yield from _decode_record(kind, value)


def _read_lists(connection: Connection) -> list[tuple[str, bytes | None]]:
    found: list[tuple[str, bytes | None]] = []
    if has_table(connection, "ItemTable"):
        for key in sorted(session_lists.WORKSPACE_KEYS | session_lists.GLOBAL_KEYS):
            found.append((key, session_lists.read_item(connection, key)))
    if has_table(connection, "composerHeaders"):
        cursor = connection.execute("select * from composerHeaders")
        names = [column[0] for column in cursor.description]
        if "value" in names:
            position = names.index("value")
            found += [("composerHeaders", as_bytes(row[position])) for row in cursor]
    return found


def _decode_record(kind: str, value: object) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, bytes):
        return
    try:
        document = decode(Raw(value), object)
    except UndecodableError:
        return
    yield kind, _without_secrets(document) if b"EncryptionKey" in value else document


def _without_secrets(document: Any) -> Any:
    """Remove secret fields at any depth: lists of the earliest builds contain whole records."""
    if isinstance(document, dict):
        return {key: _without_secrets(item) for key, item in document.items() if key not in _SECRET_FIELDS}
    if isinstance(document, list):
        return [_without_secrets(item) for item in document]
    return document
