"""Sessions that `--fork-session` copied without a mark: the original session owns what they share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript, fork_session, tool_calls
from tests.archive.synced_archive import SyncedArchive

# The rank of the ids must not matter, so each is tested as the smaller and the larger one.
IDS = ["00000000-0000-4000-8000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff"]


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[SyncedArchive]:
    (tmp_path / "root").mkdir()
    one = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    yield one
    one.archive.close()


def original(version: str, *, is_interactive: bool = False) -> Transcript:
    first = Transcript("88888888-8888-4888-8888-888888888888", version=version)
    if is_interactive:
        first.snapshot(first.new_uuid(), {}, update=False).wait(-1)
    elif first.release.is_at_least("2.1.0"):
        first.queue("enqueue", "where is the quay?").queue("dequeue")
    return first.user("where is the quay?").run(tool_calls.bash("ls", "quay")).assistant("behind the dike")


def assert_original_owns(synced: SyncedArchive, first: Transcript, second: Transcript) -> None:
    found = {one.id: one.interaction_count for one in synced.summaries()}
    assert found == {first.session_id: 1, second.session_id: 1}
    assert {one.copied_from for one in synced.messages(first.session_id)} == {None}
    copied = [one.copied_from for one in synced.messages(second.session_id)]
    assert copied == [first.session_id] * (len(copied) - 2) + [None] * 2


@pytest.mark.parametrize("fork_id", IDS)
@pytest.mark.parametrize("is_interactive", [False, True])
@pytest.mark.parametrize("version", ["2.0.76", "2.1.105", "2.1.212", "2.1.325"])
def test_the_original_session_owns_the_messages_of_a_fork(
    synced: SyncedArchive, version: str, is_interactive: bool, fork_id: str
) -> None:
    first = original(version, is_interactive=is_interactive)
    second = fork_session(first, "and the boats?", is_interactive=is_interactive, session_id=fork_id)
    first.write(synced.root)
    second.assistant("none").write(synced.root)
    synced.sync()
    assert_original_owns(synced, first, second)
    tokens = {one.id: one.total_tokens for one in synced.summaries()}
    (synced.root / second.path(Path())).unlink()
    alone = SyncedArchive("claude-code", synced.root, synced.root / "alone")
    alone.sync()
    assert tokens[first.session_id] == alone.summaries()[0].total_tokens


@pytest.mark.parametrize("fork_id", IDS)
def test_the_order_in_which_a_fork_and_its_original_are_read_does_not_matter(
    synced: SyncedArchive, tmp_path: Path, fork_id: str
) -> None:
    first = original("2.1.105")
    second = fork_session(first, "and the boats?", session_id=fork_id).assistant("none")
    second.write(synced.root)
    synced.sync()
    assert [one.interaction_count for one in synced.summaries()] == [2]
    path = first.write(synced.root)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"\n", len(whole) // 2) + 1])
    synced.sync()
    path.write_bytes(whole)
    synced.sync()
    assert_original_owns(synced, first, second)
    fresh = SyncedArchive("claude-code", synced.root, tmp_path / "fresh")
    fresh.sync()
    assert fresh.content() == synced.content()


@pytest.mark.parametrize("fork_id", IDS)
def test_a_fork_of_a_fork_owns_only_its_own_messages(synced: SyncedArchive, fork_id: str) -> None:
    first = original("2.1.325")
    second = fork_session(first, "and the boats?", session_id=fork_id).assistant("none")
    third = fork_session(second, "and the pier?").assistant("north")
    for session in (third, second, first):
        session.write(synced.root)
    synced.sync()
    copied = [one.copied_from for one in synced.messages(third.session_id)]
    assert copied[-4:] == [second.session_id, second.session_id, None, None]
    assert set(copied[:-4]) == {first.session_id}
    assert {one.interaction_count for one in synced.summaries()} == {1}


@pytest.mark.parametrize("fork_id", IDS)
def test_a_fork_is_known_by_a_response_whose_request_is_in_another_file(
    synced: SyncedArchive, fork_id: str
) -> None:
    first = Transcript("88888888-8888-4888-8888-888888888888", version="2.1.325")
    first.user("where is the quay?").timestamped_state("api-request", id="r1")
    first.assistant("behind the dike", requestRef="r1")
    second = fork_session(first, "and the boats?", session_id=fork_id)
    second.timestamped_state("api-request", id="r2").assistant("none", requestRef="r2")
    for session in (first, second):
        session.records = [
            r for r in session.records if isinstance(r, dict) and r["type"] != "queue-operation"
        ]
        session.change(lambda record: record.pop("session_id", None))
        session.write(synced.root)
    synced.sync()
    assert_original_owns(synced, first, second)


@pytest.mark.parametrize("fork_id", IDS)
def test_a_fork_is_known_by_the_session_that_its_lines_name(synced: SyncedArchive, fork_id: str) -> None:
    first = original("2.1.325")
    second = fork_session(first, "and the boats?", session_id=fork_id).assistant("none")
    for session in (first, second):
        session.records = [
            r for r in session.records if isinstance(r, dict) and r["type"] != "queue-operation"
        ]
        session.write(synced.root)
    synced.sync()
    assert_original_owns(synced, first, second)


@pytest.mark.parametrize("fork_id", IDS)
def test_an_empty_response_counts_in_the_original_session(synced: SyncedArchive, fork_id: str) -> None:
    first = original("2.1.105")
    first.user("and now?").assistant(" ")
    second = fork_session(first, "and the boats?", session_id=fork_id)
    first.write(synced.root)
    synced.sync()
    (alone,) = synced.summaries()
    second.write(synced.root)
    synced.sync()
    assert {one.id: one.total_tokens for one in synced.summaries()} == {
        first.session_id: alone.total_tokens,
        second.session_id: None,
    }


@pytest.mark.parametrize("fork_id", IDS)
def test_a_session_that_copies_a_turn_from_its_fork_owns_the_rest(
    synced: SyncedArchive, fork_id: str
) -> None:
    """`--continue` of 2.0.76 can copy the last turn of a fork into the original file."""
    first = original("2.0.76")
    second = fork_session(first, "and the boats?", session_id=fork_id).assistant("none")
    own_count = len(first.records)
    first.now = second.now
    first.queue("dequeue")
    turn = [record for record in second.records if isinstance(record, dict)][-2:]
    for record in turn:
        first.line(record | ({} if record["type"] == "user" else {"sessionId": first.session_id}))
    first.leaf = second.leaf
    first.user("and now?").assistant("fog")
    assert len(first.records) == own_count + 5
    for session in (first, second):
        session.write(synced.root)
    synced.sync()
    assert {one.id: one.interaction_count for one in synced.summaries()} == {
        first.session_id: 2,
        second.session_id: 1,
    }
    copied = [one.copied_from for one in synced.messages(first.session_id)]
    assert copied == [None] * (len(copied) - 4) + [second.session_id] * 2 + [None] * 2
