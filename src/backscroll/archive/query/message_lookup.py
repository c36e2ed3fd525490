"""Read single messages of many sessions at once, for example for a page of search results."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import groupby, islice

import msgspec
from msgspec import Struct

from backscroll.archive.query.message_cache import FragmentPosition, MessageCache
from backscroll.archive.query.message_reader import session_messages
from backscroll.archive.query.session_cache import CachedSession, SessionCache
from backscroll.archive.query.sessions import summaries_by_id
from backscroll.model import STORES, Message, SessionSummary

__all__ = ["MessageInSession", "MessageKey", "lookup_messages", "single_fragment"]

MessageKey = tuple[int, int]  # id of a session (conversations.number or subagent.id), position of a message


class MessageInSession(msgspec.Struct, frozen=True):
    """A message with its session."""

    summary: SessionSummary
    message: Message


def lookup_messages(
    db: sqlite3.Connection,
    session_cache: SessionCache,
    message_cache: MessageCache,
    keys: Iterable[MessageKey],
    required_bytes: tuple[bytes, ...] = (),
) -> dict[MessageKey, MessageInSession]:
    """Return the messages with these keys. Missing messages are omitted.

    Messages can be omitted if their encoded form does not contain all `required_bytes`.
    """
    sorted_keys = sorted(set(keys))
    sessions = session_cache.sessions(
        {session_id for session_id, _ in sorted_keys}, partial(_read_sessions, db)
    )
    found: dict[MessageKey, Message] = {}
    positions: dict[MessageKey, FragmentPosition] = {}
    for session_id, group in groupby((key for key in sorted_keys if key[0] in sessions), lambda key: key[0]):
        summary, fragment_id = sessions[session_id]
        if fragment_id is None:
            found |= _lookup_merged(db, summary, session_id, {position for _, position in group})
        else:
            positions |= {key: (fragment_id, key[1]) for key in group}
    messages = message_cache.messages(list(positions.values()), required_bytes)
    found |= {key: messages[position] for key, position in positions.items() if position in messages}
    return {key: MessageInSession(sessions[key[0]][0], found[key]) for key in sorted_keys if key in found}


def single_fragment(db: sqlite3.Connection, summary: SessionSummary) -> int | None:
    """Return the id of the fragment with a session's messages, None if they are merged from several."""
    return _single_fragments(db, {0: summary}).get(0)


def _read_sessions(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, CachedSession]:
    summaries = summaries_by_id(db, ids)
    fragments = _single_fragments(db, summaries)
    return {id_: (summary, fragments.get(id_)) for id_, summary in summaries.items()}


def _lookup_merged(
    db: sqlite3.Connection, summary: SessionSummary, session_id: int, positions: set[int]
) -> dict[MessageKey, Message]:
    messages = enumerate(islice(session_messages(db, summary), max(positions) + 1))
    return {(session_id, position): message for position, message in messages if position in positions}


class _Fragment(Struct, frozen=True, gc=False):
    id: int
    store: str
    message_count: int
    is_current: bool


def _single_fragments(db: sqlite3.Connection, summaries: Mapping[int, SessionSummary]) -> dict[int, int]:
    """Return the fragment ids of the sessions that have one fragment, by session id."""
    rows = db.execute(
        "select f.external_id, f.platform,"
        " iif(f.is_subagent, coalesce(f.parent_external_id, f.inferred_parent_external_id), null),"
        " f.id, f.store, f.message_count, f.status = 'current' from json_each(?) j"
        " cross join fragment f on f.external_id = j.value where length(f.closing)",
        [msgspec.json.encode({summary.id for summary in summaries.values()}).decode()],
    )
    by_session: defaultdict[tuple[str, str, str | None], list[_Fragment]] = defaultdict(list)
    for external_id, platform, parent_id, *fragment in rows:
        by_session[external_id, platform, parent_id].append(_Fragment(*fragment))
    found: dict[int, int] = {}
    for session_id, summary in summaries.items():
        parent_id = summary.parent_ref.partition(":")[2] if summary.parent_ref is not None else None
        fragments = by_session.get((summary.id, summary.platform, parent_id), [])
        if not fragments:
            continue
        best = min(fragments, key=lambda one: (not one.message_count, STORES.index(one.store)))
        same_store = [fragment for fragment in fragments if fragment.store == best.store]
        # A superseded fragment may have lost some of its messages.
        if len(same_store) == 1 and best.is_current:
            found[session_id] = best.id
    return found
