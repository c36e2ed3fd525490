"""Find the session that first contained a message. Resumed and forked sessions repeat earlier messages."""

import sqlite3
from typing import NamedTuple

from backscroll.archive.derive.fragments import closings_of_sessions
from backscroll.archive.storage.codec import to_milliseconds
from backscroll.archive.storage.strings import FIXED_STRING_IDS, StringTable
from backscroll.archive.undone_copies import undone_fragments
from backscroll.model import Closing

__all__ = ["mark_duplicate_messages"]

_NO_TIME = 1 << 62  # sorts after every time
# Messages with an owner that may have changed.
_CHANGED_MESSAGES = (
    "changed c cross join message m on m.fragment_id = c.fragment_id and m.position >= c.compared_count",
    "shared s cross join message m on m.record_hash = s.record_hash",
    "recopied r cross join message m on m.fragment_id = r.fragment_id and m.position >= r.position",
)
# Copied by a fork from a session that is not in the archive.
_IS_ORPHAN = (
    "m.forked_from_string_id is not null and m.copied_from_string_id = m.forked_from_string_id and not exists"
    " (select 1 from string s cross join fragment o on o.external_id = s.text"
    " where s.id = m.forked_from_string_id and o.message_count and not o.is_subagent)"
)
# A tool call that was copied before its result arrived. The original session has no result.
_HAS_ONLY_RESULT = (
    "m.copied_from_string_id is not null and m.call_hash is not null"  # noqa: S608
    f" and m.status_string_id <> {FIXED_STRING_IDS['pending']}"
    f" and (select max(o.status_string_id <> {FIXED_STRING_IDS['pending']}) from message o"
    " join fragment_session s on s.fragment_id = o.fragment_id where o.call_hash = m.call_hash"
    " and s.session_external_id = (select text from string where id = m.copied_from_string_id)) = 0"
)


class _Holder(NamedTuple):
    """A fragment that contains a record. The fields are in order of rank: the lowest contained it first."""

    is_undone: bool  # of a copy that `undo` has removed from the tool
    is_past: bool  # its file no longer contains the record
    is_forked: bool
    at: int
    is_subagent: bool
    is_copied: bool  # its unit shows that it copied the record
    written_at: int  # when it copied the record, at the earliest; 0 if its unit does not show it
    names_other: bool
    started: str
    external_id: str
    fragment_id: int


class _Span(NamedTuple):
    """Copied messages, as in `CopiedLines`. Times are in milliseconds."""

    first_at: int
    last_at: int
    written_at: int | None
    session_id: str | None


class _Evidence(NamedTuple):
    """Evidence in one fragment that it contains copies."""

    session_ids: frozenset[str]  # other sessions that its lines name
    spans: tuple[_Span, ...]

    @classmethod
    def of(cls, closing: Closing) -> "_Evidence":
        spans = [
            _Span(
                to_milliseconds(span.first_at) or 0,
                to_milliseconds(span.last_at) or 0,
                to_milliseconds(span.written_at),
                span.session_id,
            )
            for span in closing.copied
            if not span.has_new_ids
        ]
        return cls(frozenset(closing.metadata.get("other_session_ids", ())), tuple(spans))


def mark_duplicate_messages(db: sqlite3.Connection) -> None:
    """Set `copied_from` of every message of changed fragments that another session contained first.

    A fragment ranks first if its file still contains the message. Most copies have new timestamps, so the
    earliest time decides, then the evidence for copies in the unit, then whether any line names another
    session, then which session started first. A message that no other session contains belongs to the session
    even if it was copied. A copy that was undone ranks last.
    """
    rows = db.execute(
        "select m.record_hash, m.fragment_id, f.status <> 'current' and not max(m.is_active),"
        " max(m.forked_from_string_id is not null), min(coalesce(m.at, ?)), f.is_subagent, f.external_id,"
        " coalesce(min(first.at), ?)"
        " from shared s cross join message m on m.record_hash = s.record_hash"
        " join fragment f on f.id = m.fragment_id"
        " left join message first on first.fragment_id = m.fragment_id and first.position = 0"
        " group by m.record_hash, m.fragment_id order by m.record_hash",
        [_NO_TIME, _NO_TIME],
    ).fetchall()
    undone = undone_fragments(db)
    holders: dict[int, list[_Holder]] = {}
    for record_hash, fragment_id, is_past, is_forked, at, is_subagent, external_id, started in rows:
        holder = _Holder(
            fragment_id in undone,
            bool(is_past),
            bool(is_forked),
            at,
            bool(is_subagent),
            False,
            0,
            False,
            f"{started:020}",
            external_id,
            fragment_id,
        )
        holders.setdefault(record_hash, []).append(holder)
    closings = closings_of_sessions(db, {one.fragment_id for group in holders.values() for one in group})
    evidence = {fragment_id: _Evidence.of(closing) for fragment_id, closing in closings.items()}
    strings = StringTable(db)
    changes: list[tuple[bool, int | None, int, int]] = []
    for record_hash, group in holders.items():
        ranked = sorted(_with_evidence(one, group, evidence.get(one.fragment_id)) for one in group)
        owner = ranked[0]
        for holder in ranked:
            is_own = holder.external_id == owner.external_id and holder.is_subagent == owner.is_subagent
            changes.append((is_own, strings[owner.external_id], holder.fragment_id, record_hash))
    db.executemany(
        "update message indexed by message_record"
        " set copied_from_string_id = iif(?, forked_from_string_id, ?)"
        " where fragment_id = ? and record_hash = ?",
        changes,
    )
    for is_only_copy in (_IS_ORPHAN, _HAS_ONLY_RESULT):
        for messages in _CHANGED_MESSAGES:
            query = f"select m.fragment_id, m.position from {messages} where {is_only_copy}"  # noqa: S608
            found = db.execute(query).fetchall()
            db.executemany(
                "update message set copied_from_string_id = null where fragment_id = ? and position = ?",
                found,
            )


def _with_evidence(holder: _Holder, group: list[_Holder], evidence: _Evidence | None) -> _Holder:
    if evidence is None or not (evidence.session_ids or evidence.spans):
        return holder
    others = {other.external_id for other in group if other is not holder}
    is_copied, written_at = False, 0
    for span in evidence.spans:
        if span.first_at <= holder.at <= span.last_at:
            if span.written_at is not None:
                written_at = max(written_at, span.written_at)
            else:
                is_copied = is_copied or span.session_id is None or span.session_id in others
    return holder._replace(
        is_copied=is_copied,
        written_at=written_at,
        names_other=not evidence.session_ids.isdisjoint(others),
    )
