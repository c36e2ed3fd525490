"""The rows that make up a session, as they lie in the databases: what is kept to be written back one day.

Of lists that name many sessions only this one's entry is told, and of all other
rows of a database nothing: neither file snapshots nor anybody's sign-in.
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

__all__ = ["inline_rows", "log_rows", "session_rows", "tab_rows"]

_FAMILIES = ("bubbleId", "codeBlockDiff", "codeBlockPartialInlineDiffFates", "messageRequestContext")
_BLOB, _CHECKPOINT = "agentKv:blob:", "agentKv:checkpoint:"
_AT_ONCE = 1024 * 1024  # bytes

# What a record says of the moment: the next moment says something else, and nothing is lost.
_OF_A_COMPOSER = (
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
_OF_A_BUBBLE = ("reviewData", "status")


class _Roots(Struct, rename="camel"):
    """The little of a composerData record that says what else belongs to it."""

    name: Any = None
    conversation_state: Any = None
    workspace_identifier: Any = None


def session_rows(user_data: UserData, path: Path, session: str) -> Iterator[RawRow]:
    """A session with rows of its own, or of which at least a list knows."""
    row_loader = user_data.row_loader(path)
    places = row_loader.walk(lambda connection: _places(connection, session))
    roots = _Roots()
    for rowid, data, is_text in row_loader.stored_rows(places, _AT_ONCE):
        key = places[rowid]
        value, blanked = blank(data) if data is not None else (None, ())
        volatile: tuple[str, ...] = ()
        if key.startswith("bubbleId:"):
            volatile = _OF_A_BUBBLE
        elif key.startswith("composerData:"):
            volatile = _OF_A_COMPOSER
            roots = _roots(value)
        yield RawRow(
            table="cursorDiskKV",
            key=key,
            value=value,
            is_text=bool(is_text),
            blanked=blanked,
            volatile=volatile,
        )
    yield from _memory_rows(row_loader, session, as_text(roots.conversation_state))
    yield from list_entries.list_rows(user_data, path, session, as_map(roots.workspace_identifier))
    if not any(key.startswith("bubbleId:") for key in places.values()) or not as_text(roots.name):
        for table, key, columns in user_data.side_databases.search_rows(session):
            value = msgspec.json.encode(columns)
            yield RawRow(path=list_entries.SEARCH_DATABASE, table=table, key=key, value=value, volatile=("",))


def _places(connection: Connection, session: str) -> dict[int, str]:
    """The rows of a session by rowid, from the index of keys alone."""
    if not keys.has_table(connection, "cursorDiskKV"):
        return {}
    found: dict[int, str] = {}
    data = f"composerData:{session}"
    if rowid := keys.rowid_of(connection, data):
        found[rowid] = data
    for family in _FAMILIES:
        prefix = f"{family}:{session}:"
        for name, place in keys.rows_with_prefix(connection, prefix.encode("utf-8", "replace")):
            found[place] = prefix + name.decode("utf-8", "replace")
    return found


def _roots(value: bytes | None) -> _Roots:
    try:
        return decode(value, _Roots) if value else _Roots()
    except UndecodableError:
        return _Roots()


def _memory_rows(row_loader: RowLoader, session: str, state: str) -> Iterator[RawRow]:
    """The agent's own record: what the root leads to, blob by blob."""
    ids = referenced_ids(_state(state))
    for key, data, is_text in row_loader.stored_values([_CHECKPOINT + session], _AT_ONCE):
        name = data.decode("ascii", "replace").strip(' "')
        if len(name) == 64:
            ids.append(name)
        yield RawRow(table="cursorDiskKV", key=key, value=data, is_text=bool(is_text), volatile=("",))

    def fetch(wanted: list[str]) -> Iterator[tuple[str, StoredBlob]]:
        left = [_BLOB + id for id in wanted]
        while found := row_loader.stored_values(left, _AT_ONCE):
            for key, data, is_text in found:
                yield key[len(_BLOB) :], StoredBlob(data, bool(is_text))
            there = {key for key, _, _ in found}
            left = [key for key in left if key not in there]

    for id, stored in reachable_blobs(ids, fetch):  # named by their digests: nothing in them can be blanked
        yield RawRow(
            table="cursorDiskKV",
            key=_BLOB + id,
            value=stored.data,
            is_shared=True,
            is_text=stored.is_text,
        )


def _state(text: str) -> bytes:
    written = "".join(text.removeprefix("~").split())
    try:
        return b64decode(written + "=" * (-len(written) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def tab_rows(user_data: UserData, file: DatabaseFile, tab_id: str) -> Iterator[RawRow]:
    """A conversation of the old chat panel; one without an id gets the name it has here by its place."""
    raw = user_data.database(file.path).read(lambda connection: session_lists.raw_tab(connection, tab_id))
    if raw is not None:
        yield _part(session_lists.CHAT_KEY, f"tabs[]/{tab_id}", raw)
    if file.storage:
        yield from list_entries.workspace_file(user_data, file.storage)


def inline_rows(user_data: UserData, file: DatabaseFile, session: str) -> Iterator[RawRow]:
    """A conversation that lies in its workspace's own list."""
    found = user_data.database(file.path).read(
        lambda connection: session_lists.inline_entry(connection, session)
    )
    if found is not None:
        yield _part(session_lists.COMPOSERS_KEY, f"allComposers[]/{session}", found[0])
    yield from list_entries.workspace_file(user_data, file.storage)


def log_rows(user_data: UserData, file: DatabaseFile) -> Iterator[RawRow]:
    """The log of prompts of a workspace of which no conversation is left."""
    values = user_data.database(file.path).read(
        lambda connection: [(key, session_lists.item(connection, key)) for key in session_lists.LOG_KEYS]
    )
    for key, value in values:
        if value is not None:
            yield RawRow(table="ItemTable", key=key, value=value)
    yield from list_entries.workspace_file(user_data, file.storage)


def _part(key: str, part: str, raw: bytes) -> RawRow:
    value, blanked = blank(raw)
    return RawRow(
        table="ItemTable", key=key, part=part, value=value, blanked=blanked, volatile=_OF_A_COMPOSER
    )
