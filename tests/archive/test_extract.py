"""Extraction and rebuild of database sessions, for every generation and every damage, without secrets."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.index.store import Index
from backscroll.ingest.originals import extract, rebuild
from backscroll.testing import cursor, cursor_cli
from tests.archive.cursor_rows import (
    ONE,
    decompressed_bytes,
    message_values,
    parse_sessions,
    synced_cursor_home,
)
from tests.archive.synced_archive import SyncedArchive
from tests.builders.cursor import damage as cursor_damage
from tests.builders.cursor_cli import damage as cursor_cli_damage
from tests.builders.cursor_cli import stores as cursor_cli_stores
from tests.histories import HISTORIES, History
from tests.oracle.fold import ParsedSession

DATABASES = [history for history in HISTORIES if history.source_name != "claude-code"]


@pytest.mark.parametrize("history", DATABASES, ids=repr)
def test_an_extracted_session_is_parsed_with_the_same_result(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    synced = SyncedArchive(history.source_name, root, tmp_path / "home")
    synced.sync()
    before = parse_sessions(history.source_name, root)
    shutil.move(root, tmp_path / "aside")
    for index, ((id_, parent), session) in enumerate(before.items()):
        if parent is not None or session.opening.agent_id is not None or _depends_on_others(id_, session):
            continue
        out = tmp_path / f"out{index}"
        extracted = extract(synced.archive, id_, out)
        if session.opening.store == "transcript":
            continue
        assert extracted.rows, id_
        again = parse_sessions(history.source_name, out)[id_, parent]
        assert again.opening == session.opening
        assert [message_values(m) for m in again.messages] == [message_values(m) for m in session.messages]
        assert again.closing == session.closing


def _depends_on_others(id_: str, session: ParsedSession) -> bool:
    """Return whether a session depends on others: a cycle of parents, a shared tab, or a ghost in a list."""
    return id_.startswith("c14c") or id_.endswith("-shared-tab") or session.closing.visibility == "ghost"


@pytest.mark.parametrize("history", DATABASES, ids=repr)
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_rebuild_from_rows_gives_the_same_content(history: History, is_gone: bool, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    synced = SyncedArchive(history.source_name, root, tmp_path / "home")
    synced.sync()
    if is_gone:
        shutil.rmtree(root)
        root.mkdir()
        synced.sync()
    before = synced.content()
    rebuilt = rebuild(synced.archive, Index(tmp_path / "index"))
    assert synced.content() == before
    assert not rebuilt.kept
    assert synced.archive.maintenance.verify() == []
    assert synced.sync().changed == 0


@pytest.mark.parametrize("history", DATABASES, ids=repr)
def test_the_archive_contains_no_secret(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    planted = [
        file
        for file in root.rglob("*")
        if file.is_file() and cursor.SECRET.encode() in _with_decoded_secret(file)
    ]
    synced = SyncedArchive(history.source_name, root, tmp_path / "home")
    synced.sync()
    stored = decompressed_bytes(synced.archive.path)
    assert cursor.SECRET.encode() not in stored
    assert cursor.SECRET.encode().hex().encode() not in stored
    if history.name in ("g3-global-index", "g5-subagent-column", "plain"):
        assert planted
        assert b"EncryptionKey" in stored


def _with_decoded_secret(file: Path) -> bytes:
    """Return the bytes of a file, with the secret appended if the file contains it in hexadecimal."""
    data = file.read_bytes()
    hexadecimal = cursor.SECRET.encode().hex().encode()
    return data + (cursor.SECRET.encode() if hexadecimal in data else b"")


def test_extract_reports_blanked_fields(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    home.composer([cursor.user("hello"), cursor.assistant("yes")], id=ONE)
    home.write()
    synced = SyncedArchive("cursor", tmp_path / "root", tmp_path / "home")
    synced.sync()
    extracted = extract(synced.archive, ONE, tmp_path / "out")
    assert extracted.blanked == ("blobEncryptionKey", "speculativeSummarizationEncryptionKey")
    with closing(sqlite3.connect(tmp_path / "out/User/globalStorage/state.vscdb")) as db:
        query = "select json_extract(value, '$.blobEncryptionKey') from cursorDiskKV where key = ?"
        assert db.execute(query, [f"composerData:{ONE}"]).fetchone() == ("",)
        assert db.execute("select count(*) from ItemTable where key like 'cursorAuth%'").fetchone() == (0,)


@pytest.mark.parametrize("name", cursor_damage.DAMAGES)
def test_a_damaged_session_is_extracted_unchanged(name: str, tmp_path: Path) -> None:
    home, _, composer = synced_cursor_home(tmp_path)
    cursor_damage.DAMAGES[name](home.database, ONE, composer.messages[1].id or "")
    synced = SyncedArchive("cursor", tmp_path / "root", tmp_path / "other")
    synced.sync()
    before = parse_sessions("cursor", tmp_path / "root").get((ONE, None))
    extract(synced.archive, ONE, tmp_path / "out")
    after = parse_sessions("cursor", tmp_path / "out").get((ONE, None))
    assert before is not None
    assert after is not None
    assert [message_values(m) for m in after.messages] == [message_values(m) for m in before.messages]


@pytest.mark.parametrize("name", cursor_cli_damage.DAMAGES)
def test_a_damaged_store_is_extracted_unchanged(name: str, tmp_path: Path) -> None:
    home = cursor_cli.Home(tmp_path / "root")
    chat = cursor_cli_stores.STORES["plain"](home)
    cursor_cli_damage.DAMAGES[name](next((tmp_path / "root").rglob("store.db")))
    synced = SyncedArchive("cursor-cli", tmp_path / "root", tmp_path / "home")
    synced.sync()
    before = parse_sessions("cursor-cli", tmp_path / "root")[chat.id, None]
    extract(synced.archive, chat.id, tmp_path / "out")
    after = parse_sessions("cursor-cli", tmp_path / "out")[chat.id, None]
    assert [message_values(m) for m in after.messages] == [message_values(m) for m in before.messages]


@pytest.mark.parametrize("seed", range(12))
def test_damage_in_a_database_never_stops_a_sync(seed: int, tmp_path: Path) -> None:
    home, _, _ = synced_cursor_home(tmp_path)
    size = home.database.stat().st_size
    for step in range(6):
        cursor_damage.flip_file_byte(home.database, (seed * 7919 + step * 104729) % size)
    synced = SyncedArchive("cursor", tmp_path / "root", tmp_path / "other")
    synced.sync()
    synced.sync()
    assert synced.archive.maintenance.verify() == []
