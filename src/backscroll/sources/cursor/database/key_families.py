"""The rows of ``cursorDiskKV`` that belong to no session, counted by key family."""

import re
from collections.abc import Iterator
from sqlite3 import Connection
from typing import NamedTuple

from msgspec import Raw

from backscroll.model import Fault
from backscroll.readers.sqlite import as_bytes
from backscroll.sources.cursor.database import keys
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, decode

__all__ = ["Count", "count"]

# Families that tell nothing of a session by their keys: the shared store of the agent, of file
# contents, of cloud agents, and of the edit engine.
_SHARED = {
    "agentKv:artifact:": "agentKv:artifact",
    "agentKv:blob:": "agentKv:blob",
    "cloudAgent:": "cloudAgent",
    "composer.content.": "composer.content",
    "expectedContent-": "expectedContent",
    "inlineDiffs-": "inlineDiffs",
    "patch-graph:": "patch-graph",
}
_SINGLE = frozenset({"inlineDiffsData", "composer.composerHeaders.migratedToTable"})
_CLOUD_AGENT = re.compile(
    r"(?:bc-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:", re.IGNORECASE
)
_FAMILY = re.compile(r"[^:]{1,60}(?=:)|[A-Za-z_.]{1,60}")

_NEXT = "select key from cursorDiskKV where key >= cast(? as text) and key < x'' order by key limit 1"
_COUNT = "select count(*) from cursorDiskKV where key >= cast(? as text) and key < cast(? as text)"


class Count(NamedTuple):
    """Rows of one family, and whether they are as they should be."""

    family: str
    number: int
    is_known: bool = True
    fault: Fault | None = None


def count(connection: Connection, sessions: frozenset[str], copied: frozenset[str]) -> list[Count]:
    """All rows but those of ``sessions``; rows of ``copied`` ones are told by another database."""
    if not keys.has_table(connection, "cursorDiskKV"):
        return []
    owned = {name.encode() for name in sessions}
    known = {name.encode() for name in copied}
    return list(_families(connection, owned, known))


def _families(connection: Connection, owned: set[bytes], copied: set[bytes]) -> Iterator[Count]:
    """One family after the other, from the index alone."""
    at = b""
    while found := connection.execute(_NEXT, [at]).fetchone():
        key: bytes = found[0]
        text = key.decode("utf-8", "replace")
        family = _owned_family(text)
        if family:
            yield from _left_over(connection, family, owned, copied)
            at = family.encode() + b";"
            continue
        prefix = next((name for name in _SHARED if text.startswith(name)), "")
        if prefix:
            end = prefix[:-1].encode() + bytes([ord(prefix[-1]) + 1])
            yield Count(_SHARED[prefix], _number(connection, prefix.encode(), end))
            at = end
        elif text in _SINGLE:
            yield Count(text, 1)
            at = key + b"\0"
        elif cloud := _CLOUD_AGENT.match(text):
            end = cloud[0][:-1].encode() + b";"
            yield Count("cloud agent", _number(connection, cloud[0].encode(), end))
            at = end
        else:
            at, count = _unknown(connection, key, text)
            yield count
    yield from _keyless(connection)


def _owned_family(text: str) -> str:
    return next(
        (family for family in ("composerData", "bubbleId", *keys.OWNED) if text.startswith(family + ":")), ""
    )


def _left_over(connection: Connection, family: str, owned: set[bytes], copied: set[bytes]) -> Iterator[Count]:
    """Rows of a family whose session has no unit, and keys that name none."""
    prefix = family.encode() + b":"
    is_message = family in ("composerData", "bubbleId")
    left = odd = 0
    for owner, key, _ in keys.owners(connection, family):
        is_whole = key == prefix + owner
        fits = is_whole if family == "composerData" else not (is_whole and family == "bubbleId")
        if fits and owner in owned:
            continue
        number = 1 if is_whole else _number(connection, prefix + owner + b":", prefix + owner + b";")
        if is_message and not (fits and owner in copied):
            odd += number
        else:
            left += number
    if left:
        yield Count(family, left)
    if odd:
        yield Count(
            family,
            odd,
            False,
            Fault("orphaned-record", f"{odd} keys of the family '{family}' name no session"),
        )


def _number(connection: Connection, start: bytes, end: bytes) -> int:
    return int(connection.execute(_COUNT, [start, end]).fetchone()[0])


def _unknown(connection: Connection, key: bytes, text: str) -> tuple[bytes, Count]:
    name = _FAMILY.match(text)
    family = name[0] if name else "?"
    if not text.startswith(family + ":"):
        return key + b"\0", Count(family, 1, False)
    end = family.encode() + b";"
    return end, Count(family, _number(connection, family.encode() + b":", end), False)


def _keyless(connection: Connection) -> Iterator[Count]:
    """Rows whose key is NULL or binary. One that holds a message is lost: nobody can say whose it is."""
    empty = spoken = 0
    for (value,) in connection.execute("select value from cursorDiskKV where key is null"):
        is_spoken = _is_record(as_bytes(value))
        empty, spoken = empty + (not is_spoken), spoken + is_spoken
    if empty:
        yield Count("row without key", empty)
    if spoken:
        yield Count(
            "row without key",
            spoken,
            False,
            Fault("orphaned-record", f"{spoken} rows hold a message and no key"),
        )
    binary = connection.execute("select count(*) from cursorDiskKV where key >= x''").fetchone()[0]
    if binary:
        yield Count("binary key", binary, False)


def _is_record(value: bytes | None) -> bool:
    try:
        fields = as_map(decode(Raw(value), object)) if value else {}
    except UndecodableError:
        return bool(value)
    return not fields.keys().isdisjoint({"text", "bubbleId", "composerId", "conversation"})
