"""Single sessions are restored from any backup, and other sessions stay as they are."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.errors import BackscrollError, RestoreError
from backscroll.history.history import History
from backscroll.testing import cursor
from backscroll.testing.claude_code import Prompt, Transcript
from backscroll.testing.claude_code.side_files import write_prompts
from tests.backup.histories import STORE, database_rows, make_history
from tests.backup.test_filtered import content, depends_on_others
from tests.histories import HISTORIES, HISTORIES_WITH_SOAK
from tests.histories import History as SampleHistory


@pytest.mark.parametrize("sample", HISTORIES_WITH_SOAK, ids=str)
def test_sessions_that_are_restored_one_by_one_are_complete(sample: SampleHistory, tmp_path: Path) -> None:
    root = sample.write(tmp_path / sample.source_name)
    roots = [NamedRoot(sample.source_name, root)]
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        sessions = [
            one for one in history.all_sessions() if not one.is_gone and not depends_on_others(one.id)
        ]
        expected = {one.ref: content(history.get_session(one.ref)) for one in sessions}
        backup = Path(history.create_backup(tmp_path / "all.zip").backup_path)
    shutil.rmtree(root)
    history = History(roots=roots, home=tmp_path / "second")
    restored: list[str] = []
    if str(sample) == "claude-code 0.2":
        pytest.skip("sessions in the database of version 0.2 come back with the whole backup only")
    for session in sessions[:2]:
        result = history.restore_backup(backup, sessions=[session.ref])
        assert result.sessions_restored == 1, session.ref
        restored.append(session.ref)
        again = history.restore_backup(backup, sessions=[session.ref])
        assert (again.files_restored, again.change_id) == (0, None)
    with History(roots=roots, home=tmp_path / "third") as fresh:
        fresh.sync()
        listed = [one.ref for one in fresh.all_sessions()]
        assert sorted(listed) == sorted(restored)
        for ref in restored:
            assert content(fresh.get_session(ref)) == expected[ref], ref


@pytest.fixture
def two_sessions(tmp_path: Path) -> Path:
    """Return a backup of a Cursor store with the sessions One and Two."""
    ide = cursor.Home(tmp_path / "cursor")
    for name in ("One", "Two"):
        messages = [cursor.user(f"question {name}"), cursor.assistant(f"answer {name}")]
        ide.composer(messages, workspace=cursor.SHOP, name=name)
    ide.put_secrets()
    ide.write()
    with make_history(tmp_path, "cursor") as history:
        return Path(history.create_backup(tmp_path / "backup.zip").backup_path)


def library(folder: Path) -> History:
    return History(roots=[NamedRoot("cursor", folder / "cursor")], home=folder / "home")


def ref_of(folder: Path, title: str) -> str:
    return next(one.ref for one in library(folder).all_sessions() if one.title == title)


def delete_session(store: Path, ref: str) -> None:
    id_ = ref.partition(":")[2]
    with closing(sqlite3.connect(store)) as db:
        db.execute("delete from cursorDiskKV where instr(key, ?)", [id_])
        if db.execute("select 1 from sqlite_master where name = 'composerHeaders'").fetchone():
            db.execute("delete from composerHeaders where composerId = ?", [id_])
        db.commit()


def keyed_rows(store: Path) -> dict[object, object]:
    return {row[1]: row[2] for row in database_rows(store)["cursorDiskKV"]}


def test_one_cursor_session_is_inserted_into_the_store(two_sessions: Path, tmp_path: Path) -> None:
    store, ref = tmp_path / STORE, ref_of(tmp_path, "One")
    before, logins = keyed_rows(store), database_rows(store)["ItemTable"]
    delete_session(store, ref)
    deleted = database_rows(store)
    result = library(tmp_path).restore_backup(two_sessions, sessions=[ref])
    (inserted,) = [file for file in result.files if file.action == "insert"]
    assert (inserted.session_id, result.sessions_restored) == (ref.partition(":")[2], 1)
    after = keyed_rows(store)
    # The archive does not keep the checkpoints of single prompts, and what only they refer to.
    assert {key[:8] for key in before.keys() - after.keys()} <= {b"agentKv:"}
    assert after.keys() <= before.keys()
    assert {key: value for key, value in after.items() if b"composerData" not in key} == {
        key: value for key, value in before.items() if key in after and b"composerData" not in key
    }
    secrets = [row for row in logins if row[1].startswith((b"cursorAuth", b"secret", b"mcpOAuth"))]
    assert secrets
    assert [row for row in database_rows(store)["ItemTable"] if row in secrets] == secrets
    with make_history(tmp_path, "cursor") as history:
        assert {one.title for one in history.all_sessions() if not one.is_gone} == {"One", "Two"}
    library(tmp_path).undo_change(result.change_id)
    assert database_rows(store) == deleted


def test_a_session_that_continued_is_kept_without_force(two_sessions: Path, tmp_path: Path) -> None:
    store, ref = tmp_path / STORE, ref_of(tmp_path, "One")
    key = f"composerData:{ref.partition(':')[2]}"
    with closing(sqlite3.connect(store)) as db:
        db.execute("update cursorDiskKV set value = replace(value, 'One', 'Later') where key = ?", [key])
        db.commit()
    changed = keyed_rows(store)
    kept = library(tmp_path).restore_backup(two_sessions, sessions=[ref])
    assert [(one.ref, one.action) for one in kept.sessions] == [(ref, "differing")]
    assert (kept.files_restored, keyed_rows(store)) == (0, changed)
    other = ref_of(tmp_path, "Two").partition(":")[2].encode()
    replaced = library(tmp_path).restore_backup(two_sessions, sessions=[ref], prefer="backup")
    assert [(one.ref, one.action) for one in replaced.sessions] == [(ref, "added")]
    after = keyed_rows(store)
    assert b'"name":"One"' in after[key.encode()]
    assert {one: after[one] for one in after if other in one} == {
        one: changed[one] for one in changed if other in one
    }


def test_a_session_of_an_older_store_is_inserted_into_a_newer_one(tmp_path: Path) -> None:
    old = cursor.Home(tmp_path / "cursor", generation=3)
    old.composer([cursor.user("old question"), cursor.assistant("a")], workspace=cursor.SHOP, name="Old")
    old.write()
    with make_history(tmp_path, "cursor") as history:
        backup = Path(history.create_backup(tmp_path / "backup.zip").backup_path)
        (ref,) = [one.ref for one in history.all_sessions()]
    shutil.rmtree(tmp_path / "cursor")
    new = cursor.Home(tmp_path / "cursor", generation=5, seed=1)
    new.composer([cursor.user("new question"), cursor.assistant("b")], workspace=cursor.SHOP, name="New")
    new.write()
    library(tmp_path).restore_backup(backup, sessions=[ref])
    headers = database_rows(tmp_path / STORE)["composerHeaders"]
    assert {row[1].decode() for row in headers} >= {ref.partition(":")[2]}
    with make_history(tmp_path, "cursor") as history:
        assert {one.title for one in history.all_sessions() if not one.is_gone} == {"Old", "New"}


def test_the_prompts_of_a_session_are_appended_to_the_prompt_log(tmp_path: Path) -> None:
    root = tmp_path / "claude-code"
    one, two = Transcript(seed=1).user("first"), Transcript(seed=2).user("second")
    for transcript in (one, two):
        transcript.write(root)
    at = datetime(2026, 10, 1, tzinfo=UTC)
    log = write_prompts(
        root,
        [Prompt("first", at, session_id=one.session_id), Prompt("second", at, session_id=two.session_id)],
    )
    with make_history(tmp_path, "claude-code") as history:
        backup = Path(history.create_backup(tmp_path / "backup.zip").backup_path)
        lines = log.read_text().splitlines()
        log.write_text(f"{lines[1]}\n")
        result = history.restore_backup(backup, sessions=[one.session_id[:8]])
        assert log.read_text().splitlines() == [lines[1], lines[0]]
        assert [(file.action, file.row_count) for file in result.files if file.action == "insert"] == [
            ("insert", 1)
        ]
        assert history.restore_backup(backup, sessions=[one.session_id]).files_restored == 0


def test_a_session_is_named_by_its_index_in_the_backup(two_sessions: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "cursor")
    result = library(tmp_path).restore_backup(two_sessions, sessions=["1"], is_dry_run=True)
    assert result.sessions_restored == 1
    with pytest.raises(RestoreError, match="--backup"):
        library(tmp_path).restore_backup(two_sessions, sessions=["ffffffff"])


def test_a_session_of_a_damaged_archive_is_not_restored(two_sessions: Path, tmp_path: Path) -> None:
    ref = ref_of(tmp_path, "One")
    data = bytearray(two_sessions.read_bytes())
    data[data.index(b"archive/archive.db.zst") + 200] ^= 1
    two_sessions.write_bytes(data)
    shutil.rmtree(tmp_path / "cursor")
    with pytest.raises(RestoreError, match=r"The archive in .* is damaged"):
        library(tmp_path).restore_backup(two_sessions, sessions=[ref[:15]])
    assert not (tmp_path / "cursor").exists()


@pytest.mark.soak  # test_sessions_that_are_restored_one_by_one_are_complete reads the same archives
@pytest.mark.parametrize("sample", HISTORIES, ids=str)
def test_a_session_that_only_the_archive_contains_is_restored(sample: SampleHistory, tmp_path: Path) -> None:
    root = sample.write(tmp_path / sample.source_name)
    roots = [NamedRoot(sample.source_name, root)]
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        sessions = [one for one in history.all_sessions() if history.resume.plan(one.ref).command]
        kept = tmp_path / "kept"
        root.rename(kept)
        root.mkdir()
        history.sync()
        backup = Path(history.create_backup(tmp_path / "all.zip").backup_path)
    fresh = History(roots=roots, home=tmp_path / "second")
    for session in sessions[:1]:
        try:
            plan = fresh.restore_backup(backup, sessions=[session.ref], is_dry_run=True)
        except BackscrollError as error:  # the same reasons for which `restore-session` refuses
            with pytest.raises(type(error)):
                history.restore_session(session.ref)
            continue
        assert plan.files_restored and plan.change_id is None
        result = fresh.restore_backup(backup, sessions=[session.ref])
        assert (result.files, result.sessions_restored) == (plan.files, 1)
        fresh.sync()
        assert [one.ref for one in fresh.all_sessions()] == [session.ref]
        fresh.undo_change(result.change_id)
        assert [path for path in root.rglob("*") if path.suffix == ".jsonl"] == []


def test_a_session_in_the_archive_and_one_in_the_files_are_restored_together(tmp_path: Path) -> None:
    root = tmp_path / "claude-code"
    lost = Transcript(seed=1).user("the lost ferry").assistant("Gone.")
    found = Transcript(seed=2).user("the other ferry").assistant("Here.")
    path = lost.write(root)
    found.write(root)
    with make_history(tmp_path, "claude-code") as history:
        path.unlink()
        history.sync()
        backup = Path(history.create_backup(tmp_path / "all.zip").backup_path)
        shutil.rmtree(root / "projects")
        result = history.restore_backup(backup, sessions=[lost.session_id, found.session_id])
        assert (result.files_restored, result.sessions_restored) == (2, 2)
        history.sync()
        assert not any(one.is_gone for one in history.all_sessions())
