"""Tags, stars, notes and titles that users give to sessions.

Annotations are keyed by platform and external id. They survive a rebuild and the deletion by the tool.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from backscroll.archive.connection import from_ms, to_ms, transaction
from backscroll.archive.session_key import SessionKey
from backscroll.model.message import ANNOTATIONS_POSITION
from backscroll.model.session import Note, SessionSummary

_TABLES = ("tag", "star", "note", "user_title", "manual_link")
_OF_SESSIONS = "where external_id in (select value from json_each(?))"


class ManualLink(NamedTuple):
    """A link between a session and a commit that the user made or removed."""

    session: SessionKey
    sha: str  # of the commit at that time
    authored_at: int  # of the commit, seconds
    patch_id: str  # empty if the commit changes no file
    is_linked: bool


class Annotations:
    """Read and change the annotations of sessions."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def tags(self) -> dict[str, int]:
        """Return all tags with the number of sessions that have each."""
        return dict(self._db.execute("select name, count(*) from tag group by name order by name").fetchall())

    def update_tags(
        self, session: SessionKey, *, add: Iterable[str] = (), remove: Iterable[str] = ()
    ) -> None:
        """Add tags to a session and remove others."""
        now = _now()
        with transaction(self._db):
            self._db.executemany(
                "insert or ignore into tag (platform, external_id, name, created_at) values (?, ?, ?, ?)",
                [(*session, name, now) for name in add],
            )
            self._db.executemany(
                "delete from tag where platform = ? and external_id = ? and name = ?",
                [(*session, name) for name in remove],
            )
            self._queue_for_index(session)

    def set_link(self, link: ManualLink) -> None:
        """Store that a session led to a commit, or that it did not."""
        with transaction(self._db):
            self._db.execute(
                "insert or replace into manual_link values (?, ?, ?, ?, ?, ?, ?)",
                [*link.session, *link[1:], _now()],
            )

    def links(self, authored_at: Iterable[int]) -> list[ManualLink]:
        """Return the links of the commits with one of these times, oldest first."""
        rows = self._db.execute(
            "select platform, external_id, sha, authored_at, patch_id, is_linked from manual_link"
            " where authored_at in (select value from json_each(?)) order by created_at",
            [msgspec.json.encode([*authored_at]).decode()],
        )
        return [
            ManualLink(SessionKey(platform, id_), sha, at, patch_id, bool(is_linked))
            for platform, id_, sha, at, patch_id, is_linked in rows
        ]

    def set_star(self, session: SessionKey, *, is_starred: bool) -> None:
        """Add a star to a session, or remove it."""
        with transaction(self._db):
            if is_starred:
                self._db.execute("insert or ignore into star values (?, ?, ?)", [*session, _now()])
            else:
                self._db.execute("delete from star where platform = ? and external_id = ?", session)

    def add_note(self, session: SessionKey, text: str) -> None:
        """Add a note with the next number of the session."""
        with transaction(self._db):
            self._db.execute(
                "insert into note (platform, external_id, number, text, created_at)"
                " select :platform, :id, coalesce(max(number), 0) + 1, :text, :now"
                " from note where platform = :platform and external_id = :id",
                {"platform": session.platform, "id": session.id, "text": text, "now": _now()},
            )
            self._queue_for_index(session)

    def edit_note(self, session: SessionKey, number: int, text: str | None) -> bool:
        """Replace the text of a note, or delete the note if `text` is None. False: no such note."""
        with transaction(self._db):
            if text is None:
                cursor = self._db.execute(
                    "delete from note where platform = ? and external_id = ? and number = ?",
                    [*session, number],
                )
            else:
                cursor = self._db.execute(
                    "update note set text = ?, edited_at = ?"
                    " where platform = ? and external_id = ? and number = ?",
                    [text, _now(), *session, number],
                )
            self._queue_for_index(session)
        return cursor.rowcount > 0

    def set_title(self, session: SessionKey, title: str | None) -> None:
        """Set the user's title of a session. None restores the tool's title."""
        with transaction(self._db):
            if title is None:
                self._db.execute("delete from user_title where platform = ? and external_id = ?", session)
            else:
                self._db.execute(
                    "insert or replace into user_title values (?, ?, ?, ?)", [*session, title, _now()]
                )
            self._queue_for_index(session)

    def _queue_for_index(self, session: SessionKey) -> None:
        """Queue the session's annotations, but none of its messages, for indexing."""
        self._db.execute(
            "insert into index_queue (session_number, first_position) select number, ? from conversations"
            " where platform = ? and external_id = ? on conflict (session_number) do update set"
            " first_position = min(first_position, excluded.first_position), revision = revision + 1",
            [ANNOTATIONS_POSITION, *session],
        )


class _SessionAnnotations:
    def __init__(self) -> None:
        self.tags: list[str] = []
        self.is_starred = False
        self.notes: list[Note] = []
        self.title: str | None = None


def with_annotations(db: sqlite3.Connection, summaries: Sequence[SessionSummary]) -> list[SessionSummary]:
    """Return the summaries with their annotations. Subagents have none."""
    ids = [msgspec.json.encode([summary.id for summary in summaries if summary.parent_ref is None]).decode()]
    found: defaultdict[SessionKey, _SessionAnnotations] = defaultdict(_SessionAnnotations)
    for platform, id_, name in db.execute(
        f"select platform, external_id, name from tag {_OF_SESSIONS} order by name",  # noqa: S608
        ids,
    ):
        found[SessionKey(platform, id_)].tags.append(name)
    for platform, id_ in db.execute(f"select platform, external_id from star {_OF_SESSIONS}", ids):  # noqa: S608
        found[SessionKey(platform, id_)].is_starred = True
    for platform, id_, number, text, created_at, edited_at in db.execute(
        "select platform, external_id, number, text, created_at, edited_at"  # noqa: S608
        f" from note {_OF_SESSIONS} order by number",
        ids,
    ):
        note = Note(number, text, from_ms(created_at), from_ms(edited_at) if edited_at is not None else None)
        found[SessionKey(platform, id_)].notes.append(note)
    for platform, id_, title in db.execute(
        f"select platform, external_id, title from user_title {_OF_SESSIONS}",  # noqa: S608
        ids,
    ):
        found[SessionKey(platform, id_)].title = title
    return [_annotated(summary, found) for summary in summaries] if found else list(summaries)


def _annotated(
    summary: SessionSummary, found: defaultdict[SessionKey, _SessionAnnotations]
) -> SessionSummary:
    key = SessionKey(summary.platform, summary.id)
    if key not in found or summary.parent_ref is not None:
        return summary
    added = found[key]
    return replace(
        summary,
        tags=tuple(added.tags),
        is_starred=added.is_starred,
        notes=tuple(added.notes),
        title=added.title or summary.title,
        original_title=summary.title if added.title else None,
    )


def delete_annotations(db: sqlite3.Connection, session: SessionKey) -> None:
    """Delete all annotations of a session."""
    for table in _TABLES:
        db.execute(f"delete from {table} where platform = ? and external_id = ?", session)  # noqa: S608


def _now() -> int:
    return to_ms(datetime.now(UTC))
