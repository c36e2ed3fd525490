"""Sessions that Claude Code before 2.0 copied with new ids."""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

from backscroll.config import Machine, NamedRoot
from backscroll.history.history import History
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import (
    Transcript,
    repeat_conversation,
    resume,
    resume_with_new_ids,
    tool_calls,
)
from tests.archive.synced_archive import SyncedArchive
from tests.oracle.fold import fold
from tests.oracle.join import join

VERSIONS = ["0.2.126", "1.0.0", "1.0.69"]


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[SyncedArchive]:
    (tmp_path / "root").mkdir()
    one = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    yield one
    one.archive.close()


def original(version: str) -> Transcript:
    first = Transcript("88888888-8888-4888-8888-888888888888", version=version)
    edit = tool_calls.edit("/home/zoe/a.py", "one", "two\nthree", original="one\n")
    first.user("where is the quay?").run(edit).assistant("behind the dike", thinking="hm")
    return first


def copied(synced: SyncedArchive, session: Transcript) -> list[str | None]:
    return [message.copied_from for message in synced.messages(session.session_id)]


@pytest.mark.parametrize("version", VERSIONS)
def test_copied_messages_belong_to_the_original_session(synced: SyncedArchive, version: str) -> None:
    first = original(version)
    second = resume_with_new_ids(first)
    second.user("and the boats?").assistant("none")
    first.write(synced.root)
    synced.sync()
    (alone,) = synced.summaries()
    second.write(synced.root)
    synced.sync()
    found = {one.id: one for one in synced.summaries()}
    assert {id_: one.interaction_count for id_, one in found.items()} == {
        first.session_id: 1,
        second.session_id: 1,
    }
    assert found[first.session_id].total_tokens == alone.total_tokens
    assert found[second.session_id].total_changes == 0
    owners = copied(synced, second)
    assert owners == [first.session_id] * (len(owners) - 2) + [None] * 2


def test_a_prompt_in_the_same_millisecond_as_the_copies_is_new(synced: SyncedArchive) -> None:
    first = original("1.0.69")
    second = resume_with_new_ids(first)
    at = second.records[-1]["timestamp"] if isinstance(second.records[-1], dict) else ""
    second.user("and the boats?", timestamp=at).assistant("none")
    for session in (first, second):
        session.write(synced.root)
    synced.sync()
    assert copied(synced, second)[-3:] == [first.session_id, None, None]


def test_a_copied_prompt_with_an_error_instead_of_an_answer_belongs_to_the_original(
    synced: SyncedArchive,
) -> None:
    first = original("1.0.69")
    first.user("and the boats?").assistant("API Error: 401", model="<synthetic>")
    second = resume_with_new_ids(first)
    second.user("and now?").assistant("none")
    for session in (first, second):
        session.write(synced.root)
    synced.sync()
    owners = copied(synced, second)
    assert owners == [first.session_id] * (len(owners) - 2) + [None] * 2


def test_the_order_of_reading_copies_does_not_matter(tmp_path: Path) -> None:
    first = original("1.0.69")
    second = resume_with_new_ids(first)
    second.user("and the boats?").assistant("none")
    third = resume_with_new_ids(second, seed=2)
    third.user("and the pier?").assistant("north")
    contents = []
    for order in permutations((first, second, third)):
        root = tmp_path / "".join(session.session_id[0:4] for session in order)
        synced = SyncedArchive("claude-code", root, root / "home")
        for session in order:
            session.write(root)
            synced.sync()
        assert copied(synced, third)[-4:] == [second.session_id, second.session_id, None, None]
        assert set(copied(synced, third)[:-4]) == {first.session_id}
        assert {one.interaction_count for one in synced.summaries()} == {1}
        messages = [[*map(_without_path, synced.messages(session.session_id))] for session in order]
        contents.append(sorted(messages))
    assert all(content == contents[0] for content in contents)


def _without_path(message: object) -> str:
    return str([getattr(message, name) for name in ("id", "role", "content", "copied_from", "usage")])


def test_a_copy_with_the_same_ids_of_a_copy_with_new_ids_belongs_to_the_original(
    synced: SyncedArchive,
) -> None:
    first = original("1.0.69")
    second = resume_with_new_ids(first)
    second.user("and the boats?").assistant("none")
    third = resume(second, seed=2).user("and the pier?").assistant("north")
    for session in (first, second, third):
        session.write(synced.root)
    synced.sync()
    assert {one.interaction_count for one in synced.summaries()} == {1}
    assert copied(synced, third)[-4:] == [second.session_id, second.session_id, None, None]
    assert set(copied(synced, second)[:-2]) == {first.session_id}


def test_a_copy_owns_its_messages_without_the_original_session(synced: SyncedArchive, tmp_path: Path) -> None:
    first = original("1.0.69")
    second = resume_with_new_ids(first)
    second.user("and the boats?").assistant("none").write(synced.root)
    synced.sync()
    assert set(copied(synced, second)) == {None}
    first.write(synced.root)
    synced.sync()
    assert set(copied(synced, second)) == {first.session_id, None}
    roots = [NamedRoot("claude-code", synced.root)]
    with History(roots=roots, home=tmp_path / "home", machine=Machine(tmp_path)) as history:
        history.archive_admin.forget(first.session_id)
        assert {message.copied_from for message in history.get_session(second.session_id).messages} == {None}


def test_sessions_with_equal_response_ids_are_not_copies(synced: SyncedArchive) -> None:
    """Some gateways give every response the same id."""
    sessions = [Transcript(version="1.0.69", seed=seed) for seed in (1, 2)]
    for session in sessions:
        session.user("where is the quay?").assistant("behind the dike")
        for record in session.records:
            if isinstance(record, dict) and record["type"] == "assistant":
                record["message"]["id"] = "msg_1"
                del record["requestId"]
        session.write(synced.root)
    synced.sync()
    assert [one.interaction_count for one in synced.summaries()] == [1, 1]


def test_the_archive_marks_the_same_copies_as_the_joined_units(synced: SyncedArchive) -> None:
    first = original("1.0.69")
    first.user("and the boats?").assistant("API Error: 401", model="<synthetic>")
    second = resume_with_new_ids(first)
    second.user("and the boats?").assistant("none")
    for session in (first, second):
        session.write(synced.root)
    synced.sync()
    source = ClaudeCode()
    joined = join((source.platform, fold(source.read(unit))) for unit in source.units(synced.root))
    for session in (first, second):
        expected = joined["claude_code", session.session_id, None]
        assert copied(synced, session) == [message.copied_from for message in expected.messages]
        (summary,) = synced.archive.sessions.find(session.session_id)
        assert summary.total_tokens == expected.tokens


@pytest.mark.parametrize("version", VERSIONS)
def test_a_conversation_that_is_written_again_is_read_once(synced: SyncedArchive, version: str) -> None:
    session = original(version)
    repeat_conversation(session).user("yes").assistant("so")
    repeat_conversation(session).user("yes").assistant("so")
    session.write(synced.root)
    synced.sync()
    (summary,) = synced.summaries()
    assert summary.interaction_count == 3
    assert summary.message_count == len([m for m in synced.messages(session.session_id) if m.is_active]) == 8
    assert [m.content for m in synced.messages(session.session_id) if m.role == "user"] == [
        "where is the quay?",
        "yes",
        "yes",
    ]
    assert summary.total_changes == 2 + 1


def test_a_conversation_that_grows_between_syncs_is_read_once(synced: SyncedArchive, tmp_path: Path) -> None:
    session = original("1.0.69")
    repeat_conversation(session).user("and now?").assistant("fog")
    path = session.write(synced.root)
    whole = path.read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for end in ends:
        path.write_bytes(whole[:end])
        synced.sync()
    fresh = SyncedArchive("claude-code", synced.root, tmp_path / "fresh")
    fresh.sync()
    assert fresh.content() == synced.content()
    assert synced.summaries()[0].interaction_count == 2
