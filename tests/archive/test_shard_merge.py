"""Merging the archives that several processes wrote."""

import sqlite3
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from backscroll.archive.archive import Archive
from backscroll.archive.connection import connect
from backscroll.archive.write.exclusions import Exclusions
from backscroll.archive.write.units import UnitStore
from backscroll.ingest import parallel, read_units
from backscroll.ingest.parallel import Batch, read_batches
from backscroll.ingest.sync import read_changes
from backscroll.model.store import Unit
from backscroll.sources import named
from backscroll.testing.claude_code import Transcript, resume

ONE, TWO = (f"5e551011-0000-4000-8000-0000000000{which}" for which in ("aa", "bb"))
Rows = list[tuple[object, ...]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "claude"
    first = Transcript(ONE, seed=1).user("where is the lighthouse?").assistant("on the cliff")
    first.write(folder)
    resume(first, seed=2).user("and the ferry?").assistant("below it").write(folder)
    Transcript(TWO, seed=3, cwd="/home/zoe/ferry").user("count the sails").assistant("three").write(folder)
    return folder


def _batches(root: Path) -> list[Batch]:
    """Return one batch per file."""
    return [Batch("claude-code", (unit,)) for unit in named("claude-code").units(root)]


def _session_rows(archive: Archive) -> Rows:
    """Return the rows of sessions without internal ids."""
    db = sqlite3.connect(archive.path)
    found = db.execute(
        "select external_id, title, message_count, total_tokens, tool_sequence, models, workspace_path,"
        " (select json_group_array(coalesce((select text from string s where s.id ="
        " m.copied_from_string_id), '-'))"
        "  from message m join fragment f on f.id = m.fragment_id where f.external_id ="
        " conversations.external_id)"
        " from conversations order by external_id"
    ).fetchall()
    db.close()
    return found


def _merged(path: Path, root: Path, how: Callable[[Archive, list[Path]], None]) -> Rows:
    archive = Archive(path)
    found: list[Path] = []
    batches = _batches(root)
    folder = path.with_suffix(".shards")
    folder.mkdir()
    for shard in read_batches(batches, Exclusions(), folder):
        found.append(shard.archive)
        if len(found) == len(batches):
            how(archive, found)
    archive.derive()
    found_rows = _session_rows(archive)
    archive.close()
    return found_rows


def test_merging_shards_together_or_one_by_one_gives_the_same_rows(root: Path, tmp_path: Path) -> None:
    def one_by_one(archive: Archive, found: list[Path]) -> None:
        for path in found:
            archive.units.merge_shards([path])

    def together(archive: Archive, found: list[Path]) -> None:
        offsets = archive.units.merge_shards(found)
        assert offsets == sorted(set(offsets))

    found_rows = _merged(tmp_path / "together.db", root, together)
    assert len(found_rows) == 3
    assert found_rows == _merged(tmp_path / "alone.db", root, one_by_one)


def test_no_shard_is_merged_if_a_unit_of_one_was_stored_meanwhile(root: Path, tmp_path: Path) -> None:
    def with_one_known(archive: Archive, found: list[Path]) -> None:
        archive.units.merge_shards(found[2:])
        with pytest.raises(sqlite3.IntegrityError):
            archive.units.merge_shards(found)

    assert len(_merged(tmp_path / "whole.db", root, with_one_known)) == 1


def test_a_sync_merges_the_other_shards_if_a_unit_of_one_was_stored_meanwhile(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = named("claude-code")
    meanwhile = next(source.units(root))

    def read(work: list[Batch], exclusions: Exclusions, folder: Path) -> Iterator[parallel.Shard]:
        other = Archive(tmp_path / "whole.db")
        assert other.units.put(
            meanwhile, source.platform, source.read(meanwhile), event="created", keeps_file=True
        )
        other.close()
        yield from read_batches(work, exclusions, folder)

    monkeypatch.setattr(read_units, "FIRST_PAGE_SESSIONS", 0)
    monkeypatch.setattr(parallel, "batches", lambda _: _batches(root))
    monkeypatch.setattr(parallel, "read_batches", read)
    archive = Archive(tmp_path / "whole.db")
    read_changes(archive, [(source, root)])
    assert len(_session_rows(archive)) == 3
    archive.close()


def test_finished_shards_are_merged_when_the_sync_is_interrupted(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(work: list[Batch], exclusions: Exclusions, folder: Path) -> Iterator[parallel.Shard]:
        yield from islice(read_batches(work, exclusions, folder), 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(read_units, "FIRST_PAGE_SESSIONS", 0)
    monkeypatch.setattr(parallel, "batches", lambda _: _batches(root))
    monkeypatch.setattr(parallel, "read_batches", read)
    archive = Archive(tmp_path / "whole.db")
    with pytest.raises(KeyboardInterrupt):
        read_changes(archive, [(named("claude-code"), root)])
    assert len(_session_rows(archive)) == 2
    archive.close()


def test_finished_shards_are_not_read_again_when_the_readers_die(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = named("claude-code")
    found: list[str] = []
    put = UnitStore.put

    def read(work: list[Batch], exclusions: Exclusions, folder: Path) -> Iterator[parallel.Shard]:
        yield from islice(read_batches(work, exclusions, folder), 2)

    def note(archive: Archive, unit: Unit, *rest: Any, **how: Any) -> bool:
        found.append(unit.path)
        return put(archive, unit, *rest, **how)

    monkeypatch.setattr(read_units, "FIRST_PAGE_SESSIONS", 0)
    monkeypatch.setattr(parallel, "batches", lambda _: _batches(root))
    monkeypatch.setattr(parallel, "read_batches", read)
    monkeypatch.setattr(UnitStore, "put", note)
    archive = Archive(tmp_path / "whole.db")
    assert read_changes(archive, [(source, root)]).new == 3
    assert len(found) == 1
    assert len(_session_rows(archive)) == 3
    archive.close()


def test_the_page_cache_size_is_restored_after_the_merge(tmp_path: Path) -> None:
    db = connect(tmp_path / "archive.db")
    (before,) = db.execute("pragma cache_size").fetchone()
    with pytest.raises(KeyboardInterrupt), UnitStore(db, Exclusions(), is_shard=False).bulk_merge():
        (meanwhile,) = db.execute("pragma cache_size").fetchone()
        assert -meanwhile < -before
        raise KeyboardInterrupt
    assert db.execute("pragma cache_size").fetchone() == (before,)
    db.close()
