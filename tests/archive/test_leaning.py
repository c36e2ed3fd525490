"""A file that repeats another is kept for little, and nothing that happens to either loses anything."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from backscroll.archive.derive import derive
from backscroll.errors import ArchiveError
from backscroll.index import Index
from backscroll.ingest.maintenance import forget, rebuild
from backscroll.testing.claude_code import Transcript, fork, resume, tool_calls
from tests.archive.synced_archive import SyncedArchive

Copy = Callable[[Transcript], Transcript]

COPIES: dict[str, Copy] = {
    "resumed": resume,
    "forked": lambda first: fork(first, remap=False),
    "forked with new ids": fork,
}


@pytest.fixture
def kept(tmp_path: Path) -> SyncedArchive:
    (tmp_path / "root").mkdir()
    return SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")


@pytest.fixture
def first() -> Transcript:
    """A session with much in it that nothing else says."""
    return _talk(Transcript(version="1.0.98"), 200)


def _talk(session: Transcript, turns: int) -> Transcript:
    rng = Random(len(session.records))

    def words(count: int) -> str:
        return " ".join(f"{rng.getrandbits(40):x}" for _ in range(count))

    for _ in range(turns):
        session.user(words(100)).run(tool_calls.bash(words(30))).assistant(words(700))
    return session


def _size(kept: SyncedArchive) -> int:
    with sqlite3.connect(kept.archive.path) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    return kept.archive.path.stat().st_size


def _leaning(kept: SyncedArchive) -> tuple[int, int]:
    """How many pieces of files, and of sessions, lean on others."""
    with sqlite3.connect(kept.archive.path) as db:
        return (
            db.execute("select count(*) from raw_segment where delta_base_unit_id is not null").fetchone()[0],
            db.execute(
                "select count(*) from message_chunk where delta_base_fragment_id is not null"
            ).fetchone()[0],
        )


def _plainly(kept: SyncedArchive, home: Path, monkeypatch: pytest.MonkeyPatch) -> SyncedArchive:
    """Another archive of the same history, in which nothing leans on anything."""
    with monkeypatch.context() as patched:
        patched.setattr(derive, "delta_compress_repeats", lambda db: False)
        plain = SyncedArchive(kept.source, kept.root, home)
        plain.sync()
    assert _leaning(plain) == (0, 0)
    return plain


def _assert_whole(kept: SyncedArchive, folder: Path, *files: Path) -> None:
    """The archive is whole, and gives every one of these files back byte for byte."""
    assert kept.archive.maintenance.verify() == []
    for number, file in enumerate(files):
        (written,) = kept.archive.originals.write_session(file.stem, folder / str(number))
        assert written.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_a_file_that_repeats_another_costs_less_than_a_tenth(
    kept: SyncedArchive, first: Transcript, copy: Copy, tmp_path: Path
) -> None:
    one = first.write(kept.root)
    kept.sync()
    before = _size(kept)
    two = copy(first).user("and then?").assistant("then this").write(kept.root)
    kept.sync()
    assert _size(kept) - before < two.stat().st_size / 10
    _assert_whole(kept, tmp_path / "out", one, two)


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_what_leans_tells_the_same(
    kept: SyncedArchive, first: Transcript, copy: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.write(kept.root)
    copy(first).user("and then?").assistant("then this").write(kept.root)
    kept.sync()
    assert all(_leaning(kept))
    assert kept.content() == _plainly(kept, tmp_path / "plain", monkeypatch).content()


def test_each_resume_of_a_resume_costs_little(kept: SyncedArchive, first: Transcript, tmp_path: Path) -> None:
    session, files = first, [first.write(kept.root)]
    kept.sync()
    for number in range(1, 8):
        session = _talk(resume(session, seed=number), 10)
        files.append(session.write(kept.root))
        before = _size(kept)
        kept.sync()
        grown = files[-1].stat().st_size - files[-2].stat().st_size
        assert _size(kept) - before < files[-1].stat().st_size / 10 + grown, number
    _assert_whole(kept, tmp_path / "out", *files)


def test_both_files_may_grow(
    kept: SyncedArchive, first: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = resume(first)
    first.write(kept.root)
    second.write(kept.root)
    kept.sync()
    for session in (first, second, first):
        _talk(session, 3).write(kept.root)
        assert kept.sync().grew == 1
    assert all(_leaning(kept))
    _assert_whole(kept, tmp_path / "out", first.write(kept.root), second.write(kept.root))
    assert kept.content() == _plainly(kept, tmp_path / "plain", monkeypatch).content()


def test_a_torn_line_that_something_leans_on_may_become_another(
    kept: SyncedArchive, first: Transcript, tmp_path: Path
) -> None:
    one = first.write(kept.root)
    whole = one.read_bytes()
    one.write_bytes(whole + b'{"type":"user","mess')
    two = resume(first).write(kept.root)
    kept.sync()
    assert all(_leaning(kept))
    one.write_bytes(whole + b'{"type":"summary","summary":"x","leafUuid":"y"}\n')
    kept.sync()
    _assert_whole(kept, tmp_path / "out", one, two)


@pytest.mark.parametrize("lines", [0, 100])
def test_a_base_that_is_rewritten_stays_for_what_leans_on_it(
    kept: SyncedArchive, first: Transcript, lines: int, tmp_path: Path
) -> None:
    second = resume(first)
    one, two = first.write(kept.root), second.write(kept.root)
    kept.sync()
    messages = kept.messages(second.session_id)
    assert all(_leaning(kept))
    other = _talk(Transcript(first.session_id, version="1.0.98", seed=9), 5).write(tmp_path / "other")
    one.write_bytes(b"".join(one.read_bytes().splitlines(keepends=True)[:lines]) + other.read_bytes())
    kept.sync()
    assert [m.content for m in kept.messages(second.session_id)] == [m.content for m in messages]
    _assert_whole(kept, tmp_path / "out", one, two)


def test_a_base_may_be_forgotten(kept: SyncedArchive, first: Transcript, tmp_path: Path) -> None:
    second = resume(first).user("and then?")
    first.write(kept.root)
    two = second.write(kept.root)
    kept.sync()
    contents = [m.content for m in kept.messages(second.session_id)]
    assert all(_leaning(kept))
    (summary,) = kept.archive.sessions.find(first.session_id)
    forget(kept.archive, Index(tmp_path / "index"), summary)
    assert [m.content for m in kept.messages(second.session_id)] == contents
    assert _leaning(kept) == (0, 0)
    _assert_whole(kept, tmp_path / "out", two)


def test_what_leans_may_be_forgotten(kept: SyncedArchive, first: Transcript, tmp_path: Path) -> None:
    second = resume(first)
    one = first.write(kept.root)
    second.write(kept.root)
    kept.sync()
    (summary,) = kept.archive.sessions.find(second.session_id)
    forget(kept.archive, Index(tmp_path / "index"), summary)
    _assert_whole(kept, tmp_path / "out", one)


def test_an_archive_in_which_files_lean_can_be_made_anew_and_compacted(
    kept: SyncedArchive, first: Transcript, tmp_path: Path
) -> None:
    sessions = [first, resume(first), fork(first, seed=2)]
    files = [session.write(kept.root) for session in sessions]
    kept.sync()
    for session in sessions:
        session.user("and then?").write(kept.root)
        kept.sync()
    told = kept.content()
    for file in files[1:]:
        file.rename(tmp_path / file.name)
    kept.sync()
    rebuild(kept.archive, Index(tmp_path / "index"))
    assert kept.content() == told
    assert all(_leaning(kept))
    kept.archive.maintenance.compact()
    assert kept.content() == told
    _assert_whole(kept, tmp_path / "out", files[0], *(tmp_path / file.name for file in files[1:]))


def test_damage_in_a_base_is_found_in_all_that_leans_on_it(
    kept: SyncedArchive, first: Transcript, tmp_path: Path
) -> None:
    second = resume(first)
    first.write(kept.root)
    second.write(kept.root)
    kept.sync()
    with sqlite3.connect(kept.archive.path) as db:
        pieces = db.execute("select count(*) from raw_segment").fetchone()[0]
        db.execute("update raw_segment set body = zeroblob(length(body)) where delta_base_unit_id is null")
        db.execute(
            "update message_chunk set body = zeroblob(length(body)) where delta_base_fragment_id is null"
        )
    found = kept.archive.maintenance.verify()
    assert sum("original" in sentence for sentence in found) == pieces
    assert sum("messages" in sentence for sentence in found) == 2
    for session in (first, second):
        with pytest.raises(ArchiveError, match="damaged"):
            kept.archive.originals.write_session(session.session_id, tmp_path / session.session_id)
