"""Sessions of the CLI are moved, copied and restored, and the change can be undone."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from hashlib import md5
from pathlib import Path

import pytest

from backscroll.changes.change_log import ChangeLog
from backscroll.errors import ChangeConflictError, SessionNotFoundError, UnknownStoreVersionError
from backscroll.model.change import Change, ChangePlan, FileChange
from backscroll.sources.cursor_cli import CursorCli
from backscroll.sources.cursor_cli.writing import blocking_processes, copy_files, move_files, restore_files
from backscroll.testing.cursor_cli.home import Home
from tests.builders.cursor_cli.stores import example_messages
from tests.oracle.fold import ParsedSession, fold


def read(root: Path) -> dict[str, ParsedSession]:
    source = CursorCli()
    found = [session for unit in source.units(root) for session in fold(source.read(unit)).sessions]
    source.close()
    return {session.opening.id: session for session in found}


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def apply(changes: list[FileChange], tmp_path: Path) -> tuple[ChangeLog, Change]:
    log = ChangeLog(tmp_path / "changes")
    return log, log.apply(ChangePlan(what="Change", files=tuple(changes)))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    target = tmp_path / "new shop"
    target.mkdir()
    return target


@pytest.fixture(params=["main", "wal"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return Home(tmp_path / ".cursor", rows_in=request.param)


def test_a_moved_session_keeps_its_messages_and_undo_restores_every_byte(
    home: Home, target: Path, tmp_path: Path
) -> None:
    chat = home.chat(example_messages())
    home.chat(example_messages(), name="Another")
    before, sessions = files(home.root), read(home.root)
    log, change = apply(move_files(home.root, chat.id, target), tmp_path)
    moved = read(home.root)
    assert moved.keys() == sessions.keys()
    assert moved[chat.id].messages == sessions[chat.id].messages or [
        (one.role, one.content) for one in moved[chat.id].messages
    ] == [(one.role, one.content) for one in sessions[chat.id].messages]
    assert moved[chat.id].closing.workspace is not None
    assert moved[chat.id].closing.workspace.path == str(target)
    assert (home.root / "chats" / md5(str(target).encode()).hexdigest() / chat.id).is_dir()
    assert not chat.folder.exists()
    log.undo(change.id)
    assert files(home.root) == before


@pytest.mark.parametrize("encoding", ["hex", "plain", "rows"])
def test_a_copied_session_has_a_new_id_and_the_original_stays(
    home: Home, target: Path, tmp_path: Path, encoding: str
) -> None:
    chat = home.chat(example_messages(), meta=encoding)  # type: ignore[arg-type]
    before, sessions = files(home.root), read(home.root)
    changes, new_id = copy_files(home.root, chat.id, target)
    log, change = apply(changes, tmp_path)
    copied = read(home.root)
    assert copied.keys() == {chat.id, new_id}
    assert [(one.role, one.content) for one in copied[new_id].messages] == [
        (one.role, one.content) for one in sessions[chat.id].messages
    ]
    assert copied[new_id].closing.title == sessions[chat.id].closing.title
    assert files(home.root).items() >= before.items()
    store = next(home.root.glob(f"chats/*/{new_id}/store.db"))
    with closing(sqlite3.connect(store)) as db:
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
    log.undo(change.id)
    assert files(home.root) == before


def test_a_session_of_an_editor_only_changes_its_working_directory(
    home: Home, target: Path, tmp_path: Path
) -> None:
    chat = home.chat(example_messages(), is_acp=True)
    before = files(home.root)
    log, change = apply(move_files(home.root, chat.id, target), tmp_path)
    after = files(home.root)
    assert {name for name in before if after.get(name) != before[name]} == {
        f"acp-sessions/{chat.id}/meta.json"
    }
    log.undo(change.id)
    assert files(home.root) == before


def test_a_deleted_session_is_restored(home: Home, tmp_path: Path) -> None:
    chat = home.chat(example_messages())
    source = CursorCli()
    unit = next(unit for unit in source.units(home.root) if unit.session_id == chat.id)
    rows = list(source.raw_rows(unit))
    sessions = read(home.root)
    for path in chat.folder.iterdir():
        path.unlink()
    chat.folder.rmdir()
    assert read(home.root) == {}
    store = chat.store.relative_to(home.root).as_posix()
    apply(restore_files(home.root, store, rows), tmp_path)
    restored = read(home.root)
    assert [(one.role, one.content) for one in restored[chat.id].messages] == [
        (one.role, one.content) for one in sessions[chat.id].messages
    ]
    assert restored[chat.id].closing.workspace == sessions[chat.id].closing.workspace
    assert restore_files(home.root, store, rows) == []
    with closing(sqlite3.connect(chat.store)) as db, db:
        db.execute("delete from blobs")
    with pytest.raises(ChangeConflictError, match="exists with other content"):
        restore_files(home.root, store, rows)


def test_an_unknown_store_is_refused(home: Home, target: Path) -> None:
    chat = home.chat(example_messages())
    with closing(sqlite3.connect(chat.store)) as db, db:
        db.execute("create table later (id text)")
    with pytest.raises(UnknownStoreVersionError, match="later"):
        move_files(home.root, chat.id, target)


def test_an_unknown_version_of_the_metadata_is_refused(home: Home, target: Path) -> None:
    chat = home.chat(example_messages())
    (chat.folder / "meta.json").write_text('{"schemaVersion": 2}')
    with pytest.raises(UnknownStoreVersionError, match="unknown version 2"):
        copy_files(home.root, chat.id, target)


def test_a_session_without_a_store_is_not_found(home: Home, target: Path) -> None:
    with pytest.raises(SessionNotFoundError):
        move_files(home.root, "0f3c9a12", target)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_of_any_name_that_has_a_store_open_prevents_changes(tmp_path: Path) -> None:
    home = Home(tmp_path / ".cursor")
    chat, other = home.chat(example_messages()), home.chat(example_messages(), name="Another")
    (store,) = home.root.rglob(f"{chat.id}/store.db")
    program = f"file = open({str(store)!r}, 'r+b'); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert [one.pid for one in blocking_processes(home.root, [chat.id])] == [process.pid]
        assert blocking_processes(home.root, [other.id]) == []
        process.kill()
    assert blocking_processes(home.root, [chat.id]) == []
