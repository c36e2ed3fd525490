"""Events that hooks recorded."""

import sqlite3
from collections.abc import Iterable

import msgspec

from backscroll.archive.connection import transaction
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.codec import compress, decompress
from backscroll.archive.timestamps import from_ms
from backscroll.model.code.hooks import HookEvent, HookRecord

__all__ = ["HookEvents"]


class HookEvents:
    """Records of hooks. Each is stored once, also if the spool is read twice."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, records: Iterable[HookRecord]) -> int:
        """Store records in one transaction and return their number. Records with a known id are ignored."""
        with transaction(self._db):
            added = self._db.executemany(
                "insert or ignore into hook_event values (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        record.id,
                        record.at,
                        record.platform,
                        record.source,
                        record.session_id,
                        record.name,
                        record.session_id is None,
                        compress(record.body),
                    )
                    for record in records
                ],
            )
        return max(0, added.rowcount)

    def unread_sessions(self) -> list[tuple[str, SessionKey]]:
        """Return source and key of the sessions with records that are in no fragment."""
        rows = self._db.execute(
            "select min(source), platform, external_id from hook_event indexed by hook_event_unread"
            " where not is_read group by platform, external_id"
        )
        return [(source, SessionKey(platform, id_)) for source, platform, id_ in rows]

    def of_session(self, session: SessionKey) -> list[HookEvent]:
        """Return the events of a session, sorted by time."""
        rows = self._db.execute(
            "select id, at, name, body from hook_event where platform = ? and external_id = ?"
            " order by at, id",
            [session.platform, session.id],
        )
        return list(map(_event, rows))

    def has_other_content(self, session: SessionKey) -> bool:
        """Return whether another store than that of hooks, and a better one, has messages of a session."""
        row = self._db.execute(
            "select 1 from fragment where external_id = ? and platform = ? and not is_subagent"
            " and message_count > 0 and store not in ('hooks', 'prompts', 'notes', 'usage') limit 1",
            [session.id, session.platform],
        ).fetchone()
        return row is not None

    def mark_read(self, session: SessionKey) -> None:
        """Record that a fragment contains all events of a session. The caller holds the sync lock."""
        with transaction(self._db):
            self._db.execute(
                "update hook_event indexed by hook_event_unread set is_read = 1"
                " where platform = ? and external_id = ? and not is_read",
                [session.platform, session.id],
            )

    def mark_unread(self) -> None:
        """Make the next sync parse all events again."""
        with transaction(self._db):
            self._db.execute("update hook_event set is_read = 0 where external_id is not null")

    def counts(self) -> tuple[int, int, int | None]:
        """Return the number of events, of records that could not be parsed, and the last time."""
        row = self._db.execute(
            "select count(*), count(*) - count(external_id), max(at) from hook_event"
        ).fetchone()
        return row[0] - row[1], row[1], row[2]


def _event(row: tuple[str, int, str, bytes]) -> HookEvent:
    id_, at, name, body = row
    record = msgspec.json.decode(decompress(body))
    return HookEvent(
        id=id_, at=from_ms(at), name=name, payload=record["payload"], edits=tuple(record.get("edits", ()))
    )
