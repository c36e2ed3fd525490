"""Delta compression of files that repeat others: small, lossless, and independent of changes to either."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from backscroll.archive.derive import derive
from backscroll.errors import ArchiveError
from backscroll.index.store import Index
from backscroll.ingest.originals import rebuild
from backscroll.stores.indexer import forget
from backscroll.testing.claude_code import Transcript, fork, resume, tool_calls
from tests.archive.synced_archive import SyncedArchive

Copy = Callable[[Transcript], Transcript]

COPIES: dict[str, Copy] = {
    "resumed": resume,
    "forked": lambda first: fork(first, remap=False),
    "forked with new ids": fork,
}


@pytest.fixture
def synced(tmp_path: Path) -> SyncedArchive:
    (tmp_path / "root").mkdir()
    return SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")


@pytest.fixture
def first() -> Transcript:
    """Return a session with much unique text."""
    return _add_turns(Transcript(version="1.0.98"), 60)


def _add_turns(session: Transcript, turns: int) -> Transcript:
    rng = Random(len(session.records))

    def random_words(count: int) -> str:
        return " ".join(f"{rng.getrandbits(40):x}" for _ in range(count))

    for _ in range(turns):
        session.user(random_words(100)).run(tool_calls.bash(random_words(30)))
        session.assistant(random_words(700))
    return session


def _archive_size(synced: SyncedArchive) -> int:
    with sqlite3.connect(synced.archive.path) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    return synced.archive.path.stat().st_size


def _delta_counts(synced: SyncedArchive) -> tuple[int, int]:
    """Return the number of delta-compressed file segments and message chunks."""
    with sqlite3.connect(synced.archive.path) as db:
        return (
            db.execute("select count(*) from raw_segment where delta_base_unit_id is not null").fetchone()[0],
            db.execute(
                "select count(*) from message_chunk where delta_base_fragment_id is not null"
            ).fetchone()[0],
        )


def _sync_without_deltas(synced: SyncedArchive, home: Path, monkeypatch: pytest.MonkeyPatch) -> SyncedArchive:
    """Return another archive of the same history without delta compression."""
    with monkeypatch.context() as patched:
        patched.setattr(derive, "delta_compress_repeats", lambda db: False)
        without_deltas = SyncedArchive(synced.source, synced.root, home)
        without_deltas.sync()
    assert _delta_counts(without_deltas) == (0, 0)
    return without_deltas


def _assert_restorable(synced: SyncedArchive, folder: Path, *files: Path) -> None:
    """Check that the archive verifies and restores each of these files byte for byte."""
    assert synced.archive.maintenance.verify() == []
    for index, file in enumerate(files):
        (written,) = synced.archive.originals.write_session(file.stem, folder / str(index))
        assert written.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_a_file_that_repeats_another_is_stored_in_less_than_a_tenth_of_its_size(
    synced: SyncedArchive, first: Transcript, copy: Copy, tmp_path: Path
) -> None:
    one = _add_turns(first, 140).write(synced.root)  # large enough to ignore the size of pages
    synced.sync()
    before = _archive_size(synced)
    two = copy(first).user("and then?").assistant("then this").write(synced.root)
    synced.sync()
    assert _archive_size(synced) - before < two.stat().st_size / 10
    _assert_restorable(synced, tmp_path / "out", one, two)


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_delta_compression_does_not_change_the_content(
    synced: SyncedArchive, first: Transcript, copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.write(synced.root)
    copy(first).user("and then?").assistant("then this").write(synced.root)
    synced.sync()
    assert all(_delta_counts(synced))
    assert (
        synced.content() == _sync_without_deltas(synced, tmp_path / "without-deltas", monkeypatch).content()
    )


def test_each_resume_of_a_resume_is_small(synced: SyncedArchive, first: Transcript, tmp_path: Path) -> None:
    session, files = first, [first.write(synced.root)]
    synced.sync()
    for seed in range(1, 8):
        session = _add_turns(resume(session, seed=seed), 10)
        files.append(session.write(synced.root))
        before = _archive_size(synced)
        synced.sync()
        grown = files[-1].stat().st_size - files[-2].stat().st_size
        assert _archive_size(synced) - before < files[-1].stat().st_size / 10 + grown, seed
    _assert_restorable(synced, tmp_path / "out", *files)


def test_a_base_and_its_delta_can_both_grow(
    synced: SyncedArchive, first: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = resume(first)
    first.write(synced.root)
    second.write(synced.root)
    synced.sync()
    for session in (first, second, first):
        _add_turns(session, 3).write(synced.root)
        assert synced.sync().grew == 1
    assert all(_delta_counts(synced))
    _assert_restorable(synced, tmp_path / "out", first.write(synced.root), second.write(synced.root))
    assert (
        synced.content() == _sync_without_deltas(synced, tmp_path / "without-deltas", monkeypatch).content()
    )


def test_a_truncated_line_in_a_base_can_become_another_line(
    synced: SyncedArchive, first: Transcript, tmp_path: Path
) -> None:
    one = first.write(synced.root)
    whole = one.read_bytes()
    one.write_bytes(whole + b'{"type":"user","mess')
    two = resume(first).write(synced.root)
    synced.sync()
    assert all(_delta_counts(synced))
    one.write_bytes(whole + b'{"type":"summary","summary":"x","leafUuid":"y"}\n')
    synced.sync()
    _assert_restorable(synced, tmp_path / "out", one, two)


@pytest.mark.parametrize("lines", [0, 100])
def test_a_rewritten_base_is_kept_for_its_deltas(
    synced: SyncedArchive, first: Transcript, lines: int, tmp_path: Path
) -> None:
    second = resume(first)
    one, two = first.write(synced.root), second.write(synced.root)
    synced.sync()
    messages = synced.messages(second.session_id)
    assert all(_delta_counts(synced))
    other = _add_turns(Transcript(first.session_id, version="1.0.98", seed=9), 5).write(tmp_path / "other")
    one.write_bytes(b"".join(one.read_bytes().splitlines(keepends=True)[:lines]) + other.read_bytes())
    synced.sync()
    assert [m.content for m in synced.messages(second.session_id)] == [m.content for m in messages]
    _assert_restorable(synced, tmp_path / "out", one, two)


def test_a_base_can_be_forgotten(synced: SyncedArchive, first: Transcript, tmp_path: Path) -> None:
    second = resume(first).user("and then?")
    first.write(synced.root)
    two = second.write(synced.root)
    synced.sync()
    contents = [m.content for m in synced.messages(second.session_id)]
    assert all(_delta_counts(synced))
    (summary,) = synced.archive.sessions.find(first.session_id)
    forget(synced.archive, Index(tmp_path / "index"), summary)
    assert [m.content for m in synced.messages(second.session_id)] == contents
    assert _delta_counts(synced) == (0, 0)
    _assert_restorable(synced, tmp_path / "out", two)


def test_a_delta_can_be_forgotten(synced: SyncedArchive, first: Transcript, tmp_path: Path) -> None:
    second = resume(first)
    one = first.write(synced.root)
    second.write(synced.root)
    synced.sync()
    (summary,) = synced.archive.sessions.find(second.session_id)
    forget(synced.archive, Index(tmp_path / "index"), summary)
    _assert_restorable(synced, tmp_path / "out", one)


def test_an_archive_with_deltas_can_be_rebuilt_and_compacted(
    synced: SyncedArchive, first: Transcript, tmp_path: Path
) -> None:
    sessions = [first, resume(first), fork(first, seed=2)]
    files = [session.write(synced.root) for session in sessions]
    synced.sync()
    for session in sessions:
        session.user("and then?").write(synced.root)
        synced.sync()
    before = synced.content()
    for file in files[1:]:
        file.rename(tmp_path / file.name)
    synced.sync()
    rebuild(synced.archive, Index(tmp_path / "index"))
    assert synced.content() == before
    assert all(_delta_counts(synced))
    synced.archive.maintenance.compact()
    assert synced.content() == before
    _assert_restorable(synced, tmp_path / "out", files[0], *(tmp_path / file.name for file in files[1:]))


def test_verify_reports_a_damaged_base_for_all_its_deltas(
    synced: SyncedArchive, first: Transcript, tmp_path: Path
) -> None:
    second = resume(first)
    first.write(synced.root)
    second.write(synced.root)
    synced.sync()
    with sqlite3.connect(synced.archive.path) as db:
        segment_count = db.execute("select count(*) from raw_segment").fetchone()[0]
        db.execute("update raw_segment set body = zeroblob(length(body)) where delta_base_unit_id is null")
        db.execute(
            "update message_chunk set body = zeroblob(length(body)) where delta_base_fragment_id is null"
        )
    problems = synced.archive.maintenance.verify()
    assert sum("original" in problem for problem in problems) == segment_count
    assert sum("messages" in problem for problem in problems) == 2
    for session in (first, second):
        with pytest.raises(ArchiveError, match="damaged"):
            synced.archive.originals.write_session(session.session_id, tmp_path / session.session_id)
