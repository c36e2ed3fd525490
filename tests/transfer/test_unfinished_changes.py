"""Nothing is ever stuck: what cannot be written is refused, and every interrupted change can be ended."""

import json
import os
import signal
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backscroll import History
from backscroll.changes import change_log
from backscroll.changes.change_log import ChangeLog
from backscroll.changes.change_record import ChangeRecord, read_record
from backscroll.config import NamedRoot
from backscroll.errors import ChangeConflictError, ChangeNotFoundError, DestinationError
from backscroll.model.change import ChangePlan, FileChange, NewTable, RowChange
from backscroll.testing import cursor
from tests.cli.run_command import Result, backscroll
from tests.transfer.test_killed_migration import ONE, WRITERS, database_rows

TWO = "20000000-0000-4000-8000-000000000002"
BASKET = "30000000-0000-4000-8000-000000000003"
MESSAGES = [cursor.user("Rename it"), cursor.assistant("Done.")]


def drop_table(database: Path, table: str = "cursorDiskKV") -> None:
    with closing(sqlite3.connect(database)) as db, db:
        db.execute(f"drop table {table}")


def tables(database: Path) -> set[str]:
    with closing(sqlite3.connect(database)) as db:
        return {name for (name,) in db.execute("select name from sqlite_master where type = 'table'")}


class Machine:
    """Cursor and Claude Code in one folder; Cursor has lost its sessions."""

    def __init__(self, folder: Path, *, generation: int = 2) -> None:
        self.folder, self.root, self.claude = folder, folder / "cursor", folder / "claude"
        self.project, self.new = folder / "ferry", folder / "boat"
        for path in (self.project, self.new, self.claude):
            path.mkdir()
        home = cursor.Home(self.root, generation=generation)
        workspace = cursor.local_folder(str(self.project))
        home.composer(MESSAGES, workspace=workspace, id=BASKET)
        home.composer([cursor.user("Mend it"), cursor.assistant("Yes.")], workspace=workspace, id=TWO)
        home.write()
        self.database = home.database
        WRITERS["claude-code"](self.claude, str(self.project))
        self.roots = [NamedRoot("cursor", self.root), NamedRoot("claude-code", self.claude)]
        with self.open() as history:
            history.sync()

    def open(self) -> History:
        return History(roots=self.roots, home=self.folder / "home")

    def run(self, *arguments: str | Path) -> Result:
        roots = [option for root in self.roots for option in ("--root", f"{root.source}={root.path}")]
        return backscroll("--home", self.folder / "home", *roots, *arguments)

    def log(self) -> ChangeLog:
        return ChangeLog(self.folder / "home" / "changes")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def interrupt(log: ChangeLog, plan: ChangePlan, *, committed: bool = True) -> ChangeRecord:
    """Apply a plan and leave its record as a kill before the last write leaves it."""
    folder = log.folder / log.apply(plan).id
    record = read_record(folder)
    assert record is not None
    record.state = "applying"
    if not committed:
        record.committed_databases = []
    record.write(folder)
    return record


def stuck(log: ChangeLog, store: Path) -> str:
    """Leave a change that cannot be rolled back: what it saved is gone. Return its id."""
    (store / "index.json").write_text("[1]")
    before = change_log.file_hash(store / "index.json")
    record = interrupt(
        log,
        ChangePlan(
            what="Move a session",
            sessions=("claude-code:1",),
            files=(
                FileChange(path=store / "new.txt", content=lambda: [b"new"], before=None),
                FileChange(path=store / "index.json", content=lambda: [b"[2]"], before=before),
            ),
        ),
    )
    (log.folder / record.id / "1").unlink()
    return record.id


# Stores of Cursor that have only ItemTable


def test_a_session_is_restored_into_a_store_without_the_table_of_sessions(machine: Machine) -> None:
    drop_table(machine.database)
    result = machine.run("restore-session", BASKET, "--yes")
    assert result.code == 0, result.err
    assert f"create  table          cursorDiskKV in {machine.database}" in result.out
    with closing(sqlite3.connect(machine.database)) as db:
        (schema,) = db.execute("select sql from sqlite_master where name = 'cursorDiskKV'").fetchone()
        assert "key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB" in schema
        assert db.execute("select 1 from cursorDiskKV where key = ?", [f"composerData:{BASKET}"]).fetchone()
    with machine.open() as history:
        history.sync()
        assert not history.find(BASKET).is_gone
        assert [one.content for one in history.get_session(BASKET).messages] == ["Rename it", "Done."]


def test_undo_drops_the_table_that_a_restore_created(machine: Machine) -> None:
    drop_table(machine.database)
    before = database_rows(machine.database)
    assert machine.run("restore-session", BASKET, "--yes").code == 0
    assert machine.run("undo", "--yes").code == 0
    assert database_rows(machine.database) == before


def test_undo_keeps_a_created_table_that_the_tool_uses_since(machine: Machine) -> None:
    drop_table(machine.database)
    assert machine.run("restore-session", BASKET, "--yes").code == 0
    with closing(sqlite3.connect(machine.database)) as db, db:
        db.execute("insert into cursorDiskKV values ('composerData:new', '{}')")
    assert machine.run("undo", "--yes").code == 0
    with closing(sqlite3.connect(machine.database)) as db:
        assert db.execute("select key from cursorDiskKV").fetchall() == [("composerData:new",)]


def test_a_kill_while_the_table_is_created_blocks_nothing(machine: Machine) -> None:
    drop_table(machine.database)
    before = database_rows(machine.database)
    with machine.open() as history:
        plan = history.transfers.plan_restore(BASKET).plan.changes
    interrupt(machine.log(), plan, committed=False)
    assert machine.log().recover()
    assert database_rows(machine.database) == before


def test_an_interrupted_change_whose_rows_were_never_written_is_rolled_back(machine: Machine) -> None:
    with machine.open() as history:
        plan = history.transfers.plan_sessions([TWO], machine.new, mode="move").sessions[0].plan.changes
    record = interrupt(machine.log(), plan, committed=False)
    drop_table(machine.database)
    assert [one.id for one in machine.log().recover()] == [record.id]
    assert machine.log().entries() == []


def test_a_store_without_the_table_of_settings_is_refused_while_planning(machine: Machine) -> None:
    drop_table(machine.database)
    drop_table(machine.database, "ItemTable")
    databases = [*machine.root.rglob("state.vscdb")]
    for path in databases:
        if "ItemTable" in tables(path):
            drop_table(path, "ItemTable")
    result = machine.run("restore-session", BASKET, "--dry-run")
    assert (result.code, "has no table ItemTable" in result.err, result.err.count("\n")) == (1, True, 1)
    assert machine.log().entries() == []


# What cannot be written is refused while planning


def test_a_name_that_is_too_long_is_refused_before_anything_is_prepared(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "changes")
    for path in (tmp_path / "store" / ("x" * 256), tmp_path / "/".join(["y" * 200] * 21)):
        plan = ChangePlan(what="Write", files=(FileChange(path=path, content=lambda: [b"x"], before=None),))
        with pytest.raises(DestinationError, match="too long"):
            log.apply(plan)
    assert log.entries() == []
    assert not (tmp_path / "store").exists()


def test_a_change_with_a_name_that_is_too_long_can_be_ended(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "changes")
    plan = ChangePlan(
        what="Write", files=(FileChange(path=tmp_path / "a", content=lambda: [b"x"], before=None),)
    )
    record = interrupt(log, plan)
    record.state = "preparing"
    for operation in record.files:
        operation.path = str(tmp_path / ("x" * 300))
        operation.staged = str(tmp_path / ("y" * 300))
    record.write(log.folder / record.id)
    assert [one.state for one in log.entries()] == ["preparing"]
    assert [one.id for one in log.recover()] == [record.id]
    assert log.entries() == []


def test_a_read_only_database_is_refused_while_planning(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).suffix != ".vscdb" and access(path, mode))
    before = database_rows(machine.database)
    with machine.open() as history:
        plan = history.transfers.plan_sessions([TWO], machine.new, mode="move")
        assert [(one.code, "is read-only" in one.message) for one in plan.errors] == [("destination", True)]
    assert database_rows(machine.database) == before
    assert machine.log().entries() == []


def test_a_read_only_folder_is_refused_while_planning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    plan = ChangePlan(
        what="Write", files=(FileChange(path=tmp_path / "a" / "b", content=lambda: [b"x"], before=None),)
    )
    with pytest.raises(DestinationError, match="is read-only"):
        ChangeLog(tmp_path / "home" / "changes").apply(plan)
    assert not (tmp_path / "a").exists()


def test_a_failure_after_the_first_write_is_rolled_back_and_leaves_no_change(tmp_path: Path) -> None:
    database = tmp_path / "state.vscdb"
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("create table ItemTable (key text, value blob)")
        db.execute("create trigger broken before insert on ItemTable begin select raise(abort, 'no'); end")
    row = RowChange(database=database, table="ItemTable", key={"key": "a"}, before=None, after={"value": 1})
    table = NewTable(database, "cursorDiskKV", "create table cursorDiskKV (key, value)")
    log = ChangeLog(tmp_path / "changes")
    with pytest.raises(Exception, match="cannot be written"):
        log.apply(
            ChangePlan(
                what="Write",
                files=(FileChange(path=tmp_path / "new", content=lambda: [b"x"], before=None),),
                rows=(row,),
                tables=(table,),
            )
        )
    assert (log.entries(), (tmp_path / "new").exists(), tables(database)) == ([], False, {"ItemTable"})


# Changes that cannot be rolled back


def test_an_unfinished_change_blocks_only_what_touches_the_same_files(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "changes")
    change_id = stuck(log, tmp_path)
    assert log.recover() == []
    other = FileChange(path=tmp_path / "other.txt", content=lambda: [b"x"], before=None)
    log.apply(ChangePlan(what="Another", files=(other,)))
    assert (tmp_path / "other.txt").exists()
    same = FileChange(
        path=tmp_path / "new.txt", content=None, before=change_log.file_hash(tmp_path / "new.txt")
    )
    with pytest.raises(ChangeConflictError, match=f"backscroll undo {change_id}"):
        log.apply(ChangePlan(what="Same", files=(same,)))
    assert [(one.what, one.state) for one in log.entries()] == [
        ("Another", "applied"),
        ("Move a session", "applying"),
    ]


def test_undo_ends_an_unfinished_change_and_says_what_it_could_not_restore(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "changes")
    change_id = stuck(log, tmp_path)
    ended = log.undo(change_id)
    assert ended.is_undone
    assert not (tmp_path / "new.txt").exists()
    assert len(ended.problems) == 1
    assert "No such file" in ended.problems[0]
    assert log.entries() == [ended]
    assert log.recover() == []
    with pytest.raises(ChangeNotFoundError, match="undone already"):
        log.undo(change_id)


def test_undo_names_a_file_that_changed_after_the_interruption(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "changes")
    change_id = stuck(log, tmp_path)
    (tmp_path / "new.txt").write_text("mine")
    assert f"{tmp_path / 'new.txt'} changed meanwhile" in "".join(log.undo(change_id).problems)
    assert (tmp_path / "new.txt").read_text() == "mine"


def test_the_commands_say_what_is_unfinished_and_end_it(machine: Machine) -> None:
    change_id = stuck(machine.log(), machine.folder)
    listed = machine.run("changes")
    assert "  interrupted\n" in listed.out
    moved = machine.run("migrate", TWO, "--to", machine.new, "--yes")
    assert (moved.code, f"undo {change_id}" in moved.err) == (0, True)
    ended = machine.run("undo", change_id, "--yes")
    assert (ended.code, "Not restored: " in ended.err) == (1, True), ended.err
    (document,) = [one for one in json.loads(machine.run("changes", "--json").out)["data"] if one["problems"]]
    assert (document["id"], document["state"]) == (change_id, "undone")
    assert "cannot be rolled back" not in machine.run("migrate", TWO, "--to", machine.new, "--yes").err


def test_undo_of_an_interrupted_change_by_its_id_rolls_it_back(machine: Machine) -> None:
    with machine.open() as history:
        plan = history.transfers.plan_sessions([TWO], machine.new, mode="move").sessions[0].plan.changes
    record = interrupt(machine.log(), plan)
    result = machine.run("undo", record.id)
    assert (result.code, "Rolled back" in result.err) == (0, True), result.err
    assert machine.log().entries() == []


# Several sessions in one operation


def test_two_sessions_that_need_the_same_new_workspace_are_restored_together(tmp_path: Path) -> None:
    parent, child = ONE, TWO
    root = tmp_path / "cursor"
    home = cursor.Home(root, generation=5)
    workspace = cursor.local_folder(str(tmp_path))
    home.composer(MESSAGES, workspace=workspace, id=parent, data={"subagentComposerIds": [child]})
    info = {"parentComposerId": parent, "subagentTypeName": "explore"}
    home.composer(
        [cursor.user("Look"), cursor.assistant("Found.")],
        workspace=workspace,
        id=child,
        head={"subagentInfo": info},
    )
    home.write()
    with History(roots=[NamedRoot("cursor", root)], home=tmp_path / "home") as history:
        history.sync()
        for path in sorted((root / "User" / "workspaceStorage").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        with closing(sqlite3.connect(home.database)) as db, db:
            for table in ("cursorDiskKV", "composerHeaders"):
                db.execute(f"delete from {table}")  # noqa: S608
        history.sync()
        planned = history.transfers.plan_restore(parent)
        names = [file.path.name for file in planned.plan.changes.files]
        assert sorted(names) == ["state.vscdb", "workspace.json"]
        history.transfers.restore(planned)
        assert not history.find(parent).is_gone


# Order of changes


def test_undo_follows_the_order_of_changes_when_the_clock_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([datetime(2026, 11, 18, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)] * 2)

    class Clock:
        @staticmethod
        def now(zone: Any) -> datetime:
            return next(times)

    monkeypatch.setattr(change_log, "datetime", Clock)
    log = ChangeLog(tmp_path / "changes")
    names = ["first", "second", "third", "fourth"]
    for name in names:
        path = tmp_path / name
        log.apply(ChangePlan(what=name, files=(FileChange(path=path, content=lambda: [b"x"], before=None),)))
    assert [one.what for one in log.entries()] == names[::-1]
    assert len({one.id for one in log.entries()}) == 4
    assert [log.undo().what for _ in names] == names[::-1]


def test_undo_of_an_older_move_names_the_later_one(machine: Machine) -> None:
    third = machine.folder / "third"
    third.mkdir()
    with machine.open() as history:
        first = history.migrate_session(TWO, machine.new, mode="move").sessions[0].change
        second = history.migrate_session(TWO, third, mode="move").sessions[0].change
        before = database_rows(machine.database)
        with pytest.raises(ChangeConflictError, match=f"later, by {second.id}"):
            history.undo_change(first.id)
        assert database_rows(machine.database) == before
        history.undo_change(second.id)
        history.undo_change(first.id)
        assert history.find(TWO).workspace_path == str(machine.project)


def test_undo_of_an_older_change_of_another_session_is_allowed(machine: Machine) -> None:
    with machine.open() as history:
        first = history.migrate_session(BASKET, machine.new, mode="move").sessions[0].change
        history.migrate_session(f"claude-code:{ONE}", machine.new, mode="move")
        assert history.undo_change(first.id)[0].is_undone


# Forget


def test_forgetting_one_session_keeps_the_undo_of_the_others(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "changes")
    database = tmp_path / "state.vscdb"
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("create table cursorDiskKV (key text unique on conflict replace, value blob)")
    saved = tmp_path / "index.json"
    saved.write_text(f'"{ONE}"')
    refs = f"claude-code:{ONE}", f"cursor:{TWO}"
    log.apply(
        ChangePlan(
            what="Restore two",
            sessions=refs,
            files=(
                FileChange(path=tmp_path / f"{ONE}.jsonl", content=lambda: [b"1"], before=None),
                FileChange(path=tmp_path / f"{TWO}.jsonl", content=lambda: [b"2"], before=None),
                FileChange(path=saved, content=lambda: [b"[]"], before=change_log.file_hash(saved)),
            ),
            rows=tuple(
                RowChange(
                    database=database,
                    table="cursorDiskKV",
                    key={"key": key},
                    before=None,
                    after={"value": value},
                    session=ref,
                )
                for key, value, ref in (
                    (f"bubbleId:{ONE}:1", "quay", refs[0]),
                    ("agentKv:blob:1", "harbor", refs[0]),
                    (f"bubbleId:{TWO}:1", "ferry", refs[1]),
                )
            ),
        )
    )
    log.forget(refs[0])
    kept = b"".join(path.read_bytes() for path in log.folder.rglob("*") if path.is_file())
    assert not [word for word in (ONE.encode(), b"quay", b"harbor") if word in kept]
    assert [(one.sessions, one.row_count) for one in log.entries()] == [((refs[1],), 1)]
    log.undo()
    with closing(sqlite3.connect(database)) as db:
        keys = sorted(key for (key,) in db.execute("select key from cursorDiskKV"))
    assert keys == ["agentKv:blob:1", f"bubbleId:{ONE}:1"]
    assert ((tmp_path / f"{ONE}.jsonl").exists(), (tmp_path / f"{TWO}.jsonl").exists()) == (True, False)
    log.forget(refs[1])
    assert log.entries() == []


# Killed and run again


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("source", WRITERS)
def test_a_restore_that_was_killed_after_its_last_write_says_so_when_it_runs_again(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backscroll.readers.processes._running", list)
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    WRITERS[source](root, str(tmp_path))
    with History(roots=[NamedRoot(source, root)], home=home) as history:
        history.sync()
    for path in root.rglob("*"):
        if path.name == "state.vscdb":
            with closing(sqlite3.connect(path)) as db, db:
                for table in tables(path):
                    db.execute(f"delete from {table}")  # noqa: S608
        elif path.suffix in (".jsonl", ".db"):
            path.unlink()
    command = ("--home", home, "--root", f"{source}={root}")
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(
            "backscroll.transfer.transfers.sync", lambda _: os.kill(os.getpid(), signal.SIGKILL)
        )
        try:
            with History(roots=[NamedRoot(source, root)], home=home) as history:
                history.sync()
                history.restore_session(ONE)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    again = backscroll(*command, "restore-session", ONE, "--yes")
    assert (again.code, "is restored already" in again.out) == (0, True), again.err
    assert "is restored already" in backscroll(*command, "restore-session", ONE, "--no-sync", "--yes").out
