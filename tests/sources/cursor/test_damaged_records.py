"""Damage to one record loses no other record and raises no error."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.sources.cursor.database import records
from backscroll.testing import cursor
from tests.builders.cursor import damage as cursor_damage
from tests.sources.cursor.reading import contents, message_content, read_sessions, read_units

MESSAGES = [
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
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["{", "[[", '"', "~", "\ud800", "file:///x", "1e999", "-1", '{"text": 1}']),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=8,
)


def field_names(record: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(record)]


class DamageableHistory:
    """History with one session to damage and one that stays intact, written once."""

    def __init__(self, folder: Path) -> None:
        self.home = cursor.Home(folder / "Cursor", journal="delete")
        self.other_id = self.home.composer([cursor.user("elsewhere")], has_graph=False).id
        composer = self.home.composer(MESSAGES)
        self.composer = composer
        self.home.write()
        self.path = self.home.database
        with closing(sqlite3.connect(self.path)) as db:
            query = "select value from composerHeaders where composerId = ?"
            self.header: str = db.execute(query, [composer.id]).fetchone()[0]
        self.original = {key: cursor_damage.read(self.path, key) for key in (composer.key, *self.bubble_keys)}

    @property
    def bubble_keys(self) -> list[str]:
        return [self.composer.bubble_key(index) for index in range(3)]

    def write_header(self, value: str) -> None:
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute("update composerHeaders set value = ? where composerId = ?", [value, self.composer.id])

    def read_with(self, key: str, value: bytes) -> list[tuple[str, str]]:
        """Read with one value replaced. Check that the other session is intact."""
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute("update cursorDiskKV set value = cast(? as text) where key = ?", [value, key])
        found = read_sessions(self.home.root)
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute(
                "update cursorDiskKV set value = cast(? as text) where key = ?", [self.original[key], key]
            )
        assert contents(found[self.other_id]) == [("user", "elsewhere")]
        for message in found[self.composer.id].messages:
            msgspec.json.encode(message)
        return [(message.role, message_content(message)) for message in found[self.composer.id].messages]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> DamageableHistory:
    return DamageableHistory(tmp_path_factory.mktemp("history"))


@given(name=st.sampled_from(field_names(records.Bubble)), value=JSON_VALUES)
def test_any_value_in_a_field_of_a_bubble_loses_no_other_bubble(
    history: DamageableHistory, name: str, value: Any
) -> None:
    key = history.bubble_keys[1]
    record = json.loads(history.original[key]) | {name: value}
    found = history.read_with(key, json.dumps(record).encode())
    assert found[0] == ("user", "before")
    assert found[-1] == ("user", "after")


@given(name=st.sampled_from(field_names(records.Composer)), value=JSON_VALUES)
def test_any_value_in_a_field_of_a_session_loses_no_message(
    history: DamageableHistory, name: str, value: Any
) -> None:
    key = history.composer.key
    record = json.loads(history.original[key]) | {name: value}
    found = history.read_with(key, json.dumps(record).encode())
    assert {("user", "before"), ("assistant", "in the middle"), ("user", "after")} <= set(found)


@given(
    name=st.sampled_from(["name", "status", "result", "rawArgs", "params", "error", "additionalData"]),
    value=JSON_VALUES,
)
def test_any_value_in_a_field_of_a_call_keeps_the_text_of_the_bubble(
    history: DamageableHistory, name: str, value: Any
) -> None:
    key = history.bubble_keys[1]
    record = json.loads(history.original[key])
    record["toolFormerData"][name] = value
    assert ("assistant", "in the middle") in history.read_with(key, json.dumps(record).encode())


@given(index=st.integers(0, 2), fraction=st.floats(0, 1))
def test_truncating_a_bubble_loses_only_that_bubble(
    history: DamageableHistory, index: int, fraction: float
) -> None:
    key = history.bubble_keys[index]
    original = history.original[key]
    found = {text for _, text in history.read_with(key, original[: int(len(original) * fraction)])}
    texts = ["before", "in the middle", "after"]
    assert {text for position, text in enumerate(texts) if position != index} <= found


@given(fraction=st.floats(0, 0.999), byte=st.integers(0, 255))
def test_a_changed_byte_in_a_bubble_loses_only_that_bubble(
    history: DamageableHistory, fraction: float, byte: int
) -> None:
    key = history.bubble_keys[1]
    changed = bytearray(history.original[key])
    changed[int(len(changed) * fraction)] = byte
    found = history.read_with(key, bytes(changed))
    assert found[0] == ("user", "before")
    assert found[-1] == ("user", "after")


@given(fraction=st.floats(0, 1))
def test_truncating_a_session_record_loses_no_message(history: DamageableHistory, fraction: float) -> None:
    key = history.composer.key
    original = history.original[key]
    found = history.read_with(key, original[: int(len(original) * fraction)])
    assert {("user", "before"), ("assistant", "in the middle"), ("user", "after")} <= set(found)


@given(fraction=st.floats(0, 0.999), byte=st.integers(0, 255))
def test_a_changed_byte_in_a_session_record_loses_no_message(
    history: DamageableHistory, fraction: float, byte: int
) -> None:
    key = history.composer.key
    changed = bytearray(history.original[key])
    changed[int(len(changed) * fraction)] = byte
    found = history.read_with(key, bytes(changed))
    assert {("user", "before"), ("assistant", "in the middle"), ("user", "after")} <= set(found)


@given(data=st.binary(max_size=200))
def test_arbitrary_bytes_in_a_row_lose_no_other_row(history: DamageableHistory, data: bytes) -> None:
    for key in (history.composer.key, history.bubble_keys[0]):
        assert ("user", "after") in history.read_with(key, data)


@given(name=st.sampled_from(field_names(records.ComposerHeader)), value=JSON_VALUES)
def test_any_value_in_a_field_of_a_list_entry_loses_no_message(
    history: DamageableHistory, name: str, value: Any
) -> None:
    history.write_header(json.dumps(json.loads(history.header) | {name: value}))
    try:
        assert ("user", "before") in contents(read_sessions(history.home.root)[history.composer.id])
    finally:
        history.write_header(history.header)


@pytest.mark.parametrize("is_escaped", [True, False])
def test_a_lone_surrogate_is_replaced_and_the_other_text_kept(tmp_path: Path, is_escaped: bool) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    composer = home.composer(MESSAGES)
    home.write()
    cursor_damage.add_surrogate(home.database, composer.bubble_key(0), is_escaped=is_escaped)
    first = read_sessions(home.root)[composer.id].messages[0].content
    assert first.startswith("before")
    assert "\ufffd" in first


def test_values_with_a_byte_order_mark_or_stored_as_blobs_are_read(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    composer = home.composer(MESSAGES)
    home.write()
    cursor_damage.add_bom(home.database, composer.bubble_key(0))
    cursor_damage.store_as_blob(home.database, composer.bubble_key(2))
    cursor_damage.store_as_blob(home.database, composer.key)
    found = contents(read_sessions(home.root)[composer.id])
    assert (found[0], found[-1]) == (("user", "before"), ("user", "after"))


def test_an_unreadable_bubble_is_a_problem_and_a_missing_message(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", journal="delete")
    composer = home.composer(MESSAGES, has_graph=False)
    home.write()
    cursor_damage.truncate_value(home.database, composer.bubble_key(1), 20)
    found = next(each for unit, each in read_units(home.root).items() if unit.key == composer.id)
    (problem,) = found.problems
    assert problem.origin.place == composer.bubble_key(1)
    assert found.counts.problems == 1
    assert [message.kind for message in found.sessions[0].messages] == [None, "missing", None]


def test_a_record_that_is_nested_too_deeply_keeps_the_rest(tmp_path: Path) -> None:
    deep = '{"x":[' * 1500 + "1" + "]}" * 1500
    home = cursor.Home(tmp_path / "Cursor")
    composer = home.composer([cursor.user("hello"), cursor.assistant("yes")], has_graph=False)
    home.write()
    with closing(sqlite3.connect(home.database)) as db, db:
        for key in (composer.key, composer.bubble_key(1)):
            (value,) = db.execute("select value from cursorDiskKV where key = ?", [key]).fetchone()
            text = value if isinstance(value, str) else value.decode()
            db.execute(
                "update cursorDiskKV set value = ? where key = ?", [f'{{"deep":{deep},{text[1:]}', key]
            )
    found = next(each for unit, each in read_units(home.root).items() if unit.key == composer.id)
    assert [message.content for message in found.sessions[0].messages] == ["hello", "yes"]
    assert [(problem.code, problem.reason) for problem in found.problems] == [
        (
            "nested-too-deeply",
            f"the record of the {what} has a value that is nested too deeply; the rest was read",
        )
        for what in ("session", "message")
    ]
    assert found.counts.problems == 2
    assert found.sessions[0].closing.completeness == "partial"


@pytest.mark.parametrize(
    ("value", "code", "predicate"),
    [
        ("", "not-json", "is empty"),
        ("{oops}", "not-json", "is not JSON: it is invalid at character 2"),
        ('{"composerId": "cut', "not-json", "is not JSON: it ends too early"),
        ('{"composerId": ', "not-json", "is not JSON: it ends too early"),
        ("[" * 100_000, "nested-too-deeply", "is nested too deeply"),
        ("[]", "unexpected-shape", "is a list instead of an object"),
        ("12", "unexpected-shape", "is a number instead of an object"),
        ("true", "unexpected-shape", "is true or false instead of an object"),
        ('"words"', "unexpected-shape", "is text instead of an object"),
        ('"[]"', "unexpected-shape", "is a list instead of an object"),
    ],
)
def test_the_reason_of_an_undecodable_record_is_a_sentence(
    value: str, code: str, predicate: str, tmp_path: Path
) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    composer = home.composer([cursor.user("hello"), cursor.assistant("yes")], has_graph=False)
    home.put(composer.key, value)
    home.put(composer.bubble_key(0), value)
    units = read_units(home.write())
    assert [(one.code, one.reason) for content in units.values() for one in content.problems] == [
        (code, f"the record of the session {predicate}"),
        (code, f"the record of the message {predicate}"),
    ]
