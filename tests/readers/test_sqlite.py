"""Reading the database of another program: all commits are read, and no file changes."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backscroll.errors import DatabaseLockedError, DatabaseNotFoundError, DatabaseUnreadableError
from backscroll.readers import sqlite as sqlite_files
from backscroll.readers.files import change_token
from backscroll.readers.sqlite import Database, as_bytes, has_commits

WRITER = """
import sqlite3, sys
path, *statements = sys.argv[1:]
db = sqlite3.connect(path, isolation_level=None)
db.execute("pragma cache_size = 5")
for statement in statements:
    db.execute(statement)
print("ready", flush=True)
sys.stdin.read()
"""
TABLE = "create table t (k text unique on conflict replace, v blob)"
WAL = ("pragma journal_mode = wal", "pragma wal_autocheckpoint = 0")
ONE_ROW = "insert into t values ('first', 'committed')"
MANY_ROWS = """with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
               insert into t select 'row' || i, hex(zeroblob(200)) from n"""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a program which runs statements and keeps the database open."""
    running: list[subprocess.Popen[str]] = []

    def run(path: Path, *statements: str) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), *statements],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(program)
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        return program

    yield run
    for program in running:
        program.kill()
        program.communicate()


def crash(program: subprocess.Popen[str]) -> None:
    program.send_signal(signal.SIGKILL)
    program.wait()


def folder_state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    state = {
        path.name: (path.stat().st_mtime_ns, path.stat().st_mode, path.read_bytes())
        for path in folder.iterdir()
    }
    return state | {".": (folder.stat().st_mtime_ns, folder.stat().st_mode, b"")}


def count(db: sqlite3.Connection) -> int:
    found: int = db.execute("select count(*) from t").fetchone()[0]
    return found


def read_without_changes(path: Path) -> tuple[int, str]:
    """Return the number of rows and the read mode, and check that no file in the folder changed."""
    before = folder_state(path.parent)
    with Database(path) as database:
        rows = database.read(count)
        assert folder_state(path.parent) == before, "while open"
        mode = database.mode
    assert folder_state(path.parent) == before, "after closing"
    return rows, mode


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "tool's own #1 ?"
    folder.mkdir()
    return folder / "state.vscdb"


def execute(path: Path, *statements: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


def test_only_committed_rows_of_a_running_writer_are_read(path: Path, start: Start) -> None:
    start(path, *WAL, TABLE, ONE_ROW, "begin", MANY_ROWS)
    assert read_without_changes(path) == (1, "shared")


def test_a_reader_sees_commits_between_two_reads(path: Path, start: Start) -> None:
    start(path, *WAL, TABLE, ONE_ROW)
    with Database(path) as database:
        assert database.read(count) == 1
        start(path, "insert into t values ('later', 1)")
        assert database.read(count) == 2


def test_a_writer_can_checkpoint_and_commit_while_a_reader_stays_open(path: Path, start: Start) -> None:
    start(path, *WAL, TABLE, ONE_ROW)
    with Database(path) as database:
        assert database.read(count) == 1
        start(path, MANY_ROWS, "pragma wal_checkpoint(truncate)", "insert into t values ('after', 1)")
        assert database.read(count) == 3002


@pytest.mark.parametrize("is_indexed", [True, False])
def test_commits_in_the_log_of_a_crashed_writer_are_read(path: Path, start: Start, is_indexed: bool) -> None:
    crash(start(path, *WAL, TABLE, ONE_ROW, "begin", MANY_ROWS))
    if not is_indexed:
        path.with_name("state.vscdb-shm").unlink()
    assert read_without_changes(path) == (1, "shared" if is_indexed else "private")


def test_a_database_that_is_entirely_in_its_log_is_read(path: Path, start: Start) -> None:
    crash(start(path, *WAL, TABLE, ONE_ROW))
    path.with_name("state.vscdb-shm").unlink()
    assert path.stat().st_size == 4096
    assert read_without_changes(path) == (1, "private")


def test_a_closed_database_in_wal_mode_is_read(path: Path) -> None:
    execute(path, *WAL, TABLE, ONE_ROW)
    assert [file.name for file in path.parent.iterdir()] == ["state.vscdb"]
    assert read_without_changes(path) == (1, "private")


def test_a_shared_memory_file_without_a_log_is_not_changed(path: Path) -> None:
    execute(path, *WAL, TABLE, ONE_ROW)
    path.with_name("state.vscdb-shm").write_bytes(b"")
    assert read_without_changes(path) == (1, "private")


@pytest.mark.parametrize("log", [b"", b"\0" * 5000, os.urandom(9000)])
def test_a_log_without_a_transaction_is_not_changed(path: Path, log: bytes) -> None:
    execute(path, *WAL, TABLE, ONE_ROW)
    path.with_name("state.vscdb-wal").write_bytes(log)
    assert read_without_changes(path) == (1, "private")


def test_a_log_with_only_uncommitted_rows_is_not_changed(path: Path, start: Start) -> None:
    crash(start(path, *WAL, TABLE, ONE_ROW, "pragma wal_checkpoint(truncate)", "begin", MANY_ROWS))
    log = path.with_name("state.vscdb-wal")
    path.with_name("state.vscdb-shm").unlink()
    assert log.stat().st_size > 4096
    assert not has_commits(log)
    assert read_without_changes(path) == (1, "private")


def test_commits_in_a_truncated_log_are_detected_like_sqlite_does(
    path: Path, start: Start, tmp_path: Path
) -> None:
    crash(start(path, *WAL, TABLE, ONE_ROW))
    main, log = path.read_bytes(), path.with_name("state.vscdb-wal").read_bytes()
    for cut in (
        *range(33),
        100,
        32 + 24 + 4096 - 1,
        32 + 24 + 4096,
        len(log) - 4097,
        len(log) - 1,
        len(log),
    ):
        copy = tmp_path / f"{cut}.db"
        copy.write_bytes(main)
        (tmp_path / f"{cut}.db-wal").write_bytes(log[:cut])
        detected = has_commits(tmp_path / f"{cut}.db-wal")
        db = sqlite3.connect(copy)
        assert detected is bool(db.execute("select count(*) from sqlite_master").fetchone()[0])
        db.close()


def test_a_rollback_journal_database_is_read(path: Path, start: Start) -> None:
    start(path, TABLE, ONE_ROW)
    assert read_without_changes(path) == (1, "plain")


def test_a_crashed_writers_journal_is_not_rolled_back_in_place(path: Path, start: Start) -> None:
    crash(start(path, TABLE, ONE_ROW, "begin", MANY_ROWS))
    assert path.with_name("state.vscdb-journal").stat().st_size > 0
    assert read_without_changes(path) == (1, "copy")


def test_a_database_is_read_directly_again_after_its_journal_is_gone(path: Path, start: Start) -> None:
    crash(start(path, TABLE, ONE_ROW, "begin", MANY_ROWS))
    with Database(path) as database:
        assert (database.read(count), database.mode) == (1, "copy")
        execute(path, "insert into t values ('later', 1)")
        assert (database.read(count), database.mode) == (2, "plain")


def test_a_locked_database_raises_an_error_after_the_timeout(path: Path, start: Start) -> None:
    start(path, TABLE, ONE_ROW, "begin exclusive")
    start_time = time.monotonic()
    with (
        Database(path, busy_timeout=0.3) as database,
        pytest.raises(DatabaseLockedError, match="locked") as caught,
    ):
        database.read(count)
    assert time.monotonic() - start_time < 3
    assert caught.value.data_path == str(path)


def test_a_log_locked_exclusively_by_its_writer_is_read(path: Path, start: Start) -> None:
    start(path, "pragma locking_mode = exclusive", *WAL, TABLE, ONE_ROW)
    assert read_without_changes(path) == (1, "private")


def test_a_file_that_changes_during_a_lock_free_read_is_read_again(path: Path) -> None:
    execute(path, *WAL, TABLE, ONE_ROW)
    counts: list[int] = []

    def count_while_changing(db: sqlite3.Connection) -> int:
        if not counts:
            execute(path, "insert into t values ('later', 1)")
        counts.append(count(db))
        return counts[-1]

    with Database(path) as database:
        assert database.read(count_while_changing) == 2
        assert database.mode == "private"
    assert len(counts) == 2


def test_a_file_that_keeps_changing_is_copied(path: Path) -> None:
    execute(path, *WAL, TABLE, ONE_ROW)
    with Database(path) as database:
        attempts: list[int] = []

        def count_while_changing(db: sqlite3.Connection) -> int:
            if database.mode == "private":
                execute(path, "insert into t values (hex(randomblob(8)), 1)")
                attempts.append(1)
            return count(db)

        assert database.read(count_while_changing) == 1 + len(attempts)
        assert database.mode == "copy"


def test_a_copy_is_private_and_removed_afterwards(
    path: Path, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    crash(start(path, TABLE, ONE_ROW, "begin", MANY_ROWS))
    with Database(path) as database:
        database.read(count)
        (folder,) = scratch.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert list(scratch.iterdir()) == []


def test_a_failed_copy_leaves_no_file(
    path: Path, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:100])
        raise OSError(28, "No space left on device")

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr(sqlite_files.shutil, "copyfile", fail)
    crash(start(path, TABLE, ONE_ROW, "begin", MANY_ROWS))
    with Database(path) as database, pytest.raises(DatabaseUnreadableError, match="No space left"):
        database.read(count)
    assert list(scratch.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs to become another user")
@pytest.mark.parametrize("state", ["log and shared memory", "log", "closed", "rollback"])
def test_a_database_in_a_read_only_folder_is_read(path: Path, start: Start, state: str) -> None:
    crash(start(path, *(() if state == "rollback" else WAL), TABLE, ONE_ROW))
    if state == "log":
        path.with_name("state.vscdb-shm").unlink()
    if state == "closed":
        execute(path, "pragma wal_checkpoint(truncate)")
    for file in path.parent.iterdir():
        file.chmod(0o444)
    path.parent.chmod(0o555)
    opened = [folder for folder in path.parents if not folder.stat().st_mode & 0o005]
    for folder in opened:
        folder.chmod(0o755)
    os.seteuid(65534)
    try:
        rows, _ = read_without_changes(path)
    finally:
        os.seteuid(0)
        for folder in opened:
            folder.chmod(0o700)
    assert rows == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "0 bytes"),
        (b"this is not a database, however long it may be" * 100, "not a SQLite database"),
        (b"SQLite format 3\0" + b"\xff" * 4080, "not a SQLite database|damaged"),
    ],
)
def test_a_file_that_is_not_a_database_is_rejected(path: Path, content: bytes, reason: str) -> None:
    path.write_bytes(content)
    before = folder_state(path.parent)
    with Database(path) as database, pytest.raises(DatabaseUnreadableError, match=reason):
        database.read(count)
    assert folder_state(path.parent) == before


def test_reading_an_empty_file_keeps_its_journal_and_log(path: Path) -> None:
    path.touch()
    path.with_name("state.vscdb-journal").write_bytes(b"x" * 600)
    path.with_name("state.vscdb-wal").write_bytes(b"x" * 600)
    before = folder_state(path.parent)
    with Database(path) as database, pytest.raises(DatabaseUnreadableError):
        database.read(count)
    assert folder_state(path.parent) == before


def test_reading_a_damaged_page_raises_an_error(path: Path) -> None:
    execute(path, TABLE, MANY_ROWS)
    content = bytearray(path.read_bytes())
    content[8192:40960] = os.urandom(32768)
    path.write_bytes(content)
    with Database(path) as database:
        assert database.read(lambda db: db.execute("select 1").fetchone()) == (1,)
        with pytest.raises(DatabaseUnreadableError, match="damaged"):
            database.read(lambda db: db.execute("select * from t").fetchall())


def test_a_damaged_schema_with_invalid_utf8_raises_an_error(path: Path) -> None:
    execute(path, "create table note (v)")
    content = path.read_bytes()
    assert b"tablenotenote" in content
    path.write_bytes(
        content.replace(b"tablenotenote", b"table\xa4\xff\xfe\xfdnote").replace(b"CREATE", b"CRAZY ")
    )
    with Database(path) as database, pytest.raises(DatabaseUnreadableError, match="damaged"):
        database.read(count)


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_path_too_long_for_sqlite_is_read_from_a_copy(tmp_path: Path, journal: str) -> None:
    short_path = tmp_path / "state.vscdb"
    execute(short_path, f"pragma journal_mode = {journal}", TABLE, ONE_ROW)
    deep = tmp_path.joinpath(*["folder with a long name " * 8] * 4)
    deep.mkdir(parents=True)
    assert read_without_changes(short_path.rename(deep / short_path.name)) == (1, "copy")


def test_a_huge_database_is_not_copied(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(path, *WAL, TABLE, ONE_ROW)
    with path.open("r+b") as file:
        file.truncate(3_000_000_000)
    monkeypatch.setattr(sqlite_files.shutil, "copyfile", lambda *_: pytest.fail("copied"))
    with Database(path) as database:
        assert database.read(count) == 1


def test_a_thousand_reads_leave_no_file_open(path: Path) -> None:
    execute(path, *WAL, TABLE, ONE_ROW)
    open_files = Path("/proc/self/fd")
    if not open_files.is_dir():
        pytest.skip("open files cannot be counted on this system")
    before = len(list(open_files.iterdir()))
    for _ in range(1000):
        with Database(path) as database:
            database.read(count)
    assert len(list(open_files.iterdir())) <= before


def test_a_folder_instead_of_a_file_is_rejected(path: Path) -> None:
    path.mkdir()
    with Database(path) as database, pytest.raises(DatabaseUnreadableError, match="not a file"):
        database.read(count)


def test_a_missing_file_raises_an_error(path: Path) -> None:
    with Database(path) as database, pytest.raises(DatabaseNotFoundError):
        database.read(count)
    assert not path.exists()


def test_a_missing_table_raises_the_error_of_sqlite(path: Path) -> None:
    execute(path, TABLE)
    with Database(path) as database, pytest.raises(sqlite3.OperationalError, match="no such table"):
        database.read(lambda db: db.execute("select * from other").fetchall())


def test_a_reader_cannot_write(path: Path, start: Start) -> None:
    crash(start(path, TABLE, ONE_ROW, "begin", MANY_ROWS))
    with Database(path) as database, pytest.raises(DatabaseUnreadableError):
        database.read(lambda db: db.execute("delete from t"))


def test_null_values_and_invalid_utf8_are_read(path: Path) -> None:
    execute(
        path,
        TABLE,
        "insert into t values (null, null)",
        "insert into t values (cast(x'ff41eda080' as text), 7)",
    )
    with Database(path) as database:
        rows = database.read(lambda db: db.execute("select k, v from t order by k").fetchall())
    assert [tuple(map(as_bytes, row)) for row in rows] == [(None, None), (b"\xffA\xed\xa0\x80", b"7")]


def test_a_database_behind_a_symbolic_link_is_read_with_its_log(
    path: Path, start: Start, tmp_path: Path
) -> None:
    start(path, *WAL, TABLE, ONE_ROW)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with Database(link) as database:
        assert database.read(count) == 1
    before = change_token(link)
    execute(path, "insert into t values ('later', 1)")
    assert change_token(link) != before


def test_a_replaced_file_is_opened_again(path: Path, tmp_path: Path) -> None:
    execute(path, TABLE, ONE_ROW)
    execute(tmp_path / "other.db", TABLE, MANY_ROWS)
    with Database(path) as database:
        assert database.read(count) == 1
        (tmp_path / "other.db").replace(path)
        assert database.read(count) == 3000


def test_the_change_token_changes_with_the_log_but_not_by_reading(path: Path, start: Start) -> None:
    assert change_token(path) == "-/-/-"
    start(path, *WAL, TABLE)
    before = change_token(path)
    read_without_changes(path)
    assert change_token(path) == before
    execute(path, ONE_ROW)
    assert change_token(path) != before
