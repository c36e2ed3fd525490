"""Every row is counted once, as what it is; no secret is ever read."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from backscroll.sources.cursor import Cursor
from backscroll.testing import cursor
from tests.sources.cursor.reading import tell, total

TALK = [cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")]


def rows(root: Path) -> int:
    """All rows of all tables that may hold history, counted by SQLite itself."""
    number = 0
    for path in (*root.rglob("state.vscdb"), *root.rglob("conversation-search.db")):
        with closing(sqlite3.connect(path)) as db:
            for table in ("ItemTable", "cursorDiskKV", "composerHeaders", "conversations"):
                if db.execute("select 1 from sqlite_master where name = ?", [table]).fetchone():
                    number += db.execute(f"select count(*) from {table}").fetchone()[0]  # noqa: S608
    return number


@pytest.mark.parametrize("name", cursor.GENERATIONS)
def test_every_row_of_every_generation_is_counted_once(tmp_path: Path, name: str) -> None:
    root = tmp_path / "Cursor"
    cursor.GENERATIONS[name].write(root, journal="delete")
    assert total(root).records == rows(root)


def test_a_large_history_is_counted_to_the_row(tmp_path: Path) -> None:
    root = cursor.history(tmp_path / "Cursor", sessions=8, bubbles=400, megabytes=2)
    account = total(root)
    assert account.kinds["bubbleId"] == 400
    assert account.kinds["composerData"] == 8
    assert account.problems == 0
    assert account.records == rows(root)


def test_an_unknown_family_is_said_out_loud(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    home.composer(TALK)
    for number in range(3):
        home.put(f"newThing:{number}:x", "{}")
    home.put("lonelyKey42", "{}")
    told = tell(home.write())
    account = total(home.root)
    assert account.unknown == {"key family newThing": 3, "key family lonelyKey": 1}
    assert account.problems == 4
    reasons = [problem.reason for each in told.values() for problem in each.problems]
    assert "unknown key family 'newThing' (3 rows)" in reasons


def test_unknown_versions_are_said_out_loud_and_still_read(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    home.composer(TALK, version=19, bubble_version=4)
    account = total(home.write())
    assert account.unknown == {"composerData _v 19": 1, "bubbleId _v 4": 2}
    assert account.problems == 0


def test_keys_that_name_no_session_are_problems(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    home.composer(TALK)
    for key in ("bubbleId:alone", "composerData:a:b", "bubbleId::b1"):
        home.put(key, "{}")
    assert total(home.write()).problems == 3
    assert total(home.root).records == rows(home.root)


def test_rows_beside_a_session_that_is_gone_are_counted(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    home.composer(TALK)
    home.put("checkpointId:gone:1", "{}")
    home.put("checkpointId:gone:2", "{}")
    home.put("composerDraft:gone", "{}")
    account = total(home.write())
    assert account.kinds["checkpointId"] == 2
    assert account.records == rows(home.root)
    assert account.problems == 0


def test_a_binary_key_is_counted_and_does_not_stop_anything(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    home.composer(TALK)
    with closing(sqlite3.connect(home.write() / "User/globalStorage/state.vscdb")) as db, db:
        db.execute("insert into cursorDiskKV values (?, ?)", [b"bubbleId:x:y", "{}"])
        db.execute("insert into cursorDiskKV values (null, null)")
    account = total(home.root)
    assert account.records == rows(home.root)
    assert account.problems == 1


def test_a_list_that_is_no_json_is_a_problem_of_its_database(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=3)
    home.composer(TALK)
    home.put_item("workbench.panel.aichat.view.aichat.chatdata", "{broken", place=cursor.SHOP)
    problems = [problem for each in tell(home.write()).values() for problem in each.problems]
    assert [problem.origin.place for problem in problems] == ["workbench.panel.aichat.view.aichat.chatdata"]


@pytest.mark.parametrize("name", ["g3-global-index", "g4-header-table", "g5-subagent-column"])
def test_no_secret_is_ever_told(tmp_path: Path, name: str) -> None:
    root = tmp_path / "Cursor"
    home = cursor.GENERATIONS[name].write(root)
    key = {"blobEncryptionKey": cursor.SECRET, "speculativeSummarizationEncryptionKey": cursor.SECRET}
    home.composer(TALK, data=key)
    home.write()
    source = Cursor()
    for unit in source.units(root):
        for item in source.read(unit):
            assert cursor.SECRET not in msgspec.json.encode(item).decode()
        for _, document in source.raw_records(unit):
            assert cursor.SECRET not in json.dumps(document)
    source.close()


def test_damage_inside_a_row_is_said_and_the_row_still_counted_once(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=3)
    made = home.composer(TALK, has_graph=False)
    heads = [3, *made.data["fullConversationHeadersOnly"], None]
    home.put(made.key, json.dumps({**made.data, "fullConversationHeadersOnly": heads}))
    tabs = [{"tabId": "t1", "bubbles": [{"type": "user", "text": "hello"}, 7]}, "no tab"]
    home.put_item("workbench.panel.aichat.view.aichat.chatdata", json.dumps({"tabs": tabs}))
    told = tell(home.write())
    assert total(home.root).records == rows(home.root)
    assert total(home.root).problems == 0
    assert sorted(
        problem.reason.partition(":")[0] for each in told.values() for problem in each.problems
    ) == [
        "an entry of its message list could not be read",
        "an entry of its message list could not be read",
        "entry 1 could not be read",
        "message 1 could not be read",
    ]


def test_entries_of_a_list_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=3)
    home.composer(TALK)
    home.write()
    with closing(sqlite3.connect(home.database)) as db, db:
        query = "select value from ItemTable where key = 'composer.composerHeaders'"
        listed = json.loads(db.execute(query).fetchone()[0])
        listed["allComposers"] += [None, {"name": "nobody"}]
        db.execute(
            "update ItemTable set value = ? where key = 'composer.composerHeaders'", [json.dumps(listed)]
        )
    problems = [problem.reason for each in tell(home.root).values() for problem in each.problems]
    assert problems[0].startswith("entry 1 could not be read")
    assert problems[1:] == ["entry 2 names no session"]
    assert total(home.root).records == rows(home.root)


def test_rows_that_two_databases_hold_are_told_once_and_counted_in_both(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    made = home.composer(TALK, has_graph=False)
    alone = home.composer(TALK, has_graph=False)
    home.write()
    copy = home.workspace_database(cursor.SHOP)
    with closing(sqlite3.connect(copy)) as db, db:
        db.execute("attach ? as main_database", [str(home.database)])
        db.execute(
            "create table if not exists cursorDiskKV (key text unique on conflict replace, value blob)"
        )
        db.execute("insert into cursorDiskKV select key, value from main_database.cursorDiskKV")
        db.execute("delete from main_database.cursorDiskKV where key like ?", [f"%{alone.id}%"])
    account = total(home.root)
    assert account.records == rows(home.root)
    assert account.problems == 0
    told = {unit.key: each for unit, each in tell(home.root).items() if unit.key}
    assert {key: len(each.sessions[0].messages) for key, each in told.items()} == {made.id: 2, alone.id: 2}


def test_no_secret_lies_deep_in_a_document(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=1)
    home.composer(TALK, is_in_workspace=True, data={"blobEncryptionKey": cursor.SECRET})
    source = Cursor()
    seen = [document for unit in source.units(home.write()) for _, document in source.raw_records(unit)]
    source.close()
    assert "Totals are off" in json.dumps(seen)
    assert cursor.SECRET not in json.dumps(seen)
