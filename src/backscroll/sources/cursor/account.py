"""The account of a database: every row that belongs to no session, counted by what it is."""

import re
from collections.abc import Iterator
from sqlite3 import Connection
from typing import NamedTuple

from msgspec import Raw

from backscroll.model import Item, Origin, Problem, Tally
from backscroll.readers.sqlite import as_bytes
from backscroll.sources.cursor import index, keys
from backscroll.sources.cursor.decode import Undecodable, as_map, decode
from backscroll.sources.cursor.library import Library, Shelfmark

__all__ = ["read"]

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
_SPEAKING = (index.CHAT_KEY, index.COMPOSERS_KEY, *index.LOG_KEYS)
_CLOUD_AGENT = re.compile(
    r"(?:bc-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:", re.IGNORECASE
)
_FAMILY = re.compile(r"[^:]{1,60}(?=:)|[A-Za-z_.]{1,60}")

_NEXT = "select key from cursorDiskKV where key >= cast(? as text) and key < x'' order by key limit 1"
_COUNT = "select count(*) from cursorDiskKV where key >= cast(? as text) and key < cast(? as text)"


class _Count(NamedTuple):
    family: str
    number: int
    is_known: bool = True
    reason: str = ""


def read(library: Library, mark: Shelfmark, sessions: frozenset[str]) -> Iterator[Item]:
    """Counts and problems of one database; ``sessions`` have units of their own, which count their rows."""
    tally = Tally()
    path = str(mark.path)
    counts, faults = library.database(mark.path).read(lambda connection: _all(connection, mark, sessions))
    for count in counts:
        if count.is_known:
            tally.count(count.family, "silent", count.number)
            continue
        tally.count(count.family, "problems", count.number)
        reason = count.reason
        if not reason:
            tally.meet(f"key family {count.family}", count.number)
            reason = f"unknown key family '{count.family}' ({count.number} rows)"
        yield Problem(Origin(path, count.family), reason)
    for key, reason in faults:
        if reason:
            yield Problem(Origin(path, key), reason)
            tally.count("ItemTable", "problems")
        else:
            tally.count("ItemTable", "understood" if key in _SPEAKING else "silent")
    yield tally


Fault = tuple[str, str]  # a key, and why its value cannot be read; empty when it can


def _all(
    connection: Connection, mark: Shelfmark, sessions: frozenset[str]
) -> tuple[list[_Count], list[Fault]]:
    counts: list[_Count] = []
    faults: list[Fault] = []
    if keys.has_table(connection, "cursorDiskKV"):
        counts += _kept(connection, sessions)
    if keys.has_table(connection, "ItemTable"):
        more, faults = _items(connection, mark)
        counts += more
    if keys.has_table(connection, "composerHeaders"):
        counts += _headers(connection, sessions)
    return counts, faults


def _kept(connection: Connection, sessions: frozenset[str]) -> Iterator[_Count]:
    """The rows of ``cursorDiskKV``, one family after the other, from the index alone."""
    owned = {name.encode() for name in sessions}
    at = b""
    while found := connection.execute(_NEXT, [at]).fetchone():
        key: bytes = found[0]
        text = key.decode("utf-8", "replace")
        family = _owned_family(text)
        if family:
            yield from _left_over(connection, family, owned)
            at = family.encode() + b";"
            continue
        prefix = next((name for name in _SHARED if text.startswith(name)), "")
        if prefix:
            end = prefix[:-1].encode() + bytes([ord(prefix[-1]) + 1])
            yield _Count(_SHARED[prefix], _number(connection, prefix.encode(), end))
            at = end
        elif text in _SINGLE:
            yield _Count(text, 1)
            at = key + b"\0"
        elif cloud := _CLOUD_AGENT.match(text):
            end = cloud[0][:-1].encode() + b";"
            yield _Count("cloud agent", _number(connection, cloud[0].encode(), end))
            at = end
        else:
            at, count = _unknown(connection, key, text)
            yield count
    yield from _keyless(connection)


def _owned_family(text: str) -> str:
    return next(
        (family for family in ("composerData", "bubbleId", *keys.OWNED) if text.startswith(family + ":")), ""
    )


def _left_over(connection: Connection, family: str, owned: set[bytes]) -> Iterator[_Count]:
    """Rows of a family whose session has no unit, and keys that name none."""
    prefix = family.encode() + b":"
    left = odd = 0
    for owner, key, _ in keys.owners(connection, family):
        is_whole = key == prefix + owner
        if family == "composerData":
            fits = is_whole and owner in owned
            odd += (
                0
                if fits
                else 1
                if is_whole
                else _number(connection, prefix + owner + b":", prefix + owner + b";")
            )
        elif owner in owned and not (is_whole and family == "bubbleId"):
            continue
        elif is_whole:
            odd, left = (odd + 1, left) if family == "bubbleId" else (odd, left + 1)
        else:
            number = _number(connection, prefix + owner + b":", prefix + owner + b";")
            odd, left = (odd + number, left) if family == "bubbleId" else (odd, left + number)
    if left:
        yield _Count(family, left)
    if odd:
        yield _Count(family, odd, False, f"{odd} keys of the family '{family}' name no session")


def _number(connection: Connection, start: bytes, end: bytes) -> int:
    return int(connection.execute(_COUNT, [start, end]).fetchone()[0])


def _unknown(connection: Connection, key: bytes, text: str) -> tuple[bytes, _Count]:
    name = _FAMILY.match(text)
    family = name[0] if name else "?"
    if not text.startswith(family + ":"):
        return key + b"\0", _Count(family, 1, False)
    end = family.encode() + b";"
    return end, _Count(family, _number(connection, family.encode() + b":", end), False)


def _keyless(connection: Connection) -> Iterator[_Count]:
    """Rows whose key is NULL or binary. One that holds a message is lost: nobody can say whose it is."""
    empty = spoken = 0
    for (value,) in connection.execute("select value from cursorDiskKV where key is null"):
        is_spoken = _is_record(as_bytes(value))
        empty, spoken = empty + (not is_spoken), spoken + is_spoken
    if empty:
        yield _Count("row without key", empty)
    if spoken:
        yield _Count("row without key", spoken, False, f"{spoken} rows hold a message and no key")
    binary = connection.execute("select count(*) from cursorDiskKV where key >= x''").fetchone()[0]
    if binary:
        yield _Count("binary key", binary, False)


def _is_record(value: bytes | None) -> bool:
    try:
        fields = as_map(decode(Raw(value), object)) if value else {}
    except Undecodable:
        return bool(value)
    return not fields.keys().isdisjoint({"text", "bubbleId", "composerId", "conversation"})


def _items(connection: Connection, mark: Shelfmark) -> tuple[list[_Count], list[Fault]]:
    """``ItemTable``: our few keys, and the editor's own state, of which only the number is of interest."""
    known = index.WORKSPACE_KEYS if mark.storage else index.GLOBAL_KEYS
    editor = 0
    faults: list[Fault] = []
    for (key,) in connection.execute("select key from ItemTable").fetchall():
        text = (as_bytes(key) or b"").decode("utf-8", "replace")
        if text in known or text == index.CHAT_KEY:
            faults.append((text, _fault(text, connection)))
        elif text.startswith(index.PANE_PREFIX):
            faults.append((text, ""))
        else:
            editor += 1
    return [_Count("ItemTable (editor state)", editor)] if editor else [], faults


def _fault(key: str, connection: Connection) -> str:
    """Why one of our keys cannot be read; empty when it can, or holds no JSON by nature."""
    if key in index.BARE_KEYS:
        return ""
    value = index.item(connection, key)
    if value is None:
        return ""
    try:
        decode(Raw(value), object)
    except Undecodable as error:
        return f"not readable as JSON: {error}"
    return ""


def _headers(connection: Connection, sessions: frozenset[str]) -> Iterator[_Count]:
    """Rows of the header table that name no session."""
    names = [row[1] for row in connection.execute("pragma table_info(composerHeaders)")]
    if b"composerId" not in names or b"value" not in names:
        number = connection.execute("select count(*) from composerHeaders").fetchone()[0]
        yield _Count("composerHeaders", number, False, "the table has no columns composerId and value")
        return
    nameless = 0
    for (name,) in connection.execute("select composerId from composerHeaders"):
        text = (as_bytes(name) or b"").decode("utf-8", "replace")
        nameless += text not in sessions
    if nameless:
        yield _Count(
            "composerHeaders", nameless, False, f"{nameless} rows of composerHeaders name no session"
        )
