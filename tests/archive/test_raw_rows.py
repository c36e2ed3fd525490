"""Stored database rows: which versions are synced, and how they are compacted, erased and verified."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from backscroll.archive.archive import Archive
from backscroll.config import Machine, NamedRoot
from backscroll.history.history import History
from backscroll.index.store import Index
from backscroll.ingest.originals import extract, rebuild
from backscroll.sources import named
from backscroll.stores.indexer import forget
from backscroll.testing import cursor, cursor_cli
from tests.archive.cursor_rows import (
    ONE,
    TWO,
    decompressed_bytes,
    execute,
    parse_sessions,
    row_versions,
    synced_cursor_home,
)
from tests.archive.synced_archive import SyncedArchive
from tests.builders.cursor_cli import stores as cursor_cli_stores

# --- versions ---------------------------------------------------------------------------------------------


def test_a_row_that_grew_replaces_its_earlier_version(tmp_path: Path) -> None:
    home, synced, composer = synced_cursor_home(tmp_path)
    key = composer.bubble_key(1)
    longer = "replace(value, 'happens once.', 'happens once. And the tests pass.')"
    execute(home, f"insert into cursorDiskKV select key, {longer} from cursorDiskKV where key = ?", key)  # noqa: S608
    synced.sync()
    versions = {
        version: value for (name, version), (_, value) in row_versions(synced.archive).items() if name == key
    }
    assert len(versions) == 1
    assert b"And the tests pass." in (versions.popitem()[1] or b"")
    assert synced.archive.maintenance.verify() == []


def test_a_row_that_lost_content_keeps_its_earlier_version(tmp_path: Path) -> None:
    home, synced, composer = synced_cursor_home(tmp_path)
    key = composer.bubble_key(1)
    other = "replace(value, 'Rounding now happens once.', 'Never mind.')"
    execute(home, f"insert into cursorDiskKV select key, {other} from cursorDiskKV where key = ?", key)  # noqa: S608
    synced.sync()
    versions = {
        version: value for (name, version), (_, value) in row_versions(synced.archive).items() if name == key
    }
    assert [b"Rounding" in (versions[version] or b"") for version in (1, 2)] == [True, False]


def test_a_row_that_alternates_is_stored_once_per_state(tmp_path: Path) -> None:
    home, synced, composer = synced_cursor_home(tmp_path)
    key = composer.bubble_key(1)
    with closing(sqlite3.connect(home.database)) as db:
        (original,) = db.execute("select value from cursorDiskKV where key = ?", [key]).fetchone()
    other = original.replace("Rounding now happens once.", "Never mind.")
    for value in (other, original, other, None, original):
        execute(home, "insert into cursorDiskKV values (?, ?)", key, value)
        synced.sync()
    versions = {
        version: value for (name, version), (_, value) in row_versions(synced.archive).items() if name == key
    }
    assert [versions[version] for version in sorted(versions)] == [other.encode(), original.encode()]
    assert synced.archive.maintenance.verify() == []


def test_an_emptied_row_is_extracted_with_its_earlier_content(tmp_path: Path) -> None:
    home, synced, composer = synced_cursor_home(tmp_path)
    execute(home, "insert into cursorDiskKV values (?, null)", composer.bubble_key(1))
    execute(home, "insert into cursorDiskKV values (?, null)", composer.key)
    synced.sync()
    extract(synced.archive, ONE, tmp_path / "out")
    (session,) = parse_sessions("cursor", tmp_path / "out").values()
    assert [m.content for m in session.messages] == ["Totals are off", "Rounding now happens once."]
    assert session.closing.title == "Fix basket totals"


def test_a_deleted_row_stays_and_is_marked_as_gone(tmp_path: Path) -> None:
    home, synced, composer = synced_cursor_home(tmp_path)
    execute(home, "delete from cursorDiskKV where key = ?", composer.bubble_key(1))
    synced.sync()
    gone, value = row_versions(synced.archive)[composer.bubble_key(1), 1]
    assert gone
    assert b"Rounding" in (value or b"")
    extract(synced.archive, ONE, tmp_path / "out")
    (session,) = parse_sessions("cursor", tmp_path / "out").values()
    assert [m.content for m in session.messages] == ["Totals are off", "Rounding now happens once."]
    before = synced.content()
    shutil.rmtree(tmp_path / "root")
    rebuild(synced.archive, Index(tmp_path / "index"))
    assert synced.content() == before


def test_a_restored_row_is_no_longer_marked_as_gone(tmp_path: Path) -> None:
    home, synced, composer = synced_cursor_home(tmp_path)
    shutil.copy(home.database, tmp_path / "copy")
    execute(home, "delete from cursorDiskKV where key = ?", composer.bubble_key(1))
    synced.sync()
    shutil.copy(tmp_path / "copy", home.database)
    synced.sync()
    assert not any(gone for gone, _ in row_versions(synced.archive).values())
    assert {version for _, version in row_versions(synced.archive)} == {1}


def test_a_new_message_stores_only_its_own_row(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    messages = [cursor.user("Totals are off"), *(cursor.assistant(f"Step {step}.") for step in range(300))]
    home.composer(messages, id=ONE, has_graph=False)
    home.write()
    synced = SyncedArchive("cursor", tmp_path / "root", tmp_path / "home")
    synced.sync()
    with closing(sqlite3.connect(synced.archive.path)) as db:
        (last_id,) = db.execute("select max(id) from raw_row").fetchone()
    other = cursor.Home(tmp_path / "other")
    extra = other.composer([cursor.assistant("One more.")], id=ONE, has_graph=False)
    other.write()
    with closing(sqlite3.connect(other.database)) as db:
        (value,) = db.execute(
            "select value from cursorDiskKV where key = ?", [extra.bubble_key(0)]
        ).fetchone()
    execute(home, "insert into cursorDiskKV values (?, ?)", extra.bubble_key(0), value)
    synced.sync()
    with closing(sqlite3.connect(synced.archive.path)) as db:
        written = db.execute("select key from raw_row where id > ?", [last_id]).fetchall()
    assert written == [(extra.bubble_key(0),)]


# --- maintenance ------------------------------------------------------------------------------------------


def test_compact_merges_the_chunks_of_a_session_that_grew(tmp_path: Path) -> None:
    home, synced, _ = synced_cursor_home(tmp_path)
    for index in range(20):
        home.composer([cursor.user(f"question {index}")], has_graph=False)
        home.write()
        synced.sync()
    before = row_versions(synced.archive)
    compaction = synced.archive.maintenance.compact()
    assert compaction.merged == 20
    assert row_versions(synced.archive) == before
    assert synced.archive.maintenance.verify() == []
    assert synced.archive.maintenance.compact().merged == 0


def test_forgetting_erases_all_rows_that_no_other_session_uses(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    shared = [cursor.user("What both of them know"), cursor.assistant("Yes.")]
    home.composer(shared, id=ONE, name="the first", at=cursor.START_TIMES[5], data={"text": "only the first"})
    home.composer(shared, id=TWO, name="the second", at=cursor.START_TIMES[5])
    home.write()
    synced = SyncedArchive("cursor", tmp_path / "root", tmp_path / "home")
    synced.sync()
    blobs = {name for name, _ in row_versions(synced.archive) if name.startswith("agentKv:blob:")}
    (summary,) = synced.archive.sessions.find(TWO)
    before = list(synced.archive.messages.of_session(summary))
    forget(synced.archive, Index(tmp_path / "index"), synced.archive.sessions.find(ONE)[0])
    stored = decompressed_bytes(synced.archive.path)
    assert b"only the first" not in stored
    assert f"composerData:{ONE}".encode() not in stored
    assert {name for name, _ in row_versions(synced.archive) if name.startswith("agentKv:blob:")} <= blobs
    assert synced.archive.maintenance.verify() == []
    shutil.rmtree(tmp_path / "root")
    assert rebuild(synced.archive, Index(tmp_path / "index")).kept == 0
    assert list(synced.archive.messages.of_session(summary)) == before
    synced.root.mkdir()
    assert synced.sync().changed == 0


def test_verify_reports_a_damaged_chunk(tmp_path: Path) -> None:
    _, synced, _ = synced_cursor_home(tmp_path)
    with closing(sqlite3.connect(synced.archive.path)) as db, db:
        db.execute("update blob_chunk set body = cast(substr(body, 1, length(body) - 9) as blob)")
    assert any("is damaged" in problem for problem in synced.archive.maintenance.verify())


def test_rows_in_shards_are_merged(tmp_path: Path) -> None:
    _, synced, _ = synced_cursor_home(tmp_path)
    shard = Archive(tmp_path / "shard.db", is_shard=True)
    other = cursor.Home(tmp_path / "two")
    other.composer([cursor.user("read elsewhere"), cursor.assistant("yes")], id=TWO)
    other.write()
    source = named("cursor")
    for unit in source.units(tmp_path / "two"):
        shard.units.put(unit, "cursor", source.read(unit), event="created", rows=source.raw_rows(unit))
    source.close()
    shard.close()
    synced.archive.units.merge_shards([tmp_path / "shard.db"])
    synced.archive.derive()
    assert synced.archive.maintenance.verify() == []
    extract(synced.archive, TWO, tmp_path / "out")
    assert [key[0] for key in parse_sessions("cursor", tmp_path / "out")] == [TWO]


def test_only_blobs_of_a_cursor_cli_store_that_its_root_reaches_are_stored(tmp_path: Path) -> None:
    home = cursor_cli.Home(tmp_path / "root")
    chat = cursor_cli_stores.STORES["compacted"](home)
    synced = SyncedArchive("cursor-cli", tmp_path / "root", tmp_path / "home")
    synced.sync()
    with closing(sqlite3.connect(next((tmp_path / "root").rglob("store.db")))) as db:
        blob_ids = {id_ for (id_,) in db.execute("select id from blobs")}
    blobs = {name for name, _ in row_versions(synced.archive) if len(name) == 64}
    assert blobs
    assert blobs <= blob_ids
    assert chat.id


def test_a_rebuild_keeps_facts_that_came_from_another_store(tmp_path: Path) -> None:
    root = tmp_path / "home/.config/Cursor"
    home = cursor.Home(root)
    auto = {"modelConfig": {"modelName": "default"}}
    messages = [cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")]
    home.composer(messages, id=ONE, name=None, data=auto)
    home.write()
    cursor.write_tracking(tmp_path / "home/.cursor", conversation=ONE, title="Totals", model="model-y")
    synced = SyncedArchive("cursor", root, tmp_path / "archive")
    synced.sync()
    before = synced.content()
    assert "model-y" in {message.model for message in synced.messages(ONE)}
    shutil.rmtree(tmp_path / "home")
    rebuilt = rebuild(synced.archive, Index(tmp_path / "index"))
    assert (rebuilt.units, rebuilt.kept) == (0, 1)
    assert synced.content() == before


def test_extract_reports_the_files_and_the_row_count(tmp_path: Path) -> None:
    synced_cursor_home(tmp_path)
    roots = [NamedRoot("cursor", tmp_path / "root")]
    with History(roots=roots, home=tmp_path / "home", machine=Machine(Path("/home/zoe"))) as history:
        extracted = history.archive_admin.extract(ONE, tmp_path / "out")
        status = history.archive_admin.status()
    assert [file.name for file in extracted.files if file.suffix == ".vscdb"]
    assert extracted.rows == status.rows
    assert status.rows_bytes > status.rows_size > 0
