"""The raw records of a unit, decoded, for those who want to see what they look like."""

from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from msgspec import Raw

from backscroll.readers.sqlite import as_bytes
from backscroll.sources.cursor.database import session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, decode
from backscroll.sources.cursor.database.keys import has_table
from backscroll.sources.cursor.database.session_rows import RelatedRows
from backscroll.sources.cursor.user_data import UserData

__all__ = ["list_records", "session_records"]

_SECRET_FIELDS = frozenset({"blobEncryptionKey", "speculativeSummarizationEncryptionKey"})
_RELATED_FAMILIES = ("codeBlockDiff", "codeBlockPartialInlineDiffFates", "messageRequestContext")


def session_records(user_data: UserData, path: Path, session: str) -> Iterator[tuple[str, Any]]:
    """The rows of one session, by key family."""
    rows = user_data.row_loader(path).take(session)
    yield from _decoded("composerData", rows.data())
    for _, value in rows.bodies(rows.bubbles):
        yield from _decoded("bubbleId", value)
    for family in _RELATED_FAMILIES:
        if rows.others.get(family):
            for value in RelatedRows(user_data.row_loader(path), session).values(family):
                yield from _decoded(family, value)


def list_records(user_data: UserData, path: Path) -> Iterator[tuple[str, Any]]:
    """The lists of one database, by key; of ``ItemTable`` only the keys that are ours to read."""
    for kind, value in user_data.database(path).read(_lists):
        yield from _decoded(kind, value)


def _lists(connection: Connection) -> list[tuple[str, bytes | None]]:
    found: list[tuple[str, bytes | None]] = []
    if has_table(connection, "ItemTable"):
        for key in sorted(session_lists.WORKSPACE_KEYS | session_lists.GLOBAL_KEYS):
            found.append((key, session_lists.item(connection, key)))
    if has_table(connection, "composerHeaders"):
        cursor = connection.execute("select * from composerHeaders")
        names = [column[0] for column in cursor.description]
        if "value" in names:
            position = names.index("value")
            found += [("composerHeaders", as_bytes(row[position])) for row in cursor]
    return found


def _decoded(kind: str, value: object) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, bytes):
        return
    try:
        document = decode(Raw(value), object)
    except UndecodableError:
        return
    yield kind, _without_secrets(document) if b"EncryptionKey" in value else document


def _without_secrets(document: Any) -> Any:
    """The same document; lists of the earliest builds hold whole records, so that keys may lie deep."""
    if isinstance(document, dict):
        return {key: _without_secrets(item) for key, item in document.items() if key not in _SECRET_FIELDS}
    if isinstance(document, list):
        return [_without_secrets(item) for item in document]
    return document
