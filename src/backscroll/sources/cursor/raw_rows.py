"""Database rows of a session, which the archive keeps so that they can be restored.

Of lists with many sessions, only the entry of this session is returned. Other rows of the database, such as
file snapshots and login tokens, are not read.
"""

import binascii
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.model import RawRow
from backscroll.sources.cursor import list_entries
from backscroll.sources.cursor.database import keys, session_lists
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, as_text, decode
from backscroll.sources.cursor.database.session_rows import RowLoader
from backscroll.sources.cursor.user_data import DatabaseFile, UserData
from backscroll.sources.cursor_graph.reachable import StoredBlob, reachable_blobs, referenced_ids
from backscroll.sources.secret_fields import blank

__all__ = ["inline_rows", "prompt_log_rows", "session_rows", "tab_rows"]

_ROW_FAMILIES = ("bubbleId", "codeBlockDiff", "codeBlockPartialInlineDiffFates", "messageRequestContext")
_BLOB, _CHECKPOINT = "agentKv:blob:", "agentKv:checkpoint:"
_BLOB_ID_DIGITS = 64  # SHA-256 in hexadecimal
_BATCH_BYTES = 1024 * 1024

# Fields with temporary state: an old value is not worth keeping.
_VOLATILE_COMPOSER_FIELDS = (
    "activeCustomMode",
    "contextUsagePercent",
    "conversationState",
    "generatingBubbleIds",
    "grouping",
    "latestChatGenerationUUID",
    "promptContextUsageTree",
    "promptTokenBreakdown",
    "queueItems",
    "richText",
    "status",
    "subtitle",
    "text",
)
_VOLATILE_BUBBLE_FIELDS = ("reviewData", "status")


class _ComposerLinks(Struct, rename="camel"):
    """Fields of a composerData record that refer to other rows, and its name."""

    name: Any = None
    conversation_state: Any = None
    workspace_identifier: Any = None


def session_rows(user_data: UserData, path: Path, session_id: str) -> Iterator[RawRow]:
    """Return the rows of a session that has its own rows or is in a list."""
    row_loader = user_data.row_loader(path)
    keys_by_rowid = row_loader.query_keys(lambda connection: _keys_by_rowid(connection, session_id))
    links = _ComposerLinks()
    for rowid, data, is_text in row_loader.stored_rows(keys_by_rowid, _BATCH_BYTES):
        key = keys_by_rowid[rowid]
        value, blanked = blank(data) if data is not None else (None, ())
        volatile: tuple[str, ...] = ()
        if key.startswith("bubbleId:"):
            volatile = _VOLATILE_BUBBLE_FIELDS
        elif key.startswith("composerData:"):
            volatile = _VOLATILE_COMPOSER_FIELDS
            links = _decode_links(value)
        yield RawRow(
            table="cursorDiskKV",
            key=key,
            value=value,
            is_text=bool(is_text),
            blanked=blanked,
            volatile=volatile,
        )
    yield from _agent_record_rows(row_loader, session_id, as_text(links.conversation_state))
    yield from list_entries.list_rows(user_data, path, session_id, as_map(links.workspace_identifier))
    if not any(key.startswith("bubbleId:") for key in keys_by_rowid.values()) or not as_text(links.name):
        for table, key, columns in user_data.side_databases.search_rows(session_id):
            value = msgspec.json.encode(columns)
            yield RawRow(path=list_entries.SEARCH_DATABASE, table=table, key=key, value=value, volatile=("",))


def _keys_by_rowid(connection: Connection, session_id: str) -> dict[int, str]:
    """Return the keys of a session's rows by rowid, from the key index alone."""
    if not keys.has_table(connection, "cursorDiskKV"):
        return {}
    found: dict[int, str] = {}
    composer_key = f"composerData:{session_id}"
    if rowid := keys.rowid_of(connection, composer_key):
        found[rowid] = composer_key
    for family in _ROW_FAMILIES:
        prefix = f"{family}:{session_id}:"
        for name, rowid in keys.rows_with_prefix(connection, prefix.encode("utf-8", "replace")):
            found[rowid] = prefix + name.decode("utf-8", "replace")
    return found


def _decode_links(value: bytes | None) -> _ComposerLinks:
    try:
        return decode(value, _ComposerLinks) if value else _ComposerLinks()
    except UndecodableError:
        return _ComposerLinks()


def _agent_record_rows(row_loader: RowLoader, session_id: str, state: str) -> Iterator[RawRow]:
    """Return the agent's record of a session: its checkpoint, and all blobs that the root reaches."""
    blob_ids = referenced_ids(_decode_state(state))
    for key, data, is_text in row_loader.stored_values([_CHECKPOINT + session_id], _BATCH_BYTES):
        root_id = data.decode("ascii", "replace").strip(' "')
        if len(root_id) == _BLOB_ID_DIGITS:
            blob_ids.append(root_id)
        yield RawRow(table="cursorDiskKV", key=key, value=data, is_text=bool(is_text), volatile=("",))

    def fetch(wanted_ids: list[str]) -> Iterator[tuple[str, StoredBlob]]:
        remaining = [_BLOB + blob_id for blob_id in wanted_ids]
        while found := row_loader.stored_values(remaining, _BATCH_BYTES):
            for key, data, is_text in found:
                yield key[len(_BLOB) :], StoredBlob(data, bool(is_text))
            found_keys = {key for key, _, _ in found}
            remaining = [key for key in remaining if key not in found_keys]

    for blob_id, blob in reachable_blobs(blob_ids, fetch):  # not blanked: their ids are digests
        yield RawRow(
            table="cursorDiskKV",
            key=_BLOB + blob_id,
            value=blob.data,
            is_shared=True,
            is_text=blob.is_text,
        )


def _decode_state(text: str) -> bytes:
    encoded = "".join(text.removeprefix("~").split())
    try:
        return b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def tab_rows(user_data: UserData, file: DatabaseFile, tab_id: str) -> Iterator[RawRow]:
    """Return a conversation of the chat panel. One without an id gets an id made of its index."""
    raw = user_data.database(file.path).read(lambda connection: session_lists.raw_tab(connection, tab_id))
    if raw is not None:
        yield _list_entry_row(session_lists.CHAT_KEY, f"tabs[]/{tab_id}", raw)
    if file.storage_id:
        yield from list_entries.workspace_file_row(user_data, file.storage_id)


def inline_rows(user_data: UserData, file: DatabaseFile, session_id: str) -> Iterator[RawRow]:
    """Return a conversation in the list of its workspace."""
    found = user_data.database(file.path).read(
        lambda connection: session_lists.inline_entry(connection, session_id)
    )
    if found is not None:
        yield _list_entry_row(session_lists.COMPOSERS_KEY, f"allComposers[]/{session_id}", found[0])
    yield from list_entries.workspace_file_row(user_data, file.storage_id)


def prompt_log_rows(user_data: UserData, file: DatabaseFile) -> Iterator[RawRow]:
    """Return the prompt log of a workspace without conversations."""
    values = user_data.database(file.path).read(
        lambda connection: [
            (key, session_lists.read_item(connection, key)) for key in session_lists.PROMPT_LOG_KEYS
        ]
    )
    for key, value in values:
        if value is not None:
            yield RawRow(table="ItemTable", key=key, value=value)
    yield from list_entries.workspace_file_row(user_data, file.storage_id)


def _list_entry_row(key: str, part: str, raw: bytes) -> RawRow:
    value, blanked = blank(raw)
    return RawRow(
        table="ItemTable",
        key=key,
        part=part,
        value=value,
        blanked=blanked,
        volatile=_VOLATILE_COMPOSER_FIELDS,
    )
