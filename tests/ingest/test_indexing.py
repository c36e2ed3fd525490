"""The index finds what the archive has, whichever way it got there."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from backscroll.index import Index, parse
from backscroll.ingest import bulk_read, parallel
from backscroll.ingest.indexer import Indexer, update
from backscroll.ingest.sync import sync
from backscroll.model import Filter
from backscroll.model.searchable_text import searchable_text
from backscroll.sources import named
from backscroll.testing.claude_code import GENERATIONS, Transcript, fork, resume, tool_calls
from tests.archive.synced_archive import SyncedArchive

FILTERS = ("role:user", "role:tool", "source:claude-code", "is:error", "is:edit", "branch:main", "file:py")


@pytest.fixture
def kept(tmp_path: Path) -> SyncedArchive:
    (tmp_path / "root").mkdir()
    return SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path / "home" / "index")


def _words(kept: SyncedArchive) -> set[str]:
    """Every word that was said, and every one of a title."""
    found: set[str] = set()
    for summary in kept.archive.sessions.page(
        Filter(with_unlisted=True, with_subagents=True), limit=1000, offset=0
    ):
        texts = [searchable_text(message) for message in kept.archive.messages.of_session(summary)]
        found.update(re.findall(r"[^\W_]{2,60}", " ".join([*texts, summary.title or ""]).lower()))
    return found


def _finds(index: Index, queries: set[str]) -> dict[str, list[tuple[int, int]]]:
    return {
        query: sorted(
            (hit.session, hit.position) for hit in index.search(parse(query), limit=1000, by="message").hits
        )
        for query in queries
    }


def _assert_same_as_new(kept: SyncedArchive, index: Index) -> None:
    queries = {f'"{word}"' for word in _words(kept)} | set(FILTERS)
    found = _finds(index, queries)
    again = Index(index.folder.with_name("again"))
    assert update(kept.archive, again)
    assert found == _finds(again, queries)
    assert any(found.values())


@pytest.mark.parametrize("generation", GENERATIONS)
def test_an_index_that_grew_finds_what_a_new_one_finds(
    generation: str, kept: SyncedArchive, index: Index
) -> None:
    GENERATIONS[generation](kept.root, 0)
    files = {path: path.read_bytes() for path in kept.root.rglob("*.jsonl")}
    for part in range(1, 5):
        for path, data in files.items():
            lines = data.splitlines(keepends=True)
            path.write_bytes(b"".join(lines[: len(lines) * part // 4]))
        kept.sync()
        assert update(kept.archive, index)
    _assert_same_as_new(kept, index)


@pytest.mark.parametrize("remap", [True, False])
def test_what_a_fork_copied_is_found_once_when_the_session_it_is_from_comes_late(
    kept: SyncedArchive, index: Index, remap: bool
) -> None:
    first = Transcript().user("where is the lighthouse?").assistant("behind the dike")
    fork(first, remap=remap).user("and the quay?").assistant("beside it").write(kept.root)
    for late in (None, first):
        if late is not None:
            late.write(kept.root)
        kept.sync()
        assert update(kept.archive, index)
        assert index.search(parse("dike"), limit=10, by="message").total == 1
    _assert_same_as_new(kept, index)


@pytest.mark.parametrize("copy", [resume, fork, partial(fork, remap=False)])
@pytest.mark.parametrize("is_late", [False, True])
def test_an_answer_that_only_a_copy_of_a_call_got_is_found(
    kept: SyncedArchive, index: Index, copy: Callable[[Transcript], Transcript], is_late: bool
) -> None:
    first = Transcript().user("where is it?").assistant(tools=[tool_calls.bash("find lighthouse")])
    second = copy(first)
    second.result(second.tool_ids[-1], "behind the dike").assistant("found it")
    for session in (second, first) if is_late else (first, second):
        session.write(kept.root)
        kept.sync()
        assert update(kept.archive, index)
    found = index.search(parse("dike"), limit=10, by="message")
    assert [kept.archive.sessions.by_ids([hit.session])[hit.session].id for hit in found.hits] == [
        second.session_id
    ]
    assert index.search(parse("role:user where"), limit=10, by="message").total == 1
    _assert_same_as_new(kept, index)


@pytest.mark.parametrize("copy", [resume, fork, partial(fork, remap=False)])
def test_an_answer_that_both_sessions_got_is_found_once(
    kept: SyncedArchive, index: Index, copy: Callable[[Transcript], Transcript]
) -> None:
    first = Transcript().user("where is it?").assistant(tools=[tool_calls.bash("find lighthouse")])
    second = copy(first)
    for session in (first, second):
        session.write(kept.root)
    for session in (second, first):
        session.result(session.tool_ids[-1], "behind the dike").write(kept.root)
        kept.sync()
        assert update(kept.archive, index)
        assert index.search(parse("dike"), limit=10, by="message").total == 1
    _assert_same_as_new(kept, index)


@pytest.mark.parametrize("rounds", [0, 1 << 30])
def test_what_is_indexed_while_it_is_read_is_found_as_in_a_new_index(
    rounds: int, kept: SyncedArchive, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "MIN_PARALLEL_BYTES", 0)
    monkeypatch.setattr(parallel, "BATCH_BYTES", 200_000)
    monkeypatch.setattr(bulk_read, "MIN_ROUND_BYTES", rounds)
    for generation in GENERATIONS.values():
        generation(kept.root, 0)
    first = Transcript(seed=7).user("where does the ferry land").assistant("at the pier")
    first.write(kept.root)
    resume(first, seed=8).user("and in winter").write(kept.root)
    report = sync(kept.archive, [(named("claude-code"), kept.root)], index=lambda: index)
    assert kept.archive.index_queue.next_jobs(1) == []
    assert report.sessions == len({one.id for one in kept.summaries() if one.parent_ref is None})
    _assert_same_as_new(kept, index)


def test_only_what_a_session_grew_by_is_indexed(kept: SyncedArchive, index: Index) -> None:
    session = Transcript().user("where is the lighthouse").assistant("on the cliff")
    session.write(kept.root)
    kept.sync()
    assert update(kept.archive, index)
    session.user("and its keeper").write(kept.root)
    kept.sync()
    (lack,) = kept.archive.index_queue.next_jobs(10)
    assert lack.first_position == 2
    assert update(kept.archive, index)
    assert [hit.position for hit in index.search(parse("keeper"), limit=9, by="message").hits] == [2]
    assert [hit.position for hit in index.search(parse("lighthouse"), limit=9, by="message").hits] == [0]


def test_a_call_that_is_answered_later_is_indexed_anew_from_there(kept: SyncedArchive, index: Index) -> None:
    path = Transcript().user("look").run(tool_calls.bash("ls", "lantern.txt")).write(kept.root)
    *before, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(before))
    kept.sync()
    assert update(kept.archive, index)
    path.write_bytes(b"".join([*before, last]))
    kept.sync()
    (lack,) = kept.archive.index_queue.next_jobs(10)
    assert lack.first_position == 1
    assert update(kept.archive, index)
    assert [hit.position for hit in index.search(parse("lantern"), limit=9, by="message").hits] == [1]


def test_a_new_title_has_the_whole_session_indexed(kept: SyncedArchive, index: Index) -> None:
    session = Transcript().user("where is the lighthouse").assistant("on the cliff")
    session.write(kept.root)
    kept.sync()
    assert update(kept.archive, index)
    session.ai_title("Beacons").write(kept.root)
    kept.sync()
    assert [lack.first_position for lack in kept.archive.index_queue.next_jobs(10)] == [0]
    assert update(kept.archive, index)
    assert [hit.position for hit in index.search(parse("beacons"), limit=9, by="message").hits] == [0]


def test_what_is_noted_while_the_index_is_written_is_not_lost(kept: SyncedArchive) -> None:
    session = Transcript().user("one")
    session.write(kept.root)
    kept.sync()
    taken = kept.archive.index_queue.next_jobs(10)
    session.user("two").write(kept.root)
    kept.sync()
    kept.archive.index_queue.mark_done(taken)
    assert [lack.first_position for lack in kept.archive.index_queue.next_jobs(10)] == [0]
    kept.archive.index_queue.mark_done(kept.archive.index_queue.next_jobs(10))
    assert kept.archive.index_queue.next_jobs(10) == []


def test_a_subagent_is_not_indexed_again_because_its_session_went_on(
    kept: SyncedArchive, index: Index
) -> None:
    session = Transcript().user("ask someone").delegate("find the harbour", "it is in the north")
    session.write(kept.root)
    kept.sync()
    assert update(kept.archive, index)
    session.user("thanks").write(kept.root)
    kept.sync()
    (lack,) = kept.archive.index_queue.next_jobs(10)
    assert lack.first_position > 0


def test_an_index_that_was_replaced_while_it_was_written_is_not_taken_for_complete(
    kept: SyncedArchive, index: Index
) -> None:
    session = Transcript().user("one")
    session.write(kept.root)
    kept.sync()
    with Indexer(kept.archive, index) as indexing:
        assert indexing.catch_up()
        session.user("lighthouse").write(kept.root)
        kept.sync()
        Index(index.folder).rebuild()
        assert not indexing.catch_up()
    assert kept.archive.index_queue.next_jobs(1) != []
    assert update(kept.archive, index)
    assert len(index.search(parse("lighthouse"), limit=9).hits) == 1
