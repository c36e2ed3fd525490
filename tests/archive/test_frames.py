"""Pieces of messages in several frames: read in part they say what they say as a whole."""

import sqlite3
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backscroll.archive.errors import decode_errors
from backscroll.archive.storage.codec import (
    compress,
    decode_chunk,
    decompress,
    encode_messages,
    lacks_seek_table,
    recompress_chunk,
)
from backscroll.archive.storage.delta import read_message, read_messages
from backscroll.archive.storage.seekable import read_seek_table
from backscroll.model import Message, Origin
from backscroll.testing.claude_code import Transcript
from tests.archive.synced_archive import SyncedArchive

DB = sqlite3.connect(":memory:")
DB.execute("create table message_chunk (fragment_id, position, body)")  # no delta bases
NOISE = "".join(map(chr, Random(3).choices(range(32, 0x250), k=50_000)))


def _message(number: int, size: int) -> Message:
    begin = number * 7919 % len(NOISE)
    content = (NOISE[begin:] + NOISE)[:size]
    return Message(f"m{number}", "user", content, Origin("/a.jsonl", f"line {number}"))


SIZES = st.lists(
    st.one_of(st.integers(0, 300), st.integers(0, 9_000), st.integers(9_000, 45_000)), min_size=1, max_size=30
)
MESSAGES = SIZES.map(lambda sizes: [_message(number, size) for number, size in enumerate(sizes)])
TALK = [_message(number, size) for number, size in enumerate([700, 20, 15_000, 9_000, 40_000, 3, 12_000] * 5)]
BODY = encode_messages(TALK)[1]


@given(messages=MESSAGES)
def test_each_message_is_read_alone_as_it_is_among_the_others(messages: list[Message]) -> None:
    plain, body = encode_messages(messages)
    assert plain == msgspec.msgpack.encode(messages)
    assert decompress(body) == plain
    assert decode_chunk(body) == read_messages(DB, body) == messages
    assert [read_message(DB, body, place) for place in range(len(messages))] == messages
    assert not lacks_seek_table(body)


@given(messages=MESSAGES)
def test_what_is_packed_again_is_packed_alike(messages: list[Message]) -> None:
    plain, body = encode_messages(messages)
    assert recompress_chunk(plain) == body


def test_a_frame_is_small_unless_a_message_is_large() -> None:
    frames = read_seek_table(BODY)
    assert frames is not None
    assert frames.first_positions[-1] == len(TALK)
    sizes = [len(decompress(frames.frame(BODY, number))) for number in range(len(frames.first_positions) - 1)]
    large = max(len(message.content.encode()) for message in TALK)
    assert max(sizes) < large + 6_000
    assert sum(size <= 33_000 for size in sizes) >= len(sizes) - 5


def test_few_messages_need_no_table() -> None:
    _, body = encode_messages(TALK[:2])
    assert read_seek_table(body) is None
    assert read_message(DB, body, 1) == TALK[1]


def test_a_piece_that_was_packed_before_there_were_frames_is_read() -> None:
    body = compress(msgspec.msgpack.encode(TALK))
    assert read_seek_table(body) is None
    assert not lacks_seek_table(body)
    assert [read_message(DB, body, place) for place in range(len(TALK))] == TALK


@settings(max_examples=400)
@given(
    place=st.integers(0, len(TALK) - 1),
    at=st.one_of(st.integers(0, len(BODY) - 1), st.integers(-150, -1)),
    change=st.integers(0, 255),
)
def test_a_changed_byte_gives_no_other_message_than_the_whole_does(place: int, at: int, change: int) -> None:
    body = bytearray(BODY)
    body[at] ^= change
    _assert_no_worse(bytes(body), place)


@settings(max_examples=200)
@given(
    place=st.integers(0, len(TALK) - 1),
    end=st.one_of(st.integers(0, len(BODY)), st.integers(-150, -1)),
)
def test_a_body_cut_short_gives_no_other_message(place: int, end: int) -> None:
    _assert_no_worse(BODY[:end], place)


def _assert_no_worse(body: bytes, place: int) -> None:
    """A message read alone is the one that was packed, or none, unless the whole says the same."""
    try:
        found = read_message(DB, body, place)
    except decode_errors():
        with pytest.raises(decode_errors()):
            _ = read_messages(DB, body)[place]
        return
    assert found == TALK[place] or found == read_messages(DB, body)[place]


@pytest.mark.parametrize("at", range(1, 13))
def test_a_body_without_a_right_table_is_read_whole_and_said_to_be_damaged(at: int) -> None:
    body = bytearray(BODY)
    body[-at] ^= 1
    assert read_seek_table(bytes(body)) is None
    assert [read_message(DB, bytes(body), place) for place in range(len(TALK))] == TALK
    assert lacks_seek_table(bytes(body))


@pytest.fixture
def kept(tmp_path: Path) -> SyncedArchive:
    session = Transcript()
    for message in TALK:
        session.user(message.content or "nothing").assistant(f"answer {message.id}")
    session.write(tmp_path / "root")
    kept = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    kept.sync()
    return kept


def _change_bodies(kept: SyncedArchive, change: str) -> int:
    """Change those bodies that have a table."""
    with sqlite3.connect(kept.archive.path) as db:
        db.create_function("has_table", 1, lambda body: read_seek_table(body) is not None)
        db.create_function("without_frames", 1, lambda body: compress(decompress(body)))
        db.create_function("flip", 2, lambda body, at: body[:-at] + bytes([body[-at] ^ 1]) + body[1 - at :])
        return db.execute(f"update message_chunk set body = {change} where has_table(body)").rowcount  # noqa: S608


def _found(kept: SyncedArchive) -> list[Message]:
    """Every message, as a page of finds reads it."""
    (summary,) = kept.summaries()
    (number,) = kept.archive.sessions.ids_with_subagents(summary)
    found = []
    for some in (range(0, 70, 7), range(70), [500]):
        passages = kept.archive.messages.lookup([(number, place) for place in some])
        found = [passages[place].message for place in sorted(passages)] or found
    return found


def test_finds_are_read_from_frames_and_from_older_pieces_alike(kept: SyncedArchive) -> None:
    told = kept.messages(kept.summaries()[0].id)
    assert [one.content for one in _found(kept)] == [one.content for one in told]
    assert _change_bodies(kept, "without_frames(body)") > 0
    assert [one.content for one in _found(kept)] == [one.content for one in told]
    assert kept.archive.maintenance.verify() == []


def test_a_damaged_table_is_named_by_verify_and_hides_nothing(kept: SyncedArchive) -> None:
    told = kept.messages(kept.summaries()[0].id)
    assert _change_bodies(kept, "flip(body, 14)") > 0
    assert [one.content for one in _found(kept)] == [one.content for one in told]
    assert kept.archive.maintenance.verify() == ["the messages of fragment 1 are damaged"]
