"""The keys of ``cursorDiskKV``, walked through the index alone.

A database of many GB answers these without a value being touched: from one key
to the next family or session in one step each.
"""

import re
from collections.abc import Iterator
from sqlite3 import SQLITE_CORRUPT, SQLITE_ERROR, Connection, DatabaseError
from typing import Any, NamedTuple

__all__ = [
    "OWNED",
    "Rows",
    "count_owned",
    "has_table",
    "is_damage",
    "owners",
    "readable",
    "row_count",
    "rowid_of",
    "rows_with_prefix",
    "sessions",
]

# Families whose keys name a session right after their own name, beside composerData and bubbleId.
OWNED = (
    "agentKv:bubbleCheckpoint",
    "agentKv:checkpoint",
    "checkpointId",
    "cloudAgentDraft",
    "codeBlockDiff",
    "codeBlockPartialInlineDiffFates",
    "composerDraft",
    "composerRootWriterDiagnostic",
    "composerVirtualRowHeights",
    "inlineDiff",
    "localAgentMailboxCursor",
    "messageRequestContext",
    "ofsContent",
)

_CHANGING = ("codeBlockDiff", "codeBlockPartialInlineDiffFates")  # may be written after the last bubble
_CHECKPOINT = "agentKv:checkpoint"  # names the root of the agent's own record
_BAD_TEXT = re.compile("[\ud800-\udfff]")

_NEXT = """
    select key, rowid from cursorDiskKV
    where key >= cast(? as text) and key < cast(? as text) order by key limit 1
"""
_COUNT = """
    select count(*), coalesce(sum(rowid & 0xffffffffff), 0), coalesce(max(rowid), 0)
    from cursorDiskKV where key >= cast(? as text) and key < cast(? as text)
"""


class Rows(NamedTuple):
    """The rows of one session, as far as the index tells."""

    data: int = 0  # rowid of its composerData row; 0 when there is none
    bubbles: int = 0
    token: str = ""  # changes whenever a row is added, removed or written again
    newest: int = 0  # the largest rowid


def has_table(connection: Connection, name: str) -> bool:
    found = connection.execute("select 1 from sqlite_master where type = 'table' and name = ?", [name])
    return found.fetchone() is not None


def row_count(connection: Connection, table: str) -> int:
    """How many rows a table has, by its index or, where that is damaged, by itself."""
    try:
        found = connection.execute(f"select count(*) from {table}")  # noqa: S608 - a name of ours
        return int(found.fetchone()[0])
    except DatabaseError as error:
        if not is_damage(error):
            raise
        found = connection.execute(f"select count(*) from {table} not indexed")  # noqa: S608 - as above
        return int(found.fetchone()[0])


def readable(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    """The rows before the first damaged page."""
    rows: list[tuple[Any, ...]] = []
    try:
        rows.extend(connection.execute(query))
    except DatabaseError as error:
        if not is_damage(error):
            raise
    return rows


def is_damage(error: DatabaseError) -> bool:
    """Whether SQLite met a page that is not what it should be, and other pages may still be."""
    code: int = getattr(error, "sqlite_errorcode", SQLITE_ERROR)
    return code & 0xFF == SQLITE_CORRUPT


def rowid_of(connection: Connection, key: str) -> int:
    """Where a row is; 0 when there is none."""
    if _BAD_TEXT.search(key):
        return 0
    found = connection.execute("select rowid from cursorDiskKV where key = ?", [key]).fetchone()
    return int(found[0]) if found else 0


def owners(connection: Connection, family: str) -> Iterator[tuple[bytes, bytes, int]]:
    """``(session id, key, rowid)`` of each session's first row in a family, and of each key without one."""
    prefix = family.encode() + b":"
    end = family.encode() + b";"
    at = prefix
    while found := connection.execute(_NEXT, [at, end]).fetchone():
        key: bytes = found[0]
        owner, colon, _ = key[len(prefix) :].partition(b":")
        yield (owner, key, found[1])
        at = prefix + owner + b";" if colon else key + b"\0"


def sessions(connection: Connection) -> dict[str, Rows]:
    """Every session that has rows. Keys that name none are left to the account."""
    found: dict[str, Rows] = {}
    for owner, key, rowid in owners(connection, "composerData"):
        if key == b"composerData:" + owner and (name := _name(owner)):
            found[name] = Rows(data=rowid, token=f"{rowid:x}", newest=rowid)
    for owner, key, _ in owners(connection, "bubbleId"):
        name = _name(owner)
        if not name or key == b"bubbleId:" + owner:
            continue
        number, total, newest = _range(connection, "bubbleId", owner)
        before = found.get(name, Rows())
        token = f"{before.token}-{number}-{total:x}-{newest:x}"
        for family in _CHANGING:
            others = _range(connection, family, owner)
            token += f"-{others[1]:x}" if others[0] else ""
        found[name] = Rows(before.data, number, token, max(newest, before.newest))
    for owner, key, rowid in owners(connection, _CHECKPOINT):
        name = _name(owner)
        if name in found and key == f"{_CHECKPOINT}:{name}".encode():
            found[name] = found[name]._replace(token=f"{found[name].token}-{rowid:x}")
    return _awaiting(connection, found)


def _awaiting(connection: Connection, found: dict[str, Rows]) -> dict[str, Rows]:
    """The same, with the session written last changing whenever any row is added.

    Its record names blobs, whose keys name no session, and some may be written after it. When another session
    is written to, it changes once more, and what has come by then is read.
    """
    if found:
        last = max(found, key=lambda name: (found[name].newest, name))
        for (newest,) in readable(connection, "select max(rowid) from cursorDiskKV"):
            found[last] = found[last]._replace(token=f"{found[last].token}+{newest:x}")
    return found


def rows_with_prefix(connection: Connection, prefix: bytes) -> list[tuple[bytes, int]]:
    """``(rest of the key, rowid)`` of the rows below a prefix that ends in a colon, in the order of keys."""
    rows = connection.execute(
        "select key, rowid from cursorDiskKV where key >= cast(? as text) and key < cast(? as text)",
        [prefix, prefix[:-1] + b";"],
    )
    start = len(prefix)
    return [(key[start:], rowid) for key, rowid in rows]


def count_owned(connection: Connection, session: str) -> dict[str, int]:
    """How many rows of the other families belong to a session."""
    owner = session.encode()
    counts: dict[str, int] = {}
    for family in OWNED:
        number = _range(connection, family, owner)[0] + bool(rowid_of(connection, f"{family}:{session}"))
        if number:
            counts[family] = number
    return counts


def _range(connection: Connection, family: str, owner: bytes) -> tuple[int, int, int]:
    """Number, sum and maximum of the rowids of one session's rows in a family."""
    prefix = family.encode() + b":" + owner
    number, total, newest = connection.execute(_COUNT, [prefix + b":", prefix + b";"]).fetchone()
    return number, total, newest


def _name(owner: bytes) -> str:
    """A session id as text; empty when it is none that could be asked for again."""
    try:
        return owner.decode()
    except UnicodeDecodeError:
        return ""
