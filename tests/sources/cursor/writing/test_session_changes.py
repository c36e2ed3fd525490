"""Sessions of every generation are moved, copied and restored, and the change can be undone."""

import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from backscroll.changes.change_log import ChangeLog
from backscroll.errors import ChangeConflictError, UnknownStoreVersionError
from backscroll.model.change import Change, ChangePlan
from backscroll.model.message import Message
from backscroll.readers.processes import may_use_folder
from backscroll.sources.cursor import Cursor
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.writing.restore import plan_restore
from backscroll.sources.cursor.writing.session_writer import (
    blocking_processes,
    copy_edits,
    descendants,
    move_edits,
)
from backscroll.sources.cursor.writing.store_edits import StoreEdits
from tests.builders.cursor.generations import GENERATIONS
from tests.oracle.fold import ParsedSession
from tests.sources.cursor.reading import read_sessions

SHOP_FOLDER = "/home/dev/shop"
Rows = dict[tuple[str, str], list[tuple[object, ...]]]


@pytest.fixture(params=GENERATIONS)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A user-data folder of each generation."""
    root = tmp_path / "Cursor"
    GENERATIONS[request.param].write(root)
    return root


@pytest.fixture
def user_data(root: Path) -> Iterator[UserData]:
    user_data = UserData(root)
    yield user_data
    user_data.close()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    target = tmp_path / "new shop"
    target.mkdir()
    return target


def all_rows(root: Path) -> Rows:
    """Return every row of every database, with storage classes."""
    found: Rows = {}
    for path in sorted(root.rglob("*.vscdb")):
        with closing(sqlite3.connect(path)) as db:
            tables = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
            for table in tables:
                rows = db.execute(f"select * from {table}").fetchall()  # noqa: S608
                found[str(path.relative_to(root)), table] = sorted(rows, key=repr)
    return found


def apply(edits: StoreEdits, tmp_path: Path) -> tuple[ChangeLog, Change]:
    edits.user_data.close()
    log = ChangeLog(tmp_path / "changes")
    return log, log.apply(ChangePlan(what="Change", files=edits.files(), rows=edits.rows()))


def shop_sessions(sessions: dict[str, ParsedSession]) -> list[str]:
    """Return the sessions of the shop that are not subagents and have messages."""
    return [
        id_
        for id_, session in sessions.items()
        if session.messages
        and session.opening.parent_id is None
        and session.closing.workspace is not None
        and session.closing.workspace.path == SHOP_FOLDER
        and not id_.endswith("shared-tab")
    ]


def comparable(messages: list[Message], new_folder: Path) -> list[tuple[object, ...]]:
    """Return what must not change, with the paths of tool parameters mapped back."""
    return [
        (
            message.role,
            message.content,
            message.timestamp,
            message.tool.name if message.tool else None,
            message.tool.result if message.tool else None,
            repr(message.tool.params).replace(str(new_folder), SHOP_FOLDER) if message.tool else None,
        )
        for message in messages
    ]


def test_moved_sessions_belong_to_the_target_and_undo_restores_every_row(
    root: Path, user_data: UserData, target: Path, tmp_path: Path
) -> None:
    before, rows = read_sessions(root), all_rows(root)
    session_ids = shop_sessions(before)
    assert session_ids
    done: list[tuple[ChangeLog, Change]] = []
    family: set[str] = set()
    for session_id in session_ids:
        user_data.refresh()
        family |= {session_id, *descendants(user_data, session_id)}
        done.append(apply(move_edits(user_data, session_id, folder=SHOP_FOLDER, target=target), tmp_path))
    after = read_sessions(root)
    assert after.keys() == before.keys()
    for session_id in session_ids:
        moved = after[session_id]
        assert moved.closing.workspace is not None
        assert moved.closing.workspace.path == str(target)
        assert comparable(moved.messages, target) == comparable(before[session_id].messages, target)
    others = [id_ for id_ in before if id_ not in family and before[id_].opening.parent_id is None]
    assert {id_: after[id_].closing.workspace for id_ in others} == {
        id_: before[id_].closing.workspace for id_ in others
    }
    undo(done)
    assert all_rows(root) == rows
    assert not list(root.rglob("*.part"))


def test_copied_sessions_leave_the_originals_as_they_were(
    root: Path, user_data: UserData, target: Path, tmp_path: Path
) -> None:
    before, rows = read_sessions(root), all_rows(root)
    done: list[tuple[ChangeLog, Change]] = []
    new_ids: dict[str, str] = {}
    for session_id in shop_sessions(before):
        user_data.refresh()
        edits, copied = copy_edits(user_data, session_id, folder=SHOP_FOLDER, target=target)
        new_ids[session_id] = copied[0]
        done.append(apply(edits, tmp_path))
    after = read_sessions(root)
    for session_id, new_id in new_ids.items():
        copy = after[new_id]
        assert copy.closing.workspace is not None
        assert copy.closing.workspace.path == str(target)
        assert comparable(copy.messages, target) == comparable(before[session_id].messages, target)
    assert {id_: after[id_].messages for id_ in before} == {id_: before[id_].messages for id_ in before}
    undo(done)
    assert all_rows(root) == rows


def undo(done: list[tuple[ChangeLog, Change]]) -> None:
    for log, change in reversed(done):
        log.undo(change.id)


def test_a_deleted_session_is_restored(root: Path, tmp_path: Path) -> None:
    before = read_sessions(root)
    source = Cursor()
    units = {unit.session_id: unit for unit in source.units(root) if unit.session_id}
    session_ids = shop_sessions(before)
    raw_rows = {session_id: list(source.raw_rows(units[session_id])) for session_id in session_ids}
    source.close()
    for session_id in session_ids:
        delete_session(root, session_id)
    assert not set(session_ids) & read_sessions(root).keys()
    for session_id in session_ids:
        edits = plan_restore(
            UserData(root), [(session_id, Path(units[session_id].path), partial(iter, raw_rows[session_id]))]
        )
        apply(edits, tmp_path)
    after = read_sessions(root)
    for session_id in session_ids:
        restored = after[session_id]
        assert restored.messages == before[session_id].messages
        assert restored.closing.workspace == before[session_id].closing.workspace
        assert restored.closing.visibility in ("listed", before[session_id].closing.visibility)
        assert restored.closing.title == before[session_id].closing.title


def delete_session(root: Path, session_id: str) -> None:
    """Remove a session from every table and list, as Cursor does."""
    for path in root.rglob("state.vscdb"):
        with closing(sqlite3.connect(path)) as db, db:
            tables = {name for (name,) in db.execute("select name from sqlite_master where type = 'table'")}
            if "cursorDiskKV" in tables:
                db.execute("delete from cursorDiskKV where instr(key, ?)", [session_id])
            if "composerHeaders" in tables:
                db.execute("delete from composerHeaders where composerId = ?", [session_id])
            for key, value in db.execute("select key, value from ItemTable").fetchall():
                text = value if isinstance(value, str) else (value or b"").decode("utf-8", "replace")
                if session_id in text:
                    db.execute(
                        "update ItemTable set value = ? where key = ?", [_without(text, session_id), key]
                    )


def _without(text: str, session_id: str) -> str:
    import json

    def clean(value: object) -> object:
        if isinstance(value, list):
            return [clean(item) for item in value if not _is_session(item, session_id)]
        if isinstance(value, dict):
            return {name: clean(item) for name, item in value.items() if session_id not in name}
        return value

    return json.dumps(clean(json.loads(text)))


def _is_session(item: object, session_id: str) -> bool:
    if isinstance(item, dict):
        return session_id in (item.get("composerId"), item.get("tabId"), item.get("id"))
    return item == session_id


def test_a_session_that_exists_with_other_content_is_not_overwritten(tmp_path: Path) -> None:
    root = tmp_path / "Cursor"
    GENERATIONS["g4-header-table"].write(root)
    source = Cursor()
    sessions = read_sessions(root)
    session_id = shop_sessions(sessions)[0]
    unit = next(unit for unit in source.units(root) if unit.session_id == session_id)
    rows = list(source.raw_rows(unit))
    source.close()
    with closing(sqlite3.connect(root / "User" / "globalStorage" / "state.vscdb")) as db, db:
        db.execute(
            "update cursorDiskKV set value = json_set(value, '$.text', 'newer')"
            " where key like ? and json_valid(value)",
            [f"bubbleId:{session_id}:%"],
        )
    with pytest.raises(ChangeConflictError, match="with other content"):
        plan_restore(UserData(root), [(session_id, Path(unit.path), lambda: rows)])


@pytest.mark.parametrize(
    "statement", ["pragma user_version = 7", "alter table composerHeaders add column newColumn text"]
)
def test_a_store_of_an_unknown_version_is_refused(tmp_path: Path, target: Path, statement: str) -> None:
    root = tmp_path / "Cursor"
    GENERATIONS["g5-subagent-column"].write(root)
    session_id = shop_sessions(read_sessions(root))[0]
    with closing(sqlite3.connect(root / "User" / "globalStorage" / "state.vscdb")) as db, db:
        db.execute(statement)
    with pytest.raises(UnknownStoreVersionError, match="unknown"):
        move_edits(UserData(root), session_id, folder=SHOP_FOLDER, target=target)


def test_conversations_with_the_same_id_in_two_chat_panels_are_not_merged(
    tmp_path: Path, target: Path
) -> None:
    root = tmp_path / "Cursor"
    GENERATIONS["g0-chat-panel"].write(root)
    assert sum(id_.endswith("shared-tab") for id_ in read_sessions(root)) == 2
    for plan in (move_edits, copy_edits):
        with pytest.raises(ChangeConflictError, match="Several workspaces"):
            plan(UserData(root), "shared-tab", folder=SHOP_FOLDER, target=target)


@pytest.mark.skipif(sys.platform != "linux", reason="copies a Linux program")
def test_a_running_editor_blocks_changes_of_its_own_folder_only(tmp_path: Path) -> None:
    root, other = tmp_path / "Cursor", tmp_path / "Other"
    GENERATIONS["g4-header-table"].write(root)
    other.mkdir()
    program = tmp_path / "bin" / "cursor"
    program.parent.mkdir()
    shutil.copy(shutil.which("tail") or "/usr/bin/tail", program)
    database = root / "User" / "globalStorage" / "state.vscdb"
    with subprocess.Popen([program, "-f", database], stdout=subprocess.DEVNULL) as editor:
        try:
            while not may_use_folder(editor.pid, root):
                time.sleep(0.01)
            (blocking,) = blocking_processes(root, [])
            assert (blocking.pid, "Close" in blocking.reason) == (editor.pid, True)
            assert blocking_processes(other, []) == []
        finally:
            editor.kill()
    assert blocking_processes(root, []) == []
