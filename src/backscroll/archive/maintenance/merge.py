"""Merge the archive of a backup: add what this archive does not have. What it has stays as it is."""

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from backscroll.archive.connection import connect, transaction
from backscroll.archive.maintenance.forget import forgotten_sessions, keep_sessions
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.delta import rebase_unit_dependents
from backscroll.archive.write.units import merge_archive
from backscroll.model.message import ANNOTATIONS_POSITION

_SESSIONS = "select distinct platform, session_external_id from fragment_session"
_ANNOTATIONS = ("tag", "star", "user_title")


def merge_sessions(
    db: sqlite3.Connection, path: Path, other: Path, only: Collection[SessionKey] | None = None
) -> frozenset[SessionKey]:
    """Add the sessions and annotations of another archive, whose private copy is changed.

    Sessions that were forgotten here are left out. Existing titles and notes stay. ``only`` are the sessions
    to add, None for all. Return those that were added. The caller derives sessions afterwards.
    """
    forgotten = forgotten_sessions(db)

    def is_left_out(row: Sequence[Any]) -> bool:
        key = (row[0], row[1])
        return key in forgotten or (only is not None and SessionKey(*key) not in only)

    with closing(connect(other)) as copy:  # also migrates it to this version
        found = {SessionKey(*row) for row in copy.execute(_SESSIONS) if not is_left_out(row)}
        added = frozenset(found - {SessionKey(*row) for row in db.execute(_SESSIONS)})
        annotations = {
            table: copy.execute(f"select * from {table}").fetchall()  # noqa: S608 - constants
            for table in (*_ANNOTATIONS, "note", "manual_link")
        }
        if added:
            keep_sessions(copy, added)
            _rebase_known_units(copy, path)
    if added:
        merge_archive(db, other)
    with transaction(db):
        for table in (*_ANNOTATIONS, "manual_link"):
            _add_annotations(db, table, [row for row in annotations[table] if not is_left_out(row)])
        for platform, id_, _, text, *times in annotations["note"]:
            if not is_left_out((platform, id_)):
                _add_note(db, [platform, id_, text, *times])
    return added


def _rebase_known_units(copy: sqlite3.Connection, path: Path) -> None:
    """Store without a delta base what refers to a unit that both archives have: its original may differ."""
    copy.execute("attach database ? as known", [f"{path.absolute().as_uri()}?mode=ro"])
    try:
        rows = copy.execute(
            "select o.id from main.unit o join known.unit k on k.path = o.path and k.key = o.key"
        ).fetchall()
    finally:
        copy.execute("detach database known")
    with transaction(copy):
        for (unit_id,) in rows:
            rebase_unit_dependents(copy, unit_id)


def _add_annotations(db: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        marks = ", ".join("?" for _ in rows[0])
        db.executemany(f"insert or ignore into {table} values ({marks})", rows)  # noqa: S608 - constants
        _queue_for_index(db, rows)


def _add_note(db: sqlite3.Connection, values: list[Any]) -> None:
    """Add a note with the next number, unless the session has one with this text."""
    platform, id_, text, created_at, edited_at = values
    key = {"platform": platform, "id": id_, "text": text, "created": created_at, "edited": edited_at}
    cursor = db.execute(
        "insert into note (platform, external_id, number, text, created_at, edited_at)"
        " select :platform, :id, coalesce(max(number), 0) + 1, :text, :created, :edited from note"
        " where platform = :platform and external_id = :id having not exists (select 1 from note"
        " where platform = :platform and external_id = :id and text = :text)",
        key,
    )
    if cursor.rowcount:
        _queue_for_index(db, [(platform, id_)])


def _queue_for_index(db: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    """Queue the annotations of sessions for indexing."""
    db.executemany(
        "insert into index_queue (session_number, first_position) select number, ? from conversations"
        " where platform = ? and external_id = ? on conflict (session_number) do update set"
        " first_position = min(first_position, excluded.first_position), revision = revision + 1",
        [(ANNOTATIONS_POSITION, row[0], row[1]) for row in rows],
    )
