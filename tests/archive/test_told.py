"""A file's bytes lean on the messages read from them, and come back whatever becomes of these."""

import sqlite3
from pathlib import Path
from random import Random

import pytest

from backscroll.archive.storage import delta_raw, raw_files
from backscroll.archive.storage.codec import compress
from backscroll.index import Index
from backscroll.ingest.maintenance import forget, rebuild
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.archive.synced_archive import SyncedArchive


@pytest.fixture
def kept(tmp_path: Path) -> SyncedArchive:
    (tmp_path / "root").mkdir()
    return SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")


@pytest.fixture
def session() -> Transcript:
    return _talk(Transcript(), 60)


def _talk(session: Transcript, turns: int) -> Transcript:
    rng = Random(len(session.records))

    def words(count: int) -> str:
        return " ".join(f"{rng.getrandbits(40):x}" for _ in range(count))

    for _ in range(turns):
        session.user(words(40)).run(tool_calls.bash(words(30), stdout=words(200))).assistant(words(100))
    return session


def _leaning(kept: SyncedArchive) -> list[bool]:
    """Of each piece of a file, whether it leans on what was told of it."""
    with sqlite3.connect(kept.archive.path) as db:
        rows = db.execute(
            "select delta_base_fragment_id is not null from raw_segment order by unit_id, version, offset"
        )
        return [bool(is_leaning) for (is_leaning,) in rows]


def _assert_whole(kept: SyncedArchive, folder: Path, file: Path) -> None:
    assert kept.archive.maintenance.verify() == []
    (written,) = kept.archive.originals.write_session(file.stem, folder)
    assert written.read_bytes() == file.read_bytes()


def test_a_file_costs_half_of_what_it_costs_alone(
    kept: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    file = session.write(kept.root)
    kept.sync()
    with sqlite3.connect(kept.archive.path) as db:
        (size,) = db.execute("select sum(length(body)) from raw_segment").fetchone()
    assert size < len(compress(file.read_bytes())) / 2
    _assert_whole(kept, tmp_path / "out", file)


def test_text_with_line_ends_and_quotes_costs_little_more_than_text_without(
    kept: SyncedArchive, tmp_path: Path
) -> None:
    rng = Random(5)
    lines = [" ".join(f"{rng.getrandbits(40):x}" for _ in range(3)) for _ in range(2000)]
    sizes = []
    for number, between in enumerate((" and then ", '\n\t"')):
        file = Transcript(seed=number).user("go").run(tool_calls.bash("x", stdout=between.join(lines)))
        path = file.write(kept.root)
        kept.sync()
        with sqlite3.connect(kept.archive.path) as db:
            query = (
                "select sum(length(r.body)) from raw_segment r join unit u on u.id = r.unit_id where path = ?"
            )
            sizes += db.execute(query, [str(path)]).fetchone()
        _assert_whole(kept, tmp_path / f"out{number}", path)
    assert sizes[1] < sizes[0] * 1.2


def test_a_file_kept_by_an_earlier_version_comes_back(
    kept: SyncedArchive, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = session.user('two lines,\n\tand "quotes" \\').write(kept.root)
    with monkeypatch.context() as earlier:
        earlier.setattr(delta_raw, "_JSONL_SUFFIX", "of none")
        kept.sync()
    with sqlite3.connect(kept.archive.path) as db:
        bodies = db.execute(
            "select substr(body, 1, 1) from raw_segment"
            " union all select substr(checkpoint_state, 1, 1) from unit"
        )
        assert bodies.fetchall() == [(b"\x01",)] * 2
    _assert_whole(kept, tmp_path / "before", file)
    file = _talk(session, 1).write(kept.root)
    assert kept.sync().grew == 1
    _assert_whole(kept, tmp_path / "after", file)


def test_each_piece_of_a_long_file_leans_on_what_was_told_of_it(
    kept: SyncedArchive, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = session.write(kept.root)
    piece = file.stat().st_size // 5
    monkeypatch.setattr(raw_files, "SEGMENT_BYTES", piece)
    kept.sync()
    assert _leaning(kept) == [True] * 6
    alone = sum(len(compress(file.read_bytes()[at * piece :][:piece])) for at in range(6))
    with sqlite3.connect(kept.archive.path) as db:
        (size,) = db.execute("select sum(length(body)) from raw_segment").fetchone()
    assert size < alone / 2
    _assert_whole(kept, tmp_path / "out", file)


def test_what_is_added_leans_on_what_it_told(
    kept: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    session.write(kept.root)
    kept.sync()
    file = _talk(session, 2).write(kept.root)
    assert kept.sync().grew == 1
    assert _leaning(kept) == [True, True]
    _assert_whole(kept, tmp_path / "out", file)


def test_a_line_that_was_torn_may_become_another(
    kept: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    file = session.write(kept.root)
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"type":"user","mess')
    kept.sync()
    file.write_bytes(whole + b'{"type":"summary","summary":"x","leafUuid":"y"}\n')
    kept.sync()
    _assert_whole(kept, tmp_path / "out", file)


@pytest.mark.parametrize("lines", [0, 20])
def test_a_file_that_was_rewritten_comes_back_in_its_new_state(
    kept: SyncedArchive, session: Transcript, lines: int, tmp_path: Path
) -> None:
    file = session.write(kept.root)
    kept.sync()
    other = _talk(Transcript(session.session_id, seed=9), 5).write(tmp_path / "other")
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:lines]) + other.read_bytes())
    kept.sync()
    _assert_whole(kept, tmp_path / "out", file)


def test_a_file_that_was_rewritten_and_tells_the_same_keeps_both_states(
    kept: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    file = session.write(kept.root)
    kept.sync()
    file.write_bytes(b"\n" + file.read_bytes())
    kept.sync()
    assert len(_leaning(kept)) == 2
    _assert_whole(kept, tmp_path / "out", file)


def test_made_anew_it_leans_on_what_is_told_then(
    kept: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    file = session.write(kept.root)
    kept.sync()
    file.rename(tmp_path / file.name)
    kept.sync()
    assert rebuild(kept.archive, Index(tmp_path / "index")).units == 1
    assert _leaning(kept) == [True]
    _assert_whole(kept, tmp_path / "out", tmp_path / file.name)


def test_pieces_that_are_put_together_lean_as_well(
    kept: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    for _ in range(3):
        file = _talk(session, 2).write(kept.root)
        kept.sync()
    assert kept.archive.maintenance.compact().merged == 2
    assert _leaning(kept) == [True]
    _assert_whole(kept, tmp_path / "out", file)


def test_what_an_older_version_kept_leans_once_it_is_compacted(
    kept: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    file = session.write(kept.root)
    kept.sync()
    with sqlite3.connect(kept.archive.path) as db:
        db.execute(
            "update raw_segment set delta_base_fragment_id = null, body = ?", [compress(file.read_bytes())]
        )
    _assert_whole(kept, tmp_path / "before", file)
    assert kept.archive.maintenance.compact().saved > 0
    assert _leaning(kept) == [True]
    _assert_whole(kept, tmp_path / "after", file)


def test_forgetting_leaves_nothing_that_leans(
    kept: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    session.write(kept.root)
    other = _talk(Transcript(seed=3), 3).write(kept.root)
    kept.sync()
    (summary,) = kept.archive.sessions.find(session.session_id)
    forget(kept.archive, Index(tmp_path / "index"), summary)
    assert _leaning(kept) == [True]
    _assert_whole(kept, tmp_path / "out", other)


def test_a_file_that_was_read_at_once_is_read_on_from_where_it_ended(
    kept: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    session.write(kept.root)
    kept.sync()
    with sqlite3.connect(kept.archive.path) as db:
        (state,) = db.execute("select checkpoint_state from unit").fetchone()
    assert state.startswith(b"\x01"), "it leans on what was told"
    for _ in range(2):
        file = _talk(session, 1).write(kept.root)
        assert kept.sync().grew == 1
    at_once = SyncedArchive("claude-code", kept.root, tmp_path / "at-once")
    at_once.sync()
    assert kept.content() == at_once.content()
    _assert_whole(kept, tmp_path / "out", file)


def test_a_file_of_which_it_is_not_known_where_it_ended_is_read_anew(
    kept: SyncedArchive, session: Transcript
) -> None:
    session.write(kept.root)
    kept.sync()
    with sqlite3.connect(kept.archive.path) as db:
        db.execute("update unit set checkpoint_state = substr(checkpoint_state, 1, 40)")
    session.user("and then?").write(kept.root)
    assert kept.sync().rewritten == 1
    assert kept.messages(session.session_id)[-1].content == "and then?"
