"""Cursor's databases as the builders write them, looked at with nothing but SQLite and JSON."""

import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing import cursor, database
from backscroll.testing.cursor import damage

GLOBAL = "User/globalStorage/state.vscdb"
TEN = [
    "composerId",
    "workspaceId",
    "createdAt",
    "lastUpdatedAt",
    "isArchived",
    "isSubagent",
    "recency",
    "checkpointAt",
    "subagentTypeName",
    "value",
]
TALK = [
    cursor.user("Totals are off"),
    cursor.thinking("Check rounding first."),
    cursor.tool("grep", {"pattern": "round"}, {"success": {}}),
    cursor.assistant("Rounding now happens once."),
]


def ask(path: Path, sql: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql, values).fetchall()


def value(path: Path, key: str, table: str = "cursorDiskKV") -> Any:
    [[found]] = ask(path, f"select value from {table} where key = ?", key)  # noqa: S608
    return json.loads(found)


def keys(path: Path, family: str) -> list[str]:
    return [key for [key] in ask(path, "select key from cursorDiskKV where key glob ? order by key", family)]


def columns(path: Path) -> list[str]:
    return [name for [name] in ask(path, "select name from pragma_table_info('composerHeaders')")]


def content(root: Path) -> dict[str, list[Any]]:
    """Every row of every database and the text of every other file."""
    out: dict[str, list[Any]] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.suffix in (".vscdb", ".db"):
            with closing(sqlite3.connect(path)) as db:
                out[name] = list(db.iterdump())
        elif path.is_file() and not name.endswith(("-wal", "-shm")):
            out[name] = [path.read_bytes()]
    return out


@pytest.mark.parametrize("name", cursor.GENERATIONS)
def test_the_same_seed_gives_the_same_history(tmp_path: Path, name: str) -> None:
    for folder, seed in (("one", 7), ("two", 7), ("other", 8)):
        cursor.GENERATIONS[name].write(tmp_path / folder, seed=seed)
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert content(tmp_path / "one") != content(tmp_path / "other")


@pytest.mark.parametrize("name", cursor.GENERATIONS)
def test_every_database_has_cursor_s_own_tables(tmp_path: Path, name: str) -> None:
    cursor.GENERATIONS[name].write(tmp_path)
    for path in tmp_path.rglob("state.vscdb"):
        tables = dict(ask(path, "select name, sql from sqlite_master where type = 'table'"))
        for table in ("ItemTable", "cursorDiskKV"):
            assert tables[table] == f"CREATE TABLE {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
        assert ask(path, "pragma user_version") == [(1,)]


def test_the_chat_panel_lies_in_the_workspace(tmp_path: Path) -> None:
    home = cursor.GENERATIONS["g0-chat-panel"].write(tmp_path)
    chat = value(
        home.workspace_database(cursor.SHOP), "workbench.panel.aichat.view.aichat.chatdata", "ItemTable"
    )
    assert {bubble["type"] for tab in chat["tabs"] for bubble in tab["bubbles"]} == {"user", "ai"}
    assert keys(home.database, "composerData:*") == []


def test_the_first_composers_hold_their_conversation_inline(tmp_path: Path) -> None:
    home = cursor.GENERATIONS["g1-inline-composer"].write(tmp_path)
    records = [value(home.database, key) for key in keys(home.database, "composerData:*")]
    assert all(record["conversation"] and record.get("_v", 1) == 1 for record in records)
    maps = [record["capabilities"][0]["data"]["bubbleDataMap"] for record in records]
    assert {type(calls) for calls in maps} == {dict, str}
    assert keys(home.database, "bubbleId:*") == []
    shop = value(home.workspace_database(cursor.SHOP), "composer.composerData", "ItemTable")
    docs = value(home.workspace_database(cursor.DOCS), "composer.composerData", "ItemTable")
    assert any("conversation" in head for head in shop["allComposers"])
    assert isinstance(docs, list)


def test_split_bubbles_are_listed_by_their_workspaces(tmp_path: Path) -> None:
    home = cursor.GENERATIONS["g2-split-bubbles"].write(tmp_path)
    records = [r for key in keys(home.database, "composerData:*") if (r := _present(home.database, key))]
    assert {record["_v"] for record in records} == set(cursor.COMPOSER_VERSIONS[2])
    bubbles = [r for key in keys(home.database, "bubbleId:*") if (r := _present(home.database, key))]
    assert {bubble["_v"] for bubble in bubbles} == {2, 3}
    assert all("createdAt" not in bubble for bubble in bubbles if bubble["_v"] == 2)
    listed = value(home.workspace_database(cursor.SHOP), "composer.composerData", "ItemTable")["allComposers"]
    assert len(listed) > len(cursor.COMPOSER_VERSIONS[2])
    panes = ask(
        home.workspace_database(cursor.SHOP),
        "select key from ItemTable where key glob '*composerChatViewPane*'",
    )
    assert len(panes) == 2
    assert ask(home.database, "select 1 from ItemTable where key = 'composer.composerHeaders'") == []


def test_the_global_index_is_one_list_newest_first(tmp_path: Path) -> None:
    home = cursor.GENERATIONS["g3-global-index"].write(tmp_path)
    heads = value(home.database, "composer.composerHeaders", "ItemTable")["allComposers"]
    times = [head["lastUpdatedAt"] for head in heads]
    assert times == sorted(times, reverse=True)
    assert columns(home.database) == []
    assert all("workspaceIdentifier" in head for head in heads)


def test_the_header_table_has_nine_columns_and_then_ten(tmp_path: Path) -> None:
    nine = [name for name in TEN if name != "subagentTypeName"]
    upgraded = [*nine, "subagentTypeName"]
    wanted: list[tuple[str, bool, list[str]]] = [
        ("g4-header-table", False, nine),
        ("g5-subagent-column", False, TEN),
        ("g5-subagent-column", True, upgraded),
    ]
    for number, (name, is_upgraded, names) in enumerate(wanted):
        home = cursor.GENERATIONS[name].write(tmp_path / str(number), is_upgraded=is_upgraded)
        assert columns(home.database) == names
        for id, place, head in ask(
            home.database, "select composerId, workspaceId, value from composerHeaders"
        ):
            assert json.loads(head)["composerId"] == id
            assert json.loads(head)["workspaceIdentifier"]["id"] == place
        version = ask(
            home.database, "select value from ItemTable where key = 'composer.composerHeaders.version'"
        )
        assert version[0][0].endswith("-1")


def test_the_newest_history_holds_rows_of_every_version(tmp_path: Path) -> None:
    home = cursor.GENERATIONS["g5-subagent-column"].write(tmp_path)
    records = [r for key in keys(home.database, "composerData:*") if (r := _present(home.database, key))]
    assert {record.get("_v") for record in records} >= {None, 10, 16, 17, 18}
    names = {
        bubble["toolFormerData"]["name"]
        for key in keys(home.database, "bubbleId:*")
        if (bubble := _present(home.database, key)) and "name" in bubble.get("toolFormerData", {})
    }
    assert names >= set(cursor.NAMES)
    for family in ("checkpointId", "codeBlockDiff", "messageRequestContext", "ofsContent", "agentKv:blob"):
        assert keys(home.database, f"{family}:*")
    assert ask(home.database, "select count(*) from cursorDiskKV where key is null") == [(1,)]
    assert ask(home.database, "select count(*) from cursorDiskKV where value is null")[0][0] >= 2


def _present(path: Path, key: str) -> Any:
    [[found]] = ask(path, "select value from cursorDiskKV where key = ?", key)
    return None if found is None else json.loads(found)


def test_a_bubble_is_listed_in_the_order_it_was_said(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    made = home.composer(TALK)
    home.write()
    headers = value(home.database, made.key)["fullConversationHeadersOnly"]
    assert [header["bubbleId"] for header in headers] == [message.id for message in made.messages]
    texts = [value(home.database, made.bubble_key(place))["text"] for place in range(4)]
    assert texts == ["Totals are off", "", "", "Rounding now happens once."]


def test_a_gap_and_an_orphan_are_what_they_say(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    made = home.composer([cursor.missing(TALK[0], preview="Tot"), cursor.orphaned(TALK[3])])
    home.write()
    [header] = value(home.database, made.key)["fullConversationHeadersOnly"]
    assert header["bubbleId"] == made.messages[0].id
    assert header["grouping"]["textPreview"] == "Tot"
    assert keys(home.database, "bubbleId:*") == [made.bubble_key(1)]


def test_a_session_added_later_changes_no_other_row(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    first = home.composer(TALK)
    home.write()
    before = dict(ask(home.database, "select key, value from cursorDiskKV"))
    written = home.database.stat().st_mtime_ns
    second = home.composer(TALK)
    home.write()
    after = dict(ask(home.database, "select key, value from cursorDiskKV"))
    assert {key: after[key] for key in before} == before
    assert keys(home.database, "composerData:*") == sorted([first.key, second.key])
    assert home.database.stat().st_mtime_ns > written


@pytest.mark.parametrize("shm", [False, True])
def test_everything_can_be_left_in_the_log(tmp_path: Path, shm: bool) -> None:
    home = cursor.Home(tmp_path, rows_in="wal-only", shm=shm)
    made = home.composer(TALK)
    home.write()
    assert home.database.stat().st_size == 4096
    assert Path(f"{home.database}-shm").exists() is shm
    with closing(sqlite3.connect(f"file:{home.database}?immutable=1", uri=True)) as db:
        assert db.execute("select name from sqlite_master").fetchall() == []
    assert value(home.database, made.key)["composerId"] == made.id


def test_the_newest_rows_can_be_left_in_the_log(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path, rows_in="wal")
    home.composer(TALK)
    home.write()
    with closing(sqlite3.connect(f"file:{home.database}?immutable=1", uri=True)) as db:
        assert db.execute("select count(*) from cursorDiskKV").fetchone() == (0,)
    assert len(keys(home.database, "bubbleId:*")) == len(TALK)


def test_the_journal_mode_is_in_the_file_s_header(tmp_path: Path) -> None:
    for journal, mark in (("wal", b"\2\2"), ("delete", b"\1\1")):
        home = cursor.Home(tmp_path / journal, journal=journal)  # type: ignore[arg-type]
        home.composer(TALK)
        home.write()
        assert home.database.read_bytes()[18:20] == mark


def test_a_living_writer_keeps_its_log_open(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    home.composer(TALK)
    home.write()
    rows = database.insert_statement("cursorDiskKV", ("key", "value"), [("bubbleId:new:1", "{}")])
    with database.open_writer(home.database, [rows]):
        assert Path(f"{home.database}-wal").stat().st_size > 0
        assert Path(f"{home.database}-shm").exists()
        assert keys(home.database, "bubbleId:new:*") == ["bubbleId:new:1"]


def test_workspaces_are_named_the_way_each_kind_is(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    wanted = {
        cursor.local("/home/dev/docs site"): {"folder": "file:///home/dev/docs%20site"},
        cursor.multi_root("/home/dev/all.code-workspace"): {
            "workspace": "file:///home/dev/all.code-workspace"
        },
        cursor.ssh("build", "/srv/shop"): {"folder": "vscode-remote://ssh-remote%2Bbuild/srv/shop"},
        cursor.wsl("Ubuntu", "/home/dev"): {"folder": "vscode-remote://wsl%2BUbuntu/home/dev"},
        cursor.container("7b7d", "/workspaces/x"): {
            "folder": "vscode-remote://dev-container%2B7b7d/workspaces/x"
        },
        cursor.windows(r"C:\Users\dev\x"): {"folder": "file:///c%3A/Users/dev/x"},
    }
    for place in wanted:
        home.composer(TALK, workspace=place)
    home.composer(TALK, workspace=cursor.empty_window())
    home.write()
    for place, told in wanted.items():
        assert json.loads(home.workspace_database(place).with_name("workspace.json").read_text()) == told
    assert not home.workspace_database(cursor.empty_window()).with_name("workspace.json").exists()


def test_secrets_are_only_where_secrets_are_kept(tmp_path: Path) -> None:
    home = cursor.GENERATIONS["g5-subagent-column"].write(tmp_path)
    rows = ask(
        home.database, "select key, value from cursorDiskKV union all select key, value from ItemTable"
    )
    holding = [key for key, held in rows if isinstance(held, str) and cursor.SECRET in held]
    assert all(key.startswith(("cursorAuth/", "secret://", "mcpOAuth", "composerData:")) for key in holding)
    assert any(key.startswith("cursorAuth/") for key in holding)


@pytest.mark.parametrize("name", damage.DAMAGES)
def test_a_damage_changes_one_session_and_no_other(tmp_path: Path, name: str) -> None:
    home = cursor.Home(tmp_path)
    hurt, spared = home.composer(TALK), home.composer(TALK)
    home.write()

    def rows(id: str) -> list[Any]:
        kept = (
            "select key, typeof(value), cast(value as blob) from cursorDiskKV where key glob ? or key is null"
        )
        heads = "select value from composerHeaders where composerId = ?"
        return [*ask(home.database, kept, f"*:{id}*"), *ask(home.database, heads, id)]

    before, spared_before = rows(hurt.id), rows(spared.id)
    damage.DAMAGES[name](home.database, hurt.id, str(hurt.messages[0].id))
    assert rows(hurt.id) != before
    if name != "row without a key":
        assert rows(spared.id) == spared_before


def test_half_a_character_can_be_escaped_or_bare(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    made = home.composer(TALK)
    home.write()
    damage.add_surrogate(home.database, made.bubble_key(0))
    assert json.loads(damage.read(home.database, made.bubble_key(0)))["text"] == "Totals are off\ud83d"
    damage.add_surrogate(home.database, made.bubble_key(3), is_escaped=False)
    with pytest.raises(UnicodeDecodeError):
        damage.read(home.database, made.bubble_key(3)).decode()


def test_a_session_can_swell(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    made = home.composer(TALK)
    home.write()
    damage.swell(home.database, made.id, megabytes=2)
    assert len(damage.read(home.database, made.key)) > 2_000_000


def test_side_stores_are_where_cursor_keeps_them(tmp_path: Path) -> None:
    tracking = cursor.write_tracking(tmp_path / ".cursor", conversation="c1")
    search = cursor.write_search(tmp_path / "Cursor", [("c1", "Totals", "are off")])
    picture = cursor.write_picture(tmp_path / "Cursor", cursor.SHOP)
    assert tracking == tmp_path / ".cursor/ai-tracking/ai-code-tracking.db"
    assert ask(tracking, "select count(distinct requestId) from ai_code_hashes") == [(2,)]
    assert tracking.read_bytes()[18:20] == b"\1\1"
    assert ask(search, "select rowid from conversation_fts where conversation_fts match 'off'") == [(1,)]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_large_history_has_the_shape_it_was_asked_for(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        cursor.write_history(tmp_path / folder, sessions=12, bubbles=600, megabytes=9)
    path = tmp_path / "one" / GLOBAL
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert 7_000_000 < path.stat().st_size < 12_000_000
    assert len(keys(path, "bubbleId:*")) == 600
    assert len(keys(path, "composerData:*")) == 12
    in_order = [
        key for [key] in ask(path, "select key from cursorDiskKV where key glob 'bubbleId:*' order by rowid")
    ]
    sessions = [key.split(":")[1] for key in in_order]
    changes = sum(one != other for one, other in pairwise(sessions))
    assert changes > 300


def test_values_can_be_stored_as_bytes(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path, storage="blob")
    made = home.composer(TALK)
    home.write()
    assert ask(home.database, "select typeof(value) from cursorDiskKV where key = ?", made.key) == [("blob",)]
    assert value(home.database, made.key)["composerId"] == made.id


def test_a_locked_database_lets_nobody_in(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path, journal="delete")
    home.composer(TALK)
    home.write()
    with (
        database.exclusive_lock(home.database),
        closing(sqlite3.connect(home.database, timeout=0)) as db,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        db.execute("select count(*) from cursorDiskKV")


@pytest.mark.parametrize("name", cursor.KINDS)
def test_every_kind_of_session_can_be_written_alone(tmp_path: Path, name: str) -> None:
    home = cursor.Home(tmp_path)
    id = cursor.KINDS[name](home)
    home.write()
    listed = ask(home.database, "select 1 from composerHeaders where composerId = ?", id)
    stored = ask(home.database, "select 1 from cursorDiskKV where key glob ?", f"*:{id}*")
    assert bool(listed) is (name not in ("unlisted", "orphan_bubbles"))
    assert bool(stored) is (name not in ("ghost", "tombstone"))


def test_the_folders_of_a_multi_root_workspace_are_in_its_file(tmp_path: Path) -> None:
    cursor.write_code_workspace(tmp_path / "all.code-workspace", ["shop", "docs"])
    record = json.loads((tmp_path / "all.code-workspace").read_text())
    assert record["folders"] == [{"path": "shop"}, {"path": "docs"}]


def test_a_backup_is_a_copy_beside_the_database(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path, journal="delete")
    home.composer(TALK)
    home.write()
    assert home.write_backup().read_bytes() == home.database.read_bytes()
