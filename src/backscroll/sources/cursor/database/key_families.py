"""Row counts of ``cursorDiskKV`` by key family, for rows without a session."""

import re
from collections.abc import Iterator
from sqlite3 import Connection
from typing import NamedTuple

from msgspec import Raw

from backscroll.model import Fault
from backscroll.model.text import pluralize
from backscroll.readers.sqlite.connection import as_bytes
from backscroll.sources.cursor.database import keys
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, decode

__all__ = ["FamilyCount", "count_families"]

# Families without a session id in their keys: shared stores of the agent, of file contents, of cloud agents
# and of the edit engine.
_SHARED_FAMILIES = {
    "agentKv:artifact:": "agentKv:artifact",
    "agentKv:blob:": "agentKv:blob",
    "cloudAgent:": "cloudAgent",
    "composer.content.": "composer.content",
    "expectedContent-": "expectedContent",
    "inlineDiffs-": "inlineDiffs",
    "patch-graph:": "patch-graph",
}
_SINGLE_KEYS = frozenset({"inlineDiffsData", "composer.composerHeaders.migratedToTable"})
_CLOUD_AGENT = re.compile(
    r"(?:bc-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:", re.IGNORECASE
)
_FAMILY_NAME = re.compile(r"[^:]{1,60}(?=:)|[A-Za-z_.]{1,60}")

_NEXT_KEY = "select key from cursorDiskKV where key >= cast(? as text) and key < x'' order by key limit 1"
_COUNT_RANGE = "select count(*) from cursorDiskKV where key >= cast(? as text) and key < cast(? as text)"


class FamilyCount(NamedTuple):
    """Number of rows of one family, and the fault if they cannot be used."""

    family: str
    row_count: int
    is_known: bool = True
    fault: Fault | None = None


def count_families(
    connection: Connection, sessions: frozenset[str], copied: frozenset[str]
) -> list[FamilyCount]:
    """Count all rows except those of ``sessions``. Sessions in ``copied`` are read from another database."""
    if not keys.has_table(connection, "cursorDiskKV"):
        return []
    owned_ids = {session_id.encode() for session_id in sessions}
    copied_ids = {session_id.encode() for session_id in copied}
    return list(_iter_families(connection, owned_ids, copied_ids))


def _iter_families(
    connection: Connection, owned_ids: set[bytes], copied_ids: set[bytes]
) -> Iterator[FamilyCount]:
    """Return the families in the order of their keys, from the index alone."""
    start = b""
    while found := connection.execute(_NEXT_KEY, [start]).fetchone():
        key: bytes = found[0]
        text = key.decode("utf-8", "replace")
        family = _session_family(text)
        if family:
            yield from _rows_without_unit(connection, family, owned_ids, copied_ids)
            start = family.encode() + b";"
            continue
        prefix = next((prefix for prefix in _SHARED_FAMILIES if text.startswith(prefix)), "")
        if prefix:
            end = prefix[:-1].encode() + bytes([ord(prefix[-1]) + 1])
            yield FamilyCount(_SHARED_FAMILIES[prefix], _count_range(connection, prefix.encode(), end))
            start = end
        elif text in _SINGLE_KEYS:
            yield FamilyCount(text, 1)
            start = key + b"\0"
        elif cloud := _CLOUD_AGENT.match(text):
            end = cloud[0][:-1].encode() + b";"
            yield FamilyCount("cloud agent", _count_range(connection, cloud[0].encode(), end))
            start = end
        else:
            start, family_count = _unknown_family(connection, key, text)
            yield family_count
    yield from _rows_without_key(connection)


def _session_family(text: str) -> str:
    return next(
        (
            family
            for family in ("composerData", "bubbleId", *keys.SESSION_FAMILIES)
            if text.startswith(family + ":")
        ),
        "",
    )


def _rows_without_unit(
    connection: Connection, family: str, owned_ids: set[bytes], copied_ids: set[bytes]
) -> Iterator[FamilyCount]:
    """Count the rows of a family that belong to no unit: of an unlisted session, or without a session id."""
    prefix = family.encode() + b":"
    is_message = family in ("composerData", "bubbleId")
    ignored_count = orphan_count = 0
    for owner, key, _ in keys.first_keys(connection, family):
        is_bare_id = key == prefix + owner
        is_valid = is_bare_id if family == "composerData" else not (is_bare_id and family == "bubbleId")
        if is_valid and owner in owned_ids:
            continue
        row_count = (
            1 if is_bare_id else _count_range(connection, prefix + owner + b":", prefix + owner + b";")
        )
        if is_message and not (is_valid and owner in copied_ids):
            orphan_count += row_count
        else:
            ignored_count += row_count
    if ignored_count:
        yield FamilyCount(family, ignored_count)
    if orphan_count:
        yield FamilyCount(
            family,
            orphan_count,
            False,
            Fault(
                "orphaned-record",
                f"{pluralize(orphan_count, 'key')} of the family '{family}' without a known session",
            ),
        )


def _count_range(connection: Connection, start: bytes, end: bytes) -> int:
    return int(connection.execute(_COUNT_RANGE, [start, end]).fetchone()[0])


def _unknown_family(connection: Connection, key: bytes, text: str) -> tuple[bytes, FamilyCount]:
    match = _FAMILY_NAME.match(text)
    family = match[0] if match else "?"
    if not text.startswith(family + ":"):
        return key + b"\0", FamilyCount(family, 1, False)
    end = family.encode() + b";"
    return end, FamilyCount(family, _count_range(connection, family.encode() + b":", end), False)


def _rows_without_key(connection: Connection) -> Iterator[FamilyCount]:
    """Count rows with a NULL or binary key. A message in such a row is lost: its session is unknown."""
    empty_count = message_count = 0
    for (value,) in connection.execute("select value from cursorDiskKV where key is null"):
        is_message = _is_message(as_bytes(value))
        empty_count, message_count = empty_count + (not is_message), message_count + is_message
    if empty_count:
        yield FamilyCount("row without key", empty_count)
    if message_count:
        yield FamilyCount(
            "row without key",
            message_count,
            False,
            Fault("orphaned-record", f"{pluralize(message_count, 'row')} with a message but without a key"),
        )
    binary = connection.execute("select count(*) from cursorDiskKV where key >= x''").fetchone()[0]
    if binary:
        yield FamilyCount("binary key", binary, False)


def _is_message(value: bytes | None) -> bool:
    try:
        fields = as_map(decode(Raw(value), object)) if value else {}
    except UndecodableError:
        return bool(value)
    return not fields.keys().isdisjoint({"text", "bubbleId", "composerId", "conversation"})
