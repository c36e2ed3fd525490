"""Message chunks with several frames: reading one message returns the same as reading the whole chunk."""

import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backscroll.archive.connection import decode_errors
from backscroll.archive.storage.codec import (
    compress,
    decode_chunk,
    decompress,
    encode_messages,
    lacks_seek_table,
    read_seek_table,
    recompress_chunk,
)
from backscroll.archive.storage.delta import read_message, read_messages
from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.message import Message, Origin
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.archive.synced_archive import SyncedArchive

DB = sqlite3.connect(":memory:")
DB.execute("create table message_chunk (fragment_id, position, body)")  # no delta bases
NOISE = "".join(map(chr, Random(3).choices(range(32, 0x250), k=50_000)))


def _message(index: int, size: int) -> Message:
    start = index * 7919 % len(NOISE)
    content = (NOISE[start:] + NOISE)[:size]
    return Message(f"m{index}", "user", content, Origin("/a.jsonl", f"line {index}"))


SIZES = st.lists(
    st.one_of(st.integers(0, 300), st.integers(0, 9_000), st.integers(9_000, 45_000)), min_size=1, max_size=30
)
MESSAGES = SIZES.map(lambda sizes: [_message(index, size) for index, size in enumerate(sizes)])
SAMPLE = [_message(index, size) for index, size in enumerate([700, 20, 15_000, 9_000, 40_000, 3, 12_000] * 5)]
BODY = encode_messages(SAMPLE)[1]


@given(messages=MESSAGES)
def test_each_message_can_be_read_alone(messages: list[Message]) -> None:
    data, body = encode_messages(messages)
    assert data == msgspec.msgpack.encode(messages)
    assert decompress(body) == data
    assert decode_chunk(body) == read_messages(DB, body) == messages
    assert [read_message(DB, body, position) for position in range(len(messages))] == messages
    assert not lacks_seek_table(body)


@given(messages=MESSAGES)
def test_recompressing_gives_the_same_bytes(messages: list[Message]) -> None:
    data, body = encode_messages(messages)
    assert recompress_chunk(data) == body


def test_a_frame_is_small_unless_a_message_is_large() -> None:
    frames = read_seek_table(BODY)
    assert frames is not None
    assert frames.first_positions[-1] == len(SAMPLE)
    sizes = [len(decompress(frames.frame(BODY, index))) for index in range(len(frames.first_positions) - 1)]
    largest_message = max(len(message.content.encode()) for message in SAMPLE)
    assert max(sizes) < largest_message + 6_000
    assert sum(size <= 33_000 for size in sizes) >= len(sizes) - 5


def test_a_chunk_of_few_messages_has_no_seek_table() -> None:
    _, body = encode_messages(SAMPLE[:2])
    assert read_seek_table(body) is None
    assert read_message(DB, body, 1) == SAMPLE[1]


def test_a_chunk_with_a_single_frame_is_read() -> None:
    body = compress(msgspec.msgpack.encode(SAMPLE))
    assert read_seek_table(body) is None
    assert not lacks_seek_table(body)
    assert [read_message(DB, body, position) for position in range(len(SAMPLE))] == SAMPLE


@settings(max_examples=5 * settings.default.max_examples)
@given(
    position=st.integers(0, len(SAMPLE) - 1),
    offset=st.one_of(st.integers(0, len(BODY) - 1), st.integers(-150, -1)),
    change=st.integers(0, 255),
)
def test_a_changed_byte_never_gives_another_message_than_the_whole_chunk(
    position: int, offset: int, change: int
) -> None:
    body = bytearray(BODY)
    body[offset] ^= change
    _assert_same_as_whole_chunk(bytes(body), position)


@settings(max_examples=5 * settings.default.max_examples)
@given(
    position=st.integers(0, len(SAMPLE) - 1),
    end=st.one_of(st.integers(0, len(BODY)), st.integers(-150, -1)),
)
def test_a_truncated_chunk_never_gives_another_message(position: int, end: int) -> None:
    _assert_same_as_whole_chunk(BODY[:end], position)


def _assert_same_as_whole_chunk(body: bytes, position: int) -> None:
    """Check that a message read alone is the original, the one in the whole chunk, or an error like there."""
    try:
        message = read_message(DB, body, position)
    except decode_errors():
        with pytest.raises(decode_errors()):
            _ = read_messages(DB, body)[position]
        return
    assert message == SAMPLE[position] or message == read_messages(DB, body)[position]


@pytest.mark.parametrize("offset_from_end", range(1, 13))
def test_a_chunk_with_a_damaged_seek_table_is_read_whole(offset_from_end: int) -> None:
    body = bytearray(BODY)
    body[-offset_from_end] ^= 1
    assert read_seek_table(bytes(body)) is None
    assert [read_message(DB, bytes(body), position) for position in range(len(SAMPLE))] == SAMPLE
    assert lacks_seek_table(bytes(body))


@pytest.fixture
def synced(tmp_path: Path) -> SyncedArchive:
    session = Transcript()
    for message in SAMPLE:
        session.user(message.content or "nothing").assistant(f"answer {message.id}")
    session.write(tmp_path / "root")
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    synced.sync()
    return synced


def _update_seekable_chunks(synced: SyncedArchive, expression: str) -> int:
    """Replace the chunks that have a seek table by this SQL expression. Return their number."""
    with sqlite3.connect(synced.archive.path) as db:
        db.create_function("has_table", 1, lambda body: read_seek_table(body) is not None)
        db.create_function("single_frame", 1, lambda body: compress(decompress(body)))
        db.create_function(
            "flip", 2, lambda body, end: body[:-end] + bytes([body[-end] ^ 1]) + body[1 - end :]
        )
        return db.execute(f"update message_chunk set body = {expression} where has_table(body)").rowcount  # noqa: S608


def _lookup_contents(synced: SyncedArchive) -> list[str]:
    """Return the content of every message, read like the messages on a page of search results."""
    (summary,) = synced.summaries()
    (session_id,) = synced.archive.sessions.ids_with_subagents(summary)
    contents: list[str] = []
    for positions in (range(0, 70, 7), range(70), [500]):
        passages = synced.archive.messages.lookup([(session_id, position) for position in positions])
        contents = [passages[key].message.content for key in sorted(passages)] or contents
    return contents


def test_messages_are_looked_up_in_chunks_with_and_without_a_seek_table(synced: SyncedArchive) -> None:
    expected = [message.content for message in synced.messages(synced.summaries()[0].id)]
    assert _lookup_contents(synced) == expected
    assert _update_seekable_chunks(synced, "single_frame(body)") > 0
    assert _lookup_contents(synced) == expected
    assert synced.archive.maintenance.verify() == []


def test_verify_reports_a_damaged_seek_table_and_messages_stay_readable(synced: SyncedArchive) -> None:
    expected = [message.content for message in synced.messages(synced.summaries()[0].id)]
    assert _update_seekable_chunks(synced, "flip(body, 14)") > 0
    assert _lookup_contents(synced) == expected
    assert synced.archive.maintenance.verify() == ["the messages of fragment 1 are damaged"]


def test_messages_delayed_by_a_late_tool_result_are_stored_in_chunks_of_normal_size(tmp_path: Path) -> None:
    session = Transcript("5e551011-0000-4000-8000-0000000000a1", seed=1)
    session.user("start the server").assistant(tools=[tool_calls.bash("make serve")])
    server = session.tool_ids[-1]
    for index in range(700):
        session.user(f"and number {index}?").assistant(f"Number {index}.")
    session.run(tool_calls.bash("cat log", "line\n" * 40_000)).result(server, "stopped")
    session.write(tmp_path / "claude")
    home = tmp_path / "home"
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=home) as history:
        history.sync()
        shown = history.get_session("1")
    results = [message.tool.result or "" for message in shown.messages if message.tool]
    assert [len(result) for result in results] == [len("stopped"), 200_000]
    with closing(sqlite3.connect(home / "archive.db")) as db:
        positions = [position for (position,) in db.execute("select position from message_chunk order by 1")]
    assert max(after - before for before, after in pairwise(positions)) <= 200
    assert len(shown.messages) - positions[-1] <= 200
