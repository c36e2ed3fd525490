"""Rows fetched ahead, rows on damaged pages, databases that cannot be opened."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.model import Message
from backscroll.sources.cursor import Cursor
from backscroll.sources.cursor.database import session_rows
from backscroll.testing import cursor
from tests.oracle.fold import fold
from tests.sources.cursor.reading import read, said, tell

TALK = [cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")]


def test_sessions_read_in_a_row_are_the_same_as_read_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_rows, "MAX_FETCH_BYTES", 400_000)
    root = cursor.history(tmp_path / "Cursor", sessions=12, bubbles=900, megabytes=4)
    source = Cursor()
    units = [unit for unit in source.units(root) if unit.key]
    together = [fold(source.read(unit)) for unit in units]
    source.close()
    alone = []
    for unit in reversed(units):
        alone.append(fold(Cursor().read(unit)))
    assert together == alone[::-1]
    assert sum(len(told.sessions[0].messages) for told in together) >= 900


def test_what_was_fetched_ahead_is_forgotten_by_the_next_listing(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    made = [home.composer([cursor.user(f"word {n}")], has_graph=False) for n in range(6)]
    source = Cursor()
    units = [unit for unit in source.units(home.write()) if unit.key]
    for unit in units[:3]:
        list(source.read(unit))
    late = next(each for each in made if each.id == units[5].key)
    cursor.damage.put(home.database, late.bubble_key(0), '{"type":1,"text":"new words"}')
    (unit,) = [unit for unit in source.units(home.root) if unit.key == late.id]
    assert "new words" in [item.content for item in source.read(unit) if isinstance(item, Message)]
    source.close()


def test_a_bubble_written_again_while_it_is_read_is_not_lost(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    made = home.composer([cursor.user("old words")], has_graph=False)
    home.write()
    source = Cursor()
    (unit,) = [unit for unit in source.units(home.root) if unit.key]
    rows = source._user_data_of(home.root).row_loader(home.database).take(made.id)
    source.close()
    cursor.damage.put(home.database, made.bubble_key(0), '{"type":1,"text":"new words"}')
    ((_, value),) = rows.bodies(rows.bubbles)
    assert isinstance(value, bytes)
    assert b"new words" in value
    assert unit.key == made.id


def test_a_damaged_page_costs_its_own_rows_only(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    words = [cursor.user(f"{n} " + "long words " * 3000) for n in range(20)]
    made = home.composer(words, has_graph=False)
    other = home.composer(TALK, has_graph=False)
    home.write()
    with closing(sqlite3.connect(home.database)) as db:
        size = db.execute("pragma page_size").fetchone()[0]
    data = bytearray(home.database.read_bytes())
    place = data.index(b"10 long words")
    overflow = place // size * size + size  # the first page of what did not fit beside it
    data[overflow : overflow + 4] = b"\xff\xff\xff\xff"
    home.database.write_bytes(data)
    found = read(home.root)
    assert len([message for message in found[made.id].messages if message.kind is None]) == 19
    assert said(found[other.id]) == [("user", "Totals are off"), ("assistant", "Rounding now happens once.")]


def test_a_file_that_is_no_database_is_one_problem(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    home.composer(TALK)
    home.write()
    home.database.write_bytes(b"no database at all, only words " * 200)
    told = [each for unit, each in tell(home.root).items() if unit.path == str(home.database)]
    assert [len(each.problems) for each in told] == [1]


@pytest.mark.parametrize("table", ["cursorDiskKV", "composerHeaders", "ItemTable"])
def test_a_missing_table_costs_only_what_it_held(tmp_path: Path, table: str) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    made = home.composer(TALK, name="Named")
    cursor.damage.drop_table(home.write() / "User/globalStorage/state.vscdb", table)
    found = read(home.root)
    if table == "cursorDiskKV":
        assert found[made.id].closing.visibility == "ghost"
    else:
        assert found[made.id].closing.title == "Named"
        assert len(found[made.id].messages) == 2


def test_everything_in_the_log_alone_is_read(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", leave="wal")
    made = home.composer(TALK)
    assert len(read(home.write())[made.id].messages) == 2


def test_the_editors_own_backup_is_no_second_history(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    made = home.composer(TALK)
    home.write()
    home.write_backup()
    assert read(home.root).keys() == {made.id}
