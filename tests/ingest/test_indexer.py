"""The index is complete, no matter in which steps the archive was synced."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from backscroll.index.query import parse
from backscroll.index.store import Index
from backscroll.ingest import parallel, read_units
from backscroll.ingest.sync import read_changes
from backscroll.model.search import searchable_text
from backscroll.model.session import Filter
from backscroll.sources import named
from backscroll.stores.indexer import Indexer, update
from backscroll.testing.claude_code import Transcript, fork, resume, tool_calls
from tests.archive.synced_archive import SyncedArchive
from tests.builders.claude_code.generations import GENERATIONS

FILTERS = ("role:user", "role:tool", "source:claude-code", "is:error", "is:edit", "branch:main", "file:py")


@pytest.fixture
def synced(tmp_path: Path) -> SyncedArchive:
    (tmp_path / "root").mkdir()
    return SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path / "home" / "index")


def _all_words(synced: SyncedArchive) -> set[str]:
    """Return every word of all messages and titles."""
    words: set[str] = set()
    for summary in synced.archive.sessions.page(
        Filter(with_unlisted=True, with_subagents=True), limit=1000, offset=0
    ):
        texts = [searchable_text(message) for message in synced.archive.messages.of_session(summary)]
        words.update(re.findall(r"[^\W_]{2,60}", " ".join([*texts, summary.title or ""]).lower()))
    return words


def _search_all(index: Index, queries: set[str]) -> dict[str, list[tuple[int, int]]]:
    return {
        query: sorted(
            (hit.session, hit.position) for hit in index.search(parse(query), limit=1000, by="message").hits
        )
        for query in queries
    }


def _assert_equals_new_index(synced: SyncedArchive, index: Index) -> None:
    queries = {f'"{word}"' for word in _all_words(synced)} | set(FILTERS)
    hits = _search_all(index, queries)
    new_index = Index(index.folder.with_name("new"))
    assert update(synced.archive, new_index)
    assert hits == _search_all(new_index, queries)
    assert any(hits.values())


@pytest.mark.parametrize("generation", GENERATIONS)
def test_an_index_updated_in_steps_equals_a_new_index(
    generation: str, synced: SyncedArchive, index: Index
) -> None:
    GENERATIONS[generation](synced.root, 0)
    files = {path: path.read_bytes() for path in synced.root.rglob("*.jsonl")}
    for part in range(1, 5):
        for path, data in files.items():
            lines = data.splitlines(keepends=True)
            path.write_bytes(b"".join(lines[: len(lines) * part // 4]))
        synced.sync()
        assert update(synced.archive, index)
    _assert_equals_new_index(synced, index)


@pytest.mark.parametrize("remap", [True, False])
def test_a_message_copied_by_a_fork_is_found_once_when_the_original_session_is_read_later(
    synced: SyncedArchive, index: Index, remap: bool
) -> None:
    first = Transcript().user("where is the lighthouse?").assistant("behind the dike")
    fork(first, remap=remap).user("and the quay?").assistant("beside it").write(synced.root)
    for original in (None, first):
        if original is not None:
            original.write(synced.root)
        synced.sync()
        assert update(synced.archive, index)
        assert index.search(parse("dike"), limit=10, by="message").total == 1
    _assert_equals_new_index(synced, index)


@pytest.mark.parametrize("copy", [resume, fork, partial(fork, remap=False)])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_tool_result_that_only_a_copied_call_has_is_found(
    synced: SyncedArchive, index: Index, copy: Callable[[Transcript], Transcript], is_late: bool
) -> None:
    first = Transcript().user("where is it?").assistant(tools=[tool_calls.bash("find lighthouse")])
    second = copy(first)
    second.result(second.tool_ids[-1], "behind the dike").assistant("found it")
    for session in (second, first) if is_late else (first, second):
        session.write(synced.root)
        synced.sync()
        assert update(synced.archive, index)
    found = index.search(parse("dike"), limit=10, by="message")
    assert [synced.archive.sessions.by_ids([hit.session])[hit.session].id for hit in found.hits] == [
        second.session_id
    ]
    assert index.search(parse("role:user where"), limit=10, by="message").total == 1
    _assert_equals_new_index(synced, index)


@pytest.mark.parametrize("copy", [resume, fork, partial(fork, remap=False)])
def test_a_tool_result_in_both_sessions_is_found_once(
    synced: SyncedArchive, index: Index, copy: Callable[[Transcript], Transcript]
) -> None:
    first = Transcript().user("where is it?").assistant(tools=[tool_calls.bash("find lighthouse")])
    second = copy(first)
    for session in (first, second):
        session.write(synced.root)
    for session in (second, first):
        session.result(session.tool_ids[-1], "behind the dike").write(synced.root)
        synced.sync()
        assert update(synced.archive, index)
        assert index.search(parse("dike"), limit=10, by="message").total == 1
    _assert_equals_new_index(synced, index)


@pytest.mark.parametrize("min_round_bytes", [0, 1 << 30])
def test_an_index_written_during_a_parallel_sync_equals_a_new_index(
    min_round_bytes: int, synced: SyncedArchive, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "MIN_PARALLEL_BYTES", 0)
    monkeypatch.setattr(parallel, "BATCH_BYTES", 200_000)
    monkeypatch.setattr(read_units, "MIN_ROUND_BYTES", min_round_bytes)
    for generation in GENERATIONS.values():
        generation(synced.root, 0)
    first = Transcript(seed=7).user("where does the ferry land").assistant("at the pier")
    first.write(synced.root)
    resume(first, seed=8).user("and in winter").write(synced.root)
    report = read_changes(synced.archive, [(named("claude-code"), synced.root)], index=lambda: index)
    assert synced.archive.index_queue.next_jobs(1) == []
    assert report.sessions == len(
        {summary.id for summary in synced.summaries() if summary.parent_ref is None}
    )
    _assert_equals_new_index(synced, index)


def test_only_new_messages_of_a_session_are_indexed(synced: SyncedArchive, index: Index) -> None:
    session = Transcript().user("where is the lighthouse").assistant("on the cliff")
    session.write(synced.root)
    synced.sync()
    assert update(synced.archive, index)
    session.user("and its keeper").write(synced.root)
    synced.sync()
    (job,) = synced.archive.index_queue.next_jobs(10)
    assert job.first_position == 2
    assert update(synced.archive, index)
    assert [hit.position for hit in index.search(parse("keeper"), limit=9, by="message").hits] == [2]
    assert [hit.position for hit in index.search(parse("lighthouse"), limit=9, by="message").hits] == [0]


def test_a_session_is_indexed_again_from_a_call_that_gets_its_result(
    synced: SyncedArchive, index: Index
) -> None:
    path = Transcript().user("look").run(tool_calls.bash("ls", "lantern.txt")).write(synced.root)
    *before, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(before))
    synced.sync()
    assert update(synced.archive, index)
    path.write_bytes(b"".join([*before, last]))
    synced.sync()
    (job,) = synced.archive.index_queue.next_jobs(10)
    assert job.first_position == 1
    assert update(synced.archive, index)
    assert [hit.position for hit in index.search(parse("lantern"), limit=9, by="message").hits] == [1]


def test_a_new_title_causes_the_whole_session_to_be_indexed(synced: SyncedArchive, index: Index) -> None:
    session = Transcript().user("where is the lighthouse").assistant("on the cliff")
    session.write(synced.root)
    synced.sync()
    assert update(synced.archive, index)
    session.ai_title("Beacons").write(synced.root)
    synced.sync()
    assert [job.first_position for job in synced.archive.index_queue.next_jobs(10)] == [0]
    assert update(synced.archive, index)
    assert [hit.position for hit in index.search(parse("beacons"), limit=9, by="message").hits] == [0]


def test_a_job_added_while_the_index_is_written_is_not_lost(synced: SyncedArchive) -> None:
    session = Transcript().user("one")
    session.write(synced.root)
    synced.sync()
    jobs = synced.archive.index_queue.next_jobs(10)
    session.user("two").write(synced.root)
    synced.sync()
    synced.archive.index_queue.mark_done(jobs)
    assert [job.first_position for job in synced.archive.index_queue.next_jobs(10)] == [0]
    synced.archive.index_queue.mark_done(synced.archive.index_queue.next_jobs(10))
    assert synced.archive.index_queue.next_jobs(10) == []


def test_a_subagent_is_not_indexed_again_when_its_session_grows(synced: SyncedArchive, index: Index) -> None:
    session = Transcript().user("ask someone").delegate("find the harbour", "it is in the north")
    session.write(synced.root)
    synced.sync()
    assert update(synced.archive, index)
    session.user("thanks").write(synced.root)
    synced.sync()
    (job,) = synced.archive.index_queue.next_jobs(10)
    assert job.first_position > 0


def test_an_index_replaced_while_it_is_written_is_not_complete(synced: SyncedArchive, index: Index) -> None:
    session = Transcript().user("one")
    session.write(synced.root)
    synced.sync()
    with Indexer(synced.archive, index) as indexer:
        assert indexer.catch_up()
        session.user("lighthouse").write(synced.root)
        synced.sync()
        Index(index.folder).rebuild()
        assert not indexer.catch_up()
    assert synced.archive.index_queue.next_jobs(1) != []
    assert update(synced.archive, index)
    assert len(index.search(parse("lighthouse"), limit=9).hits) == 1
