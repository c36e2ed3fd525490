"""Find copied messages that share no ids with the original session except those of responses.

Claude Code before 2.0 resumed a session by copying it with new ids and times. A copied response names its
original session; a prompt was copied from the session that contains its answer.
"""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from backscroll.archive.derive.fragments import closings_of_sessions
from backscroll.archive.storage.codec import to_milliseconds
from backscroll.archive.storage.strings import FIXED_STRING_IDS, StringTable
from backscroll.model import Closing

__all__ = ["mark_copies_with_new_ids"]

_USER, _SYSTEM = FIXED_STRING_IDS["user"], FIXED_STRING_IDS["system"]
_NO_RESPONSE = -1  # instead of the owner of a response

# Sessions with a copied response, of which the original session does not have the same record.
_CANDIDATES = (
    "select distinct r.fragment_id from repeated p cross join response r on r.response_hash = p.response_hash"
    " join fragment f on f.id = r.fragment_id and not f.is_subagent"
    " join message m indexed by message_record"
    "  on m.record_hash = r.record_hash and m.fragment_id = r.fragment_id"
    " where m.forked_from_string_id is null and iif(r.is_copy,"
    "  not exists (select 1 from response o join message first indexed by message_record"
    "   on first.record_hash = r.record_hash and first.fragment_id = o.fragment_id"
    "   where o.response_hash = r.response_hash and not o.is_copy),"
    "  m.copied_from_string_id is not null)"
)
_MESSAGES = (
    "select position, role_string_id, record_hash, copied_from_string_id from message"
    " where fragment_id = ? and at between ? and ? and forked_from_string_id is null order by position"
)
_OWNERS = (
    "select r.record_hash, s.session_external_id from response r"
    " left join response o on o.response_hash = r.response_hash and not o.is_copy and r.is_copy"
    " left join fragment_session s on s.fragment_id = o.fragment_id where r.fragment_id = ?"
)
_IS_SHARED = "select exists (select 1 from message where record_hash = ? and fragment_id <> ?)"


class _Row(NamedTuple):
    position: int
    role: int
    record_hash: int
    copied_from: int | None


def mark_copies_with_new_ids(db: sqlite3.Connection) -> None:
    """Set `copied_from` of messages that a session copied with new ids.

    Uses the table `repeated` of `affected` and the owners of responses set by `token_usage`.
    """
    candidates = [fragment_id for (fragment_id,) in db.execute(_CANDIDATES)]
    if not candidates:
        return
    strings = StringTable(db)
    for fragment_id, closing in closings_of_sessions(db, candidates).items():
        (session_id,) = db.execute("select external_id from fragment where id = ?", [fragment_id]).fetchone()
        # An owner is None if the response was first in this session.
        owners = {
            record_hash: strings[owner] if owner is not None and owner != session_id else None
            for record_hash, owner in db.execute(_OWNERS, [fragment_id])
        }
        changes: list[tuple[int | None, int, int]] = []
        for rows in _copied_rows(db, fragment_id, closing):
            for row, owner in zip(rows, _find_owners(rows, owners), strict=True):
                if owner == row.copied_from:
                    continue
                if owner is None and db.execute(_IS_SHARED, [row.record_hash, fragment_id]).fetchone()[0]:
                    continue  # `dedup` has found its original session
                changes.append((owner, fragment_id, row.position))
        db.executemany(
            "update message set copied_from_string_id = ? where fragment_id = ? and position = ?", changes
        )


def _copied_rows(db: sqlite3.Connection, fragment_id: int, closing: Closing) -> list[list[_Row]]:
    """Return the messages of each span of copies."""
    return [
        [
            _Row(*row)
            for row in db.execute(
                _MESSAGES, [fragment_id, to_milliseconds(span.first_at), to_milliseconds(span.last_at)]
            )
        ]
        for span in closing.copied
        if span.has_new_ids
    ]


def _find_owners(rows: Sequence[_Row], owners: dict[int, int | None]) -> list[int | None]:
    """Return the session that first contained each message; None for this one.

    A prompt belongs to the response after it, and everything else to the response before it. A prompt after
    the last copied answer is new, even if it was written in the same millisecond.
    """
    found: list[int | None] = [None] * len(rows)
    last = max((index for index, row in enumerate(rows) if row.role not in (_USER, _SYSTEM)), default=-1)
    end = next((index for index in range(last + 1, len(rows)) if rows[index].role == _USER), len(rows))
    following: list[int | None] = [_NO_RESPONSE] * end
    owner: int | None = _NO_RESPONSE
    for index in range(end - 1, -1, -1):
        owner = following[index] = owners.get(rows[index].record_hash, owner)
    owner = _NO_RESPONSE
    for index in range(end):
        owner = owners.get(rows[index].record_hash, owner)
        is_prompt = rows[index].role in (_USER, _SYSTEM)
        best, other = (following[index], owner) if is_prompt else (owner, following[index])
        chosen = best if best != _NO_RESPONSE else other
        found[index] = chosen if chosen != _NO_RESPONSE else None
    return found
