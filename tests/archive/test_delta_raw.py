"""Delta compression of a file against its parsed messages: the file stays restorable when they change."""

import sqlite3
from pathlib import Path
from random import Random

import pytest

from backscroll.archive.storage import raw_files
from backscroll.archive.storage.codec import compress
from backscroll.index.store import Index
from backscroll.ingest.originals import rebuild
from backscroll.stores.indexer import forget
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.archive.synced_archive import SyncedArchive


@pytest.fixture
def synced(tmp_path: Path) -> SyncedArchive:
    (tmp_path / "root").mkdir()
    return SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")


@pytest.fixture
def session() -> Transcript:
    return _add_turns(Transcript(), 60)


def _add_turns(session: Transcript, turns: int) -> Transcript:
    rng = Random(len(session.records))

    def random_words(count: int) -> str:
        return " ".join(f"{rng.getrandbits(40):x}" for _ in range(count))

    for _ in range(turns):
        call = tool_calls.bash(random_words(30), stdout=random_words(200))
        session.user(random_words(40)).run(call).assistant(random_words(100))
    return session


def _segment_deltas(synced: SyncedArchive) -> list[bool]:
    """Return for each file segment whether its delta base is a fragment."""
    with sqlite3.connect(synced.archive.path) as db:
        rows = db.execute(
            "select delta_base_fragment_id is not null from raw_segment order by unit_id, version, offset"
        )
        return [bool(is_delta) for (is_delta,) in rows]


def _assert_restorable(synced: SyncedArchive, folder: Path, file: Path) -> None:
    assert synced.archive.maintenance.verify() == []
    (written,) = synced.archive.originals.write_session(file.stem, folder)
    assert written.read_bytes() == file.read_bytes()


def test_a_file_is_stored_in_half_of_its_compressed_size(
    synced: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    file = session.write(synced.root)
    synced.sync()
    with sqlite3.connect(synced.archive.path) as db:
        (size,) = db.execute("select sum(length(body)) from raw_segment").fetchone()
    assert size < len(compress(file.read_bytes())) / 2
    _assert_restorable(synced, tmp_path / "out", file)


def test_escaped_text_is_stored_almost_as_small_as_plain_text(synced: SyncedArchive, tmp_path: Path) -> None:
    rng = Random(5)
    lines = [" ".join(f"{rng.getrandbits(40):x}" for _ in range(3)) for _ in range(2000)]
    sizes = []
    for seed, separator in enumerate((" and then ", '\n\t"')):
        session = Transcript(seed=seed).user("go").run(tool_calls.bash("x", stdout=separator.join(lines)))
        path = session.write(synced.root)
        synced.sync()
        with sqlite3.connect(synced.archive.path) as db:
            query = (
                "select sum(length(r.body)) from raw_segment r join unit u on u.id = r.unit_id where path = ?"
            )
            sizes += db.execute(query, [str(path)]).fetchone()
        _assert_restorable(synced, tmp_path / f"out{seed}", path)
    assert sizes[1] < sizes[0] * 1.2


def test_a_file_stored_by_an_earlier_version_is_restored(
    synced: SyncedArchive, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = session.user('two lines,\n\tand "quotes" \\').write(synced.root)
    with monkeypatch.context() as earlier:
        earlier.setattr(raw_files, "_JSONL_SUFFIX", "no such suffix")
        synced.sync()
    with sqlite3.connect(synced.archive.path) as db:
        bodies = db.execute(
            "select substr(body, 1, 1) from raw_segment"
            " union all select substr(checkpoint_state, 1, 1) from unit"
        )
        assert bodies.fetchall() == [(b"\x01",)] * 2
    _assert_restorable(synced, tmp_path / "before", file)
    file = _add_turns(session, 1).write(synced.root)
    assert synced.sync().grew == 1
    _assert_restorable(synced, tmp_path / "after", file)


def test_each_segment_of_a_long_file_is_delta_compressed(
    synced: SyncedArchive, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = session.write(synced.root)
    segment_bytes = file.stat().st_size // 5
    monkeypatch.setattr(raw_files, "SEGMENT_BYTES", segment_bytes)
    synced.sync()
    assert _segment_deltas(synced) == [True] * 6
    data = file.read_bytes()
    segments = [data[index * segment_bytes :][:segment_bytes] for index in range(6)]
    compressed_size = sum(len(compress(segment)) for segment in segments)
    with sqlite3.connect(synced.archive.path) as db:
        (size,) = db.execute("select sum(length(body)) from raw_segment").fetchone()
    assert size < compressed_size / 2
    _assert_restorable(synced, tmp_path / "out", file)


def test_an_appended_segment_is_delta_compressed(
    synced: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    session.write(synced.root)
    synced.sync()
    file = _add_turns(session, 2).write(synced.root)
    assert synced.sync().grew == 1
    assert _segment_deltas(synced) == [True, True]
    _assert_restorable(synced, tmp_path / "out", file)


def test_a_truncated_line_can_become_another_line(
    synced: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    file = session.write(synced.root)
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"type":"user","mess')
    synced.sync()
    file.write_bytes(whole + b'{"type":"summary","summary":"x","leafUuid":"y"}\n')
    synced.sync()
    _assert_restorable(synced, tmp_path / "out", file)


@pytest.mark.parametrize("lines", [0, 20])
def test_a_rewritten_file_is_restored_in_its_new_state(
    synced: SyncedArchive, session: Transcript, lines: int, tmp_path: Path
) -> None:
    file = session.write(synced.root)
    synced.sync()
    other = _add_turns(Transcript(session.session_id, seed=9), 5).write(tmp_path / "other")
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:lines]) + other.read_bytes())
    synced.sync()
    _assert_restorable(synced, tmp_path / "out", file)


def test_both_states_of_a_file_rewritten_with_the_same_messages_are_kept(
    synced: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    file = session.write(synced.root)
    synced.sync()
    file.write_bytes(b"\n" + file.read_bytes())
    synced.sync()
    assert len(_segment_deltas(synced)) == 2
    _assert_restorable(synced, tmp_path / "out", file)


def test_a_rebuild_delta_compresses_against_the_new_messages(
    synced: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    file = session.write(synced.root)
    synced.sync()
    file.rename(tmp_path / file.name)
    synced.sync()
    assert rebuild(synced.archive, Index(tmp_path / "index")).units == 1
    assert _segment_deltas(synced) == [True]
    _assert_restorable(synced, tmp_path / "out", tmp_path / file.name)


def test_merged_segments_are_delta_compressed(
    synced: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    for _ in range(3):
        file = _add_turns(session, 2).write(synced.root)
        synced.sync()
    assert synced.archive.maintenance.compact().merged == 2
    assert _segment_deltas(synced) == [True]
    _assert_restorable(synced, tmp_path / "out", file)


def test_compact_delta_compresses_segments_of_an_older_version(
    synced: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    file = session.write(synced.root)
    synced.sync()
    with sqlite3.connect(synced.archive.path) as db:
        db.execute(
            "update raw_segment set delta_base_fragment_id = null, body = ?", [compress(file.read_bytes())]
        )
    _assert_restorable(synced, tmp_path / "before", file)
    assert synced.archive.maintenance.compact().saved > 0
    assert _segment_deltas(synced) == [True]
    _assert_restorable(synced, tmp_path / "after", file)


def test_forgetting_removes_the_segments_of_the_session(
    synced: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    session.write(synced.root)
    other = _add_turns(Transcript(seed=3), 3).write(synced.root)
    synced.sync()
    (summary,) = synced.archive.sessions.find(session.session_id)
    forget(synced.archive, Index(tmp_path / "index"), summary)
    assert _segment_deltas(synced) == [True]
    _assert_restorable(synced, tmp_path / "out", other)


def test_a_file_that_grew_is_read_from_its_checkpoint(
    synced: SyncedArchive, session: Transcript, tmp_path: Path
) -> None:
    session.write(synced.root)
    synced.sync()
    with sqlite3.connect(synced.archive.path) as db:
        (state,) = db.execute("select checkpoint_state from unit").fetchone()
    assert state.startswith(b"\x01"), "the checkpoint is delta-compressed"
    for _ in range(2):
        file = _add_turns(session, 1).write(synced.root)
        assert synced.sync().grew == 1
    at_once = SyncedArchive("claude-code", synced.root, tmp_path / "at-once")
    at_once.sync()
    assert synced.content() == at_once.content()
    _assert_restorable(synced, tmp_path / "out", file)


def test_a_file_with_a_damaged_checkpoint_is_read_from_the_start(
    synced: SyncedArchive, session: Transcript
) -> None:
    session.write(synced.root)
    synced.sync()
    with sqlite3.connect(synced.archive.path) as db:
        db.execute("update unit set checkpoint_state = substr(checkpoint_state, 1, 40)")
    session.user("and then?").write(synced.root)
    assert synced.sync().rewritten == 1
    assert synced.messages(session.session_id)[-1].content == "and then?"
