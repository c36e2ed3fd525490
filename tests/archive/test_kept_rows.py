"""Rows of databases: which versions are kept, and how they are looked after."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from backscroll.archive import Archive
from backscroll.config import Machine, NamedRoot
from backscroll.history import History as Library
from backscroll.index import Index
from backscroll.ingest.extract import extract
from backscroll.ingest.maintenance import forget, rebuild
from backscroll.sources import named
from backscroll.testing import cursor, cursor_cli
from tests.archive.cursor_rows import (
    ONE,
    TWO,
    change,
    decompressed_bytes,
    readings,
    row_versions,
    synced_cursor_home,
)
from tests.archive.synced_archive import SyncedArchive

# --- versions ---------------------------------------------------------------------------------------------


def test_a_row_that_grew_takes_the_place_of_what_it_was(tmp_path: Path) -> None:
    home, kept, composer = synced_cursor_home(tmp_path)
    key = composer.bubble_key(1)
    longer = "replace(value, 'happens once.', 'happens once. And the tests pass.')"
    change(home, f"insert into cursorDiskKV select key, {longer} from cursorDiskKV where key = ?", key)  # noqa: S608
    kept.sync()
    versions = {
        version: value for (name, version), (_, value) in row_versions(kept.archive).items() if name == key
    }
    assert len(versions) == 1
    assert b"And the tests pass." in (versions.popitem()[1] or b"")
    assert kept.archive.maintenance.verify() == []


def test_a_row_that_lost_something_leaves_what_it_was_beside_it(tmp_path: Path) -> None:
    home, kept, composer = synced_cursor_home(tmp_path)
    key = composer.bubble_key(1)
    other = "replace(value, 'Rounding now happens once.', 'Never mind.')"
    change(home, f"insert into cursorDiskKV select key, {other} from cursorDiskKV where key = ?", key)  # noqa: S608
    kept.sync()
    versions = {
        version: value for (name, version), (_, value) in row_versions(kept.archive).items() if name == key
    }
    assert [b"Rounding" in (versions[number] or b"") for number in (1, 2)] == [True, False]


def test_a_row_that_goes_back_and_forth_is_kept_in_each_state_once(tmp_path: Path) -> None:
    home, kept, composer = synced_cursor_home(tmp_path)
    key = composer.bubble_key(1)
    with closing(sqlite3.connect(home.database)) as db:
        (one,) = db.execute("select value from cursorDiskKV where key = ?", [key]).fetchone()
    other = one.replace("Rounding now happens once.", "Never mind.")
    for value in (other, one, other, None, one):
        change(home, "insert into cursorDiskKV values (?, ?)", key, value)
        kept.sync()
    versions = {
        version: value for (name, version), (_, value) in row_versions(kept.archive).items() if name == key
    }
    assert [versions[number] for number in sorted(versions)] == [other.encode(), one.encode()]
    assert kept.archive.maintenance.verify() == []


def test_a_row_that_was_emptied_is_written_back_as_it_was(tmp_path: Path) -> None:
    home, kept, composer = synced_cursor_home(tmp_path)
    change(home, "insert into cursorDiskKV values (?, null)", composer.bubble_key(1))
    change(home, "insert into cursorDiskKV values (?, null)", composer.key)
    kept.sync()
    extract(kept.archive, ONE, tmp_path / "out")
    (reading,) = readings("cursor", tmp_path / "out").values()
    assert [m.content for m in reading.messages] == ["Totals are off", "Rounding now happens once."]
    assert reading.closing.title == "Fix basket totals"


def test_a_row_that_vanished_stays_and_is_marked(tmp_path: Path) -> None:
    home, kept, composer = synced_cursor_home(tmp_path)
    change(home, "delete from cursorDiskKV where key = ?", composer.bubble_key(1))
    kept.sync()
    gone, value = row_versions(kept.archive)[composer.bubble_key(1), 1]
    assert gone
    assert b"Rounding" in (value or b"")
    extract(kept.archive, ONE, tmp_path / "out")
    (reading,) = readings("cursor", tmp_path / "out").values()
    assert [m.content for m in reading.messages] == ["Totals are off", "Rounding now happens once."]
    before = kept.content()
    shutil.rmtree(tmp_path / "root")
    rebuild(kept.archive, Index(tmp_path / "index"))
    assert kept.content() == before


def test_a_row_that_came_back_is_there_again(tmp_path: Path) -> None:
    home, kept, composer = synced_cursor_home(tmp_path)
    shutil.copy(home.database, tmp_path / "copy")
    change(home, "delete from cursorDiskKV where key = ?", composer.bubble_key(1))
    kept.sync()
    shutil.copy(tmp_path / "copy", home.database)
    kept.sync()
    assert not any(gone for gone, _ in row_versions(kept.archive).values())
    assert {version for _, version in row_versions(kept.archive)} == {1}


def test_one_message_more_writes_one_row_more_and_the_lists_that_name_it(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    said = [cursor.user("Totals are off"), *(cursor.assistant(f"Step {number}.") for number in range(300))]
    home.composer(said, id=ONE, has_graph=False)
    home.write()
    kept = SyncedArchive("cursor", tmp_path / "root", tmp_path / "home")
    kept.sync()
    with closing(sqlite3.connect(kept.archive.path)) as db:
        (last,) = db.execute("select max(id) from raw_row").fetchone()
    bubble = cursor.Home(tmp_path / "other")
    extra = bubble.composer([cursor.assistant("One more.")], id=ONE, has_graph=False)
    bubble.write()
    with closing(sqlite3.connect(bubble.database)) as db:
        (value,) = db.execute(
            "select value from cursorDiskKV where key = ?", [extra.bubble_key(0)]
        ).fetchone()
    change(home, "insert into cursorDiskKV values (?, ?)", extra.bubble_key(0), value)
    kept.sync()
    with closing(sqlite3.connect(kept.archive.path)) as db:
        written = db.execute("select key from raw_row where id > ?", [last]).fetchall()
    assert written == [(extra.bubble_key(0),)]


# --- upkeep -----------------------------------------------------------------------------------------------


def test_pieces_of_a_session_that_grew_are_put_together(tmp_path: Path) -> None:
    home, kept, _ = synced_cursor_home(tmp_path)
    for number in range(20):
        home.composer([cursor.user(f"question {number}")], has_graph=False)
        home.write()
        kept.sync()
    before = row_versions(kept.archive)
    done = kept.archive.maintenance.compact()
    assert done.merged == 20
    assert row_versions(kept.archive) == before
    assert kept.archive.maintenance.verify() == []
    assert kept.archive.maintenance.compact().merged == 0


def test_a_forgotten_session_leaves_nothing_but_what_another_has_too(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    shared = [cursor.user("What both of them know"), cursor.assistant("Yes.")]
    home.composer(shared, id=ONE, name="the first", at=cursor.STARTS[5], data={"text": "only the first"})
    home.composer(shared, id=TWO, name="the second", at=cursor.STARTS[5])
    home.write()
    kept = SyncedArchive("cursor", tmp_path / "root", tmp_path / "home")
    kept.sync()
    blobs = {name for name, _ in row_versions(kept.archive) if name.startswith("agentKv:blob:")}
    (summary,) = kept.archive.sessions.find(TWO)
    before = list(kept.archive.messages.of_session(summary))
    forget(kept.archive, Index(tmp_path / "index"), kept.archive.sessions.find(ONE)[0])
    held = decompressed_bytes(kept.archive.path)
    assert b"only the first" not in held
    assert f"composerData:{ONE}".encode() not in held
    assert {name for name, _ in row_versions(kept.archive) if name.startswith("agentKv:blob:")} <= blobs
    assert kept.archive.maintenance.verify() == []
    shutil.rmtree(tmp_path / "root")
    assert rebuild(kept.archive, Index(tmp_path / "index")).kept == 0
    assert list(kept.archive.messages.of_session(summary)) == before
    kept.root.mkdir()
    assert kept.sync().changed == 0


def test_a_damaged_piece_is_noticed(tmp_path: Path) -> None:
    _, kept, _ = synced_cursor_home(tmp_path)
    with closing(sqlite3.connect(kept.archive.path)) as db, db:
        db.execute("update blob_chunk set body = cast(substr(body, 1, length(body) - 9) as blob)")
    assert any("is damaged" in one for one in kept.archive.maintenance.verify())


def test_rows_read_by_other_processes_are_taken_in(tmp_path: Path) -> None:
    _, kept, _ = synced_cursor_home(tmp_path)
    shard = Archive(tmp_path / "shard.db", is_shard=True)
    other = cursor.Home(tmp_path / "two")
    other.composer([cursor.user("read elsewhere"), cursor.assistant("yes")], id=TWO)
    other.write()
    source = named("cursor")
    for unit in source.units(tmp_path / "two"):
        shard.units.put(unit, "cursor", source.read(unit), event="created", rows=source.raw_rows(unit))
    source.close()
    shard.close()
    kept.archive.units.merge_shards([tmp_path / "shard.db"])
    kept.archive.derive()
    assert kept.archive.maintenance.verify() == []
    extract(kept.archive, TWO, tmp_path / "out")
    assert [key[0] for key in readings("cursor", tmp_path / "out")] == [TWO]


def test_a_store_of_the_command_line_keeps_what_its_root_leads_to(tmp_path: Path) -> None:
    home = cursor_cli.Home(tmp_path / "root")
    chat = cursor_cli.STORES["compacted"](home)
    kept = SyncedArchive("cursor-cli", tmp_path / "root", tmp_path / "home")
    kept.sync()
    with closing(sqlite3.connect(next((tmp_path / "root").rglob("store.db")))) as db:
        there = {id_ for (id_,) in db.execute("select id from blobs")}
    blobs = {name for name, _ in row_versions(kept.archive) if len(name) == 64}
    assert blobs
    assert blobs <= there
    assert chat.id


def test_what_only_another_store_knew_is_not_lost_when_all_is_made_anew(tmp_path: Path) -> None:
    root = tmp_path / "home/.config/Cursor"
    home = cursor.Home(root)
    auto = {"modelConfig": {"modelName": "default"}}
    said = [cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")]
    home.composer(said, id=ONE, name=None, data=auto)
    home.write()
    cursor.write_tracking(tmp_path / "home/.cursor", conversation=ONE, title="Totals", model="model-y")
    kept = SyncedArchive("cursor", root, tmp_path / "archive")
    kept.sync()
    before = kept.content()
    assert "model-y" in {message.model for message in kept.messages(ONE)}
    shutil.rmtree(tmp_path / "home")
    done = rebuild(kept.archive, Index(tmp_path / "index"))
    assert (done.units, done.kept) == (0, 1)
    assert kept.content() == before


def test_the_library_says_what_it_wrote(tmp_path: Path) -> None:
    synced_cursor_home(tmp_path)
    roots = [NamedRoot("cursor", tmp_path / "root")]
    with Library(roots=roots, home=tmp_path / "home", machine=Machine(Path("/home/zoe"))) as library:
        done = library.archive_admin.extract(ONE, tmp_path / "out")
        status = library.archive_admin.status()
    assert [file.name for file in done.files if file.suffix == ".vscdb"]
    assert done.rows == status.rows
    assert status.rows_bytes > status.rows_size > 0
