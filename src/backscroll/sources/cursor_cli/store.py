"""A session out of its ``store.db``."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from backscroll.errors import DatabaseNotFoundError, DatabaseUnreadableError
from backscroll.model import Item, Message, Origin, Problem, Tally
from backscroll.readers import times
from backscroll.readers.sqlite import Database
from backscroll.sources.cursor_cli.draft import meet_schema, store_name
from backscroll.sources.cursor_cli.meta import Meta, read_meta, read_sidecar
from backscroll.sources.cursor_cli.recovery import recover
from backscroll.sources.cursor_cli.rows import Rows, count_blobs, fetch, survey
from backscroll.sources.cursor_cli.session import Head, children_of
from backscroll.sources.cursor_graph import Blobs, Entry, State

__all__ = ["read_store"]


class _Root(Struct, frozen=True):
    """Where the conversation begins."""

    state: State
    id: str | None = None
    entries: list[Entry] | None = None  # the messages, where the root cannot be trusted to name them
    reason: str | None = None  # why it is not the one the metadata names, or not whole


def read_store(path: Path) -> Iterator[Item]:
    """All that a store says: the session, then the subagents kept within it."""
    tally = Tally()
    with Database(path) as database:
        try:
            yield from _read(path, database, tally)
        except (DatabaseNotFoundError, DatabaseUnreadableError) as error:
            yield Problem(Origin(str(path), "database"), str(error))
    yield tally


def _read(path: Path, database: Database, tally: Tally) -> Iterator[Item]:
    rows = database.read(survey)
    meta = read_meta(rows.meta)
    head = Head(
        path,
        path.parent.name,
        store_name(path.parent),
        meta,
        read_sidecar(path.with_name("meta.json")),
        _written_at(path),
    )
    yield from head.opening()
    yield from _first_problems(rows, head, tally)
    blobs = Blobs(lambda ids: database.read(lambda db: fetch(db, ids, rows.sizes)), sizes=rows.sizes)
    root = _find_root(database, blobs, rows, meta)
    reasons: dict[str, None] = {}
    if root.reason is not None:
        reasons[root.reason] = None
        yield Problem(Origin(str(path), "root"), root.reason)
    conversation = head.conversation(root.state, blobs, tally)
    said = False
    for item in conversation.items(root.entries):
        said = said or isinstance(item, Message)
        yield head.owned(item)
    children = list(children_of(head, root.state, blobs, tally))
    yield head.closing(
        conversation, [*reasons, *conversation.reasons], children, is_begun=said or bool(rows.sizes)
    )
    verdicts = conversation.verdicts
    for child in children:
        yield from child.items()
        verdicts = {**child.conversation.verdicts, **verdicts}
    if root.id is not None:
        verdicts = {**verdicts, root.id: ("blob (root)", "silent")}
    count_blobs(rows, verdicts, tally)


def _first_problems(rows: Rows, head: Head, tally: Tally) -> Iterator[Problem]:
    """What is wrong with everything but the conversation, and the account of the metadata."""
    meet_schema(head.sidecar, tally)
    for name in head.meta.unknown:
        tally.meet(f"meta key {name}")
    for table in rows.strange:
        tally.meet(f"table {table}")
    for table in rows.absent:
        yield Problem(Origin(str(head.path), "database"), f"has no table {table}")
    if head.sidecar.fault is not None:
        yield Problem(Origin(str(head.path.with_name("meta.json")), "file"), head.sidecar.fault)
    if head.meta.fault is not None:
        tally.count("meta", "problems", len(rows.meta))
        yield Problem(Origin(str(head.path), "meta"), head.meta.fault)
    elif rows.meta:
        tally.count("meta", "silent", len(rows.meta))


def _find_root(database: Database, blobs: Blobs, rows: Rows, meta: Meta) -> _Root:
    """The root that the metadata names; where that does not lead to a whole one, the best there is."""
    named = meta.text("latestRootBlobId")
    if not rows.sizes:
        return _Root(
            State(b""), reason="the conversation's root is missing from the store" if named else None
        )
    data = blobs.get(named.lower()) if named else None
    if named and data is not None and named.lower() not in blobs.altered:
        state = State(data)
        if state.fault is None:
            return _Root(state, named.lower())
        reason = f"the conversation's root cannot be read to its end: {state.fault}"
    elif data is not None:
        reason = "the conversation's root is damaged"
    elif named:
        reason = "the conversation's root is missing from the store"
    else:
        reason = "the store does not say where the conversation begins"
    named = named.lower() if named else None
    recovered = recover(database, named, data)
    root_id = named if recovered.root_id is None and data is not None else recovered.root_id
    return _Root(recovered.state, root_id, recovered.entries, reason)


def _written_at(path: Path) -> datetime | None:
    """When the store was last written to, its log included."""
    newest: float | None = None
    for file in (path, path.with_name("store.db-wal")):
        try:
            newest = max(newest or 0, file.stat().st_mtime)
        except OSError:
            continue
    return times.from_value(newest)
