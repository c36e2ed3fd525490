"""Keys of ``cursorDiskKV``: their families, and the sessions and row counts that they alone show.

No value is read except those of the sessions that were written last, so a database of many GB is fast too.
One query skips to the next key family or session.
If the key index is damaged, the keys are copied from the table itself.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from sqlite3 import SQLITE_CORRUPT, SQLITE_ERROR, Connection, DatabaseError
from typing import Any, Literal, NamedTuple

# Families of keys. As in composerData and bubbleId, the id of the session follows the name of the family.
CHECKPOINT_FAMILY = "agentKv:checkpoint"  # its value is the root id of the agent's record
DIFF_FAMILIES = ("codeBlockDiff", "codeBlockPartialInlineDiffFates")
SESSION_FAMILIES = (
    "agentKv:bubbleCheckpoint",
    CHECKPOINT_FAMILY,
    "checkpointId",
    "cloudAgentDraft",
    *DIFF_FAMILIES,
    "composerDraft",
    "composerRootWriterDiagnostic",
    "composerVirtualRowHeights",
    "inlineDiff",
    "localAgentMailboxCursor",
    "messageRequestContext",
    "ofsContent",
)
RECORD_FAMILIES = (*DIFF_FAMILIES, "messageRequestContext")  # the archive keeps these rows

# Families without a session id in their keys: shared stores of the agent, of file contents, of cloud agents
# and of the edit engine.
BLOB_PREFIX = "agentKv:blob:"
SHARED_FAMILIES = {  # by the prefix of the keys
    "agentKv:artifact:": "agentKv:artifact",
    BLOB_PREFIX: "agentKv:blob",
    "cloudAgent:": "cloudAgent",
    "composer.content.": "composer.content",
    "expectedContent-": "expectedContent",
    "inlineDiffs-": "inlineDiffs",
    "patch-graph:": "patch-graph",
}
SINGLE_KEYS = frozenset({"inlineDiffsData", "composer.composerHeaders.migratedToTable"})

MAX_HASHED_BYTES = 8 * 1024 * 1024  # of values in a listing, which takes 15 ms
_HASHED_BATCH_ROWS = 100

_SURROGATE = re.compile("[\ud800-\udfff]")
_NEXT_KEY = """
    select key, rowid from cursorDiskKV
    where key >= cast(? as text) and key < cast(? as text) order by key limit 1
"""
_SUMMARIZE_RANGE = """
    select count(*), coalesce(sum(rowid & 0xffffffffff), 0), coalesce(max(rowid), 0)
    from cursorDiskKV where key >= cast(? as text) and key < cast(? as text)
"""


class RowSummary(NamedTuple):
    """Summary of the rows of one session, for the listing."""

    composer_rowid: int = 0  # of the composerData row; 0 if there is none
    bubble_count: int = 0
    token: str = ""  # changes whenever a row is added, removed or replaced
    max_rowid: int = 0


class SessionIndex(NamedTuple):
    """Rowids and row counts of one session."""

    composer_rowid: int
    bubble_rowids: dict[str, int]  # by bubble id
    related_counts: dict[str, int]  # by family


def has_table(connection: Connection, name: str) -> bool:
    found = connection.execute("select 1 from sqlite_master where type = 'table' and name = ?", [name])
    return found.fetchone() is not None


def row_count(connection: Connection, table: str) -> int:
    """Count the rows of a table from its index or, if that is damaged, from the table itself."""
    try:
        found = connection.execute(f"select count(*) from {table}")  # noqa: S608 - a constant
        return int(found.fetchone()[0])
    except DatabaseError as error:
        if not is_damage(error):
            raise
        found = connection.execute(f"select count(*) from {table} not indexed")  # noqa: S608 - a constant
        return int(found.fetchone()[0])


def readable_rows(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    """Return the rows before the first damaged page."""
    rows: list[tuple[Any, ...]] = []
    try:
        rows.extend(connection.execute(query))
    except DatabaseError as error:
        if not is_damage(error):
            raise
    return rows


def is_damage(error: DatabaseError) -> bool:
    """Return whether SQLite found a damaged page. Other pages may still be readable."""
    code: int = getattr(error, "sqlite_errorcode", SQLITE_ERROR)
    return code & 0xFF == SQLITE_CORRUPT


def rowid_of(connection: Connection, key: str) -> int:
    """Return the rowid of a key; 0 if there is no row."""
    if _SURROGATE.search(key):
        return 0
    found = connection.execute("select rowid from cursorDiskKV where key = ?", [key]).fetchone()
    return int(found[0]) if found else 0


def first_keys(connection: Connection, family: str) -> Iterator[tuple[bytes, bytes, int]]:
    """Return ``(session id, key, rowid)`` of each session's first row in a family.

    A key with nothing after the session id is returned too.
    """
    prefix = family.encode() + b":"
    end = family.encode() + b";"
    start = prefix
    while found := connection.execute(_NEXT_KEY, [start, end]).fetchone():
        key: bytes = found[0]
        owner, colon, _ = key[len(prefix) :].partition(b":")
        yield (owner, key, found[1])
        start = prefix + owner + b";" if colon else key + b"\0"


def find_sessions(connection: Connection) -> dict[str, RowSummary]:
    """Return every session that has rows. Keys without a session id are skipped."""
    found: dict[str, RowSummary] = {}
    for owner, key, rowid in first_keys(connection, "composerData"):
        if key == b"composerData:" + owner and (session_id := _decode_id(owner)):
            found[session_id] = RowSummary(composer_rowid=rowid, token=f"{rowid:x}", max_rowid=rowid)
    for owner, key, _ in first_keys(connection, "bubbleId"):
        session_id = _decode_id(owner)
        if not session_id or key == b"bubbleId:" + owner:
            continue
        count, rowid_sum, max_rowid = _summarize_range(connection, "bubbleId", owner)
        summary = found.get(session_id, RowSummary())
        token = f"{summary.token}-{count}-{rowid_sum:x}-{max_rowid:x}"
        for family in DIFF_FAMILIES:  # may be written after the last bubble
            related = _summarize_range(connection, family, owner)
            token += f"-{related[1]:x}" if related[0] else ""
        found[session_id] = RowSummary(
            summary.composer_rowid, count, token, max(max_rowid, summary.max_rowid)
        )
    for owner, key, rowid in first_keys(connection, CHECKPOINT_FAMILY):
        session_id = _decode_id(owner)
        if session_id in found and key == f"{CHECKPOINT_FAMILY}:{session_id}".encode():
            found[session_id] = found[session_id]._replace(token=f"{found[session_id].token}-{rowid:x}")
    return _track_updated_values(connection, _track_pending_blobs(connection, found))


def _track_pending_blobs(connection: Connection, found: dict[str, RowSummary]) -> dict[str, RowSummary]:
    """Add the table's largest rowid to the token of the session that was written last.

    Its record refers to blobs, which have no session id in their keys and may be written later. So the token
    changes with every new row, and once more when another session is written.
    """
    if found:
        last_id = max(found, key=lambda session_id: (found[session_id].max_rowid, session_id))
        for (max_rowid,) in readable_rows(connection, "select max(rowid) from cursorDiskKV"):
            found[last_id] = found[last_id]._replace(token=f"{found[last_id].token}+{max_rowid:x}")
    return found


def _track_updated_values(connection: Connection, found: dict[str, RowSummary]) -> dict[str, RowSummary]:
    """Add a hash of the values to the tokens of the sessions that were written last.

    Cursor replaces rows, which gives them a new rowid. An update in place keeps the rowid and is visible in
    the value only. The hash of the newest session may cover only its newest rows, that of another session
    covers all rows. When a session drops out of the limit, it is read once more.
    """
    room_bytes = MAX_HASHED_BYTES
    order = sorted(found, key=lambda session_id: (found[session_id].max_rowid, session_id), reverse=True)
    for position, session_id in enumerate(order):
        try:
            digest, size = _hash_values(connection, session_id, found[session_id].composer_rowid, room_bytes)
        except DatabaseError as error:
            if not is_damage(error):
                raise
            continue
        room_bytes -= size
        if room_bytes < 0 and position:
            break
        found[session_id] = found[session_id]._replace(token=f"{found[session_id].token}={digest}")
        if room_bytes <= 0:
            break
    return found


def _hash_values(
    connection: Connection, session_id: str, composer_rowid: int, max_bytes: int
) -> tuple[str, int]:
    """Return a hash of a session's values, the newest first, and their size.

    Stops after the value that exceeds ``max_bytes``.
    """
    rowids = [rowid for _, rowid in rows_with_prefix(connection, f"bubbleId:{session_id}:".encode())]
    remaining = iter(sorted([*rowids, *([composer_rowid] if composer_rowid else [])], reverse=True))
    digest, size = blake2b(digest_size=8), 0
    while size <= max_bytes and (batch := list(islice(remaining, _HASHED_BATCH_ROWS))):
        for (value,) in connection.execute(
            "select value from cursorDiskKV where rowid in (select value from json_each(?))"
            " order by rowid desc",
            [json.dumps(batch)],
        ):
            data = value if isinstance(value, bytes) else repr(value).encode()
            digest.update(b"%d:" % len(data))
            digest.update(data)
            size += len(data)
            if size > max_bytes:
                break
    return digest.hexdigest(), size


def rows_with_prefix(connection: Connection, prefix: bytes) -> list[tuple[bytes, int]]:
    """Return ``(rest of the key, rowid)`` of the rows with a key prefix that ends in a colon, by key."""
    rows = connection.execute(
        "select key, rowid from cursorDiskKV where key >= cast(? as text) and key < cast(? as text)",
        [prefix, prefix[:-1] + b";"],
    )
    prefix_length = len(prefix)
    return [(key[prefix_length:], rowid) for key, rowid in rows]


def session_indexes(connection: Connection, session_ids: list[str]) -> dict[str, SessionIndex]:
    """Return the rowids and row counts of each session."""
    if not has_table(connection, "cursorDiskKV"):
        return {session_id: SessionIndex(0, {}, {}) for session_id in session_ids}
    return {session_id: _session_index(connection, session_id) for session_id in session_ids}


def _session_index(connection: Connection, session_id: str) -> SessionIndex:
    bubble_rowids: dict[str, int] = {}
    for raw_id, rowid in rows_with_prefix(connection, f"bubbleId:{session_id}:".encode()):
        bubble_id = raw_id.decode("utf-8", "replace")
        bubble_rowids[bubble_id if bubble_id not in bubble_rowids else f"{bubble_id}#{rowid}"] = rowid
    return SessionIndex(
        rowid_of(connection, f"composerData:{session_id}"),
        bubble_rowids,
        _count_related(connection, session_id),
    )


def _count_related(connection: Connection, session_id: str) -> dict[str, int]:
    """Count the rows of a session in each of `SESSION_FAMILIES`."""
    owner = session_id.encode()
    counts: dict[str, int] = {}
    for family in SESSION_FAMILIES:
        count = _summarize_range(connection, family, owner)[0] + bool(
            rowid_of(connection, f"{family}:{session_id}")
        )
        if count:
            counts[family] = count
    return counts


def _summarize_range(connection: Connection, family: str, owner: bytes) -> tuple[int, int, int]:
    """Return count, sum and maximum of the rowids of a session's rows in a family."""
    prefix = family.encode() + b":" + owner
    count, rowid_sum, max_rowid = connection.execute(
        _SUMMARIZE_RANGE, [prefix + b":", prefix + b";"]
    ).fetchone()
    return count, rowid_sum, max_rowid


def _decode_id(owner: bytes) -> str:
    """Decode a session id; empty if it is not UTF-8, which no query could find again."""
    try:
        return owner.decode()
    except UnicodeDecodeError:
        return ""


# Copy of the keys, for a damaged index

_KeyRow = tuple[int, bytes | None, int]


class _KeyScan(NamedTuple):
    rows: list[_KeyRow]
    fault: sqlite3.DatabaseError | None


def copy_keys(connection: Connection) -> Connection:
    """Return an in-memory database with the same table, keys and rowids, but without values.

    If the table is damaged too, the copy has the rows before the first damaged page and after the last one.
    Raises the error of SQLite if no row can be read.
    """
    if not has_table(connection, "cursorDiskKV"):
        return _build_copy([])
    found = _scan_keys(connection, "asc")
    if found.fault is None:
        return _build_copy(found.rows)
    rest = _scan_keys(connection, "desc")
    if not found.rows and not rest.rows:
        raise found.fault
    return _build_copy([*found.rows, *rest.rows])


def _scan_keys(connection: Connection, direction: Literal["asc", "desc"]) -> _KeyScan:
    rows: list[_KeyRow] = []
    try:
        rows.extend(
            connection.execute(
                f"select rowid, key, typeof(key) = 'blob' from cursorDiskKV not indexed order by rowid {direction}"  # noqa: S608, E501 - asc or desc
            )
        )
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return _KeyScan(rows, error)
    return _KeyScan(rows, None)


def _build_copy(rows: list[_KeyRow]) -> Connection:
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    copy.text_factory = bytes
    copy.execute("create table cursorDiskKV (key text unique on conflict replace, value blob)")
    copy.execute("begin")
    copy.executemany(
        "insert or replace into cursorDiskKV (rowid, key) values (?1, iif(?3, ?2, cast(?2 as text)))", rows
    )
    copy.execute("commit")
    return copy
