"""Tags, stars, notes and titles that people give to sessions."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from backscroll.archive.session_key import SessionKey
from backscroll.model import SessionSummary
from backscroll.model.dates import iso
from backscroll.model.searchable_text import ANNOTATIONS_POSITION
from backscroll.model.session import Note

__all__ = ["add_note", "add_tags", "edit_note", "erase", "noted", "rename", "star", "tags", "take_tags"]

_TABLES = ("tag", "star", "note", "renaming")


def noted(db: sqlite3.Connection, summaries: Sequence[SessionSummary]) -> list[SessionSummary]:
    """The same sessions with what people have added to them; subagents have nothing of their own."""
    ids = msgspec.json.encode([one.id for one in summaries if one.parent_ref is None]).decode()
    found: defaultdict[SessionKey, _Added] = defaultdict(_Added)
    of_these = "where id in (select value from json_each(?))"
    for platform, id_, name in db.execute(
        f"select platform, id, name from tag {of_these} order by name",  # noqa: S608
        [ids],
    ):
        found[SessionKey(platform, id_)].tags.append(name)
    for platform, id_ in db.execute(f"select platform, id from star {of_these}", [ids]):  # noqa: S608
        found[SessionKey(platform, id_)].is_starred = True
    for platform, id_, number, text, written, edited in db.execute(
        f"select platform, id, number, text, written_at, edited_at from note {of_these} order by number",  # noqa: S608
        [ids],
    ):
        at = datetime.fromisoformat(written)
        one = Note(number, text, at, datetime.fromisoformat(edited) if edited is not None else None)
        found[SessionKey(platform, id_)].notes.append(one)
    for platform, id_, title in db.execute(
        f"select platform, id, title from renaming {of_these}",  # noqa: S608
        [ids],
    ):
        found[SessionKey(platform, id_)].title = title
    return [_with(one, found) for one in summaries] if found else list(summaries)


class _Added:
    def __init__(self) -> None:
        self.tags: list[str] = []
        self.is_starred = False
        self.notes: list[Note] = []
        self.title: str | None = None


def _with(summary: SessionSummary, found: "defaultdict[SessionKey, _Added]") -> SessionSummary:
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


def tags(db: sqlite3.Connection) -> dict[str, int]:
    """Every tag there is, with how many sessions have it."""
    return dict(db.execute("select name, count(*) from tag group by name order by name").fetchall())


def add_tags(db: sqlite3.Connection, session: SessionKey, names: Iterable[str]) -> None:
    db.executemany(
        "insert or ignore into tag (platform, id, name, at) values (?, ?, ?, ?)",
        [(session.platform, session.id, name, _now()) for name in names],
    )
    _touch(db, session)


def take_tags(db: sqlite3.Connection, session: SessionKey, names: Iterable[str]) -> None:
    db.executemany(
        "delete from tag where platform = ? and id = ? and name = ?",
        [(session.platform, session.id, name) for name in names],
    )
    _touch(db, session)


def star(db: sqlite3.Connection, session: SessionKey, *, is_starred: bool) -> None:
    if is_starred:
        db.execute("insert or ignore into star values (?, ?, ?)", [session.platform, session.id, _now()])
    else:
        db.execute("delete from star where platform = ? and id = ?", [session.platform, session.id])


def add_note(db: sqlite3.Connection, session: SessionKey, text: str) -> None:
    db.execute(
        "insert into note (platform, id, number, text, written_at) select :platform, :id,"
        " coalesce(max(number), 0) + 1, :text, :at from note where platform = :platform and id = :id",
        {"platform": session.platform, "id": session.id, "text": text, "at": _now()},
    )
    _touch(db, session)


def edit_note(db: sqlite3.Connection, session: SessionKey, number: int, text: str | None) -> bool:
    """Write a note anew, or delete it without a text. False when there is none of that number."""
    key = {"platform": session.platform, "id": session.id, "number": number, "text": text, "at": _now()}
    own = "where platform = :platform and id = :id and number = :number"
    if text is None:
        done = db.execute(f"delete from note {own}", key)  # noqa: S608
    else:
        done = db.execute(f"update note set text = :text, edited_at = :at {own}", key)  # noqa: S608
    _touch(db, session)
    return done.rowcount > 0


def rename(db: sqlite3.Connection, session: SessionKey, title: str | None) -> None:
    """Give a session a title of one's own, or take it back."""
    if title is None:
        db.execute("delete from renaming where platform = ? and id = ?", [session.platform, session.id])
    else:
        db.execute(
            "insert or replace into renaming values (?, ?, ?, ?)",
            [session.platform, session.id, title, _now()],
        )
    _touch(db, session)


def erase(db: sqlite3.Connection, session: SessionKey) -> None:
    """Leave nothing of what was added to a session."""
    for table in _TABLES:
        db.execute(
            f"delete from {table} where platform = ? and id = ?",  # noqa: S608 - names are ours
            [session.platform, session.id],
        )


def _touch(db: sqlite3.Connection, session: SessionKey) -> None:
    """Have the index take the notes anew, and no message."""
    db.execute(
        "insert into unindexed (number, first) select number, ? from conversations"
        " where platform = ? and external_id = ?"
        " on conflict (number) do update set first = min(first, excluded.first), noted = noted + 1",
        [ANNOTATIONS_POSITION, session.platform, session.id],
    )


def _now() -> str | None:
    return iso(datetime.now(UTC))
