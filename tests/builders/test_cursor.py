"""The Cursor builders write the databases of each generation. The tests use only SQLite and JSON."""

import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing import cursor, database
from tests.builders.cursor import damage
from tests.builders.cursor import generations as cursor_generations
from tests.builders.cursor import session_kinds as cursor_session_kinds
from tests.builders.cursor.history import write_history as write_cursor_history

GLOBAL_DATABASE = "User/globalStorage/state.vscdb"
HEADER_COLUMNS = [
    "composerId", "workspaceId", "createdAt", "lastUpdatedAt", "isArchived",
    "isSubagent", "recency", "checkpointAt", "subagentTypeName", "value",
]  # fmt: skip
MESSAGES = [
    cursor.user("Totals are off"),
    cursor.thinking("Check rounding first."),
    cursor.tool("grep", {"pattern": "round"}, {"success": {}}),
    cursor.assistant("Rounding now happens once."),
]


def query(path: Path, sql: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql, values).fetchall()


def read_value(path: Path, key: str, table: str = "cursorDiskKV") -> Any:
    [[found]] = query(path, f"select value from {table} where key = ?", key)  # noqa: S608
    return json.loads(found)


def read_keys(path: Path, pattern: str) -> list[str]:
    return [
        key for [key] in query(path, "select key from cursorDiskKV where key glob ? order by key", pattern)
    ]


def read_columns(path: Path) -> list[str]:
    return [name for [name] in query(path, "select name from pragma_table_info('composerHeaders')")]


def read_content(root: Path) -> dict[str, list[Any]]:
    """Return all rows of all databases and the bytes of all other files."""
    out: dict[str, list[Any]] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.suffix in (".vscdb", ".db"):
            with closing(sqlite3.connect(path)) as db:
                out[name] = list(db.iterdump())
        elif path.is_file() and not name.endswith(("-wal", "-shm")):
            out[name] = [path.read_bytes()]
    return out


@pytest.mark.parametrize("name", cursor_generations.GENERATIONS)
def test_the_same_seed_gives_the_same_history(tmp_path: Path, name: str) -> None:
    for folder, seed in (("one", 7), ("two", 7), ("other", 8)):
        cursor_generations.GENERATIONS[name].write(tmp_path / folder, seed=seed)
    assert read_content(tmp_path / "one") == read_content(tmp_path / "two")
    assert read_content(tmp_path / "one") != read_content(tmp_path / "other")


@pytest.mark.parametrize("name", cursor_generations.GENERATIONS)
def test_every_database_has_the_tables_of_cursor(tmp_path: Path, name: str) -> None:
    cursor_generations.GENERATIONS[name].write(tmp_path)
    for path in tmp_path.rglob("state.vscdb"):
        tables = dict(query(path, "select name, sql from sqlite_master where type = 'table'"))
        for table in ("ItemTable", "cursorDiskKV"):
            assert tables[table] == f"CREATE TABLE {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
        assert query(path, "pragma user_version") == [(1,)]


def test_the_chat_panel_is_in_the_workspace_database(tmp_path: Path) -> None:
    home = cursor_generations.GENERATIONS["g0-chat-panel"].write(tmp_path)
    chat = read_value(
        home.workspace_database(cursor.SHOP), "workbench.panel.aichat.view.aichat.chatdata", "ItemTable"
    )
    assert {bubble["type"] for tab in chat["tabs"] for bubble in tab["bubbles"]} == {"user", "ai"}
    assert read_keys(home.database, "composerData:*") == []


def test_the_first_composers_contain_their_conversation(tmp_path: Path) -> None:
    home = cursor_generations.GENERATIONS["g1-inline-composer"].write(tmp_path)
    records = [read_value(home.database, key) for key in read_keys(home.database, "composerData:*")]
    assert all(record["conversation"] and record.get("_v", 1) == 1 for record in records)
    maps = [record["capabilities"][0]["data"]["bubbleDataMap"] for record in records]
    assert {type(calls) for calls in maps} == {dict, str}
    assert read_keys(home.database, "bubbleId:*") == []
    shop = read_value(home.workspace_database(cursor.SHOP), "composer.composerData", "ItemTable")
    docs = read_value(home.workspace_database(cursor.DOCS), "composer.composerData", "ItemTable")
    assert any("conversation" in head for head in shop["allComposers"])
    assert isinstance(docs, list)


def test_sessions_with_split_bubbles_are_in_the_workspace_list(tmp_path: Path) -> None:
    home = cursor_generations.GENERATIONS["g2-split-bubbles"].write(tmp_path)
    records = [r for key in read_keys(home.database, "composerData:*") if (r := _present(home.database, key))]
    assert {record["_v"] for record in records} == set(cursor.COMPOSER_VERSIONS[2])
    bubbles = [r for key in read_keys(home.database, "bubbleId:*") if (r := _present(home.database, key))]
    assert {bubble["_v"] for bubble in bubbles} == {2, 3}
    assert all("createdAt" not in bubble for bubble in bubbles if bubble["_v"] == 2)
    listed = read_value(home.workspace_database(cursor.SHOP), "composer.composerData", "ItemTable")[
        "allComposers"
    ]
    assert len(listed) > len(cursor.COMPOSER_VERSIONS[2])
    panes = query(
        home.workspace_database(cursor.SHOP),
        "select key from ItemTable where key glob '*composerChatViewPane*'",
    )
    assert len(panes) == 2
    assert query(home.database, "select 1 from ItemTable where key = 'composer.composerHeaders'") == []


def test_the_global_list_is_sorted_newest_first(tmp_path: Path) -> None:
    home = cursor_generations.GENERATIONS["g3-global-index"].write(tmp_path)
    heads = read_value(home.database, "composer.composerHeaders", "ItemTable")["allComposers"]
    times = [head["lastUpdatedAt"] for head in heads]
    assert times == sorted(times, reverse=True)
    assert read_columns(home.database) == []
    assert all("workspaceIdentifier" in head for head in heads)


def test_the_session_table_has_nine_columns_and_later_ten(tmp_path: Path) -> None:
    nine = [name for name in HEADER_COLUMNS if name != "subagentTypeName"]
    upgraded = [*nine, "subagentTypeName"]
    expected: list[tuple[str, bool, list[str]]] = [
        ("g4-header-table", False, nine),
        ("g5-subagent-column", False, HEADER_COLUMNS),
        ("g5-subagent-column", True, upgraded),
    ]
    for index, (name, is_upgraded, names) in enumerate(expected):
        home = cursor_generations.GENERATIONS[name].write(tmp_path / str(index), is_upgraded=is_upgraded)
        assert read_columns(home.database) == names
        for id, workspace_id, head in query(
            home.database, "select composerId, workspaceId, value from composerHeaders"
        ):
            assert json.loads(head)["composerId"] == id
            assert json.loads(head)["workspaceIdentifier"]["id"] == workspace_id
        version = query(
            home.database, "select value from ItemTable where key = 'composer.composerHeaders.version'"
        )
        assert version[0][0].endswith("-1")


def test_the_newest_history_contains_rows_of_every_version(tmp_path: Path) -> None:
    home = cursor_generations.GENERATIONS["g5-subagent-column"].write(tmp_path)
    records = [r for key in read_keys(home.database, "composerData:*") if (r := _present(home.database, key))]
    assert {record.get("_v") for record in records} >= {None, 10, 16, 17, 18}
    names = {
        bubble["toolFormerData"]["name"]
        for key in read_keys(home.database, "bubbleId:*")
        if (bubble := _present(home.database, key)) and "name" in bubble.get("toolFormerData", {})
    }
    assert names >= set(cursor.TOOL_NAMES)
    for family in ("checkpointId", "codeBlockDiff", "messageRequestContext", "ofsContent", "agentKv:blob"):
        assert read_keys(home.database, f"{family}:*")
    assert query(home.database, "select count(*) from cursorDiskKV where key is null") == [(1,)]
    assert query(home.database, "select count(*) from cursorDiskKV where value is null")[0][0] >= 2


def _present(path: Path, key: str) -> Any:
    [[found]] = query(path, "select value from cursorDiskKV where key = ?", key)
    return None if found is None else json.loads(found)


def test_bubbles_are_listed_in_order(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    composer = home.composer(MESSAGES)
    home.write()
    headers = read_value(home.database, composer.key)["fullConversationHeadersOnly"]
    assert [header["bubbleId"] for header in headers] == [message.id for message in composer.messages]
    texts = [read_value(home.database, composer.bubble_key(index))["text"] for index in range(4)]
    assert texts == ["Totals are off", "", "", "Rounding now happens once."]


def test_a_missing_message_has_no_row_and_an_orphan_no_entry(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    composer = home.composer([cursor.missing(MESSAGES[0], preview="Tot"), cursor.orphaned(MESSAGES[3])])
    home.write()
    [header] = read_value(home.database, composer.key)["fullConversationHeadersOnly"]
    assert header["bubbleId"] == composer.messages[0].id
    assert header["grouping"]["textPreview"] == "Tot"
    assert read_keys(home.database, "bubbleId:*") == [composer.bubble_key(1)]


def test_a_session_added_later_changes_no_other_row(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    first = home.composer(MESSAGES)
    home.write()
    before = dict(query(home.database, "select key, value from cursorDiskKV"))
    mtime_before = home.database.stat().st_mtime_ns
    second = home.composer(MESSAGES)
    home.write()
    after = dict(query(home.database, "select key, value from cursorDiskKV"))
    assert {key: after[key] for key in before} == before
    assert read_keys(home.database, "composerData:*") == sorted([first.key, second.key])
    assert home.database.stat().st_mtime_ns > mtime_before


@pytest.mark.parametrize("shm", [False, True])
def test_all_rows_can_be_in_the_log(tmp_path: Path, shm: bool) -> None:
    home = cursor.Home(tmp_path, rows_in="wal-only", shm=shm)
    composer = home.composer(MESSAGES)
    home.write()
    assert home.database.stat().st_size == 4096
    assert Path(f"{home.database}-shm").exists() is shm
    with closing(sqlite3.connect(f"file:{home.database}?immutable=1", uri=True)) as db:
        assert db.execute("select name from sqlite_master").fetchall() == []
    assert read_value(home.database, composer.key)["composerId"] == composer.id


def test_the_newest_rows_can_be_in_the_log(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path, rows_in="wal")
    home.composer(MESSAGES)
    home.write()
    with closing(sqlite3.connect(f"file:{home.database}?immutable=1", uri=True)) as db:
        assert db.execute("select count(*) from cursorDiskKV").fetchone() == (0,)
    assert len(read_keys(home.database, "bubbleId:*")) == len(MESSAGES)


def test_the_file_header_contains_the_journal_mode(tmp_path: Path) -> None:
    for journal, versions in (("wal", b"\2\2"), ("delete", b"\1\1")):
        home = cursor.Home(tmp_path / journal, journal=journal)  # type: ignore[arg-type]
        home.composer(MESSAGES)
        home.write()
        assert home.database.read_bytes()[18:20] == versions


def test_an_open_writer_has_a_log(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    home.composer(MESSAGES)
    home.write()
    rows = database.insert_statement("cursorDiskKV", ("key", "value"), [("bubbleId:new:1", "{}")])
    with database.open_writer(home.database, [rows]):
        assert Path(f"{home.database}-wal").stat().st_size > 0
        assert Path(f"{home.database}-shm").exists()
        assert read_keys(home.database, "bubbleId:new:*") == ["bubbleId:new:1"]


def test_each_kind_of_workspace_has_its_uri(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    expected = {
        cursor.local_folder("/home/dev/docs site"): {"folder": "file:///home/dev/docs%20site"},
        cursor.multi_root("/home/dev/all.code-workspace"): {
            "workspace": "file:///home/dev/all.code-workspace"
        },
        cursor.ssh_folder("build", "/srv/shop"): {"folder": "vscode-remote://ssh-remote%2Bbuild/srv/shop"},
        cursor.wsl_folder("Ubuntu", "/home/dev"): {"folder": "vscode-remote://wsl%2BUbuntu/home/dev"},
        cursor.container_folder("7b7d", "/workspaces/x"): {
            "folder": "vscode-remote://dev-container%2B7b7d/workspaces/x"
        },
        cursor.windows_folder(r"C:\Users\dev\x"): {"folder": "file:///c%3A/Users/dev/x"},
    }
    for workspace in expected:
        home.composer(MESSAGES, workspace=workspace)
    home.composer(MESSAGES, workspace=cursor.empty_window())
    home.write()
    for workspace, record in expected.items():
        assert (
            json.loads(home.workspace_database(workspace).with_name("workspace.json").read_text()) == record
        )
    assert not home.workspace_database(cursor.empty_window()).with_name("workspace.json").exists()


def test_only_known_rows_contain_secrets(tmp_path: Path) -> None:
    home = cursor_generations.GENERATIONS["g5-subagent-column"].write(tmp_path)
    rows = query(
        home.database, "select key, value from cursorDiskKV union all select key, value from ItemTable"
    )
    secret_keys = [key for key, text in rows if isinstance(text, str) and cursor.SECRET in text]
    assert all(
        key.startswith(("cursorAuth/", "secret://", "mcpOAuth", "composerData:")) for key in secret_keys
    )
    assert any(key.startswith("cursorAuth/") for key in secret_keys)


@pytest.mark.parametrize("name", damage.DAMAGES)
def test_damage_changes_only_one_session(tmp_path: Path, name: str) -> None:
    home = cursor.Home(tmp_path)
    damaged, other = home.composer(MESSAGES), home.composer(MESSAGES)
    home.write()

    def rows(id: str) -> list[Any]:
        rows_query = (
            "select key, typeof(value), cast(value as blob) from cursorDiskKV where key glob ? or key is null"
        )
        header_query = "select value from composerHeaders where composerId = ?"
        return [*query(home.database, rows_query, f"*:{id}*"), *query(home.database, header_query, id)]

    before, other_before = rows(damaged.id), rows(other.id)
    damage.DAMAGES[name](home.database, damaged.id, str(damaged.messages[0].id))
    assert rows(damaged.id) != before
    if name != "row without a key":
        assert rows(other.id) == other_before


def test_a_lone_surrogate_can_be_an_escape_or_bytes(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    composer = home.composer(MESSAGES)
    home.write()
    damage.add_surrogate(home.database, composer.bubble_key(0))
    assert json.loads(damage.read(home.database, composer.bubble_key(0)))["text"] == "Totals are off\ud83d"
    damage.add_surrogate(home.database, composer.bubble_key(3), is_escaped=False)
    with pytest.raises(UnicodeDecodeError):
        damage.read(home.database, composer.bubble_key(3)).decode()


def test_a_session_can_embed_a_large_file(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    composer = home.composer(MESSAGES)
    home.write()
    damage.embed_large_file(home.database, composer.id, megabytes=2)
    assert len(damage.read(home.database, composer.key)) > 2_000_000


def test_side_databases_have_the_paths_of_cursor(tmp_path: Path) -> None:
    tracking = cursor.write_tracking(tmp_path / ".cursor", conversation="c1")
    search = cursor.write_search(tmp_path / "Cursor", [("c1", "Totals", "are off")])
    image = cursor.write_image(tmp_path / "Cursor", cursor.SHOP)
    assert tracking == tmp_path / ".cursor/ai-tracking/ai-code-tracking.db"
    assert query(tracking, "select count(distinct requestId) from ai_code_hashes") == [(2,)]
    assert tracking.read_bytes()[18:20] == b"\1\1"
    assert query(search, "select rowid from conversation_fts where conversation_fts match 'off'") == [(1,)]
    assert image.read_bytes().startswith(b"\x89PNG")


def test_a_large_history_has_the_given_size_and_counts(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_cursor_history(tmp_path / folder, sessions=12, bubbles=600, megabytes=9)
    path = tmp_path / "one" / GLOBAL_DATABASE
    assert read_content(tmp_path / "one") == read_content(tmp_path / "two")
    assert 7_000_000 < path.stat().st_size < 12_000_000
    assert len(read_keys(path, "bubbleId:*")) == 600
    assert len(read_keys(path, "composerData:*")) == 12
    bubble_keys = [
        key
        for [key] in query(path, "select key from cursorDiskKV where key glob 'bubbleId:*' order by rowid")
    ]
    sessions = [key.split(":")[1] for key in bubble_keys]
    changes = sum(one != other for one, other in pairwise(sessions))
    assert changes > 300


def test_values_can_be_stored_as_bytes(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path, storage="blob")
    composer = home.composer(MESSAGES)
    home.write()
    assert query(home.database, "select typeof(value) from cursorDiskKV where key = ?", composer.key) == [
        ("blob",)
    ]
    assert read_value(home.database, composer.key)["composerId"] == composer.id


def test_a_locked_database_cannot_be_read(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path, journal="delete")
    home.composer(MESSAGES)
    home.write()
    with (
        database.exclusive_lock(home.database),
        closing(sqlite3.connect(home.database, timeout=0)) as db,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        db.execute("select count(*) from cursorDiskKV")


@pytest.mark.parametrize("name", cursor_session_kinds.KINDS)
def test_every_kind_of_session_can_be_written_separately(tmp_path: Path, name: str) -> None:
    home = cursor.Home(tmp_path)
    id = cursor_session_kinds.KINDS[name](home)
    home.write()
    listed = query(home.database, "select 1 from composerHeaders where composerId = ?", id)
    stored = query(home.database, "select 1 from cursorDiskKV where key glob ?", f"*:{id}*")
    assert bool(listed) is (name not in ("unlisted", "orphan_bubbles"))
    assert bool(stored) is (name not in ("ghost", "tombstone"))


def test_the_file_of_a_multi_root_workspace_contains_its_folders(tmp_path: Path) -> None:
    cursor.write_code_workspace(tmp_path / "all.code-workspace", ["shop", "docs"])
    record = json.loads((tmp_path / "all.code-workspace").read_text())
    assert record["folders"] == [{"path": "shop"}, {"path": "docs"}]


def test_a_backup_is_a_copy_of_the_database(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path, journal="delete")
    home.composer(MESSAGES)
    home.write()
    assert home.write_backup().read_bytes() == home.database.read_bytes()
