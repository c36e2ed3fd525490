"""Sessions that their tools have deleted move with their workspace, and are restored in the new one."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll import History
from backscroll.config import NamedRoot
from backscroll.errors import ChangeConflictError
from backscroll.sources.claude_code.workspace import project_key
from backscroll.testing import cursor
from tests.cli.run_command import Result, backscroll
from tests.transfer.test_every_store import database_rows
from tests.transfer.test_killed_migration import ONE, WRITERS

TWO = "20000000-0000-4000-8000-000000000002"


class Machine:
    """Sessions of one folder that their tool has deleted, their archive, and the folder's new place."""

    def __init__(self, folder: Path, source: str) -> None:
        self.folder, self.source = folder, source
        self.root, self.old, self.new = folder / "root", folder / "old", folder / "new"
        for path in (self.root, self.old, self.new):
            path.mkdir()
        WRITERS[source](self.root, str(self.old))
        with self.open() as history:
            history.sync()
            self.messages = self.contents(history)
            self.delete()
            history.sync()

    def open(self) -> History:
        return History(roots=[NamedRoot(self.source, self.root)], home=self.folder / "home")

    def delete(self) -> None:
        """Delete the sessions as the tools do. The prompt log of Claude Code stays."""
        for path in sorted(self.root.rglob("*"), reverse=True):
            if path.suffix == ".vscdb":
                with closing(sqlite3.connect(path)) as db, db:
                    for table in ("ItemTable", "cursorDiskKV", "composerHeaders"):
                        if table in database_rows(path):
                            db.execute(f"delete from {table}")  # noqa: S608
            elif path.is_file() and path.name not in ("history.jsonl", "workspace.json"):
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()

    def files(self) -> dict[str, object]:
        return {
            str(path.relative_to(self.root)): database_rows(path)
            if path.suffix == ".vscdb"
            else path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not path.name.endswith(("-shm", "-wal"))
        }

    def contents(self, history: History) -> list[tuple[str, str]]:
        return [(one.role, one.content) for one in history.get_session(ONE).messages if one.is_active]

    def run(self, *arguments: str | Path) -> Result:
        options = ("--home", self.folder / "home", "--root", f"{self.source}={self.root}")
        return backscroll(*options, *arguments)


@pytest.fixture(params=WRITERS)
def machine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr("backscroll.readers.processes._running", list)
    return Machine(tmp_path, request.param)


def test_deleted_sessions_move_with_their_workspace(machine: Machine) -> None:
    before = machine.files()
    with machine.open() as history:
        assert history.find(ONE).is_gone
        result = history.migrate_workspace(machine.old, machine.new, mode="move")
        assert (result.failed_count, f"{machine.source}:{ONE}" in {one.ref for one in result.sessions}) == (
            0,
            True,
        )
        assert machine.files() == before
        moved = history.find(ONE)
        assert (moved.workspace_path, moved.is_gone) == (str(machine.new), True)
        resumed = history.resume.plan(ONE).command
        assert resumed is not None
        assert resumed.folder == str(machine.new)
        history.restore_session(ONE)
        restored = history.find(ONE)
        assert (restored.workspace_path, restored.is_gone) == (str(machine.new), False)
        assert machine.contents(history) == machine.messages
        resumed = history.resume.plan(ONE).command
        assert resumed is not None
        assert resumed.folder == str(machine.new)
        written = b"".join(
            path.read_bytes() for path in machine.root.rglob("*") if path.suffix in (".jsonl", ".json")
        )
        assert machine.source == "cursor" or str(machine.new).encode() in written


def test_undo_moves_deleted_sessions_back(machine: Machine) -> None:
    before = machine.files()
    with machine.open() as history:
        history.restore_session(ONE)
        expected = machine.files()
        history.undo_change()
        assert machine.files() == before
        history.migrate_workspace(machine.old, machine.new, mode="move")
        change = history.list_changes()[0].id
        history.restore_session(ONE)
        with pytest.raises(ChangeConflictError, match="changed again later"):
            history.undo_change(change)
        history.undo_change()
        history.undo_change()
        assert machine.files() == before
        assert history.find(ONE).workspace_path == str(machine.old)
        history.restore_session(ONE)
        assert without_version(machine.files()) == without_version(expected)
        assert history.find(ONE).workspace_path == str(machine.old)


def without_version(files: dict[str, object]) -> dict[str, object]:
    """Leave out what Cursor's list records of the time of a change."""
    return {name: value for name, value in files.items() if not name.endswith("state.vscdb")}


def test_a_rebuild_of_the_archive_keeps_the_new_folder(machine: Machine) -> None:
    with machine.open() as history:
        history.migrate_workspace(machine.old, machine.new, mode="move")
        history.archive_admin.rebuild()
        assert history.find(ONE).workspace_path == str(machine.new)


def test_sessions_that_moved_twice_are_restored_in_the_last_folder(machine: Machine) -> None:
    third = machine.folder / "third"
    third.mkdir()
    with machine.open() as history:
        history.migrate_workspace(machine.old, machine.new, mode="move")
        history.migrate_workspace(machine.new, third, mode="move")
        history.restore_session(ONE)
        assert history.find(ONE).workspace_path == str(third)
        assert machine.contents(history) == machine.messages
        for folder in (third, machine.new, machine.old):  # after undo of the restore and of each move
            history.undo_change()
            assert history.find(ONE).workspace_path == str(folder)


def test_the_commands_show_what_moves_in_the_archive(machine: Machine) -> None:
    command = ("migrate-workspace", machine.old, machine.new, "--mode", "move")
    planned = machine.run(*command, "--dry-run")
    assert (planned.code, f"move    archive        {machine.source}:{ONE}" in planned.out) == (0, True), (
        planned.err
    )
    document = json.loads(machine.run(*command, "--dry-run", "--json").out)
    assert document["data"][0]["moves"] == [
        {"session": document["data"][0]["ref"], "before": str(machine.old), "after": str(machine.new)}
    ]
    assert machine.run(*command, "--yes").code == 0
    again = machine.run(*command, "--yes")
    assert (again.code, "already" in again.out) == (0, True), again.err
    assert machine.run("undo", "--yes").code == 0
    assert machine.run("list", "--workspace", machine.old, "--json").code == 0


def test_doctor_finds_the_moved_folder_of_deleted_sessions(machine: Machine) -> None:
    shutil.rmtree(machine.new)
    machine.old.rename(machine.folder / "else")
    found = json.loads(machine.run("doctor", "--moved", "--json").out)["data"]
    assert [(one["path"], one["session_count"] >= 1) for one in found] == [(str(machine.old), True)]


def test_a_copy_of_a_workspace_leaves_deleted_sessions(machine: Machine) -> None:
    copied = machine.run("migrate-workspace", machine.old, machine.new, "--yes")
    assert (copied.code, "The tools have deleted all sessions" in copied.err) == (1, True)


def test_a_forgotten_session_is_erased_from_the_change_of_all(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "cursor")
    with machine.open() as history:
        result = history.migrate_workspace(machine.old, machine.new, mode="move")
        assert len(result.sessions) == 2
        history.archive_admin.forget(ONE)
        log = b"".join(path.read_bytes() for path in (tmp_path / "home" / "changes").rglob("*.json"))
        assert ONE.encode() not in log
        history.undo_change()
        assert [one.workspace_path for one in history.all_sessions()] == [str(machine.old)]


@pytest.mark.parametrize("generation", range(1, 6))
def test_deleted_sessions_of_every_generation_of_cursor_are_restored_in_the_new_folder(
    tmp_path: Path, generation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(root: Path, folder: str) -> None:
        home = cursor.Home(root, generation=generation)
        messages = [cursor.user("Rename it"), cursor.assistant("Done.")]
        home.composer(messages, workspace=cursor.local_folder(folder), id=ONE)
        home.write()

    monkeypatch.setitem(WRITERS, "cursor", write)
    machine = Machine(tmp_path, "cursor")
    with machine.open() as history:
        history.migrate_workspace(machine.old, machine.new, mode="move")
        assert history.find(ONE).workspace_path == str(machine.new)
        history.restore_session(ONE)
        assert history.find(ONE).workspace_path == str(machine.new)
        assert machine.contents(history) == machine.messages


def test_a_backup_restores_a_moved_session_in_the_mapped_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backscroll.readers.processes._running", list)
    here, there = tmp_path / "here", tmp_path / "there"
    for path in (here, there / "root", there / "new"):
        path.mkdir(parents=True)
    machine = Machine(here, "claude-code")
    backup = tmp_path / "history.zip"
    with machine.open() as history:
        history.migrate_workspace(machine.old, machine.new, mode="move")
        history.create_backup(backup)
    roots = [NamedRoot("claude-code", there / "root")]
    with History(roots=roots, home=there / "home") as history:
        history.restore_backup(backup, path_map={str(here): str(there)})
        history.sync()
        assert history.find(ONE).workspace_path == str(there / "new")
        history.restore_session(ONE)
        assert machine.contents(history) == machine.messages
    (transcript,) = (there / "root").rglob(f"{ONE}.jsonl")
    assert transcript.parent.name == project_key(str(there / "new"))
    assert json.loads(transcript.read_text().splitlines()[0])["cwd"] == str(there / "new")
