"""Changes are applied completely or not at all, and can be undone."""

import os
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from backscroll.changes.change_log import ChangeLog
from backscroll.errors import ChangeConflictError, ChangeNotFoundError, DatabaseLockedError, DestinationError
from backscroll.model.change import ChangePlan, FileChange, LineChange, RowChange


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def write(path: Path, text: str) -> FileChange:
    """Return a change that creates or replaces a file."""
    before = sha256(path.read_bytes()).hexdigest() if path.exists() else None
    return FileChange(path=path, content=lambda: [text.encode()], before=before, size=len(text))


def delete(path: Path) -> FileChange:
    return FileChange(path=path, content=None, before=sha256(path.read_bytes()).hexdigest())


def make_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("create table ItemTable (key text unique on conflict replace, value blob)")
        db.executemany("insert into ItemTable values (?, ?)", [("a", "one"), ("b", b"two"), ("c", None)])


def rows_of(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("select key, value from ItemTable order by key").fetchall()


def state(folder: Path) -> dict[str, object]:
    """Return the content of all files, databases as rows, and all folders."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir():
            found[name] = "folder"
        elif path.suffix == ".db":
            found[name] = rows_of(path)
        else:
            found[name] = path.read_bytes()
    return found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A tool's folder with files, a growing log and a database."""
    store = tmp_path / "store"
    (store / "old").mkdir(parents=True)
    (store / "old" / "session.jsonl").write_text("line\n")
    (store / "index.json").write_text("[1]")
    (store / "log.jsonl").write_text("first\nsecond\nthird\n")
    make_database(store / "state.db")
    return store


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    return ChangeLog(tmp_path / "changes")


def full_plan(store: Path) -> ChangePlan:
    """Return a plan with every kind of operation."""
    database = store / "state.db"
    return ChangePlan(
        what="Move a session",
        sessions=("claude-code:1",),
        files=(
            write(store / "new" / "deep" / "session.jsonl", "line\n"),
            write(store / "index.json", "[2]"),
            delete(store / "old" / "session.jsonl"),
        ),
        lines=(
            LineChange(path=store / "log.jsonl", before=b"second", after=b"SECOND"),
            LineChange(path=store / "log.jsonl", before=None, after=b"fourth"),
        ),
        rows=(
            RowChange(
                database=database,
                table="ItemTable",
                key={"key": "a"},
                before={"value": "one"},
                after={"value": "1"},
            ),
            RowChange(
                database=database, table="ItemTable", key={"key": "d"}, before=None, after={"value": b"new"}
            ),
            RowChange(
                database=database, table="ItemTable", key={"key": "b"}, before={"value": b"two"}, after=None
            ),
        ),
    )


def test_a_plan_is_applied(store: Path, log: ChangeLog) -> None:
    change = log.apply(full_plan(store))
    assert state(store) == {
        "index.json": b"[2]",
        "log.jsonl": b"first\nSECOND\nthird\nfourth\n",
        "new": "folder",
        "new/deep": "folder",
        "new/deep/session.jsonl": b"line\n",
        "state.db": [("a", "1"), ("c", None), ("d", b"new")],
    }
    assert (change.what, change.file_count, change.row_count) == ("Move a session", 4, 3)
    assert log.entries() == [change]


def test_undo_restores_files_lines_rows_and_folders(store: Path, log: ChangeLog) -> None:
    before = state(store)
    change = log.apply(full_plan(store))
    assert log.undo(change.id[:12]).is_undone
    assert state(store) == before
    assert [entry.is_undone for entry in log.entries()] == [True]


def test_undo_without_an_id_takes_the_newest_change_that_is_not_undone(store: Path, log: ChangeLog) -> None:
    for number in (2, 3):
        log.apply(ChangePlan(what=f"To {number}", files=(write(store / "index.json", f"[{number}]"),)))
    assert [log.undo().what, log.undo().what] == ["To 3", "To 2"]
    assert (store / "index.json").read_text() == "[1]"
    with pytest.raises(ChangeNotFoundError, match="nothing to undo"):
        log.undo()


def test_a_change_is_undone_only_once(store: Path, log: ChangeLog) -> None:
    change = log.apply(full_plan(store))
    log.undo(change.id)
    with pytest.raises(ChangeNotFoundError, match="undone already"):
        log.undo(change.id)


def test_undo_refuses_to_lose_what_was_written_since(store: Path, log: ChangeLog) -> None:
    change = log.apply(full_plan(store))
    with (store / "new" / "deep" / "session.jsonl").open("a") as file:
        file.write("answer\n")
    after = state(store)
    with pytest.raises(ChangeConflictError, match=r"session\.jsonl has changed since"):
        log.undo(change.id)
    assert state(store) == after


def test_undo_refuses_if_a_row_has_changed_since(store: Path, log: ChangeLog) -> None:
    change = log.apply(full_plan(store))
    with closing(sqlite3.connect(store / "state.db")) as db, db:
        db.execute("update ItemTable set value = 'newer' where key = 'a'")
    after = state(store)
    with pytest.raises(ChangeConflictError, match=r"'a'.*has changed since"):
        log.undo(change.id)
    assert state(store) == after


def test_lines_that_a_tool_appends_survive_apply_and_undo(store: Path, log: ChangeLog) -> None:
    change = log.apply(full_plan(store))
    with (store / "log.jsonl").open("a") as file:
        file.write("fifth\n")
    log.undo(change.id)
    assert (store / "log.jsonl").read_text() == "first\nsecond\nthird\nfifth\n"


@pytest.mark.parametrize("name", ["index.json", "old/session.jsonl"])
def test_a_file_that_changed_after_planning_stops_everything(store: Path, log: ChangeLog, name: str) -> None:
    plan = full_plan(store)
    (store / name).write_text("other")
    before = state(store)
    with pytest.raises(ChangeConflictError, match="has changed meanwhile"):
        log.apply(plan)
    assert state(store) == before
    assert log.entries() == []


def test_an_existing_file_is_not_replaced_by_a_new_one(store: Path, log: ChangeLog) -> None:
    plan = full_plan(store)
    (store / "new" / "deep").mkdir(parents=True)
    (store / "new" / "deep" / "session.jsonl").write_text("mine")
    with pytest.raises(ChangeConflictError, match="exists already"):
        log.apply(plan)
    assert (store / "new" / "deep" / "session.jsonl").read_text() == "mine"
    assert (store / "old" / "session.jsonl").exists()


@pytest.mark.parametrize(
    "statement", ["update ItemTable set value = 'x' where key = 'a'", "delete from ItemTable"]
)
def test_a_row_that_changed_after_planning_rolls_everything_back(
    store: Path, log: ChangeLog, statement: str
) -> None:
    plan = full_plan(store)
    with closing(sqlite3.connect(store / "state.db")) as db, db:
        db.execute(statement)
    before = state(store)
    with pytest.raises(ChangeConflictError, match="not as expected"):
        log.apply(plan)
    assert state(store) == before


def test_a_value_of_another_storage_class_is_a_conflict(store: Path, log: ChangeLog) -> None:
    row = RowChange(
        database=store / "state.db",
        table="ItemTable",
        key={"key": "a"},
        before={"value": b"one"},
        after={"value": b"1"},
    )
    with pytest.raises(ChangeConflictError):
        log.apply(ChangePlan(what="Change", rows=(row,)))


def test_a_locked_database_rolls_everything_back(
    store: Path, log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backscroll.changes.rows._BUSY_TIMEOUT_SECONDS", 0.05)
    before = state(store)
    with closing(sqlite3.connect(store / "state.db", isolation_level=None)) as db:
        db.execute("begin immediate")
        with pytest.raises(DatabaseLockedError, match="Close the tool"):
            log.apply(full_plan(store))
    assert state(store) == before


def test_a_symbolic_link_is_not_replaced(store: Path, log: ChangeLog) -> None:
    plan = full_plan(store)
    (store / "index.json").rename(store / "real.json")
    (store / "index.json").symlink_to(store / "real.json")
    with pytest.raises(ChangeConflictError, match="symbolic link"):
        log.apply(plan)
    assert (store / "index.json").is_symlink()


def test_a_full_disk_is_reported_before_anything_is_written(store: Path, log: ChangeLog) -> None:
    large = FileChange(path=store / "large", content=lambda: [b"x"], before=None, size=10**18)
    with pytest.raises(DestinationError, match="free space"):
        log.apply(ChangePlan(what="Write", files=(large,)))
    assert not (store / "large").exists()


def test_content_that_cannot_be_produced_leaves_nothing_behind(store: Path, log: ChangeLog) -> None:
    def fail() -> list[bytes]:
        raise OSError(5, "Input/output error")

    before = state(store)
    broken = FileChange(path=store / "a" / "b", content=fail, before=None)
    with pytest.raises(DestinationError):
        log.apply(ChangePlan(what="Write", files=(write(store / "index.json", "[9]"), broken)))
    assert state(store) == before


def test_a_replaced_file_keeps_its_mode(store: Path, log: ChangeLog) -> None:
    (store / "index.json").chmod(0o640)
    change = log.apply(full_plan(store))
    assert (store / "index.json").stat().st_mode & 0o777 == 0o640
    log.undo(change.id)
    assert (store / "index.json").stat().st_mode & 0o777 == 0o640


def test_saved_files_are_private(store: Path, log: ChangeLog) -> None:
    log.apply(full_plan(store))
    saved = [path for path in log.folder.rglob("*") if path.is_file()]
    assert saved
    assert all(path.stat().st_mode & 0o077 == 0 for path in saved)


def test_saved_files_stay_if_their_record_is_damaged(store: Path, log: ChangeLog) -> None:
    change = log.apply(full_plan(store))
    (log.folder / change.id / "change.json").write_text("{")
    before = state(log.folder / change.id)
    log.apply(ChangePlan(what="another", files=(write(store / "another.txt", "text"),)))
    assert state(log.folder / change.id) == before


def test_forget_deletes_the_saved_data_of_a_session(store: Path, log: ChangeLog) -> None:
    log.apply(full_plan(store))
    log.forget("claude-code:2")
    assert len(log.entries()) == 1
    log.forget("claude-code:1")
    assert log.entries() == []
    assert b"line" not in b"".join(path.read_bytes() for path in log.folder.rglob("*") if path.is_file())


def test_two_processes_do_not_change_files_at_the_same_time(store: Path, log: ChangeLog) -> None:
    other = ChangeLog(log.folder)
    seen: list[str] = []

    def content() -> list[bytes]:
        with pytest.raises(ChangeConflictError, match="Another process") as raised:
            other.apply(ChangePlan(what="Second"))
        seen.append(str(raised.value))
        return [b"new"]

    log.apply(ChangePlan(what="First", files=(FileChange(path=store / "x", content=content, before=None),)))
    assert len(seen) == 1


# Crashes. The child process ends at its n-th call that changes a disk, like kill -9.

_CALLS = ("fsync", "link", "unlink", "rename", "replace", "mkdir", "rmdir", "utime")


def run_and_die(action: str, store: Path, folder: Path, calls: int) -> bool:
    """Apply or undo in a child process that is killed after some calls. Return whether it was killed."""
    child = os.fork()
    if child == 0:
        remaining = [calls]
        for name in _CALLS:
            original = getattr(os, name)

            def counted(*args: object, _original: object = original, **options: object) -> object:
                remaining[0] -= 1
                if remaining[0] < 0:
                    os._exit(9)
                return _original(*args, **options)  # type: ignore[operator]

            setattr(os, name, counted)
        try:
            log = ChangeLog(folder)
            log.undo() if action == "undo" else log.apply(full_plan(store))
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_kill_at_any_moment_of_a_change_leaves_the_old_state_or_the_new_one(
    store: Path, log: ChangeLog
) -> None:
    before = state(store)
    log.apply(full_plan(store))
    after = state(store)
    log.undo()
    log.forget("claude-code:1")
    rolled_back, calls = 0, 0
    while run_and_die("apply", store, log.folder, calls):
        rolled_back += len(log.recover())
        if log.entries():  # killed after everything was done
            assert state(store) == after
            log.undo()
            log.forget("claude-code:1")
        assert state(store) == before, f"after {calls} calls"
        calls += 1
    assert state(store) == after
    assert rolled_back > 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_kill_at_any_moment_of_an_undo_is_completed_by_recover(store: Path, log: ChangeLog) -> None:
    before = state(store)
    calls, completed = 0, 0
    while True:
        log.apply(full_plan(store))
        if not run_and_die("undo", store, log.folder, calls):
            break
        log.recover()
        if not log.entries()[0].is_undone:  # killed before the undo began
            log.undo()
        else:
            completed += 1
        assert state(store) == before, f"after {calls} calls"
        calls += 1
    assert completed > 5
    assert state(store) == before
