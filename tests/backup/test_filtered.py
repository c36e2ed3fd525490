"""A filtered backup contains the selected sessions and nothing else."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from backscroll.backup.reader import BackupReader
from backscroll.config import NamedRoot
from backscroll.errors import BackupError, SessionNotFoundError, UsageError
from backscroll.history.history import History
from backscroll.model.message import Message
from backscroll.model.session import Filter, Session
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Prompt, Transcript
from backscroll.testing.claude_code.side_files import write_prompts
from tests.backup.histories import STORE, database_rows, make_history, write_sources
from tests.histories import HISTORIES_WITH_SOAK
from tests.histories import History as SampleHistory

MIN_TEXT_CHARS = 12


def extract(backup: Path, folder: Path) -> dict[str, Path]:
    """Write every file of a backup below a folder. Return the paths by entry."""
    found: dict[str, Path] = {}
    with BackupReader(backup) as reader:
        for file in reader.manifest.files:
            path = found[f"{file.root}/{file.path}"] = folder / file.root / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(reader.blocks(file)))
    return found


def content(session: Session) -> list[Message]:
    """Return the messages of a session. Copies and line numbers depend on other sessions."""
    return [
        replace(message, copied_from=None, origin=replace(message.origin, place=""))
        if message.origin.path.endswith("history.jsonl")
        else replace(message, copied_from=None)
        for message in session.messages
    ]


def depends_on_others(session_id: str) -> bool:
    """Return whether a sample session is listed otherwise without another one.

    The second tab with the same id gets a prefix, and two subagents started each other.
    """
    return session_id.endswith("-shared-tab") or session_id.startswith("c14c0000")


def texts(session: Session) -> set[str]:
    return {message.content for message in session.messages if len(message.content) >= MIN_TEXT_CHARS}


@pytest.mark.parametrize("sample", HISTORIES_WITH_SOAK, ids=str)
def test_a_filtered_backup_restores_its_session_and_contains_no_other(
    sample: SampleHistory, tmp_path: Path
) -> None:
    root = sample.write(tmp_path / sample.source_name)
    roots = [NamedRoot(sample.source_name, root)]
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        sessions = [one for one in history.all_sessions() if not one.is_gone]
        if not sessions:
            pytest.skip("only drafts")
        chosen = next(one for one in sessions[len(sessions) // 2 :] if not depends_on_others(one.id))
        expected = history.get_session(chosen.ref)
        others = [history.get_session(one.ref) for one in sessions if one.ref != chosen.ref]
        backup = Path(history.create_backup(tmp_path / "one.zip", sessions=[chosen.ref]).backup_path)
        assert history.validate_backup(backup).status == "valid"
        manifest = history.backups.manifest(backup)
    assert manifest.is_filtered
    assert manifest.sessions == (chosen.ref,)
    assert (manifest.stats.session_count, manifest.stats.message_count) == (1, chosen.message_count)
    files = extract(backup, tmp_path / "extracted")
    own = texts(expected)
    foreign = {text for other in others for text in texts(other)} - own
    for name, path in files.items():
        data = path.read_bytes()
        assert not [text for text in foreign if text.encode() in data], name
        assert cursor.SECRET.encode() not in data, name
    with History(roots=[], home=tmp_path / "extracted" / "archive") as archived:
        assert [one.ref for one in archived.all_sessions()] == [chosen.ref]
        assert archived.get_session(chosen.ref).messages == expected.messages
        assert archived.archive_admin.verify() == []
    shutil.rmtree(root)
    with History(roots=roots, home=tmp_path / "second") as restored:
        restored.restore_backup(backup, source=sample.source_name)
        restored.sync()
        assert [one.ref for one in restored.all_sessions()] == [chosen.ref]
        assert content(restored.get_session(chosen.ref)) == content(expected)


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Two sessions per source; every second one is about quokkas."""
    write_sources(tmp_path)
    transcript = Transcript(seed=7, cwd="/home/dev/zoo").user("feed the quokka").assistant("The quokka ate.")
    transcript.write(tmp_path / "claude-code")
    prompts = [("feed the quokka", transcript.session_id), ("find the ferry timetable", None)]
    write_prompts(
        tmp_path / "claude-code",
        [Prompt(text, datetime(2026, 10, 1, tzinfo=UTC), session_id=session) for text, session in prompts],
    )
    ide = cursor.Home(tmp_path / "cursor")
    for name, text in (("Basket", "mend the basket"), ("Quokka", "count the quokkas")):
        ide.composer([cursor.user(text), cursor.assistant("Done.")], workspace=cursor.SHOP, name=name)
    shutil.rmtree(tmp_path / "cursor")
    ide.put_secrets()
    ide.write()
    cli = cursor_cli.Home(tmp_path / "cursor-cli", seed=1)
    cli.chat([cursor.user("pet the quokka"), cursor.assistant("Petted.")], cwd="/home/dev/zoo")
    return make_history(tmp_path)


def test_the_manifest_names_the_filter(history: History, tmp_path: Path) -> None:
    since = datetime(2020, 1, 1, tzinfo=UTC)
    wanted = Filter(source="cursor", since=since)
    manifest = history.create_backup(tmp_path / "b.zip", filter=wanted).manifest
    assert manifest.filter == wanted
    assert {ref.partition(":")[0] for ref in manifest.sessions} == {"cursor"}
    assert history.backups.manifest(tmp_path / "b.zip").filter == wanted
    assert {root.source for root in manifest.roots} == {""}
    assert manifest.sources == ("cursor",)


def test_a_workspace_selects_files_and_rows_of_all_sources(history: History, tmp_path: Path) -> None:
    manifest = history.create_backup(tmp_path / "b.zip", filter=Filter(workspace="/home/dev/zoo")).manifest
    assert sorted(manifest.sources) == ["claude-code", "cursor-cli"]
    files = extract(tmp_path / "b.zip", tmp_path / "extracted")
    assert [*files] == ["archive/archive.db"]
    with History(roots=[], home=tmp_path / "extracted" / "archive") as archived:
        assert {one.workspace_path for one in archived.all_sessions()} == {"/home/dev/zoo"}
    for name, path in files.items():
        assert b"ferry timetable" not in path.read_bytes(), name
        assert b"harbor" not in path.read_bytes(), name


def test_a_filter_without_sessions_is_refused(history: History, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No session matches"):
        history.create_backup(tmp_path / "b.zip", filter=Filter(branch="nowhere"))
    with pytest.raises(SessionNotFoundError):
        history.create_backup(tmp_path / "b.zip", sessions=["ffffffff"])
    assert not (tmp_path / "b.zip").exists()


def test_a_filtered_backup_is_neither_incremental_nor_a_base(history: History, tmp_path: Path) -> None:
    full = Path(history.create_backup(tmp_path / "full.zip").backup_path)
    with pytest.raises(BackupError, match="incremental"):
        history.create_backup(tmp_path / "b.zip", base=full, filter=Filter(source="cursor"))
    filtered = Path(history.create_backup(tmp_path / "b.zip", filter=Filter(source="cursor")).backup_path)
    with pytest.raises(BackupError, match="must be complete"):
        history.create_backup(tmp_path / "c.zip", base=filtered)


@pytest.mark.parametrize("force", [False, True])
def test_restoring_a_filtered_backup_never_touches_other_sessions(
    history: History, tmp_path: Path, force: bool
) -> None:
    backup = Path(history.create_backup(tmp_path / "b.zip", filter=Filter(source="cursor")).backup_path)
    sessions = history.all_sessions()
    with closing(sqlite3.connect(tmp_path / STORE)) as db:  # a new session, and a changed login
        db.execute("insert into cursorDiskKV values ('composerData:new', '{}')")
        db.execute("insert or replace into ItemTable values ('cursorAuth/accessToken', 'new login')")
        db.execute("delete from cursorDiskKV where key like 'bubbleId:%'")
        db.commit()
    result = history.restore_backup(backup, force=force)
    rows = database_rows(tmp_path / STORE)
    assert b"composerData:new" in [row[1] for row in rows["cursorDiskKV"]]
    assert (b"cursorAuth/accessToken", b"new login") in [row[1:] for row in rows["ItemTable"]]
    assert {file.action for file in result.files} <= {"insert"}
    assert {one.action for one in result.sessions} <= {"added", "kept", "differing"}
    with make_history(tmp_path) as after:
        found = {one.ref: one.message_count for one in after.all_sessions()}
    assert {one.ref: one.message_count for one in sessions}.items() <= found.items()
