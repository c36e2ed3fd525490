"""Find a conversation whose root is lost or damaged.

The store keeps every earlier root and every message, so what the pointer no
longer reaches can still be put together; the result is marked as partial.
"""

import sqlite3

from msgspec import Struct

from backscroll.readers.protobuf import Record
from backscroll.readers.sqlite import Database, as_bytes
from backscroll.sources.cursor_graph import Entry, State, blob_id

__all__ = ["Recovered", "recover"]

_LARGEST_NODE = 8 * 1024 * 1024
_REFERENCE = b"\x0a\x20"  # field 1, 32 bytes


class Recovered(Struct, frozen=True):
    """A root, and the messages to tell where the root does not say them itself."""

    state: State
    entries: list[Entry] | None
    root_id: str | None


class _Root(Struct, frozen=True):
    id: str
    rowid: int
    messages: tuple[str, ...]


class _Graph(Struct):
    """Who refers to whom."""

    roots: list[_Root]
    referred: set[str]
    messages: dict[str, None]  # ids of JSON blobs, in the order written


def recover(database: Database, named: str | None, damaged: bytes | None) -> Recovered:
    """The best root there is: the one that no other blob refers to and that holds the most messages.

    Of the `damaged` root that the metadata `named` the references are picked out
    one by one; messages that nothing else refers to take the place of those that
    it can no longer name.
    """
    graph = database.read(lambda db: _survey(db, without=named))
    loose = [root for root in graph.roots if root.id not in graph.referred]
    best = max(loose or graph.roots, key=lambda root: (len(root.messages), root.rowid), default=None)
    if damaged is not None:
        picked = _pick(damaged, graph)
        if best is None or len(picked) >= len(best.messages):
            return Recovered(State(damaged), picked, None)
    if best is not None:
        data = database.read(lambda db: _one(db, best.id))
        return Recovered(State(data), None, best.id)
    return Recovered(State(b""), [Entry(id) for id in graph.messages], None)


def _one(db: sqlite3.Connection, id: str) -> bytes:
    row = db.execute("select data from blobs where id = ?", [id]).fetchone()
    return (as_bytes(row[0]) if row else None) or b""


def _survey(db: sqlite3.Connection, *, without: str | None) -> _Graph:
    is_json = "select id, cast(substr(data, 1, 1) as blob) = x'7b', rowid from blobs order by rowid"
    messages: dict[str, None] = {}
    nodes: list[tuple[str, int]] = []
    for raw_id, starts_like_json, rowid in db.execute(is_json).fetchall():
        id = (as_bytes(raw_id) or b"").decode("utf-8", "replace")
        if starts_like_json:
            messages[id] = None
        elif id and id != without:
            nodes.append((id, rowid))
    graph = _Graph([], set(), messages)
    for id, rowid in nodes:
        row = db.execute(
            "select data from blobs where id = ? and length(data) <= ?", [id, _LARGEST_NODE]
        ).fetchone()
        record = Record((as_bytes(row[0]) if row else None) or b"")
        named = tuple(found for value in record.all(1) if (found := blob_id(value)) in messages and found)
        graph.referred.update(
            found
            for field in record.fields
            if isinstance(field.value, bytes) and (found := blob_id(field.value)) is not None
        )
        if named and record.fault is None:
            graph.roots.append(_Root(id, rowid, named))
    return graph


def _pick(damaged: bytes, graph: _Graph) -> list[Entry]:
    """The messages a damaged root still names, with a gap for each name that was hit."""
    picked: list[str | None] = []
    at = follows = 0
    while (at := damaged.find(_REFERENCE, at)) >= 0 and at + 34 <= len(damaged):
        id = damaged[at + 2 : at + 34].hex()
        if id in graph.messages:
            picked.append(id)
            at = follows = at + 34
        elif at == follows:
            picked.append(None)
            at = follows = at + 34
        else:
            at += 1
    named = set(picked) | graph.referred
    strays = iter([id for id in graph.messages if id not in named])
    filled = [id if id is not None else next(strays, None) for id in picked]
    return [Entry(id) for id in [*filled, *strays] if id is not None]
