"""Read a session from its ``store.db``."""

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from backscroll.errors import DatabaseLockedError, DatabaseNotFoundError, DatabaseUnreadableError
from backscroll.model import Closing, Fault, Item, Message, Origin, Problem, RecordCounts
from backscroll.model.text import pluralize
from backscroll.readers import timestamps
from backscroll.readers.json_outline import safe_name
from backscroll.readers.sqlite.connection import Database, problem_code
from backscroll.sources.cursor_cli.blob_rows import StoreIndex, count_blobs, fetch_blobs, scan_store
from backscroll.sources.cursor_cli.copied_messages import CopiedMessages
from backscroll.sources.cursor_cli.drafts import count_unknown_schema, store_name
from backscroll.sources.cursor_cli.metadata import StoreMetadata, read_meta, read_sidecar
from backscroll.sources.cursor_cli.recovery import recover
from backscroll.sources.cursor_cli.session_header import SessionHeader, subagent_sessions
from backscroll.sources.cursor_graph.blobs import BlobLoader
from backscroll.sources.cursor_graph.state import ConversationState, MessageRef

__all__ = ["read_store"]


class _Root(Struct, frozen=True):
    """The root of the conversation."""

    state: ConversationState
    id: str | None = None
    entries: list[MessageRef] | None = None  # the messages, if those of the root are not valid
    fault: Fault | None = None  # why another root is used, or why the root is incomplete


def read_store(path: Path) -> Iterator[Item]:
    """Parse a store: the session, then its nested subagents."""
    counts = RecordCounts()
    with Database(path) as database:
        try:
            index = database.read(scan_store)
        except (DatabaseNotFoundError, DatabaseUnreadableError, sqlite3.Error) as error:
            yield Problem(Origin(str(path), "database"), problem_code(error), str(error))
        else:
            try:
                yield from _read_session(path, database, index, counts)
            except (DatabaseLockedError, DatabaseNotFoundError) as error:
                # Without counted records, the next sync reads the store again.
                counts = RecordCounts()
                yield Problem(Origin(str(path), "database"), problem_code(error), str(error))
                yield Closing(completeness="partial", reasons=("the store could not be read completely",))
    yield counts


def _read_session(path: Path, database: Database, index: StoreIndex, counts: RecordCounts) -> Iterator[Item]:
    meta = read_meta(index.meta)
    header = SessionHeader(
        path,
        path.parent.name,
        store_name(path.parent),
        meta,
        read_sidecar(path.with_name("meta.json")),
        _modified_at(path),
    )
    yield from header.opening()
    yield from _find_problems(index, header, counts)
    blobs = BlobLoader(lambda ids: fetch_blobs(database, ids, index), sizes=index.sizes)
    root = _find_root(blobs, index, meta)
    reasons = [root.fault.reason] if root.fault is not None else []
    if root.fault is not None:
        yield Problem(Origin(str(path), "root"), *root.fault)
    if index.is_damaged:
        reasons.append("part of the store is damaged")
    conversation = header.conversation(root.state, blobs, counts)
    has_messages = False
    copied = CopiedMessages(header, blobs)
    for item in conversation.items(root.entries):
        has_messages = has_messages or isinstance(item, Message)
        yield copied.mark(header.with_agent_id(item))
    children = list(subagent_sessions(header, root.state, blobs, counts))
    yield header.closing(
        conversation,
        [*reasons, *conversation.reasons],
        children,
        is_draft=not (has_messages or reasons or children),
    )
    outcomes = conversation.outcomes
    for child in children:
        yield from map(copied.mark, child.items())
        outcomes = {**child.conversation.outcomes, **outcomes}
    if root.id is not None:
        outcomes = {**outcomes, root.id: ("blob (root)", "ignored")}
    count_blobs(index, outcomes, counts)


def _find_problems(index: StoreIndex, header: SessionHeader, counts: RecordCounts) -> Iterator[Problem]:
    """Report problems outside of the conversation, and count the metadata."""
    count_unknown_schema(header.sidecar, counts)
    for name in header.meta.unknown:
        counts.add_unknown(f"meta key {safe_name(name)}")
    for table in index.unknown_tables:
        counts.add_unknown(f"table {safe_name(table)}")
    faults = [Fault("missing-table", f"has no table {table}") for table in index.missing_tables]
    faults += [
        Fault("unexpected-shape", f"has a table {table} without the expected columns")
        for table in index.changed_tables
    ]
    if index.no_unique_id_count:
        faults.append(
            Fault("orphaned-record", f"has {pluralize(index.no_unique_id_count, 'blob')} without a unique id")
        )
    if index.is_damaged:
        faults.append(Fault("damaged-database", "is damaged: rows may be missing"))
    for fault in faults:
        yield Problem(Origin(str(header.path), "database"), *fault)
    if header.sidecar.fault is not None:
        yield Problem(Origin(str(header.path.with_name("meta.json")), "file"), *header.sidecar.fault)
    if header.meta.fault is not None:
        counts.count("meta", "problems", len(index.meta))
        yield Problem(Origin(str(header.path), "meta"), *header.meta.fault)
    elif index.meta:
        counts.count("meta", "ignored", len(index.meta))


def _find_root(blobs: BlobLoader, index: StoreIndex, meta: StoreMetadata) -> _Root:
    """Return the root that the metadata names; if it is missing, damaged or empty, the best other root."""
    root_id = (meta.text("latestRootBlobId") or "").lower()
    data = blobs.get(root_id) if root_id else None
    valid: _Root | None = None
    if data is not None and root_id not in blobs.altered:
        state = ConversationState(data)
        valid = _Root(state, root_id) if state.fault is None else None
        fault = Fault("damaged-record", f"the conversation's root is incomplete: {state.fault}")
        if valid is not None and not state.is_empty:
            return valid
    elif data is not None:
        fault = Fault("altered-record", "the conversation's root is damaged")
    elif root_id:
        fault = Fault("missing-record", "the conversation's root is missing from the store")
    else:
        fault = Fault("missing-record", "the store does not say where the conversation begins")
    if valid is None and not index.sizes:
        return _Root(ConversationState(b""), fault=fault if root_id else None)
    damaged_root = None if valid else data
    recovered = recover(index.sizes, blobs, named_root_id=root_id, damaged_root=damaged_root)
    if valid is not None and recovered.is_empty:
        return valid
    if valid is not None:
        fault = Fault("missing-record", "the conversation's root is empty, though messages are in the store")
    used_id = root_id if recovered.root_id is None and data is not None else recovered.root_id
    return _Root(recovered.state, used_id, recovered.entries, fault)


def _modified_at(path: Path) -> datetime | None:
    """Return the time of the last write to the store or its write-ahead log."""
    newest: float | None = None
    for file in (path, path.with_name("store.db-wal")):
        try:
            newest = max(newest or 0, file.stat().st_mtime)
        except OSError:
            continue
    return timestamps.from_value(newest)
