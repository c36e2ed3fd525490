"""Deleted sessions are restored with their times, in every generation; several with one change."""

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backscroll import History
from backscroll.archive.query.originals import Original, Originals
from backscroll.config import NamedRoot
from backscroll.model.session import Filter
from backscroll.model.transfer import RestoreSessionsResult
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Transcript
from backscroll.testing.cursor_cli.transcripts import write_transcript
from tests import histories
from tests.cli.run_command import backscroll
from tests.histories import HISTORIES_WITH_SOAK
from tests.transfer.test_every_store import database_rows
from tests.transfer.test_killed_migration import ONE, WRITERS

TWO = "20000000-0000-4000-8000-000000000002"
THREE = "30000000-0000-4000-8000-000000000003"
MESSAGES = [cursor.user("Mend it"), cursor.assistant("Done.")]
MONTH_SECONDS = 30 * 86_400
OLD = time.time() - 3 * MONTH_SECONDS


def delete_all(root: Path, source: str) -> None:
    """Delete what the tool deletes with its sessions: all files, or the rows of all databases."""
    for path in sorted(root.rglob("*"), reverse=True):
        if path.suffix == ".vscdb":
            with closing(sqlite3.connect(path)) as db, db:
                for (table,) in db.execute("select name from sqlite_master where type = 'table'").fetchall():
                    db.execute(f'delete from "{table}"')  # noqa: S608
        elif path.is_dir():
            if not list(path.iterdir()):
                path.rmdir()
        elif source != "cursor":
            path.unlink()


class Machine:
    """The history of one generation, old files, and its archive."""

    def __init__(self, folder: Path, sample: histories.History) -> None:
        self.source = sample.source_name
        self.root = sample.write(folder / "root")
        for number, path in enumerate(sorted(self.root.rglob("*"))):
            if path.is_file():
                os.utime(path, (OLD + number, OLD + number + 0.123))
        self.history = History(roots=[NamedRoot(self.source, self.root)], home=folder / "home")
        self.history.sync()

    def delete_all(self) -> None:
        delete_all(self.root, self.source)
        self.history.sync()

    def gone(self) -> set[str]:
        return {one.ref for one in self.history.all_sessions() if one.is_gone}

    def contents(self) -> dict[str, Any]:
        """Return title and messages of all sessions."""
        found = {}
        for one in self.history.all_sessions():
            session = self.history.get_session(one.ref)
            messages = [(each.id, each.role, each.content, each.tool) for each in session.messages]
            found[one.ref] = one.title, one.workspace_path, messages
        return found

    def files(self) -> dict[str, object]:
        """Return all files, databases of the editor as rows. Shared memory is left out."""
        return {
            str(path): database_rows(path) if path.suffix == ".vscdb" else path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not path.name.endswith(("-shm", ".vscdb-wal"))
        }

    def restore_all(self) -> RestoreSessionsResult:
        """Restore every session that was deleted, except that in the database of Claude Code 0.2."""
        result = self.history.restore_sessions(filter=Filter(is_gone=True, with_unlisted=True))
        assert {one.code for one in result.errors} <= {"not-archived"}
        return result

    def modified(self) -> dict[str, float]:
        return {str(path): path.stat().st_mtime for path in self.root.rglob("*") if path.is_file()}

    def times(self) -> dict[str, Any]:
        """Return the times of all sessions and their messages."""
        return {
            one.ref: (
                one.created_at,
                one.updated_at,
                [
                    (message.timestamp, message.timestamp_source)
                    for message in self.history.get_session(one.ref).messages
                ],
            )
            for one in self.history.all_sessions()
        }


@pytest.fixture(params=HISTORIES_WITH_SOAK, ids=repr)
def machine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Machine]:
    monkeypatch.setattr("backscroll.readers.processes._running", list)  # 20 % of the time of this test
    machine = Machine(tmp_path, request.param)
    with machine.history:
        yield machine


# Times


def test_restored_sessions_and_their_messages_keep_their_times(machine: Machine) -> None:
    before, modified = machine.times(), machine.modified()
    machine.delete_all()
    if any(one.is_gone for one in machine.history.all_sessions()):
        machine.restore_all()
    assert machine.times() == before
    for path, restored_at in machine.modified().items():
        if machine.source == "claude-code" and path in modified:
            assert restored_at == pytest.approx(time.time(), abs=60), "the tool deletes old files"
        elif machine.source == "cursor-cli":
            assert restored_at >= OLD
            assert restored_at < OLD + MONTH_SECONDS


def test_cursor_lists_restored_sessions_where_they_were(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "cursor", generation=5)
    workspace = cursor.local_folder(str(tmp_path))
    for number in range(3):
        home.composer([cursor.user(f"Mend it {number}"), cursor.assistant("Done.")], workspace=workspace)
    home.write()

    def headers() -> list[tuple[object, ...]]:
        names = (
            "composerId, workspaceId, createdAt, lastUpdatedAt, isArchived, isSubagent, recency, checkpointAt"
        )
        with closing(sqlite3.connect(home.database)) as db:
            return db.execute(f"select {names} from composerHeaders order by recency").fetchall()  # noqa: S608

    with History(roots=[NamedRoot("cursor", tmp_path / "cursor")], home=tmp_path / "home") as history:
        history.sync()
        before = headers()
        assert len({row[6] for row in before}) == 3
        with closing(sqlite3.connect(home.database)) as db, db:
            for table in ("cursorDiskKV", "composerHeaders"):
                db.execute(f"delete from {table}")  # noqa: S608
        history.sync()
        for one in history.all_sessions():
            history.restore_session(one.ref)
        assert headers() == before


# Several sessions with one change


def test_one_undo_reverts_the_restore_of_all_sessions(machine: Machine) -> None:
    contents = machine.contents()
    machine.delete_all()
    files, gone = machine.files(), machine.gone()
    if not gone:
        return
    result = machine.restore_all()
    assert set(result.restored) >= gone - {f"{machine.source}:{one.session_id}" for one in result.errors}
    assert machine.contents() == contents
    assert machine.gone() == gone - set(result.restored)
    again = machine.history.restore_sessions(result.restored)
    assert (again.change, set(again.kept)) == (None, set(result.restored))
    machine.history.undo_change()
    assert machine.files() == files
    assert machine.gone() == gone


def test_sessions_of_several_tools_are_restored_with_one_change(tmp_path: Path) -> None:
    roots = [NamedRoot(source, tmp_path / source) for source in WRITERS]
    for root in roots:
        root.path.mkdir()
    for source in ("claude-code", "cursor"):
        WRITERS[source](tmp_path / source, str(tmp_path))
    cursor_cli.Home(tmp_path / "cursor-cli").chat(MESSAGES, cwd=str(tmp_path), id=TWO)
    write_transcript(tmp_path / "cursor-cli", MESSAGES, id=THREE, cwd=str(tmp_path))
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        listed = {one.ref for one in history.all_sessions()}
        for root in roots:
            delete_all(root.path, root.source)
        history.sync()
        plan = history.transfers.plan_restores(filter=Filter(is_gone=True))
        assert {one.session.source for one in plan.added} == set(WRITERS)
        result = history.transfers.restore_all(plan)
        assert (set(result.restored), result.errors, len(history.list_changes())) == (listed, (), 1)
        assert not [one for one in history.all_sessions() if one.is_gone]
        (other,) = [ref for ref in listed if ref.startswith("cursor:") and not ref.endswith(ONE)]
        history.archive_admin.forget(other)
        history.undo_change()
        assert {one.ref for one in history.all_sessions() if one.is_gone} >= {
            ref for ref in listed if ref.startswith("claude-code:")
        }


def test_a_session_that_cannot_be_read_back_is_refused_and_the_others_are_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "claude"
    for session_id in (ONE, TWO):
        session = Transcript(session_id=session_id, cwd=str(tmp_path))
        session.user("Where is the quay?").assistant("There.").write(root)
    with History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "home") as history:
        history.sync()
        delete_all(root, "claude-code")
        history.sync()
        read = Originals.read_file

        def damaged(self: Originals, original: Original) -> Iterator[bytes]:
            return iter([b"{}\n"]) if TWO in original.path else read(self, original)

        monkeypatch.setattr(Originals, "read_file", damaged)
        result = history.restore_sessions([ONE, TWO])
        assert result.restored == (f"claude-code:{ONE}",)
        assert [(one.session_id, one.code) for one in result.errors] == [(TWO, "read-back")]
        assert [path.stem for path in root.rglob("*.jsonl")] == [ONE]


# Chats of 2024


@pytest.mark.parametrize("generation", [0, 5])
def test_chats_of_2024_are_refused_with_the_command_that_continues_them(
    tmp_path: Path, generation: int
) -> None:
    root, target = tmp_path / "cursor", tmp_path / "new"
    target.mkdir()
    home = cursor.Home(root, generation=generation)
    home.tab(MESSAGES, workspace=cursor.SHOP, id=ONE, name="Regex help")
    home.write()
    if generation == 0:
        shutil.rmtree(home.database.parent)
    options = ("--home", tmp_path / "home", "--root", f"cursor={root}")
    assert backscroll(*options, "sync").code == 0
    moved = backscroll(*options, "migrate", ONE, "--to", target, "--yes")
    for path in root.glob("User/workspaceStorage/*/state.vscdb"):
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("delete from ItemTable")
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    restored = backscroll(*options, "restore-session", ONE, "--yes")
    for result, verb in ((moved, "moved or copied"), (restored, "restored")):
        assert result.code == 1
        text = result.out + result.err
        assert f"It cannot be {verb}." in text
        assert f"backscroll handoff {ONE}'" in text
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    assert "Mend it" in backscroll(*options, "handoff", ONE).out
