"""Rows of databases: kept, written back, told anew, and never with a secret in them."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backscroll.archive import Archive
from backscroll.archive.bodies import decompress
from backscroll.config import Machine, NamedRoot
from backscroll.history import History as Library
from backscroll.index import Index
from backscroll.ingest.originals import extract
from backscroll.ingest.upkeep import forget, rebuild
from backscroll.model import Reading, fold
from backscroll.sources import named
from backscroll.testing import cursor, cursor_cli
from tests.archive.keeping import Kept
from tests.histories import HISTORIES, History

ONE = "5e551011-0000-4000-8000-0000000000aa"
TWO = "5e551011-0000-4000-8000-0000000000bb"
DATABASES = [one for one in HISTORIES if one.source_name != "claude-code"]


def _readings(source: str, root: Path) -> dict[tuple[str, str | None], Reading]:
    reader = named(source)
    found: dict[tuple[str, str | None], Reading] = {}
    for unit in reader.units(root):
        for reading in fold(reader.read(unit)).readings:
            found.setdefault((reading.opening.id, reading.opening.parent_id), reading)
    reader.close()
    return found


@pytest.mark.parametrize("history", DATABASES, ids=repr)
def test_a_session_written_back_reads_as_it_did(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    kept = Kept(history.source_name, root, tmp_path / "home")
    kept.sync()
    before = _readings(history.source_name, root)
    shutil.move(root, tmp_path / "aside")
    for number, ((id_, parent), reading) in enumerate(before.items()):
        if parent is not None or reading.opening.agent_id is not None or _is_told_by_others(id_, reading):
            continue
        out = tmp_path / f"out{number}"
        done = extract(kept.archive, id_, out)
        if reading.opening.store == "transcript":
            continue
        assert done.rows, id_
        again = _readings(history.source_name, out)[id_, parent]
        assert again.opening == reading.opening
        assert [_told(m) for m in again.messages] == [_told(m) for m in reading.messages]
        assert again.closing == reading.closing


def _is_told_by_others(id_: str, reading: Reading) -> bool:
    """Whether it takes other sessions to tell what a session is: a circle of parents, one name in two places,
    a name on an old list that nothing is left of."""
    return id_.startswith("c14c") or id_.endswith("-shared-tab") or reading.closing.visibility == "ghost"


def _told(message: Any) -> Any:
    return [
        getattr(message, name) if name != "origin" else message.origin.place
        for name in message.__struct_fields__
    ]


@pytest.mark.parametrize("history", DATABASES, ids=repr)
@pytest.mark.parametrize("is_gone", [False, True])
def test_an_archive_made_anew_from_rows_tells_the_same(
    history: History, is_gone: bool, tmp_path: Path
) -> None:
    root = history.write(tmp_path / "root")
    kept = Kept(history.source_name, root, tmp_path / "home")
    kept.sync()
    if is_gone:
        shutil.rmtree(root)
        root.mkdir()
        kept.sync()
    before = kept.told()
    done = rebuild(kept.archive, Index(tmp_path / "index"))
    assert kept.told() == before
    assert not done.kept
    assert kept.archive.verify() == []
    assert kept.sync().changed == 0


# --- secrets ----------------------------------------------------------------------------------------------


def _plain_bytes(archive: Path) -> bytes:
    """Everything in an archive's file, compressed pieces opened."""
    with closing(sqlite3.connect(archive)) as db:
        tables = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
        cells = [
            cell
            for table in tables
            for row in db.execute(f"select * from {table}")  # noqa: S608 - names are ours
            for cell in row
        ]
    found = [cell.encode("utf-8", "replace") for cell in cells if isinstance(cell, str)]
    found += [cell for cell in cells if isinstance(cell, bytes)]
    found += [decompress(cell) for cell in cells if isinstance(cell, bytes)]
    return b"\n".join(found)


@pytest.mark.parametrize("history", DATABASES, ids=repr)
def test_no_secret_ever_gets_into_the_archive(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    planted = [file for file in root.rglob("*") if file.is_file() and cursor.SECRET.encode() in _opened(file)]
    kept = Kept(history.source_name, root, tmp_path / "home")
    kept.sync()
    held = _plain_bytes(kept.archive.path)
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
    kept = Kept("cursor", tmp_path / "root", tmp_path / "home")
    kept.sync()
    done = extract(kept.archive, ONE, tmp_path / "out")
    assert done.blanked == ("blobEncryptionKey", "speculativeSummarizationEncryptionKey")
    with closing(sqlite3.connect(tmp_path / "out/User/globalStorage/state.vscdb")) as db:
        query = "select json_extract(value, '$.blobEncryptionKey') from cursorDiskKV where key = ?"
        assert db.execute(query, [f"composerData:{ONE}"]).fetchone() == ("",)
        assert db.execute("select count(*) from ItemTable where key like 'cursorAuth%'").fetchone() == (0,)


# --- versions ---------------------------------------------------------------------------------------------


def _rows(archive: Archive) -> dict[tuple[str, int], tuple[bool, bytes | None]]:
    """Every kept version: key and number to whether it is gone, and its value."""
    with closing(sqlite3.connect(archive.path)) as db:
        pieces = {
            number: decompress(body) for number, body in db.execute("select number, body from kept_piece")
        }
        return {
            (key + part, version): (bool(gone), pieces[at][offset : offset + size] if at else None)
            for key, part, version, gone, at, offset, size in db.execute(
                "select key, part, version, is_gone, piece, offset, size from kept_row"
            )
        }


def _home(tmp_path: Path) -> tuple[cursor.Home, Kept, cursor.Composer]:
    home = cursor.Home(tmp_path / "root")
    said = [cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")]
    composer = home.composer(said, id=ONE, has_graph=False)
    home.write()
    kept = Kept("cursor", tmp_path / "root", tmp_path / "home")
    kept.sync()
    return home, kept, composer


def _change(home: cursor.Home, query: str, *values: str | None) -> None:
    with closing(sqlite3.connect(home.database)) as db, db:
        db.execute(query, values)


def test_a_row_that_grew_takes_the_place_of_what_it_was(tmp_path: Path) -> None:
    home, kept, composer = _home(tmp_path)
    key = composer.bubble_key(1)
    longer = "replace(value, 'happens once.', 'happens once. And the tests pass.')"
    _change(home, f"insert into cursorDiskKV select key, {longer} from cursorDiskKV where key = ?", key)  # noqa: S608
    kept.sync()
    versions = {version: value for (name, version), (_, value) in _rows(kept.archive).items() if name == key}
    assert len(versions) == 1
    assert b"And the tests pass." in (versions.popitem()[1] or b"")
    assert kept.archive.verify() == []


def test_a_row_that_lost_something_leaves_what_it_was_beside_it(tmp_path: Path) -> None:
    home, kept, composer = _home(tmp_path)
    key = composer.bubble_key(1)
    other = "replace(value, 'Rounding now happens once.', 'Never mind.')"
    _change(home, f"insert into cursorDiskKV select key, {other} from cursorDiskKV where key = ?", key)  # noqa: S608
    kept.sync()
    versions = {version: value for (name, version), (_, value) in _rows(kept.archive).items() if name == key}
    assert [b"Rounding" in (versions[number] or b"") for number in (1, 2)] == [True, False]


def test_a_row_that_goes_back_and_forth_is_kept_in_each_state_once(tmp_path: Path) -> None:
    home, kept, composer = _home(tmp_path)
    key = composer.bubble_key(1)
    with closing(sqlite3.connect(home.database)) as db:
        (one,) = db.execute("select value from cursorDiskKV where key = ?", [key]).fetchone()
    other = one.replace("Rounding now happens once.", "Never mind.")
    for value in (other, one, other, None, one):
        _change(home, "insert into cursorDiskKV values (?, ?)", key, value)
        kept.sync()
    versions = {version: value for (name, version), (_, value) in _rows(kept.archive).items() if name == key}
    assert [versions[number] for number in sorted(versions)] == [other.encode(), one.encode()]
    assert kept.archive.verify() == []


def test_a_row_that_was_emptied_is_written_back_as_it_was(tmp_path: Path) -> None:
    home, kept, composer = _home(tmp_path)
    _change(home, "insert into cursorDiskKV values (?, null)", composer.bubble_key(1))
    _change(home, "insert into cursorDiskKV values (?, null)", composer.key)
    kept.sync()
    extract(kept.archive, ONE, tmp_path / "out")
    (reading,) = _readings("cursor", tmp_path / "out").values()
    assert [m.content for m in reading.messages] == ["Totals are off", "Rounding now happens once."]
    assert reading.closing.title == "Fix basket totals"


def test_a_row_that_vanished_stays_and_is_marked(tmp_path: Path) -> None:
    home, kept, composer = _home(tmp_path)
    _change(home, "delete from cursorDiskKV where key = ?", composer.bubble_key(1))
    kept.sync()
    gone, value = _rows(kept.archive)[composer.bubble_key(1), 1]
    assert gone
    assert b"Rounding" in (value or b"")
    extract(kept.archive, ONE, tmp_path / "out")
    (reading,) = _readings("cursor", tmp_path / "out").values()
    assert [m.content for m in reading.messages] == ["Totals are off", "Rounding now happens once."]
    before = kept.told()
    shutil.rmtree(tmp_path / "root")
    rebuild(kept.archive, Index(tmp_path / "index"))
    assert kept.told() == before


def test_a_row_that_came_back_is_there_again(tmp_path: Path) -> None:
    home, kept, composer = _home(tmp_path)
    shutil.copy(home.database, tmp_path / "copy")
    _change(home, "delete from cursorDiskKV where key = ?", composer.bubble_key(1))
    kept.sync()
    shutil.copy(tmp_path / "copy", home.database)
    kept.sync()
    assert not any(gone for gone, _ in _rows(kept.archive).values())
    assert {version for _, version in _rows(kept.archive)} == {1}


def test_one_message_more_writes_one_row_more_and_the_lists_that_name_it(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    said = [cursor.user("Totals are off"), *(cursor.assistant(f"Step {number}.") for number in range(300))]
    home.composer(said, id=ONE, has_graph=False)
    home.write()
    kept = Kept("cursor", tmp_path / "root", tmp_path / "home")
    kept.sync()
    with closing(sqlite3.connect(kept.archive.path)) as db:
        (last,) = db.execute("select max(number) from kept_row").fetchone()
    bubble = cursor.Home(tmp_path / "other")
    extra = bubble.composer([cursor.assistant("One more.")], id=ONE, has_graph=False)
    bubble.write()
    with closing(sqlite3.connect(bubble.database)) as db:
        (value,) = db.execute(
            "select value from cursorDiskKV where key = ?", [extra.bubble_key(0)]
        ).fetchone()
    _change(home, "insert into cursorDiskKV values (?, ?)", extra.bubble_key(0), value)
    kept.sync()
    with closing(sqlite3.connect(kept.archive.path)) as db:
        written = db.execute("select key from kept_row where number > ?", [last]).fetchall()
    assert written == [(extra.bubble_key(0),)]


# --- damage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", cursor.damage.DAMAGES)
def test_a_damaged_session_is_written_back_as_it_is(name: str, tmp_path: Path) -> None:
    home, _, composer = _home(tmp_path)
    cursor.damage.DAMAGES[name](home.database, ONE, composer.messages[1].id or "")
    kept = Kept("cursor", tmp_path / "root", tmp_path / "other")
    kept.sync()
    before = _readings("cursor", tmp_path / "root").get((ONE, None))
    extract(kept.archive, ONE, tmp_path / "out")
    after = _readings("cursor", tmp_path / "out").get((ONE, None))
    assert before is not None
    assert after is not None
    assert [_told(m) for m in after.messages] == [_told(m) for m in before.messages]


@pytest.mark.parametrize("name", cursor_cli.damage.DAMAGES)
def test_a_damaged_store_is_written_back_as_it_is(name: str, tmp_path: Path) -> None:
    home = cursor_cli.Home(tmp_path / "root")
    chat = cursor_cli.STORES["plain"](home)
    cursor_cli.damage.DAMAGES[name](next((tmp_path / "root").rglob("store.db")))
    kept = Kept("cursor-cli", tmp_path / "root", tmp_path / "home")
    kept.sync()
    before = _readings("cursor-cli", tmp_path / "root")[chat.id, None]
    extract(kept.archive, chat.id, tmp_path / "out")
    after = _readings("cursor-cli", tmp_path / "out")[chat.id, None]
    assert [_told(m) for m in after.messages] == [_told(m) for m in before.messages]


@pytest.mark.parametrize("seed", range(12))
def test_damage_anywhere_in_a_database_never_stops_a_sync(seed: int, tmp_path: Path) -> None:
    home, _, _ = _home(tmp_path)
    size = home.database.stat().st_size
    for step in range(6):
        cursor.damage.flip_file(home.database, (seed * 7919 + step * 104729) % size)
    kept = Kept("cursor", tmp_path / "root", tmp_path / "other")
    kept.sync()
    kept.sync()
    assert kept.archive.verify() == []


# --- upkeep -----------------------------------------------------------------------------------------------


def test_pieces_of_a_session_that_grew_are_put_together(tmp_path: Path) -> None:
    home, kept, _ = _home(tmp_path)
    for number in range(20):
        home.composer([cursor.user(f"question {number}")], has_graph=False)
        home.write()
        kept.sync()
    before = _rows(kept.archive)
    done = kept.archive.compact()
    assert done.merged == 20
    assert _rows(kept.archive) == before
    assert kept.archive.verify() == []
    assert kept.archive.compact().merged == 0


def test_a_forgotten_session_leaves_nothing_but_what_another_has_too(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    shared = [cursor.user("What both of them know"), cursor.assistant("Yes.")]
    home.composer(shared, id=ONE, name="the first", at=cursor.STARTS[5], data={"text": "only the first"})
    home.composer(shared, id=TWO, name="the second", at=cursor.STARTS[5])
    home.write()
    kept = Kept("cursor", tmp_path / "root", tmp_path / "home")
    kept.sync()
    blobs = {name for name, _ in _rows(kept.archive) if name.startswith("agentKv:blob:")}
    (summary,) = kept.archive.find(TWO)
    before = list(kept.archive.messages_of(summary))
    forget(kept.archive, Index(tmp_path / "index"), kept.archive.find(ONE)[0])
    held = _plain_bytes(kept.archive.path)
    assert b"only the first" not in held
    assert f"composerData:{ONE}".encode() not in held
    assert {name for name, _ in _rows(kept.archive) if name.startswith("agentKv:blob:")} <= blobs
    assert kept.archive.verify() == []
    shutil.rmtree(tmp_path / "root")
    assert rebuild(kept.archive, Index(tmp_path / "index")).kept == 0
    assert list(kept.archive.messages_of(summary)) == before
    kept.root.mkdir()
    assert kept.sync().changed == 0


def test_a_damaged_piece_is_noticed(tmp_path: Path) -> None:
    _, kept, _ = _home(tmp_path)
    with closing(sqlite3.connect(kept.archive.path)) as db, db:
        db.execute("update kept_piece set body = cast(substr(body, 1, length(body) - 9) as blob)")
    assert any("is damaged" in one for one in kept.archive.verify())


def test_rows_read_by_other_processes_are_taken_in(tmp_path: Path) -> None:
    _, kept, _ = _home(tmp_path)
    shard = Archive(tmp_path / "shard.db", is_shard=True)
    other = cursor.Home(tmp_path / "two")
    other.composer([cursor.user("read elsewhere"), cursor.assistant("yes")], id=TWO)
    other.write()
    source = named("cursor")
    for unit in source.units(tmp_path / "two"):
        shard.put(unit, "cursor", source.read(unit), event="new", rows=source.rows(unit))
    source.close()
    shard.close()
    kept.archive.merge(tmp_path / "shard.db")
    kept.archive.derive()
    assert kept.archive.verify() == []
    extract(kept.archive, TWO, tmp_path / "out")
    assert [key[0] for key in _readings("cursor", tmp_path / "out")] == [TWO]


def test_a_store_of_the_command_line_keeps_what_its_root_leads_to(tmp_path: Path) -> None:
    home = cursor_cli.Home(tmp_path / "root")
    chat = cursor_cli.STORES["compacted"](home)
    kept = Kept("cursor-cli", tmp_path / "root", tmp_path / "home")
    kept.sync()
    with closing(sqlite3.connect(next((tmp_path / "root").rglob("store.db")))) as db:
        there = {id_ for (id_,) in db.execute("select id from blobs")}
    blobs = {name for name, _ in _rows(kept.archive) if len(name) == 64}
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
    kept = Kept("cursor", root, tmp_path / "archive")
    kept.sync()
    before = kept.told()
    assert "model-y" in {message.model for message in kept.messages(ONE)}
    shutil.rmtree(tmp_path / "home")
    done = rebuild(kept.archive, Index(tmp_path / "index"))
    assert (done.units, done.kept) == (0, 1)
    assert kept.told() == before


def test_the_library_says_what_it_wrote(tmp_path: Path) -> None:
    _home(tmp_path)
    roots = [NamedRoot("cursor", tmp_path / "root")]
    with Library(roots=roots, home=tmp_path / "home", machine=Machine(Path("/home/zoe"))) as library:
        done = library.extract(ONE, tmp_path / "out")
        status = library.archive_status()
    assert [file.name for file in done.files if file.suffix == ".vscdb"]
    assert done.rows == status.rows
    assert status.rows_bytes > status.rows_size > 0
