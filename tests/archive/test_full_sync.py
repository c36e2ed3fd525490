"""Rows that were updated in place, and a sync that reads everything again."""

import os
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History as OpenHistory
from backscroll.index.store import Index
from backscroll.ingest.originals import rebuild
from backscroll.ingest.sync import read_changes
from backscroll.model.sync import SyncReport
from backscroll.sources import named
from backscroll.sources.cursor.database import keys
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript
from tests.archive.cursor_rows import ONE, TWO, execute, synced_cursor_home
from tests.archive.synced_archive import SyncedArchive
from tests.histories import HISTORIES, History

_UPDATE = "update cursorDiskKV set value = replace(value, 'Rounding', 'Sorting') where key = ?"


def _active(synced: SyncedArchive, id_: str = ONE) -> list[str]:
    return [message.content for message in synced.messages(id_) if message.is_active]


def _full_sync(synced: SyncedArchive) -> SyncReport:
    return read_changes(synced.archive, [(named(synced.source), synced.root)], full=True)


def test_a_row_updated_in_place_is_read(tmp_path: Path) -> None:
    home, synced, composer = synced_cursor_home(tmp_path)
    execute(home, _UPDATE, composer.bubble_key(1))
    assert synced.sync().sessions == 1
    assert _active(synced) == ["Totals are off", "Sorting now happens once."]
    rebuild(synced.archive, Index(synced.archive.path.with_name("index")))
    assert _active(synced) == ["Totals are off", "Sorting now happens once."]
    contents = [message.content for message in synced.messages(ONE)]
    assert "Rounding now happens once." in contents  # as an inactive message
    assert synced.sync().changed == 0


def test_the_values_of_the_newest_sessions_up_to_a_limit_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, synced, composer = synced_cursor_home(tmp_path)
    newer = home.composer([cursor.user("x" * 9000), cursor.assistant("Rounding, too")], id=TWO)
    home.write()
    monkeypatch.setattr(keys, "MAX_HASHED_BYTES", 6000)
    synced.sync()
    for one in (composer, newer):
        execute(home, _UPDATE, one.bubble_key(1))
    synced.sync()
    assert _active(synced, TWO)[1] == "Sorting, too"  # its newest row
    assert _active(synced)[1] == "Rounding now happens once."
    assert _full_sync(synced).reread > 0
    assert _active(synced)[1] == "Sorting now happens once."


def test_values_on_a_damaged_page_do_not_fail_the_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, synced, _ = synced_cursor_home(tmp_path)

    def fail(*_: object) -> tuple[str, int]:
        error = keys.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = keys.SQLITE_CORRUPT
        raise error

    monkeypatch.setattr(keys, "_hash_values", fail)
    assert len(list(named("cursor").units(synced.root))) > 1


@pytest.mark.parametrize("history", HISTORIES[::3], ids=repr)
def test_a_full_sync_reads_every_unit_and_changes_nothing(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    synced = SyncedArchive(history.source_name, root, tmp_path / "home")
    synced.sync()
    before = synced.content()
    report = _full_sync(synced)
    assert (report.reread, report.changed) == (report.units, 0)
    assert synced.content() == before
    assert synced.sync().changed == 0


def test_a_full_sync_reads_a_file_that_was_modified_in_place_with_its_old_time(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    path = Transcript(ONE).user("first").assistant("one").write(synced.root)
    synced.sync()
    times = path.stat()
    with path.open("r+b") as file:
        data = file.read().replace(b'"one"', b'"two"')
        file.seek(0)
        file.write(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert synced.sync().changed == 0
    _full_sync(synced)
    assert _active(synced) == ["first", "two"]


def test_a_full_sync_leaves_out_forgotten_sessions(tmp_path: Path) -> None:
    Transcript(ONE).user("first").assistant("one").write(tmp_path / "root")
    roots = [NamedRoot("claude-code", tmp_path / "root")]
    with OpenHistory(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        history.archive_admin.forget(ONE)
        report = history.sync(full=True)
        assert report is not None
        assert report.new == report.reread == 0
        assert history.list_sessions().data == ()
