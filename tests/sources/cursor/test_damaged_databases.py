"""Reading databases that are locked, partly damaged or being written."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.model.problem import Problem
from backscroll.sources.cursor import Cursor
from backscroll.testing import cursor
from tests.oracle.fold import fold
from tests.sources.cursor.reading import contents, read_sessions, read_units, total_counts

SESSION_COUNT = 6
EDIT_CALL = cursor.Tool(
    "edit_file", {"target_file": "/w/a.py"}, {"diff": {"chunks": [{"diffString": "+a", "newStart": 1}]}}
)


@pytest.fixture
def home(tmp_path: Path) -> cursor.Home:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    for number in range(SESSION_COUNT):
        messages = [
            cursor.user(f"question {number}"),
            cursor.Message("assistant", f"answer {number} " + "x" * 3000, "hm", EDIT_CALL, id=f"b{number}"),
        ]
        home.composer(messages, name=f"Session {number}")
    home.write()
    return home


@pytest.fixture
def source() -> Iterator[Cursor]:
    source = Cursor()
    yield source
    source.close()


def page_offsets(path: Path, name: str) -> list[int]:
    """Return the file offsets of the leaf pages of a table or an index."""
    with closing(sqlite3.connect(path)) as db:
        size = db.execute("pragma page_size").fetchone()[0]
        root = db.execute("select rootpage from sqlite_master where name = ?", [name]).fetchone()[0]
    data = path.read_bytes()
    page = data[(root - 1) * size : root * size]
    if page[0] not in (2, 5):  # the root is a leaf
        return [(root - 1) * size]
    cell_count = int.from_bytes(page[3:5], "big")
    cells = [int.from_bytes(page[12 + 2 * index : 14 + 2 * index], "big") for index in range(cell_count)]
    children = [int.from_bytes(page[cell : cell + 4], "big") for cell in cells]
    children.append(int.from_bytes(page[8:12], "big"))
    return [(child - 1) * size for child in children]


def overwrite_page(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    page_bytes = int.from_bytes(data[16:18], "big")
    data[offset : offset + page_bytes] = b"\xff" * page_bytes
    path.write_bytes(data)


def test_a_locked_database_is_a_problem_and_is_read_again(home: cursor.Home, source: Cursor) -> None:
    with closing(sqlite3.connect(home.database, isolation_level=None)) as holder:
        holder.execute("begin exclusive")
        (index,) = [unit for unit in source.units(home.root) if unit.path == str(home.database)]
        content = fold(source.read(index))
    assert (index.kind, index.fingerprint) == ("index", "")
    (problem,) = content.problems
    assert "is locked" in problem.reason
    assert content.counts.kinds == {"database": 1}
    units = [unit for unit in source.units(home.root) if unit.path == str(home.database)]
    assert len(units) == SESSION_COUNT + 1
    assert all(unit.fingerprint for unit in units)


def test_a_closed_source_reads_a_locked_database_again(home: cursor.Home, source: Cursor) -> None:
    index = next(unit for unit in Cursor().units(home.root) if unit.kind == "index")
    assert index.path == str(home.database)
    with closing(sqlite3.connect(home.database, isolation_level=None)) as holder:
        holder.execute("begin exclusive")
        assert fold(source.read(index)).problems
    source.close()
    content = fold(source.read(index))
    assert (content.problems, content.counts.problems) == ((), 0)


def test_a_session_locked_between_listing_and_reading_is_a_problem(home: cursor.Home, source: Cursor) -> None:
    unit = next(unit for unit in source.units(home.root) if unit.kind == "session")
    with closing(sqlite3.connect(home.database, isolation_level=None)) as holder:
        holder.execute("begin exclusive")
        items = list(source.read(unit))
    assert [type(item) for item in items[:1]] == [Problem]
    assert fold(items).sessions == ()
    assert len(fold(source.read(unit)).sessions) == 1


@pytest.mark.parametrize("third", range(3))
def test_a_damaged_index_loses_no_message_and_no_row(home: cursor.Home, third: int) -> None:
    intact, row_count = read_sessions(home.root), total_counts(home.root).records
    leaves = page_offsets(home.database, "sqlite_autoindex_cursorDiskKV_1")
    overwrite_page(home.database, leaves[third * len(leaves) // 3])
    found = read_sessions(home.root)
    assert {id: contents(session) for id, session in found.items()} == {
        id: contents(session) for id, session in intact.items()
    }
    assert total_counts(home.root).records == row_count
    reasons = [problem.reason for content in read_units(home.root).values() for problem in content.problems]
    assert reasons == ["the key index is damaged; the keys were read from the table"]


def test_a_damaged_page_of_the_table_loses_only_its_own_rows(home: cursor.Home) -> None:
    intact = home.database.read_bytes()
    row_count = total_counts(home.root).records
    for offset in page_offsets(home.database, "cursorDiskKV"):
        overwrite_page(home.database, offset)
        found = read_sessions(home.root)
        assert len(found) == SESSION_COUNT
        texts = {text[:10].strip() for session in found.values() for _, text in contents(session)}
        assert sum(f"question {number}" in texts for number in range(SESSION_COUNT)) >= SESSION_COUNT - 1
        assert total_counts(home.root).records == row_count
        home.database.write_bytes(intact)


def test_a_damaged_header_table_is_reported_and_not_replaced_by_an_older_list(home: cursor.Home) -> None:
    ghost = {"composerId": "frozen", "name": "Frozen", "type": "head"}
    home.put_item("composer.composerHeaders", json.dumps({"allComposers": [ghost]}))
    home.write()
    row_count = total_counts(home.root).records
    for offset in page_offsets(home.database, "composerHeaders"):
        overwrite_page(home.database, offset)
    found = read_sessions(home.root)
    assert len(found) == SESSION_COUNT
    assert {session.closing.title_source for session in found.values()} == {"composerData"}
    reasons = [problem.reason for content in read_units(home.root).values() for problem in content.problems]
    assert any("composerHeaders" in reason for reason in reasons)
    assert total_counts(home.root).records == row_count


def test_rows_rewritten_during_a_read_are_not_lost(tmp_path: Path, source: Cursor) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    composer = home.composer([cursor.user("first"), cursor.assistant("second")])
    home.write()
    with closing(sqlite3.connect(home.database)) as writer:
        writer.execute("pragma journal_mode = wal")
        unit = next(unit for unit in source.units(home.root) if unit.key == composer.id)
        items = source.read(unit)
        read_items = [next(items)]
        with writer:
            for position in range(2):
                key = composer.bubble_key(position)
                value = writer.execute("select value from cursorDiskKV where key = ?", [key]).fetchone()[0]
                writer.execute("insert into cursorDiskKV values (?, ?)", [key, value])
        read_items += items
        (session,) = fold(read_items).sessions
        assert contents(session) == [("user", "first"), ("assistant", "second")]
        again = next(unit for unit in source.units(home.root) if unit.key == composer.id)
        assert again.fingerprint != unit.fingerprint
