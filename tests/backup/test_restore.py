"""A restore writes back exactly what was backed up, and keeps what it would overwrite."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backscroll.changes.change_log import ChangeLog
from backscroll.config import NamedRoot
from backscroll.errors import InvalidBackupError, RestoreError, ToolRunningError, UsageError
from backscroll.history.history import History
from backscroll.testing import cursor
from tests.backup.histories import SOURCES, STORE, database_rows, file_contents, make_history, write_sources
from tests.histories import HISTORIES_WITH_SOAK
from tests.histories import History as SampleHistory


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    write_sources(tmp_path)
    with make_history(tmp_path) as history:
        return Path(history.create_backup(tmp_path / "backup.zip").backup_path)


def library(folder: Path) -> History:
    return History(roots=[NamedRoot(name, folder / name) for name in SOURCES], home=folder / "home")


def logins(path: Path) -> list[tuple[str, object]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(
            "select key, value from ItemTable where key like 'cursorAuth/%' order by key"
        ).fetchall()


@pytest.mark.parametrize("sample", HISTORIES_WITH_SOAK, ids=str)
def test_a_deleted_history_is_restored_completely(sample: SampleHistory, tmp_path: Path) -> None:
    root = sample.write(tmp_path / sample.source_name)
    roots = [NamedRoot(sample.source_name, root)]
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        sessions = history.all_sessions()
        shown = [history.get_session(session.ref) for session in sessions]
        result = history.create_backup(tmp_path / "backup.zip", with_secrets=True)
    databases = {file.path for file in result.manifest.files if file.kind == "database"}
    rows = {path: database_rows(root / path) for path in databases}
    contents = file_contents(root)
    shutil.rmtree(root)
    shutil.rmtree(tmp_path / "home")
    with History(roots=roots, home=tmp_path / "home") as history:
        restored = history.restore_backup(tmp_path / "backup.zip")
        assert restored.files_restored == len(result.manifest.files)
        assert history.all_sessions() == sessions
        history.sync()
        assert [history.get_session(session.ref) for session in sessions] == shown
    files = {file.path for file in result.manifest.files if file.kind == "file"}
    assert {path: (root / path).read_bytes() for path in files} == {path: contents[path] for path in files}
    with History(roots=roots, home=tmp_path / "second") as history:  # from the restored files alone
        history.sync()
        assert [history.get_session(session.ref) for session in sessions if not session.is_gone] == [
            session for session in shown if not session.summary.is_gone
        ]
    assert {path: database_rows(root / path) for path in rows} == rows  # last: SQLite creates a log


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("force", [False, True])
def test_nothing_is_restored_twice(backup: Path, tmp_path: Path, source: str, force: bool) -> None:
    history = library(tmp_path)
    result = history.restore_backup(backup, source=source, force=force)
    assert (result.files_restored, result.change_id) == (0, None)
    assert {file.action for file in result.files} == {"unchanged"}


def without_rowids(tables: dict[str, list[tuple[object, ...]]]) -> dict[str, list[str]]:
    return {name: sorted(repr(row[1:]) for row in rows) for name, rows in tables.items()}


def side_file(folder: Path) -> Path:
    return next((folder / "claude-code").rglob("output.txt"))


def test_an_existing_file_that_differs_is_kept(backup: Path, tmp_path: Path) -> None:
    side_file(tmp_path).write_text("newer\n")
    result = library(tmp_path).restore_backup(backup, source="claude-code")
    assert [(Path(file.path), file.action) for file in result.files if file.action != "unchanged"] == [
        (side_file(tmp_path), "kept")
    ]
    assert side_file(tmp_path).read_text() == "newer\n"


def test_lines_are_added_to_the_prompt_log(backup: Path, tmp_path: Path) -> None:
    prompts = tmp_path / "claude-code" / "history.jsonl"
    original = prompts.read_text()
    prompts.write_text("newer\n")
    with library(tmp_path) as history:
        result = history.restore_backup(backup, source="claude-code")
        assert prompts.read_text() == f"newer\n{original}"
        history.undo_change(result.change_id)
        assert prompts.read_text() == "newer\n"


@pytest.mark.parametrize("options", [{"force": True}, {"prefer": "backup"}], ids=str)
def test_the_backup_is_preferred_on_request_and_undo_brings_the_file_back(
    backup: Path, tmp_path: Path, options: Any
) -> None:
    original = side_file(tmp_path).read_bytes()
    side_file(tmp_path).write_text("newer\n")
    result = library(tmp_path).restore_backup(backup, source="claude-code", **options)
    assert side_file(tmp_path).read_bytes() == original
    assert result.change_id is not None
    ChangeLog(tmp_path / "home" / "changes").undo(result.change_id)
    assert side_file(tmp_path).read_text() == "newer\n"


def test_a_dry_run_changes_nothing(backup: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "claude-code")
    before = file_contents(tmp_path)
    with library(tmp_path) as history:
        result = history.restore_backup(backup, is_dry_run=True)
    assert result.files_restored > 2
    assert result.change_id is None
    assert {name: data for name, data in file_contents(tmp_path).items() if not name.endswith(".lock")} == {
        name: data for name, data in before.items() if not name.endswith(".lock")
    }


@pytest.mark.parametrize("force", [False, True])
def test_sessions_are_added_to_a_database_that_keeps_everything_else(
    backup: Path, tmp_path: Path, force: bool
) -> None:
    store = tmp_path / STORE
    rows = database_rows(store)
    with closing(sqlite3.connect(store)) as db:
        db.execute("update ItemTable set value = 'new login' where key = 'cursorAuth/accessToken'")
        db.execute("delete from cursorDiskKV")
        db.execute("insert into cursorDiskKV values ('later', 'x')")
        db.commit()
    current, before = logins(store), database_rows(store)
    assert ("cursorAuth/accessToken", "new login") in current
    result = library(tmp_path).restore_backup(backup, source="cursor", force=force)
    assert [one.action for one in result.sessions] == ["added"]
    assert logins(store) == current
    keys = {row[1] for row in database_rows(store)["cursorDiskKV"]}
    lost = {row[1] for row in rows["cursorDiskKV"]}
    assert keys >= {key for key in lost if key.startswith((b"bubbleId", b"composerData"))}
    assert b"later" in keys
    library(tmp_path).undo_change(result.change_id)
    assert without_rowids(database_rows(store)) == without_rowids(before)


def test_encryption_keys_of_unchanged_sessions_survive(backup: Path, tmp_path: Path) -> None:
    store = tmp_path / STORE
    rows = database_rows(store)
    with closing(sqlite3.connect(store)) as db:
        db.execute("delete from cursorDiskKV where key like 'bubbleId:%'")
        db.commit()
    library(tmp_path).restore_backup(backup, source="cursor", force=True)
    assert {row[1:] for row in database_rows(store)["cursorDiskKV"]} == {
        row[1:] for row in rows["cursorDiskKV"]
    }
    assert cursor.SECRET.encode() in store.read_bytes()


def test_a_database_that_is_open_is_not_changed(backup: Path, tmp_path: Path) -> None:
    store = tmp_path / STORE
    with closing(sqlite3.connect(store)) as db:
        db.execute("pragma journal_mode = wal")
        db.execute("delete from cursorDiskKV")
        db.commit()
    before = store.read_bytes()
    code = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1])"
    code += "; db.execute('select * from ItemTable').fetchone(); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as tool:
        assert tool.stdout is not None
        assert tool.stdout.readline() == "open\n"
        with pytest.raises(ToolRunningError) as raised:
            library(tmp_path).restore_backup(backup, source="cursor", force=True)
        assert raised.value.process_id == tool.pid
        tool.communicate("\n")
    assert store.read_bytes() == before


def test_one_session_is_restored_with_its_side_files(backup: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "claude-code")
    history = library(tmp_path)
    ref = next(one.ref for one in history.all_sessions() if one.title == "find the ferry timetable")
    result = history.restore_backup(backup, sessions=[ref])
    assert (result.files_restored, result.sessions_restored) == (2, 1)
    assert not (tmp_path / "claude-code" / "history.jsonl").exists()
    with pytest.raises(RestoreError, match="No session matches"):
        history.restore_backup(backup, sessions=["ffffffff"])


def test_folders_are_mapped_on_component_boundaries(backup: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    contents = file_contents(tmp_path / "claude-code")
    history = library(tmp_path)
    history.restore_backup(
        backup,
        source="claude-code",
        path_map={str(tmp_path / "claude"): str(tmp_path / "wrong"), f"{tmp_path}/claude-code/": str(target)},
    )
    assert not (tmp_path / "wrong").exists()
    restored = file_contents(target)
    assert restored == {name: contents[name] for name in restored}
    assert "history.jsonl" in restored


def test_a_damaged_file_is_left_out_and_the_others_are_restored(backup: Path, tmp_path: Path) -> None:
    contents = file_contents(tmp_path / "claude-code")
    data = bytearray(backup.read_bytes())
    data[data.index(b"claude-code/history.jsonl.zst") + len(b"claude-code/history.jsonl.zst") + 12] ^= 1
    backup.write_bytes(data)
    shutil.rmtree(tmp_path / "claude-code")
    result = library(tmp_path).restore_backup(backup, source="claude-code")
    assert [Path(file.path).name for file in result.files if file.action == "damaged"] == ["history.jsonl"]
    restored = file_contents(tmp_path / "claude-code")
    assert restored == {name: contents[name] for name in restored}
    assert "history.jsonl" not in restored
    assert len(restored) == 2


def test_the_archive_is_restored_where_there_is_none(backup: Path, tmp_path: Path) -> None:
    before = library(tmp_path).all_sessions()
    roots = [NamedRoot(source.name, root) for source, root in library(tmp_path).roots()]
    history = History(roots=roots, home=tmp_path / "new")
    history.restore_backup(backup)
    assert history.all_sessions() == before
    assert len(history.search_sessions("ferry").data) == 1


def test_an_archive_with_sessions_is_never_replaced(backup: Path, tmp_path: Path) -> None:
    with library(tmp_path) as history:
        history.annotations.tag(history.all_sessions()[0].ref, ["important"])
        for path in (tmp_path / "claude-code").rglob("*.jsonl"):
            path.unlink()
        history.sync()
        sessions = history.all_sessions()
        result = history.restore_backup(backup, force=True)
        assert not any(file.path.endswith("archive.db") for file in result.files)
        assert [session.tags for session in history.all_sessions()] == [session.tags for session in sessions]
        assert {session.id for session in history.all_sessions()} == {session.id for session in sessions}


def test_an_empty_archive_is_replaced(backup: Path, tmp_path: Path) -> None:
    with library(tmp_path) as history:
        before = history.all_sessions()
    roots = [NamedRoot(name, tmp_path / name) for name in SOURCES]
    with History(roots=[NamedRoot("claude-code", tmp_path / "empty")], home=tmp_path / "new") as empty:
        empty.sync()
        assert empty.all_sessions() == []
    with History(roots=roots, home=tmp_path / "new") as history:
        history.restore_backup(backup)
        assert history.all_sessions() == before


def test_undo_reverts_the_files_if_the_restored_archive_has_changed(backup: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "claude-code")
    roots = [NamedRoot(name, tmp_path / name) for name in SOURCES]
    with History(roots=roots, home=tmp_path / "new") as history:
        history.restore_backup(backup)
        assert any((tmp_path / "claude-code").rglob("*.jsonl"))
        history.annotations.tag(history.all_sessions()[0].ref, ["important"])
        history.close()
        history.undo_change()
    assert not any((tmp_path / "claude-code").rglob("*.jsonl"))
    with History(roots=roots, home=tmp_path / "new") as history:
        assert "important" in history.all_sessions()[0].tags


def test_an_invalid_backup_or_source_is_refused(backup: Path, tmp_path: Path) -> None:
    backup.write_bytes(backup.read_bytes()[:-100])
    with pytest.raises(InvalidBackupError):
        library(tmp_path).restore_backup(backup)
    with pytest.raises(UsageError):
        library(tmp_path).restore_backup(backup, source="notepad")
