"""Sessions of databases written back and told anew, of every generation, damaged or not; never a secret."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.index import Index
from backscroll.ingest.extract import extract
from backscroll.ingest.maintenance import rebuild
from backscroll.testing import cursor, cursor_cli
from tests.archive.cursor_rows import ONE, decompressed_bytes, message_values, readings, synced_cursor_home
from tests.archive.synced_archive import SyncedArchive
from tests.histories import HISTORIES, History
from tests.oracle.fold import ParsedSession

DATABASES = [one for one in HISTORIES if one.source_name != "claude-code"]


@pytest.mark.parametrize("history", DATABASES, ids=repr)
def test_a_session_written_back_reads_as_it_did(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    kept = SyncedArchive(history.source_name, root, tmp_path / "home")
    kept.sync()
    before = readings(history.source_name, root)
    shutil.move(root, tmp_path / "aside")
    for number, ((id_, parent), reading) in enumerate(before.items()):
        if parent is not None or reading.opening.agent_id is not None or _is_told_by_others(id_, reading):
            continue
        out = tmp_path / f"out{number}"
        done = extract(kept.archive, id_, out)
        if reading.opening.store == "transcript":
            continue
        assert done.rows, id_
        again = readings(history.source_name, out)[id_, parent]
        assert again.opening == reading.opening
        assert [message_values(m) for m in again.messages] == [message_values(m) for m in reading.messages]
        assert again.closing == reading.closing


def _is_told_by_others(id_: str, reading: ParsedSession) -> bool:
    """Whether it takes other sessions to tell what a session is: a circle of parents, one name in two places,
    a name on an old list that nothing is left of."""
    return id_.startswith("c14c") or id_.endswith("-shared-tab") or reading.closing.visibility == "ghost"


@pytest.mark.parametrize("history", DATABASES, ids=repr)
@pytest.mark.parametrize("is_gone", [False, True])
def test_an_archive_made_anew_from_rows_tells_the_same(
    history: History, is_gone: bool, tmp_path: Path
) -> None:
    root = history.write(tmp_path / "root")
    kept = SyncedArchive(history.source_name, root, tmp_path / "home")
    kept.sync()
    if is_gone:
        shutil.rmtree(root)
        root.mkdir()
        kept.sync()
    before = kept.content()
    done = rebuild(kept.archive, Index(tmp_path / "index"))
    assert kept.content() == before
    assert not done.kept
    assert kept.archive.maintenance.verify() == []
    assert kept.sync().changed == 0


@pytest.mark.parametrize("history", DATABASES, ids=repr)
def test_no_secret_ever_gets_into_the_archive(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    planted = [file for file in root.rglob("*") if file.is_file() and cursor.SECRET.encode() in _opened(file)]
    kept = SyncedArchive(history.source_name, root, tmp_path / "home")
    kept.sync()
    held = decompressed_bytes(kept.archive.path)
    assert cursor.SECRET.encode() not in held
    assert cursor.SECRET.encode().hex().encode() not in held
    if history.name in ("g3-global-index", "g5-subagent-column", "plain"):
        assert planted
        assert b"EncryptionKey" in held


def _opened(file: Path) -> bytes:
    data = file.read_bytes()
    hexadecimal = cursor.SECRET.encode().hex().encode()
    return data + (cursor.SECRET.encode() if hexadecimal in data else b"")


def test_what_was_blanked_is_said(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    home.composer([cursor.user("hello"), cursor.assistant("yes")], id=ONE)
    home.write()
    kept = SyncedArchive("cursor", tmp_path / "root", tmp_path / "home")
    kept.sync()
    done = extract(kept.archive, ONE, tmp_path / "out")
    assert done.blanked == ("blobEncryptionKey", "speculativeSummarizationEncryptionKey")
    with closing(sqlite3.connect(tmp_path / "out/User/globalStorage/state.vscdb")) as db:
        query = "select json_extract(value, '$.blobEncryptionKey') from cursorDiskKV where key = ?"
        assert db.execute(query, [f"composerData:{ONE}"]).fetchone() == ("",)
        assert db.execute("select count(*) from ItemTable where key like 'cursorAuth%'").fetchone() == (0,)


@pytest.mark.parametrize("name", cursor.damage.DAMAGES)
def test_a_damaged_session_is_written_back_as_it_is(name: str, tmp_path: Path) -> None:
    home, _, composer = synced_cursor_home(tmp_path)
    cursor.damage.DAMAGES[name](home.database, ONE, composer.messages[1].id or "")
    kept = SyncedArchive("cursor", tmp_path / "root", tmp_path / "other")
    kept.sync()
    before = readings("cursor", tmp_path / "root").get((ONE, None))
    extract(kept.archive, ONE, tmp_path / "out")
    after = readings("cursor", tmp_path / "out").get((ONE, None))
    assert before is not None
    assert after is not None
    assert [message_values(m) for m in after.messages] == [message_values(m) for m in before.messages]


@pytest.mark.parametrize("name", cursor_cli.damage.DAMAGES)
def test_a_damaged_store_is_written_back_as_it_is(name: str, tmp_path: Path) -> None:
    home = cursor_cli.Home(tmp_path / "root")
    chat = cursor_cli.STORES["plain"](home)
    cursor_cli.damage.DAMAGES[name](next((tmp_path / "root").rglob("store.db")))
    kept = SyncedArchive("cursor-cli", tmp_path / "root", tmp_path / "home")
    kept.sync()
    before = readings("cursor-cli", tmp_path / "root")[chat.id, None]
    extract(kept.archive, chat.id, tmp_path / "out")
    after = readings("cursor-cli", tmp_path / "out")[chat.id, None]
    assert [message_values(m) for m in after.messages] == [message_values(m) for m in before.messages]


@pytest.mark.parametrize("seed", range(12))
def test_damage_anywhere_in_a_database_never_stops_a_sync(seed: int, tmp_path: Path) -> None:
    home, _, _ = synced_cursor_home(tmp_path)
    size = home.database.stat().st_size
    for step in range(6):
        cursor.damage.flip_file(home.database, (seed * 7919 + step * 104729) % size)
    kept = SyncedArchive("cursor", tmp_path / "root", tmp_path / "other")
    kept.sync()
    kept.sync()
    assert kept.archive.maintenance.verify() == []
