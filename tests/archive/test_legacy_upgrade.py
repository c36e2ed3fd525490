"""Upgrade of databases in the legacy schema."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from backscroll.archive.archive import Archive
from backscroll.archive.maintenance import legacy
from backscroll.archive.maintenance.legacy import UpgradePlan, UpgradeResult, upgrade_legacy
from backscroll.errors import (
    DatabaseLockedError,
    DatabaseNotFoundError,
    DatabaseUnreadableError,
    DestinationError,
    UsageError,
)
from tests.archive.legacy_databases import (
    claude_conversation,
    conversation,
    dump,
    generate_conversations,
    query,
    write_legacy,
)

VALUES = (
    "platform, workspace_hash, workspace_name, started_at, ended_at, context, metadata, tool_sequence,"
    " acceptance_decisions, interaction_count, acceptance_rate, total_tokens, total_changes"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "telemetry.db"


@pytest.fixture(autouse=True)
def _short_busy_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy, "_BUSY_TIMEOUT_SECONDS", 0.05)


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.backup-*"))


def rows_with_problem(result: UpgradeResult, kind: str) -> tuple[str, ...]:
    (problem,) = (problem for problem in result.problems if problem.kind == kind)
    assert not problem.stops
    return problem.rows


# --- upgraded database --------------------------------------------------------------------------------------


def test_every_value_is_kept_and_ids_move_to_their_new_columns(path: Path) -> None:
    write_legacy(path, [conversation(1), conversation(2), claude_conversation(3)])
    before = query(path, f"select id, {VALUES} from conversations order by id")  # noqa: S608
    result = upgrade_legacy(path)
    assert query(path, f"select id, {VALUES} from conversations order by id") == before  # noqa: S608
    assert (result.is_changed, result.rows, result.windows, result.problems) == (
        True,
        {"claude_code": 1, "cursor": 2},
        1,
        (),
    )
    ((window,),) = query(path, "select id from cursor_sessions")
    assert query(path, "select external_id, session_id from conversations order by id") == [
        ("composer-1", window),
        ("composer-2", window),
        ("claude-3", None),
    ]


def test_a_window_begins_with_its_first_conversation_and_ends_with_its_last(path: Path) -> None:
    write_legacy(
        path,
        [
            conversation(2, started_at="2026-03-02 10:00:00", ended_at="2026-03-02 12:30:00"),
            conversation(1, started_at="2026-03-01T10:00:00Z", ended_at="2026-03-01T11:00:00Z"),
        ],
    )
    upgrade_legacy(path)
    assert query(
        path,
        "select external_session_id, workspace_hash, workspace_name, workspace_path, started_at, ended_at,"
        " metadata from cursor_sessions",
    ) == [
        ("curs_1", "hash-a", "ferry", "/home/zoe/ferry", "2026-03-01T10:00:00Z", "2026-03-02 12:30:00", "{}")
    ]


def test_a_window_with_an_open_conversation_is_open(path: Path) -> None:
    write_legacy(path, [conversation(1), conversation(2, ended_at=None)])
    upgrade_legacy(path)
    assert query(path, "select ended_at from cursor_sessions") == [(None,)]


class TableStructure(NamedTuple):
    """Columns, keys and indexes of a table."""

    columns: list[Any]
    keys: list[Any]
    indexes: dict[str, Any]
    partial: set[Any]


def table_structure(db: sqlite3.Connection, table: str) -> TableStructure:
    indexes = db.execute('select name, "unique", partial from pragma_index_list(?)', [table]).fetchall()
    return TableStructure(
        db.execute(
            'select name, lower(type), "notnull", dflt_value, pk from pragma_table_info(?)', [table]
        ).fetchall(),
        db.execute(f"pragma foreign_key_list({table})").fetchall(),
        {
            name: (unique, db.execute('select name, "desc" from pragma_index_xinfo(?)', [name]).fetchall())
            for name, unique, _ in indexes
        },
        {
            (name, " ".join(sql.split()).lower())
            for name, sql in db.execute(
                "select name, sql from sqlite_master where tbl_name = ? and sql like '% where %'", [table]
            )
            if name != table
        },
    )


def test_the_upgraded_tables_equal_those_of_the_archive(path: Path, tmp_path: Path) -> None:
    write_legacy(path, [conversation()])
    upgrade_legacy(path)
    Archive(tmp_path / "archive.db").close()
    ours, theirs = sqlite3.connect(tmp_path / "archive.db"), sqlite3.connect(path)
    assert table_structure(theirs, "cursor_sessions") == table_structure(ours, "cursor_sessions")
    expected, found = table_structure(ours, "conversations"), table_structure(theirs, "conversations")
    assert found.columns == expected.columns[: len(found.columns)]
    assert len(found.columns) == 16
    # The archive has further indexes for its own queries.
    own_indexes = {f"idx_conversations_{name}" for name in ("updated", "listed", "live")}
    assert found.keys == expected.keys
    assert found.partial == {(name, sql) for name, sql in expected.partial if name not in own_indexes}
    expected_indexes = {
        name: index
        for name, index in expected.indexes.items()
        if name.startswith("idx_") and name not in own_indexes
    }
    found_indexes = {name: index for name, index in found.indexes.items() if name.startswith("idx_")}
    assert found_indexes == expected_indexes
    theirs.execute("pragma foreign_keys = on")
    for values in (
        "'cursor', null, 'x'",
        "'claude_code', 'w', 'x'",
        "'cursor', 'w', 'x'",
        "'cobol', null, 'x'",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            theirs.execute(
                "insert into conversations (platform, session_id, external_id, started_at)"  # noqa: S608
                f" values ({values}, '2026-01-01')"
            )
    ours.close()
    theirs.close()


def test_other_tables_columns_indexes_and_triggers_are_kept(path: Path) -> None:
    write_legacy(
        path,
        [conversation(1, mood="calm", **{"odd name": 7}), conversation(2, mood="tense")],
        more_columns=", mood text not null default 'none', \"odd name\" integer",
        script="create index by_mood on conversations(mood);"
        "create index by_external on conversations(external_session_id);"
        "create index idx_conversations_workspace on conversations(workspace_name);"
        "create table note (id integer primary key, conversation text references conversations(id));"
        "insert into note values (1, 'id-2');"
        "create view moods as select mood, count(*) as number from conversations group by 1;"
        "create trigger calm after update on conversations begin update note set id = id; end;"
        "create trigger cold after insert on conversations when new.external_session_id = ''"
        " begin delete from note; end;",
    )
    result = upgrade_legacy(path)
    assert query(path, 'select mood, "odd name" from conversations order by id') == [
        ("calm", 7),
        ("tense", None),
    ]
    assert query(path, "select * from moods order by 1") == [("calm", 1), ("tense", 1)]
    assert query(path, "select * from note") == [(1, "id-2")]
    names = {
        name for (name,) in query(path, "select name from sqlite_master where type in ('index', 'trigger')")
    }
    assert {"by_mood", "calm"} <= names
    assert not {"by_external", "cold"} & names
    assert ("workspace_hash",) in query(
        path, "select name from pragma_index_info('idx_conversations_workspace')"
    )
    assert sorted(problem.kind for problem in result.problems) == ["index", "trigger"]
    assert query(path, "pragma foreign_key_check") == []


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_the_backup_equals_the_original_database(path: Path, journal: str) -> None:
    write_legacy(path, generate_conversations(40), journal=journal)
    before = dump(path)
    result = upgrade_legacy(path)
    assert result.backup is not None
    assert backups(path) == [Path(result.backup)]
    assert dump(Path(result.backup)) == before
    assert dump(path) != before


def test_a_second_upgrade_changes_nothing(path: Path) -> None:
    write_legacy(path, generate_conversations(10))
    upgrade_legacy(path)
    before = path.read_bytes(), backups(path)
    again = upgrade_legacy(path)
    assert (again.is_changed, again.backup) == (False, None)
    assert (path.read_bytes(), backups(path)) == before


def test_two_backups_in_the_same_second_have_different_names(path: Path) -> None:
    write_legacy(path, [conversation()])
    assert legacy.create_backup(path) != legacy.create_backup(path)
    assert len(backups(path)) == 2


@pytest.mark.soak
def test_fifty_thousand_conversations_are_upgraded_within_20_seconds(path: Path) -> None:
    write_legacy(path, generate_conversations(50_000))
    start = time.perf_counter()
    result = upgrade_legacy(path)
    assert time.perf_counter() - start < 20
    assert sum(result.rows.values()) == 50_000
    assert query(path, "select count(*) from conversations") == [(50_000,)]


# --- invalid rows -------------------------------------------------------------------------------------------


def test_the_earlier_of_two_rows_keeps_a_duplicate_external_id(path: Path) -> None:
    write_legacy(
        path,
        [
            conversation(2, external_session_id="same"),
            conversation(1, external_session_id="same"),
            claude_conversation(3, external_session_id="same"),
        ],
    )
    assert rows_with_problem(upgrade_legacy(path), "duplicate") == ("id-2",)
    assert query(path, "select id, external_id from conversations order by id") == [
        ("id-1", "same"),
        ("id-2", "same#id-2"),
        ("id-3", "same"),
    ]


def test_a_session_id_in_two_workspaces_becomes_two_windows(path: Path) -> None:
    write_legacy(path, [conversation(1), conversation(2, workspace_hash="hash-b", workspace_name="shop")])
    result = upgrade_legacy(path)
    assert (result.windows, rows_with_problem(result, "several workspaces")) == (2, ("id-1", "id-2"))
    assert query(
        path,
        "select c.id, s.external_session_id, s.workspace_name, s.metadata from conversations c"
        " join cursor_sessions s on s.id = c.session_id order by c.id",
    ) == [("id-1", "curs_1", "ferry", "{}"), ("id-2", "curs_1@hash-b", "shop", '{"session_id":"curs_1"}')]


def test_a_conversation_without_workspace_is_in_the_first_window_of_its_session(path: Path) -> None:
    write_legacy(path, [conversation(1, workspace_hash=None), conversation(2)])
    result = upgrade_legacy(path)
    assert (result.windows, rows_with_problem(result, "orphan")) == (1, ("id-1",))
    assert query(path, "select workspace_hash from conversations order by id") == [(None,), ("hash-a",)]
    assert query(path, "select workspace_hash from cursor_sessions") == [("hash-a",)]


def test_a_conversation_without_session_is_in_the_window_of_its_workspace(path: Path) -> None:
    write_legacy(path, [conversation(1, session_id="")])
    assert rows_with_problem(upgrade_legacy(path), "orphan") == ("id-1",)
    assert query(path, "select external_session_id from cursor_sessions") == [("workspace:hash-a",)]


def test_rows_with_a_dangling_reference_are_reported_and_kept(path: Path) -> None:
    note = (
        "create table note (conversation text references conversations(id)); insert into note values ('x');"
    )
    write_legacy(path, [conversation()], script=note)
    assert rows_with_problem(upgrade_legacy(path), "orphan") == ("note row 1",)
    assert query(path, "select * from note") == [("x",)]


@pytest.mark.parametrize("column", ["context", "metadata", "tool_sequence", "acceptance_decisions"])
def test_malformed_json_is_reported_and_kept(path: Path, column: str) -> None:
    write_legacy(
        path, [conversation(1, **{column: "{cut"}), conversation(2), conversation(3, **{column: None})]
    )
    assert rows_with_problem(upgrade_legacy(path), "malformed JSON") == ("id-1",)
    assert query(path, f"select {column} from conversations where id = 'id-1'") == [("{cut",)]  # noqa: S608


@pytest.mark.parametrize(
    ("values", "column", "expected"),
    [
        ({"started_at": None}, "started_at", "2026-03-02T11:00:00Z"),
        ({"external_session_id": None}, "external_id", "id-1"),
        ({"id": None}, "external_id", "composer-1"),
    ],
)
def test_a_null_is_replaced_by_a_related_value(
    path: Path, values: dict[str, Any], column: str, expected: str
) -> None:
    write_legacy(path, [conversation(1, **values)], is_strict=False)
    assert len(rows_with_problem(upgrade_legacy(path), "null")) == 1
    assert query(path, f"select {column}, id is null from conversations") == [(expected, 0)]  # noqa: S608


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"platform": "windsurf"}, r"'windsurf' is not one of .*\(id-1\)"),
        ({"platform": None}, r"None is not one of"),
        ({"started_at": None, "ended_at": None}, r"neither started_at nor ended_at \(id-1\)"),
        ({"id": None, "external_session_id": None}, r"neither id nor external_session_id \(row 1\)"),
    ],
)
def test_a_row_that_no_rule_can_convert_stops_the_upgrade(
    path: Path, values: dict[str, Any], message: str
) -> None:
    write_legacy(path, [conversation(1, **values), conversation(2)], is_strict=False)
    before = path.read_bytes()
    with pytest.raises(DatabaseUnreadableError, match=message) as caught:
        upgrade_legacy(path)
    assert path.read_bytes() == before
    assert str(backups(path)[0]) in str(caught.value)


# --- rejected databases -------------------------------------------------------------------------------------


def assert_rejected(path: Path, error: type[Exception], message: str) -> None:
    before = path.read_bytes()
    with pytest.raises(error, match=message):
        upgrade_legacy(path)
    assert path.read_bytes() == before
    assert backups(path) == []


def test_a_missing_file_is_reported(path: Path) -> None:
    with pytest.raises(DatabaseNotFoundError, match="does not exist"):
        upgrade_legacy(path)
    assert not path.exists()


def test_a_file_that_is_not_a_database_is_rejected(path: Path) -> None:
    path.write_text("conversations " * 500)
    assert_rejected(path, DatabaseUnreadableError, "not a database")


def test_a_database_without_conversations_is_rejected(path: Path) -> None:
    sqlite3.connect(path).executescript("create table birds (name);").connection.close()
    assert_rejected(path, DatabaseUnreadableError, "no table conversations")


def test_a_conversations_table_with_other_columns_is_rejected(path: Path) -> None:
    sqlite3.connect(path).executescript("create table conversations (id, platform);").connection.close()
    assert_rejected(path, DatabaseUnreadableError, "no external_session_id, session_id, started_at")


def test_a_partly_upgraded_database_is_rejected(path: Path) -> None:
    write_legacy(path, [conversation()], script="create table cursor_sessions (id text primary key);")
    assert_rejected(path, DatabaseUnreadableError, "partly upgraded")


def test_an_archive_of_backscroll_is_rejected(path: Path) -> None:
    Archive(path).close()
    assert_rejected(path, UsageError, "an archive of Backscroll")


# --- failures during the upgrade ----------------------------------------------------------------------------


def test_a_database_locked_by_another_program_is_not_changed(path: Path) -> None:
    write_legacy(path, [conversation()])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    assert_rejected(path, DatabaseLockedError, "in use by another program.*It was not changed")
    other.execute("rollback")
    other.execute("begin exclusive")
    assert_rejected(path, DatabaseLockedError, "in use by another program")
    other.close()
    assert upgrade_legacy(path).is_changed


def test_a_read_only_database_is_not_changed(path: Path) -> None:
    write_legacy(path, [conversation()])
    path.chmod(0o444)
    assert_rejected(path, DestinationError, "read-only")


def test_nothing_is_changed_without_disk_space_for_a_backup(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_legacy(path, [conversation()])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, 0))  # type: ignore[attr-defined]
    assert_rejected(path, DestinationError, "0.0 MB are free. Nothing was changed")


def test_a_damaged_database_is_not_changed(path: Path) -> None:
    write_legacy(path, generate_conversations(300))
    whole = path.read_bytes()
    middle = len(whole) // 2 // 4096 * 4096
    path.write_bytes(whole[:middle] + b"\xff" * 4096 + whole[middle + 4096 :])
    assert_rejected(path, DatabaseUnreadableError, "damaged|malformed")


def test_a_full_disk_leaves_the_database_unchanged(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_legacy(path, generate_conversations(2000))
    before = path.read_bytes()

    open_existing = legacy.open_existing

    def open_with_page_limit(path: Path, **options: Any) -> sqlite3.Connection:
        db = open_existing(path, **options)
        pages = db.execute("pragma page_count").fetchone()[0]
        db.execute(f"pragma max_page_count = {pages + 40}")
        return db

    monkeypatch.setattr(legacy, "open_existing", open_with_page_limit)
    with pytest.raises(DestinationError, match=r"full\. It was not changed; the backup is "):
        upgrade_legacy(path)
    assert path.read_bytes() == before
    assert dump(backups(path)[0]) == dump(path)


def _delete_row(db: sqlite3.Connection, _: UpgradePlan) -> None:
    db.execute("delete from conversations_upgraded where id = 'id-1'")


def _delete_windows(db: sqlite3.Connection, _: UpgradePlan) -> None:
    db.execute("delete from cursor_sessions")


def _change_key(db: sqlite3.Connection, _: UpgradePlan) -> None:
    db.execute("update conversations_upgraded set id = 'elsewhere' where id = 'id-1'")


@pytest.mark.parametrize("corrupt", [_delete_row, _delete_windows, _change_key])
def test_a_wrong_result_is_rolled_back(
    path: Path, monkeypatch: pytest.MonkeyPatch, corrupt: Callable[[sqlite3.Connection, UpgradePlan], None]
) -> None:
    note = "create table note (of text references conversations(id)); insert into note values ('id-1');"
    write_legacy(path, [conversation(1), conversation(2)], script=note)
    before = dump(path)
    replace = legacy._replace

    def corrupt_and_replace(db: sqlite3.Connection, plan: UpgradePlan) -> None:
        corrupt(db, plan)
        replace(db, plan)

    monkeypatch.setattr(legacy, "_replace", corrupt_and_replace)
    with pytest.raises(DatabaseUnreadableError, match=r"would .*It was not changed"):
        upgrade_legacy(path)
    assert dump(path) == before


def test_a_plan_that_omits_a_row_is_rejected(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_legacy(path, [conversation(1), conversation(2)])
    before = dump(path)
    original_plan = legacy.plan

    def plan_without_a_row(db: sqlite3.Connection) -> UpgradePlan:
        plan = original_plan(db)
        plan.row_keys.pop()
        return plan

    monkeypatch.setattr(legacy, "plan", plan_without_a_row)
    with pytest.raises(DatabaseUnreadableError, match="1 row would have been changed"):
        upgrade_legacy(path)
    assert dump(path) == before


_HANGING_SCRIPT = """
import sys, time
from pathlib import Path
from backscroll.archive.maintenance import legacy

def hang(*_):
    print("here", flush=True)
    time.sleep(60)

setattr(legacy, sys.argv[2], hang)
legacy.upgrade_legacy(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("step", ["create_backup", "_replace", "_verify"])
@pytest.mark.parametrize("journal", [pytest.param("delete", marks=pytest.mark.soak), "wal"])
def test_a_killed_upgrade_leaves_the_database_unchanged(path: Path, step: str, journal: str) -> None:
    write_legacy(path, generate_conversations(8000), journal=journal)
    before = dump(path)
    size = path.stat().st_size if journal == "delete" else 0
    process = subprocess.Popen(
        [sys.executable, "-c", _HANGING_SCRIPT, path, step], stdout=subprocess.PIPE, env={**os.environ}
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        process.send_signal(signal.SIGKILL)
    if step != "create_backup":  # the database is partly written at this point
        written = {"wal": Path(f"{path}-wal"), "delete": path}[journal]
        assert written.stat().st_size > size + 1_000_000
    assert dump(path) == before
    assert upgrade_legacy(path).is_changed
    assert query(path, "select count(*) from conversations") == [(8000,)]
