"""A restore into a home that is in use adds what is missing, and leaves everything else as it is."""

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from backscroll.config import Machine, NamedRoot
from backscroll.errors import RestoreError
from backscroll.history.history import History
from backscroll.model.session import Session
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Transcript
from tests.backup.histories import SOURCES, STORE, database_rows, file_contents
from tests.backup.test_filtered import content
from tests.backup.test_foreign_backups import forge
from tests.cli.run_command import backscroll
from tests.histories import HISTORIES
from tests.histories import History as SampleHistory
from tests.transfer.test_killed_migration import run_and_die

BASKET = "30000000-0000-4000-8000-000000000003"
LATER = "40000000-0000-4000-8000-000000000004"


def write_cursor(folder: Path, sessions: dict[str, str], project: Path) -> None:
    home = cursor.Home(folder / "cursor", generation=5)
    workspace = cursor.local_folder(str(project))
    for id_, text in sessions.items():
        home.composer([cursor.user(text), cursor.assistant("Done.")], workspace=workspace, id=id_, name=text)
    home.put_secrets()
    home.write()


def write_machine(folder: Path, name: str, project: Path) -> None:
    """Write one session of each source; their texts contain the name."""
    project.mkdir(parents=True, exist_ok=True)
    seed = 1 if name == "old" else 2
    transcript = Transcript(seed=seed, cwd=str(project)).user(f"{name} ferry").assistant("Yes.")
    transcript.write(folder / "claude-code")
    write_cursor(folder, {BASKET if name == "old" else LATER: f"{name} basket"}, project)
    cli = cursor_cli.Home(folder / "cursor-cli", seed=seed)
    cli.chat([cursor.user(f"{name} harbor"), cursor.assistant("Yes.")], cwd=str(project))


def said(session: Session) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in session.messages]


def open_history(folder: Path) -> History:
    return History(roots=[NamedRoot(name, folder / name) for name in SOURCES], home=folder / "home")


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A machine with a backup, and another one that was used before: it has other sessions."""
    old, new = tmp_path / "old-home", tmp_path / "new-home"
    write_machine(old, "old", old / "shop")
    lost = Transcript(seed=9, cwd=str(old / "shop")).user("old lost ferry").assistant("Gone.")
    path = lost.write(old / "claude-code")
    with open_history(old) as history:
        history.sync()
        path.unlink()
        history.sync()
        for one in history.all_sessions():
            history.annotations.tag(one.ref, ["kept"])
            history.annotations.add_note(one.ref, f"note of {one.title}")
        backup = Path(history.create_backup(tmp_path / "backup.zip").backup_path)
    write_machine(new, "new", new / "shop")
    with open_history(new) as history:
        history.sync()  # the program ran here before
    return old, new, backup


def test_everything_that_is_missing_is_added_to_a_home_in_use(machines: tuple[Path, Path, Path]) -> None:
    old, new, backup = machines
    before = file_contents(new)
    secrets = [row for row in database_rows(new / STORE)["ItemTable"] if b"cursorAuth" in row[1]]
    with open_history(old) as source:
        expected = {one.ref: said(source.get_session(one.ref)) for one in source.all_sessions()}
        gone = {one.ref for one in source.all_sessions() if one.is_gone}
    with open_history(new) as history:
        own = {one.ref: said(history.get_session(one.ref)) for one in history.all_sessions()}
        plan = history.restore_backup(backup, path_map={str(old): str(new)}, is_dry_run=True)
        result = history.restore_backup(backup, path_map={str(old): str(new)})
        assert result.sessions == plan.sessions
        assert {one.ref: one.action for one in result.sessions} == dict.fromkeys(expected, "added")
        history.sync()
        found = {one.ref: one for one in history.all_sessions()}
        assert found.keys() == expected.keys() | own.keys()
        for ref, messages in (own | expected).items():
            assert said(history.get_session(ref)) == messages, ref
        assert {ref for ref in expected if found[ref].is_gone} == gone
        assert {found[ref].workspace_path for ref in expected} == {str(new / "shop")}
        assert {found[ref].tags for ref in expected} == {("kept",)}
        assert all(len(found[ref].notes) == 1 for ref in expected)
        assert {found[ref].tags for ref in own} == {()}
        assert history.archive_admin.verify() == []
    after = file_contents(new)
    names = [one for one in before if one.endswith((".jsonl", "store.db", "meta.json"))]
    kept = {name: before[name] for name in names if not name.startswith("home/")}
    assert {name: after[name] for name in kept} == kept
    assert [row for row in database_rows(new / STORE)["ItemTable"] if b"cursorAuth" in row[1]] == secrets
    with open_history(new) as history:
        again = history.restore_backup(backup, path_map={str(old): str(new)})
        assert (again.is_empty, again.change_id) == (True, None)


def test_undo_removes_what_a_restore_added_to_the_tools(machines: tuple[Path, Path, Path]) -> None:
    old, new, backup = machines
    files = {name: data for name, data in file_contents(new).items() if not name.startswith("home/")}
    rows = database_rows(new / STORE)
    with open_history(new) as history:
        history.restore_backup(backup, path_map={str(old): str(new)})
        history.undo_change()
        assert all(one.is_undone for one in history.list_changes())
    after = {name: data for name, data in file_contents(new).items() if not name.startswith("home/")}
    names = [name for name in files if "vscdb" not in name]
    assert {name: after.get(name) for name in names} == {name: files[name] for name in names}
    assert not {name for name in after if "vscdb" not in name} - files.keys()
    assert database_rows(new / STORE) == rows


def test_only_one_source_is_restored_and_merged(machines: tuple[Path, Path, Path]) -> None:
    old, new, backup = machines
    with open_history(new) as history:
        result = history.restore_backup(backup, source="cursor", path_map={str(old): str(new)})
        assert [one.ref for one in result.sessions] == [f"cursor:{BASKET}"]
        history.sync()
        titles = {one.title for one in history.all_sessions()}
        assert "old basket" in titles
        assert not [title for title in titles if title and "old ferry" in title]


def test_what_differs_is_listed_and_can_be_chosen(tmp_path: Path) -> None:
    write_machine(tmp_path, "old", tmp_path / "shop")
    with open_history(tmp_path) as history:
        history.sync()
        backup = Path(history.create_backup(tmp_path / "backup.zip").backup_path)
        transcript = next((tmp_path / "claude-code").rglob("*.jsonl"))
        original = transcript.read_bytes()
        with transcript.open("ab") as file:
            file.write(b'{"type":"mode","mode":"normal"}\n')
        with closing(sqlite3.connect(tmp_path / STORE)) as db, db:
            db.execute(
                "update cursorDiskKV set value = replace(value, 'old basket', 'new basket') where key = ?",
                [f"composerData:{BASKET}"],
            )
        before = database_rows(tmp_path / STORE)
        kept = history.restore_backup(backup)
        assert {one.ref.partition(":")[0]: one.action for one in kept.sessions} == {
            "claude-code": "differing",
            "cursor": "differing",
            "cursor-cli": "kept",
        }
        assert (kept.files_restored, database_rows(tmp_path / STORE)) == (0, before)
        history.restore_backup(backup, prefer="backup")
        assert transcript.read_bytes() == original
        with closing(sqlite3.connect(tmp_path / STORE)) as db:
            key = f"composerData:{BASKET}"
            (value,) = db.execute("select value from cursorDiskKV where key = ?", [key]).fetchone()
        assert "old basket" in value


def test_the_command_counts_each_source_and_names_what_differs(tmp_path: Path) -> None:
    write_machine(tmp_path, "old", tmp_path / "shop")
    roots = [word for name in SOURCES for word in ("--root", f"{name}={tmp_path / name}")]
    options = ("--home", tmp_path / "home", *roots)
    assert backscroll(*options, "backup", "create", "-o", tmp_path / "b.zip").code == 0
    with next((tmp_path / "claude-code").rglob("*.jsonl")).open("ab") as file:
        file.write(b'{"type":"mode","mode":"normal"}\n')
    shutil.rmtree(tmp_path / "cursor-cli")
    result = backscroll(*options, "backup", "restore", tmp_path / "b.zip", "--yes")
    assert result.code == 0, result.err
    assert "claude-code: 0 sessions added, 0 kept, 1 differing." in result.out
    assert "cursor: 0 sessions added, 1 kept, 0 differing." in result.out
    assert "cursor-cli: 1 session added, 0 kept, 0 differing." in result.out
    assert "  differs    claude-code:" in result.out
    assert "--prefer backup" in result.out
    again = backscroll(*options, "backup", "restore", tmp_path / "b.zip", "--yes")
    assert (again.code, "Nothing to restore." in again.out) == (0, True)


def test_the_hint_for_a_map_names_the_home_folders(tmp_path: Path) -> None:
    ada = tmp_path / "home" / "ada"
    Transcript(seed=1).user("find the ferry").assistant("Late.").write(ada / ".claude")
    with History(roots=[NamedRoot("claude-code", ada / ".claude")], home=tmp_path / "one") as history:
        history.sync()
        backup = history.create_backup(tmp_path / "backup.zip").backup_path
    machine = Machine(tmp_path / "home" / "bea", environ={}, system="linux")
    with History(home=tmp_path / "two", machine=machine) as history:
        with pytest.raises(RestoreError) as raised:
            history.restore_backup(backup)
        assert f"--map '{ada}={machine.home}'" in str(raised.value)
        history.restore_backup(backup, path_map={str(ada): str(machine.home)})
    assert list((machine.home / ".claude").rglob("*.jsonl"))


@pytest.mark.soak  # test_round_trip.py restores every history into a home in use
@pytest.mark.parametrize("sample", HISTORIES, ids=str)
def test_every_session_comes_back_into_a_store_that_lost_it(sample: SampleHistory, tmp_path: Path) -> None:
    """One session after the other is deleted from Cursor's databases; files of the others are deleted."""
    root = sample.write(tmp_path / sample.source_name)
    roots = [NamedRoot(sample.source_name, root)]
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        before = {one.ref: content(history.get_session(one.ref)) for one in history.all_sessions()}
        refs = [one.ref for one in history.all_sessions() if not one.is_gone]
        backup = Path(history.create_backup(tmp_path / "backup.zip").backup_path)
        contents = file_contents(root)
        for path in [path for path in root.rglob("*") if path.is_file()]:
            if path.suffix == ".vscdb":
                with closing(sqlite3.connect(path)) as db, db:
                    names = db.execute("select name from sqlite_master where type = 'table'").fetchall()
                    for (name,) in names:
                        db.execute(f"delete from {name}")  # noqa: S608
            elif not path.name.endswith((".db", "-wal", "-shm", "workspace.json")):
                path.unlink()
        history.sync()
        history.restore_backup(backup)
        history.sync()
        after = {one.ref: content(history.get_session(one.ref)) for one in history.all_sessions()}
        assert after == before
        assert {one.ref for one in history.all_sessions() if not one.is_gone} >= set(refs)
    if sample.source_name == "claude-code":
        restored = file_contents(root)
        expected = {name: data for name, data in contents.items() if name in restored}
        assert {name: restored[name] for name in expected} == expected


# A foreign archive


@pytest.mark.parametrize("name", ["settings.json", "../outside.jsonl", "commands/x.jsonl"])
def test_an_archive_cannot_name_files_that_are_no_history(tmp_path: Path, name: str) -> None:
    root = tmp_path / "claude-code"
    path = Transcript(seed=1).user("find the ferry").assistant("Late.").write(root)
    with History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "one") as history:
        history.sync()
        (session,) = history.all_sessions()
        backup = Path(history.create_backup(tmp_path / "b.zip", sessions=[session.ref]).backup_path)
        history._stores.archive.maintenance.copy(tmp_path / "archive.db")
    with closing(sqlite3.connect(tmp_path / "archive.db")) as db, db:
        unit = db.execute("select id from unit where path = ?", [str(path)]).fetchone()[0]
        target = str(root / name.replace("outside", session.id))
        db.execute("update unit set path = ? where id = ?", [target, unit])
        db.execute("pragma journal_mode = delete")
    archive = {"archive/archive.db.zst": (tmp_path / "archive.db").read_bytes()}
    forged = forge(backup, tmp_path / "forged.zip", contents=archive)
    path.unlink()
    before = file_contents(tmp_path)
    history = History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "two")
    with history, suppress(RestoreError):
        history.restore_backup(forged)
    after = file_contents(tmp_path)
    assert {one for one in after if not one.startswith("two/")} == set(before)


# Killed


def test_a_killed_merge_is_completed_by_a_second_run(
    machines: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backscroll.readers.processes._running", list)
    old, new, backup = machines
    saved = new.with_name("saved")
    shutil.copytree(new, saved)
    maps = {str(old): str(new)}

    def restore() -> None:
        with open_history(new) as history:
            history.restore_backup(backup, path_map=maps)

    def state() -> Any:
        with open_history(new) as history:
            history.sync()
            sessions = [history.get_session(one.ref) for one in history.all_sessions()]
            found = [(one.summary, repr(content(one))) for one in sessions]
            return sorted((one.ref, one.tags, one.workspace_path, one.is_gone, text) for one, text in found)

    count = run_and_die(restore, 0)
    expected = state()
    for last in range(40, count, max(1, count // 6)):
        shutil.rmtree(new)
        shutil.copytree(saved, new)
        run_and_die(restore, last)
        restore()
        assert state() == expected, last
        assert not [path for path in new.rglob("*.part") if "home/" not in str(path)]
