"""Prefetched rows, rows on damaged pages, and missing tables."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.model.message import Message
from backscroll.sources.cursor import Cursor
from backscroll.sources.cursor.database import session_rows
from backscroll.testing import cursor
from tests.builders.cursor import damage as cursor_damage
from tests.builders.cursor.history import write_history as write_cursor_history
from tests.oracle.fold import fold
from tests.sources.cursor.reading import contents, read_sessions, read_units

MESSAGES = [cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")]


def test_sessions_are_the_same_read_in_sequence_or_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_rows, "MAX_FETCH_BYTES", 400_000)
    root = write_cursor_history(tmp_path / "Cursor", sessions=12, bubbles=900, megabytes=4)
    source = Cursor()
    units = [unit for unit in source.units(root) if unit.key]
    together = [fold(source.read(unit)) for unit in units]
    source.close()
    alone = []
    for unit in reversed(units):
        alone.append(fold(Cursor().read(unit)))
    assert together == alone[::-1]
    assert sum(len(content.sessions[0].messages) for content in together) >= 900


def test_prefetched_rows_are_discarded_by_the_next_listing(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    composers = [home.composer([cursor.user(f"word {n}")], has_graph=False) for n in range(6)]
    source = Cursor()
    units = [unit for unit in source.units(home.write()) if unit.key]
    for unit in units[:3]:
        list(source.read(unit))
    changed = next(each for each in composers if each.id == units[5].key)
    cursor_damage.put(home.database, changed.bubble_key(0), '{"type":1,"text":"new words"}')
    (unit,) = [unit for unit in source.units(home.root) if unit.key == changed.id]
    assert "new words" in [item.content for item in source.read(unit) if isinstance(item, Message)]
    source.close()


def test_a_bubble_rewritten_after_loading_is_not_lost(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    composer = home.composer([cursor.user("old words")], has_graph=False)
    home.write()
    source = Cursor()
    (unit,) = [unit for unit in source.units(home.root) if unit.key]
    rows = source._reader(home.root)._user_data.row_loader(home.database).load_session(composer.id)
    source.close()
    cursor_damage.put(home.database, composer.bubble_key(0), '{"type":1,"text":"new words"}')
    ((_, value),) = rows.bubble_values(rows.bubble_rowids)
    assert isinstance(value, bytes)
    assert b"new words" in value
    assert unit.key == composer.id


def test_a_damaged_overflow_page_loses_only_its_own_row(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    messages = [cursor.user(f"{n} " + "long words " * 3000) for n in range(20)]
    composer = home.composer(messages, has_graph=False)
    other = home.composer(MESSAGES, has_graph=False)
    home.write()
    with closing(sqlite3.connect(home.database)) as db:
        size = db.execute("pragma page_size").fetchone()[0]
    data = bytearray(home.database.read_bytes())
    offset = data.index(b"10 long words")
    overflow = offset // size * size + size  # the first overflow page of the row
    data[overflow : overflow + 4] = b"\xff\xff\xff\xff"
    home.database.write_bytes(data)
    found = read_sessions(home.root)
    assert len([message for message in found[composer.id].messages if message.kind is None]) == 19
    assert contents(found[other.id]) == [
        ("user", "Totals are off"),
        ("assistant", "Rounding now happens once."),
    ]


def test_a_file_that_is_not_a_database_is_one_problem(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    home.composer(MESSAGES)
    home.write()
    home.database.write_bytes(b"no database at all, only words " * 200)
    units = [each for unit, each in read_units(home.root).items() if unit.path == str(home.database)]
    assert [len(each.problems) for each in units] == [1]


@pytest.mark.parametrize("table", ["cursorDiskKV", "composerHeaders", "ItemTable"])
def test_a_missing_table_loses_only_its_own_content(tmp_path: Path, table: str) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    composer = home.composer(MESSAGES, name="Named")
    cursor_damage.drop_table(home.write() / "User/globalStorage/state.vscdb", table)
    found = read_sessions(home.root)
    if table == "cursorDiskKV":
        assert found[composer.id].closing.visibility == "ghost"
    else:
        assert found[composer.id].closing.title == "Named"
        assert len(found[composer.id].messages) == 2


def test_rows_that_are_only_in_the_write_ahead_log_are_read(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", rows_in="wal")
    composer = home.composer(MESSAGES)
    assert len(read_sessions(home.write())[composer.id].messages) == 2


def test_the_backup_of_the_editor_is_not_read(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    composer = home.composer(MESSAGES)
    home.write()
    home.write_backup()
    assert read_sessions(home.root).keys() == {composer.id}
