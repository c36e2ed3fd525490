"""A session out of its ``store.db``."""

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from backscroll.errors import DatabaseLockedError, DatabaseNotFoundError, DatabaseUnreadableError
from backscroll.model import Closing, Fault, Item, Message, Origin, Problem, RecordCounts
from backscroll.readers import timestamps
from backscroll.readers.json_outline import safe_name
from backscroll.readers.sqlite import Database, problem_code
from backscroll.sources.cursor_cli.blob_rows import StoreIndex, count_blobs, fetch_blobs, scan_store
from backscroll.sources.cursor_cli.drafts import count_unknown_schema, store_name
from backscroll.sources.cursor_cli.metadata import StoreMetadata, read_meta, read_sidecar
from backscroll.sources.cursor_cli.recovery import recover
from backscroll.sources.cursor_cli.session_header import SessionHeader, subagent_sessions
from backscroll.sources.cursor_graph import BlobLoader, ConversationState, MessageRef

__all__ = ["read_store"]


class _Root(Struct, frozen=True):
    """Where the conversation begins."""

    state: ConversationState
    id: str | None = None
    entries: list[MessageRef] | None = None  # the messages, where the root cannot be trusted to name them
    fault: Fault | None = None  # why it is not the one the metadata names, or not whole


def read_store(path: Path) -> Iterator[Item]:
    """All that a store says: the session, then the subagents kept within it."""
    tally = RecordCounts()
    with Database(path) as database:
        try:
            rows = database.read(scan_store)
        except (DatabaseNotFoundError, DatabaseUnreadableError, sqlite3.Error) as error:
            yield Problem(Origin(str(path), "database"), problem_code(error), str(error))
        else:
            try:
                yield from _read(path, database, rows, tally)
            except (DatabaseLockedError, DatabaseNotFoundError) as error:
                # Nothing is counted, so that it is read again.
                tally = RecordCounts()
                yield Problem(Origin(str(path), "database"), problem_code(error), str(error))
                yield Closing(completeness="partial", reasons=("the store could not be read to its end",))
    yield tally


def _read(path: Path, database: Database, rows: StoreIndex, tally: RecordCounts) -> Iterator[Item]:
    meta = read_meta(rows.meta)
    head = SessionHeader(
        path,
        path.parent.name,
        store_name(path.parent),
        meta,
        read_sidecar(path.with_name("meta.json")),
        _written_at(path),
    )
    yield from head.opening()
    yield from _first_problems(rows, head, tally)
    blobs = BlobLoader(lambda ids: fetch_blobs(database, ids, rows), sizes=rows.sizes)
    root = _find_root(blobs, rows, meta)
    reasons = [root.fault.reason] if root.fault is not None else []
    if root.fault is not None:
        yield Problem(Origin(str(path), "root"), *root.fault)
    if rows.is_torn:
        reasons.append("part of the store is damaged")
    conversation = head.conversation(root.state, blobs, tally)
    said = False
    for item in conversation.items(root.entries):
        said = said or isinstance(item, Message)
        yield head.owned(item)
    children = list(subagent_sessions(head, root.state, blobs, tally))
    yield head.closing(
        conversation, [*reasons, *conversation.reasons], children, is_begun=bool(said or reasons or children)
    )
    verdicts = conversation.verdicts
    for child in children:
        yield from child.items()
        verdicts = {**child.conversation.verdicts, **verdicts}
    if root.id is not None:
        verdicts = {**verdicts, root.id: ("blob (root)", "ignored")}
    count_blobs(rows, verdicts, tally)


def _first_problems(rows: StoreIndex, head: SessionHeader, tally: RecordCounts) -> Iterator[Problem]:
    """What is wrong with everything but the conversation, and the account of the metadata."""
    count_unknown_schema(head.sidecar, tally)
    for name in head.meta.unknown:
        tally.add_unknown(f"meta key {safe_name(name)}")
    for table in rows.strange:
        tally.add_unknown(f"table {safe_name(table)}")
    wrong = [Fault("missing-table", f"has no table {table}") for table in rows.absent]
    wrong += [
        Fault("unexpected-shape", f"has a table {table} without the columns that are known")
        for table in rows.changed
    ]
    if rows.nameless:
        wrong.append(Fault("orphaned-record", f"has {rows.nameless} blobs without a name of their own"))
    if rows.is_torn:
        wrong.append(Fault("damaged-database", "is damaged: rows may be missing"))
    for fault in wrong:
        yield Problem(Origin(str(head.path), "database"), *fault)
    if head.sidecar.fault is not None:
        yield Problem(Origin(str(head.path.with_name("meta.json")), "file"), *head.sidecar.fault)
    if head.meta.fault is not None:
        tally.count("meta", "problems", len(rows.meta))
        yield Problem(Origin(str(head.path), "meta"), *head.meta.fault)
    elif rows.meta:
        tally.count("meta", "ignored", len(rows.meta))


def _find_root(blobs: BlobLoader, rows: StoreIndex, meta: StoreMetadata) -> _Root:
    """The root that the metadata names; where that does not lead to a whole one, the best there is."""
    named = (meta.text("latestRootBlobId") or "").lower()
    data = blobs.get(named) if named else None
    whole: _Root | None = None
    if data is not None and named not in blobs.altered:
        state = ConversationState(data)
        whole = _Root(state, named) if state.fault is None else None
        fault = Fault("damaged-record", f"the conversation's root cannot be read to its end: {state.fault}")
        if whole is not None and not state.is_empty:
            return whole
    elif data is not None:
        fault = Fault("altered-record", "the conversation's root is damaged")
    elif named:
        fault = Fault("missing-record", "the conversation's root is missing from the store")
    else:
        fault = Fault("missing-record", "the store does not say where the conversation begins")
    if whole is None and not rows.sizes:
        return _Root(ConversationState(b""), fault=fault if named else None)
    recovered = recover(rows.sizes, blobs, named=named, damaged=None if whole else data)
    if whole is not None and recovered.is_empty:
        return whole
    if whole is not None:
        fault = Fault("missing-record", "the conversation's root is empty, though messages are in the store")
    root_id = named if recovered.root_id is None and data is not None else recovered.root_id
    return _Root(recovered.state, root_id, recovered.entries, fault)


def _written_at(path: Path) -> datetime | None:
    """When the store was last written to, its log included."""
    newest: float | None = None
    for file in (path, path.with_name("store.db-wal")):
        try:
            newest = max(newest or 0, file.stat().st_mtime)
        except OSError:
            continue
    return timestamps.from_value(newest)
