"""Rows of Cursor windows agree with their sessions."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing import cursor
from tests.archive.synced_archive import SyncedArchive
from tests.histories import HISTORIES, History


def windows(synced: SyncedArchive) -> dict[str, tuple[Any, ...]]:
    with closing(sqlite3.connect(synced.archive.path)) as db:
        rows = db.execute("select id, workspace_hash, started_at, ended_at from cursor_sessions").fetchall()
        return {id_: rest for id_, *rest in rows}


def expected(synced: SyncedArchive) -> dict[str, tuple[Any, ...]]:
    with closing(sqlite3.connect(synced.archive.path)) as db:
        rows = db.execute(
            "select session_id, min(started_at), max(updated_at) from conversations"
            " where platform = 'cursor' group by session_id"
        ).fetchall()
        return {id_: rest for id_, *rest in rows}


@pytest.mark.parametrize(
    "history", [history for history in HISTORIES if history.source_name == "cursor"], ids=repr
)
def test_a_window_lasts_from_its_first_session_to_its_last(history: History, tmp_path: Path) -> None:
    synced = SyncedArchive("cursor", history.write(tmp_path / "root"), tmp_path / "home")
    synced.sync()
    assert {id_: times for id_, (_, *times) in windows(synced).items()} == expected(synced)


def test_a_window_has_no_trace_of_a_forgotten_session(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    for words in ("one", "two", "three"):
        home.composer([cursor.user(words), cursor.assistant("yes")], has_graph=False)
    home.write()
    synced = SyncedArchive("cursor", tmp_path / "root", tmp_path / "home")
    synced.sync()
    for _ in range(3):
        assert {id_: times for id_, (_, *times) in windows(synced).items()} == expected(synced)
        oldest = min(synced.summaries(), key=lambda summary: str(summary.created_at))
        synced.archive.maintenance.forget(oldest)
    assert windows(synced) == {}


def test_a_window_is_derived_with_its_sessions(tmp_path: Path) -> None:
    synced = SyncedArchive("cursor", tmp_path / "root", tmp_path / "home")
    home = cursor.Home(tmp_path / "root")
    home.composer([cursor.user("one"), cursor.assistant("yes")], has_graph=False)
    home.write()
    synced.sync()
    before = windows(synced)
    with closing(sqlite3.connect(synced.archive.path)) as db, db:
        db.execute(
            "update cursor_sessions set started_at = '2001-01-01T00:00:00.000Z', workspace_hash = 'unknown'"
        )
        db.execute(
            "insert into cursor_sessions (id, external_session_id, workspace_hash, started_at)"
            " values ('left', 'workspace:left', 'unknown', '2001-01-01T00:00:00.000Z')"
        )
    synced.archive.invalidate_derived()
    synced.archive.derive()
    assert windows(synced) == before
