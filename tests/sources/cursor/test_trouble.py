"""Databases that are locked, damaged in places or being written to: what is there still arrives."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.model import Problem
from backscroll.sources.cursor import Cursor
from backscroll.testing import cursor
from tests.oracle.fold import fold
from tests.sources.cursor.reading import read, said, tell, total

SESSIONS = 6
EDIT = cursor.Tool(
    "edit_file", {"target_file": "/w/a.py"}, {"diff": {"chunks": [{"diffString": "+a", "newStart": 1}]}}
)


@pytest.fixture
def home(tmp_path: Path) -> cursor.Home:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    for number in range(SESSIONS):
        messages = [
            cursor.user(f"question {number}"),
            cursor.Message("assistant", f"answer {number} " + "x" * 3000, "hm", EDIT, id=f"b{number}"),
        ]
        home.composer(messages, name=f"Session {number}")
    home.write()
    return home


@pytest.fixture
def source() -> Iterator[Cursor]:
    source = Cursor()
    yield source
    source.close()


def pages(path: Path, name: str) -> list[int]:
    """The places of a table's or an index's pages in the file, found by what they hold."""
    with closing(sqlite3.connect(path)) as db:
        size = db.execute("pragma page_size").fetchone()[0]
        root = db.execute("select rootpage from sqlite_master where name = ?", [name]).fetchone()[0]
    whole = path.read_bytes()
    page = whole[(root - 1) * size : root * size]
    if page[0] not in (2, 5):  # the root is a leaf
        return [(root - 1) * size]
    count = int.from_bytes(page[3:5], "big")
    cells = [int.from_bytes(page[12 + 2 * n : 14 + 2 * n], "big") for n in range(count)]
    children = [int.from_bytes(page[cell : cell + 4], "big") for cell in cells]
    children.append(int.from_bytes(page[8:12], "big"))
    return [(child - 1) * size for child in children]


def wipe(path: Path, at: int) -> None:
    whole = bytearray(path.read_bytes())
    size = int.from_bytes(whole[16:18], "big")
    whole[at : at + size] = b"\xff" * size
    path.write_bytes(whole)


def test_a_locked_database_is_a_problem_and_is_tried_again(home: cursor.Home, source: Cursor) -> None:
    with closing(sqlite3.connect(home.database, isolation_level=None)) as holder:
        holder.execute("begin exclusive")
        (index,) = [unit for unit in source.units(home.root) if unit.path == str(home.database)]
        told = fold(source.read(index))
    assert (index.kind, index.fingerprint) == ("index", "")
    (problem,) = told.problems
    assert "is locked" in problem.reason
    assert told.counts.kinds == {"database": 1}
    again = [unit for unit in source.units(home.root) if unit.path == str(home.database)]
    assert len(again) == SESSIONS + 1
    assert all(unit.fingerprint for unit in again)


def test_a_source_that_was_closed_asks_again_for_what_was_locked(home: cursor.Home, source: Cursor) -> None:
    index = next(unit for unit in Cursor().units(home.root) if unit.kind == "index")
    assert index.path == str(home.database)
    with closing(sqlite3.connect(home.database, isolation_level=None)) as holder:
        holder.execute("begin exclusive")
        assert fold(source.read(index)).problems
    source.close()
    told = fold(source.read(index))
    assert (told.problems, told.counts.problems) == ((), 0)


def test_a_session_locked_between_listing_and_reading_is_a_problem(home: cursor.Home, source: Cursor) -> None:
    unit = next(unit for unit in source.units(home.root) if unit.kind == "session")
    with closing(sqlite3.connect(home.database, isolation_level=None)) as holder:
        holder.execute("begin exclusive")
        items = list(source.read(unit))
    assert [type(item) for item in items[:1]] == [Problem]
    assert fold(items).sessions == ()
    assert len(fold(source.read(unit)).sessions) == 1


@pytest.mark.parametrize("place", range(3))
def test_a_damaged_index_loses_no_message_and_no_row(home: cursor.Home, place: int) -> None:
    whole, before = read(home.root), total(home.root).records
    leaves = pages(home.database, "sqlite_autoindex_cursorDiskKV_1")
    wipe(home.database, leaves[place * len(leaves) // 3])
    found = read(home.root)
    assert {id: said(reading) for id, reading in found.items()} == {
        id: said(reading) for id, reading in whole.items()
    }
    assert total(home.root).records == before
    reasons = [problem.reason for told in tell(home.root).values() for problem in told.problems]
    assert reasons == ["the index of its keys is damaged; the table was searched"]


def test_any_damaged_page_of_the_table_costs_at_most_its_own_rows(home: cursor.Home) -> None:
    whole = home.database.read_bytes()
    before = total(home.root).records
    for at in pages(home.database, "cursorDiskKV"):
        wipe(home.database, at)
        found = read(home.root)
        assert len(found) == SESSIONS
        texts = {text[:10].strip() for reading in found.values() for _, text in said(reading)}
        assert sum(f"question {number}" in texts for number in range(SESSIONS)) >= SESSIONS - 1
        assert total(home.root).records == before
        home.database.write_bytes(whole)


def test_a_damaged_table_of_headers_is_said_and_nothing_older_is_believed(home: cursor.Home) -> None:
    ghost = {"composerId": "frozen", "name": "Frozen", "type": "head"}
    home.put_item("composer.composerHeaders", json.dumps({"allComposers": [ghost]}))
    home.write()
    before = total(home.root).records
    for at in pages(home.database, "composerHeaders"):
        wipe(home.database, at)
    found = read(home.root)
    assert len(found) == SESSIONS
    assert {reading.closing.title_source for reading in found.values()} == {"composerData"}
    reasons = [problem.reason for told in tell(home.root).values() for problem in told.problems]
    assert any("composerHeaders" in reason for reason in reasons)
    assert total(home.root).records == before


def test_a_session_grows_while_it_is_read(tmp_path: Path, source: Cursor) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    made = home.composer([cursor.user("first"), cursor.assistant("second")])
    home.write()
    with closing(sqlite3.connect(home.database)) as writer:
        writer.execute("pragma journal_mode = wal")
        unit = next(unit for unit in source.units(home.root) if unit.key == made.id)
        items = source.read(unit)
        told = [next(items)]
        with writer:
            for position in range(2):
                key = made.bubble_key(position)
                value = writer.execute("select value from cursorDiskKV where key = ?", [key]).fetchone()[0]
                writer.execute("insert into cursorDiskKV values (?, ?)", [key, value])
        told += items
        (reading,) = fold(told).sessions
        assert said(reading) == [("user", "first"), ("assistant", "second")]
        again = next(unit for unit in source.units(home.root) if unit.key == made.id)
        assert again.fingerprint != unit.fingerprint
