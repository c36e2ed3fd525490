"""Whatever is done to one record, the others still arrive and nothing is raised."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.sources.cursor.database import record_types
from backscroll.testing import cursor
from tests.sources.cursor.reading import read, said, tell, words

TALK = [
    cursor.user("before"),
    cursor.Message(
        "assistant",
        "in the middle",
        "hm",
        cursor.Tool("edit_file", {"target_file": "/w/a.py"}, {"diff": {"chunks": [{"diffString": "+a"}]}}),
        id="b1",
    ),
    cursor.user("after"),
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["{", "[[", '"', "~", "\ud800", "file:///x", "1e999", "-1", '{"text": 1}']),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=8,
)


def names_of(record: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(record)]


class Bench:
    """A home with a session to break and one to leave alone, written once."""

    def __init__(self, folder: Path) -> None:
        self.home = cursor.Home(folder / "Cursor", journal="delete")
        self.other = self.home.composer([cursor.user("elsewhere")], has_graph=False).id
        made = self.home.composer(TALK)
        self.made = made
        self.home.write()
        self.path = self.home.database
        with closing(sqlite3.connect(self.path)) as db:
            query = "select value from composerHeaders where composerId = ?"
            self.head: str = db.execute(query, [made.id]).fetchone()[0]
        self.whole = {key: cursor.damage.read(self.path, key) for key in (made.key, *self.bubbles)}

    @property
    def bubbles(self) -> list[str]:
        return [self.made.bubble_key(place) for place in range(3)]

    def write_head(self, value: str) -> None:
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute("update composerHeaders set value = ? where composerId = ?", [value, self.made.id])

    def read_with(self, key: str, value: bytes) -> list[tuple[str, str]]:
        """What is told while one value is another; the other session is checked on the way."""
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute("update cursorDiskKV set value = cast(? as text) where key = ?", [value, key])
        found = read(self.home.root)
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute(
                "update cursorDiskKV set value = cast(? as text) where key = ?", [self.whole[key], key]
            )
        assert said(found[self.other]) == [("user", "elsewhere")]
        for message in found[self.made.id].messages:
            msgspec.json.encode(message)
        return [(message.role, words(message)) for message in found[self.made.id].messages]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


@given(name=st.sampled_from(names_of(record_types.Bubble)), value=VALUES)
def test_any_value_in_any_field_of_a_bubble_costs_no_other(bench: Bench, name: str, value: Any) -> None:
    key = bench.bubbles[1]
    record = json.loads(bench.whole[key]) | {name: value}
    told = bench.read_with(key, json.dumps(record).encode())
    assert told[0] == ("user", "before")
    assert told[-1] == ("user", "after")


@given(name=st.sampled_from(names_of(record_types.Composer)), value=VALUES)
def test_any_value_in_any_field_of_a_session_costs_no_message(bench: Bench, name: str, value: Any) -> None:
    key = bench.made.key
    record = json.loads(bench.whole[key]) | {name: value}
    told = bench.read_with(key, json.dumps(record).encode())
    assert {("user", "before"), ("assistant", "in the middle"), ("user", "after")} <= set(told)


@given(
    name=st.sampled_from(["name", "status", "result", "rawArgs", "params", "error", "additionalData"]),
    value=VALUES,
)
def test_any_value_in_any_field_of_a_call_keeps_the_words_beside_it(
    bench: Bench, name: str, value: Any
) -> None:
    key = bench.bubbles[1]
    record = json.loads(bench.whole[key])
    record["toolFormerData"][name] = value
    assert ("assistant", "in the middle") in bench.read_with(key, json.dumps(record).encode())


@given(place=st.integers(0, 2), cut=st.floats(0, 1))
def test_a_bubble_cut_anywhere_costs_only_itself(bench: Bench, place: int, cut: float) -> None:
    key = bench.bubbles[place]
    whole = bench.whole[key]
    told = {text for _, text in bench.read_with(key, whole[: int(len(whole) * cut)])}
    texts = ["before", "in the middle", "after"]
    assert {text for number, text in enumerate(texts) if number != place} <= told


@given(place=st.floats(0, 0.999), byte=st.integers(0, 255))
def test_a_flipped_byte_in_a_bubble_costs_only_itself(bench: Bench, place: float, byte: int) -> None:
    key = bench.bubbles[1]
    whole = bytearray(bench.whole[key])
    whole[int(len(whole) * place)] = byte
    told = bench.read_with(key, bytes(whole))
    assert told[0] == ("user", "before")
    assert told[-1] == ("user", "after")


@given(cut=st.floats(0, 1))
def test_a_session_cut_anywhere_keeps_its_messages(bench: Bench, cut: float) -> None:
    key = bench.made.key
    whole = bench.whole[key]
    told = bench.read_with(key, whole[: int(len(whole) * cut)])
    assert {("user", "before"), ("assistant", "in the middle"), ("user", "after")} <= set(told)


@given(place=st.floats(0, 0.999), byte=st.integers(0, 255))
def test_a_flipped_byte_in_a_session_keeps_its_messages(bench: Bench, place: float, byte: int) -> None:
    key = bench.made.key
    whole = bytearray(bench.whole[key])
    whole[int(len(whole) * place)] = byte
    told = bench.read_with(key, bytes(whole))
    assert {("user", "before"), ("assistant", "in the middle"), ("user", "after")} <= set(told)


@given(data=st.binary(max_size=200))
def test_any_bytes_at_all_cost_only_their_own_row(bench: Bench, data: bytes) -> None:
    for key in (bench.made.key, bench.bubbles[0]):
        assert ("user", "after") in bench.read_with(key, data)


@given(name=st.sampled_from(names_of(record_types.ComposerHeader)), value=VALUES)
def test_any_value_in_any_field_of_a_list_entry_costs_no_message(bench: Bench, name: str, value: Any) -> None:
    bench.write_head(json.dumps(json.loads(bench.head) | {name: value}))
    try:
        assert ("user", "before") in said(read(bench.home.root)[bench.made.id])
    finally:
        bench.write_head(bench.head)


@pytest.mark.parametrize("is_escaped", [True, False])
def test_half_a_character_is_replaced_and_the_rest_kept(tmp_path: Path, is_escaped: bool) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    made = home.composer(TALK)
    home.write()
    cursor.damage.add_surrogate(home.database, made.bubble_key(0), is_escaped=is_escaped)
    first = read(home.root)[made.id].messages[0].content
    assert first.startswith("before")
    assert "\ufffd" in first


def test_a_byte_order_mark_and_a_blob_are_no_obstacle(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    made = home.composer(TALK)
    home.write()
    cursor.damage.add_bom(home.database, made.bubble_key(0))
    cursor.damage.store_as_blob(home.database, made.bubble_key(2))
    cursor.damage.store_as_blob(home.database, made.key)
    told = said(read(home.root)[made.id])
    assert (told[0], told[-1]) == (("user", "before"), ("user", "after"))


def test_what_cannot_be_read_is_named_and_keeps_its_place(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    made = home.composer(TALK, has_graph=False)
    home.write()
    cursor.damage.cut(home.database, made.bubble_key(1), 20)
    told = next(each for unit, each in tell(home.root).items() if unit.key == made.id)
    (problem,) = told.problems
    assert problem.origin.place == made.bubble_key(1)
    assert told.counts.problems == 1
    assert [message.kind for message in told.sessions[0].messages] == [None, "missing", None]
