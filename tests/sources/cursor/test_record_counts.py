"""Record counts: every row is counted once. No secret is returned."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from backscroll.sources.cursor import Cursor
from backscroll.testing import cursor
from tests.builders.cursor import generations as cursor_generations
from tests.builders.cursor.history import write_history as write_cursor_history
from tests.sources.cursor.reading import read_units, total_counts

MESSAGES = [cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")]


def count_rows(root: Path) -> int:
    """Count all rows of the tables that can contain history, with SQLite itself."""
    row_count = 0
    for path in (*root.rglob("state.vscdb"), *root.rglob("conversation-search.db")):
        with closing(sqlite3.connect(path)) as db:
            for table in ("ItemTable", "cursorDiskKV", "composerHeaders", "conversations"):
                if db.execute("select 1 from sqlite_master where name = ?", [table]).fetchone():
                    row_count += db.execute(f"select count(*) from {table}").fetchone()[0]  # noqa: S608
    return row_count


@pytest.mark.parametrize("name", cursor_generations.GENERATIONS)
def test_every_row_of_every_generation_is_counted_once(tmp_path: Path, name: str) -> None:
    root = tmp_path / "Cursor"
    cursor_generations.GENERATIONS[name].write(root, journal="delete")
    assert total_counts(root).records == count_rows(root)


def test_every_row_of_a_large_history_is_counted(tmp_path: Path) -> None:
    root = write_cursor_history(tmp_path / "Cursor", sessions=8, bubbles=400, megabytes=2)
    counts = total_counts(root)
    assert counts.kinds["bubbleId"] == 400
    assert counts.kinds["composerData"] == 8
    assert counts.problems == 0
    assert counts.records == count_rows(root)


def test_unknown_key_families_are_problems(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    home.composer(MESSAGES)
    for number in range(3):
        home.put(f"newThing:{number}:x", "{}")
    home.put("lonelyKey42", "{}")
    units = read_units(home.write())
    counts = total_counts(home.root)
    assert counts.unknown == {"key family newThing": 3, "key family lonelyKey": 1}
    assert counts.problems == 4
    reasons = [problem.reason for content in units.values() for problem in content.problems]
    assert "unknown key family 'newThing' (3 rows)" in reasons


def test_unknown_versions_are_counted_and_read(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    home.composer(MESSAGES, version=19, bubble_version=4)
    counts = total_counts(home.write())
    assert counts.unknown == {"composerData _v 19": 1, "bubbleId _v 4": 2}
    assert counts.problems == 0


def test_keys_without_a_session_are_problems(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    home.composer(MESSAGES)
    for key in ("bubbleId:alone", "composerData:a:b", "bubbleId::b1"):
        home.put(key, "{}")
    assert total_counts(home.write()).problems == 3
    assert total_counts(home.root).records == count_rows(home.root)


def test_related_rows_of_a_deleted_session_are_counted(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    home.composer(MESSAGES)
    home.put("checkpointId:gone:1", "{}")
    home.put("checkpointId:gone:2", "{}")
    home.put("composerDraft:gone", "{}")
    counts = total_counts(home.write())
    assert counts.kinds["checkpointId"] == 2
    assert counts.records == count_rows(home.root)
    assert counts.problems == 0


def test_binary_and_null_keys_are_counted(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    home.composer(MESSAGES)
    with closing(sqlite3.connect(home.write() / "User/globalStorage/state.vscdb")) as db, db:
        db.execute("insert into cursorDiskKV values (?, ?)", [b"bubbleId:x:y", "{}"])
        db.execute("insert into cursorDiskKV values (null, null)")
    counts = total_counts(home.root)
    assert counts.records == count_rows(home.root)
    assert counts.problems == 1


def test_a_list_that_is_not_json_is_a_problem(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=3)
    home.composer(MESSAGES)
    home.put_item("workbench.panel.aichat.view.aichat.chatdata", "{broken", workspace=cursor.SHOP)
    problems = [problem for content in read_units(home.write()).values() for problem in content.problems]
    assert [problem.origin.place for problem in problems] == ["workbench.panel.aichat.view.aichat.chatdata"]


@pytest.mark.parametrize("name", ["g3-global-index", "g4-header-table", "g5-subagent-column"])
def test_no_secret_is_in_any_item_or_record(tmp_path: Path, name: str) -> None:
    root = tmp_path / "Cursor"
    home = cursor_generations.GENERATIONS[name].write(root)
    key = {"blobEncryptionKey": cursor.SECRET, "speculativeSummarizationEncryptionKey": cursor.SECRET}
    home.composer(MESSAGES, data=key)
    home.write()
    source = Cursor()
    for unit in source.units(root):
        for item in source.read(unit):
            assert cursor.SECRET not in msgspec.json.encode(item).decode()
        for _, document in source.raw_records(unit):
            assert cursor.SECRET not in json.dumps(document)
    source.close()


def test_problems_inside_a_row_do_not_change_its_count(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=3)
    composer = home.composer(MESSAGES, has_graph=False)
    heads = [3, *composer.data["fullConversationHeadersOnly"], None]
    home.put(composer.key, json.dumps({**composer.data, "fullConversationHeadersOnly": heads}))
    tabs = [{"tabId": "t1", "bubbles": [{"type": "user", "text": "hello"}, 7]}, "no tab"]
    home.put_item("workbench.panel.aichat.view.aichat.chatdata", json.dumps({"tabs": tabs}))
    units = read_units(home.write())
    assert total_counts(home.root).records == count_rows(home.root)
    assert total_counts(home.root).problems == 0
    assert sorted(problem.reason for content in units.values() for problem in content.problems) == [
        "entry 1 of the list is text instead of an object",
        "message 1 of the tab is a number instead of an object",
        "the message list could not be read completely: item 0 is a number instead of an object",
        "the message list could not be read completely: item 3 is null instead of an object",
    ]


def test_unreadable_list_entries_are_problems(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=3)
    home.composer(MESSAGES)
    home.write()
    with closing(sqlite3.connect(home.database)) as db, db:
        query = "select value from ItemTable where key = 'composer.composerHeaders'"
        listed = json.loads(db.execute(query).fetchone()[0])
        listed["allComposers"] += [None, {"name": "Without id"}]
        db.execute(
            "update ItemTable set value = ? where key = 'composer.composerHeaders'", [json.dumps(listed)]
        )
    problems = [problem.reason for content in read_units(home.root).values() for problem in content.problems]
    assert problems == ["entry 1 of the list is null instead of an object", "entry 2 has no session id"]
    assert total_counts(home.root).records == count_rows(home.root)


def test_rows_in_two_databases_are_read_once_and_counted_in_both(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    composer = home.composer(MESSAGES, has_graph=False)
    alone = home.composer(MESSAGES, has_graph=False)
    home.write()
    copy = home.workspace_database(cursor.SHOP)
    with closing(sqlite3.connect(copy)) as db, db:
        db.execute("attach ? as main_database", [str(home.database)])
        db.execute(
            "create table if not exists cursorDiskKV (key text unique on conflict replace, value blob)"
        )
        db.execute("insert into cursorDiskKV select key, value from main_database.cursorDiskKV")
        db.execute("delete from main_database.cursorDiskKV where key like ?", [f"%{alone.id}%"])
    counts = total_counts(home.root)
    assert counts.records == count_rows(home.root)
    assert counts.problems == 0
    units = {unit.key: each for unit, each in read_units(home.root).items() if unit.key}
    assert {key: len(each.sessions[0].messages) for key, each in units.items()} == {
        composer.id: 2,
        alone.id: 2,
    }


def test_secrets_in_nested_records_are_removed(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=1)
    home.composer(MESSAGES, is_in_workspace=True, data={"blobEncryptionKey": cursor.SECRET})
    source = Cursor()
    seen = [document for unit in source.units(home.write()) for _, document in source.raw_records(unit)]
    source.close()
    assert "Totals are off" in json.dumps(seen)
    assert cursor.SECRET not in json.dumps(seen)
