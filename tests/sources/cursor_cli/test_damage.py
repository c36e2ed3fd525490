"""Stores that were cut, torn or emptied: what is left comes back, and what is missing is said."""

import json
import sqlite3
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.sources.cursor_cli import CursorCli
from backscroll.testing.protobuf import encode_group
from backscroll.testing.protobuf import encode_message as record
from tests.oracle.fold import UnitContent, fold

from .reading import START, Store, assistant, call, only, read_one, result, said, user

TALK = (
    user("alpha"),
    assistant({"type": "reasoning", "text": "beta"}, "gamma", call("c1", command="delta")),
    result("c1", "epsilon"),
    assistant("zeta"),
    user("eta"),
    assistant("theta"),
)
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
HOLDERS = (0, 1, 1, 1, 2, 3, 4, 5)  # which record holds which word

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def talk(store: Store) -> list[str]:
    """The ids of the messages, kept with turns and a root."""
    ids = [store.put(message) for message in TALK]
    prompt = store.put(record((1, "alpha"), (25, START)))
    turn = store.put(record((1, record((1, prompt), (2, store.put(record((1, record((1, "zeta"))))))))))
    store.root(*((1, id) for id in ids), (8, turn), (26, START), (27, "Europe/Paris"))
    return [id.hex() for id in ids]


def everything(told: UnitContent) -> str:
    return "\n".join(
        f"{m.content} {m.tool.params if m.tool else ''} {m.tool.result if m.tool else ''}"
        for reading in told.sessions
        for m in reading.messages
    )


@pytest.mark.parametrize("pointer", ["", "d0" * 32, None])
def test_a_lost_root_is_found_again_and_the_session_is_partial(store: Store, pointer: str | None) -> None:
    talk(store)
    older = [store.put(message) for message in TALK[:2]]
    store.put(record(*((1, id) for id in older)))
    store.meta["latestRootBlobId"] = pointer
    told = store.read()
    assert all(word in everything(told) for word in WORDS)
    assert only(told).closing.completeness == "partial"
    assert len(told.problems) == 1


def test_a_root_that_a_later_message_goes_back_to_is_not_mistaken_for_the_last(store: Store) -> None:
    abandoned = store.put(record(*((1, store.put(user(f"abandoned {n}"))) for n in range(9))))
    prompt = store.put(record((1, "kept"), (10, abandoned)))
    turn = store.put(record((1, record((1, prompt)))))
    store.root((1, store.put(user("kept"))), (8, turn))
    store.meta["latestRootBlobId"] = ""
    assert said(store.read()) == [("user", "kept")]


def test_without_any_root_the_messages_come_in_the_order_written(store: Store) -> None:
    for message in TALK:
        store.put(message)
    told = store.read()
    assert all(word in everything(told) for word in WORDS)
    assert only(told).closing.completeness == "partial"


def test_a_missing_message_is_said_and_the_others_come(store: Store) -> None:
    ids = talk(store)
    del store.blobs[ids[3]]
    told = store.read()
    assert [word for word in WORDS if word not in everything(told)] == ["zeta"]
    assert only(told).closing.completeness == "partial"
    assert [(problem.origin.place, "missing" in problem.reason) for problem in told.problems] == [
        (f"blob {ids[3]}", True)
    ]


def test_a_message_that_was_changed_is_used_and_said(store: Store) -> None:
    ids = talk(store)
    store.blobs[ids[5]] = json.dumps(assistant("theta, changed")).encode()
    told = store.read()
    assert "theta, changed" in everything(told)
    assert len(told.problems) == 1


def test_a_blob_kept_as_hex_text_is_read(store: Store) -> None:
    talk(store)
    root = store.meta["latestRootBlobId"]
    store.blobs[root] = (store.blobs[root] or b"").hex().encode()
    told = store.read()
    assert told.problems == ()
    assert all(word in everything(told) for word in WORDS)


def test_a_group_ends_the_root_and_makes_the_session_partial(store: Store) -> None:
    ids = [store.put(message) for message in TALK]
    store.meta["latestRootBlobId"] = store.put(
        record(*((1, id) for id in ids[:3])) + encode_group(40) + record(*((1, id) for id in ids[3:]))
    ).hex()
    told = store.read()
    assert all(word in everything(told) for word in WORDS)
    assert only(told).closing.completeness == "partial"


def test_blobs_that_name_each_other_in_circles_end(store: Store) -> None:
    root = store.root((1, store.put(user("alpha"))))
    looped = record(
        (1, store.put(user("alpha"))),
        (8, bytes.fromhex(root)),
        (13, bytes.fromhex(root)),
        (31, record((1, "x" * 20), (2, bytes.fromhex(root)))),
    )
    store.blobs[root] = looped
    assert "alpha" in everything(store.read())


def test_rows_without_id_or_content_are_counted(store: Store) -> None:
    talk(store)
    store.write()
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("insert into blobs values (null, x'00')")
        db.execute("insert into blobs values ('ee', null)")
        db.execute("insert into meta values (null, null)")
    told = read_one(store.folder.parent.parent.parent)
    assert told.counts.kinds["blob (empty)"] == 2
    assert told.counts.kinds["meta"] == 2
    assert told.problems == ()


@pytest.mark.parametrize("table", ["blobs", "meta"])
def test_a_missing_table_is_said(store: Store, table: str) -> None:
    talk(store)
    store.write()
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("drop table blobs" if table == "blobs" else "drop table meta")
    told = read_one(store.folder.parent.parent.parent)
    assert f"has no table {table}" in [problem.reason for problem in told.problems]
    assert ("alpha" in everything(told)) is (table == "meta")


def test_a_file_that_is_no_database_is_a_problem(store: Store) -> None:
    store.folder.mkdir(parents=True)
    store.path.write_bytes(b"no database" * 1000)
    told = read_one(store.folder.parent.parent.parent)
    assert (told.sessions, len(told.problems)) == ((), 1)


@given(data=st.data())
def test_a_message_hit_at_any_byte_costs_no_other(tmp_path: Path, data: st.DataObject) -> None:
    store = Store(tmp_path)
    ids = talk(store)
    hit = data.draw(st.integers(0, len(ids) - 1))
    whole = store.blobs[ids[hit]] or b""
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    store.blobs[ids[hit]] = data.draw(st.sampled_from([whole[:at], flipped]))
    told = store.read()
    for word, holder in zip(WORDS, HOLDERS, strict=True):
        assert holder == hit or word in everything(told)
    assert told.problems


@given(data=st.data())
def test_a_root_hit_at_any_byte_loses_no_message(tmp_path: Path, data: st.DataObject) -> None:
    store = Store(tmp_path)
    talk(store)
    root = store.meta["latestRootBlobId"]
    whole = store.blobs[root] or b""
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    store.blobs[root] = data.draw(st.sampled_from([whole[:at], flipped]))
    told = store.read()
    assert all(word in everything(told) for word in WORDS)
    assert only(told).closing.completeness == "partial"


@given(data=st.data())
def test_a_turn_or_step_hit_at_any_byte_loses_no_message(tmp_path: Path, data: st.DataObject) -> None:
    store = Store(tmp_path)
    ids = talk(store)
    others = [id for id in store.blobs if id not in ids and id != store.meta["latestRootBlobId"]]
    hit = data.draw(st.sampled_from(others))
    whole = store.blobs[hit] or b""
    at = data.draw(st.integers(0, len(whole) - 1))
    store.blobs[hit] = data.draw(st.sampled_from([whole[:at], whole[:at] + b"\xff" + whole[at + 1 :]]))
    assert all(word in everything(store.read()) for word in WORDS)


@given(
    value=JSON,
    key=st.sampled_from(["role", "content", "id", "providerOptions", "tool_calls", "tool_call_id"]),
)
def test_any_value_in_any_field_of_a_message_costs_no_other(tmp_path: Path, value: object, key: str) -> None:
    store = Store(tmp_path)
    store.say(user("before"), TALK[1], {**TALK[1], key: value}, {**result("c1"), key: value}, user("after"))
    told = store.read()
    assert "before" in everything(told)
    assert "after" in everything(told)


@given(
    value=JSON,
    key=st.sampled_from(
        [
            "type",
            "text",
            "toolCallId",
            "toolName",
            "args",
            "input",
            "result",
            "isError",
            "image",
            "mimeType",
            "data",
            "providerOptions",
        ]
    ),
    kind=st.sampled_from(["text", "reasoning", "tool-call", "tool-result", "image", "file"]),
)
def test_any_value_in_any_field_of_a_part_costs_no_other(
    tmp_path: Path, value: object, key: str, kind: str
) -> None:
    store = Store(tmp_path)
    part = {"type": kind, key: value}
    store.say(
        user("before"),
        {"role": "assistant", "content": ["kept", part]},
        {"role": "tool", "content": [part]},
        {"role": "user", "content": [part]},
    )
    told = store.read()
    assert "before" in everything(told)
    assert "kept" in everything(told)


@given(
    value=JSON,
    key=st.sampled_from(
        [
            "agentId",
            "name",
            "mode",
            "createdAt",
            "lastUsedModel",
            "latestRootBlobId",
            "subagentInfo",
            "isRunEverything",
        ]
    ),
)
def test_any_value_in_the_metadata_loses_no_message(tmp_path: Path, value: object, key: str) -> None:
    store = Store(tmp_path)
    talk(store)
    store.meta[key] = value
    assert all(word in everything(store.read()) for word in WORDS)


@given(value=JSON)
def test_any_sidecar_loses_no_message(tmp_path: Path, value: object) -> None:
    store = Store(tmp_path)
    talk(store)
    fields = dict.fromkeys(
        ("schemaVersion", "createdAtMs", "updatedAtMs", "cwd", "title", "isSubagent"), value
    )
    for sidecar in (value, fields):
        assert all(word in everything(store.read(sidecar=sidecar)) for word in WORDS)


@pytest.mark.parametrize(
    "change",
    [
        ["alter table blobs rename column data to bytes"],
        ["alter table meta rename column value to content"],
        ["insert into blobs values (x'ff', 'x')", "insert into blobs values (x'fe', 'x')"],
        ["insert into blobs values ('same', 'x')", "insert into blobs values (cast('same' as blob), 'y')"],
        ["insert into blobs values (null, 'x')", "insert into blobs values ('gone', null)"],
        ["create table later (x)", "insert into later values (1)"],
    ],
)
def test_every_row_is_counted_whatever_became_of_the_tables(store: Store, change: list[str]) -> None:
    talk(store)
    store.write()
    rows = store.run(*change)
    told = read_one(store.folder.parent.parent.parent)
    assert told.counts.records == rows
    assert told.sessions


def test_a_damaged_page_costs_the_messages_on_it_and_no_others(store: Store) -> None:
    ids = [store.put(user(f"word{n} " + "x" * 3000)) for n in range(40)]
    store.root(*((1, id) for id in ids))
    store.write()
    data = bytearray(store.path.read_bytes())
    hit = data.index(b"word20 ") // 4096 * 4096
    data[hit : hit + 4096] = b"\xa5" * 4096
    store.path.write_bytes(data)
    told = read_one(store.folder.parent.parent.parent)
    kept = [n for n in range(40) if f"word{n} " in everything(told)]
    assert len(kept) >= 36
    assert only(told).closing.completeness == "partial"
    assert told.problems


def test_a_plan_kept_elsewhere_is_known(store: Store) -> None:
    store.meta["currentPlanUri"] = "file:///home/dev/.cursor/plans/a.plan.md"
    told = store.say(user("go")).read()
    assert told.counts.unknown == {}
    assert only(told).closing.metadata["plan_uri"] == "file:///home/dev/.cursor/plans/a.plan.md"


def test_a_name_that_is_a_number_is_still_a_name(store: Store) -> None:
    store.say(user("go"))
    rows = [("name", "2024"), ("createdAt", str(START)), ("latestRootBlobId", store.meta["latestRootBlobId"])]
    reading = only(store.read(meta=rows))
    assert (reading.closing.title, len(reading.messages)) == ("2024", 1)


def test_a_store_that_is_locked_while_it_is_read_is_read_again_later(store: Store) -> None:
    talk(store)
    store.write()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as db:
        source = CursorCli()
        (unit,) = source.units(store.folder.parent.parent.parent)
        items = source.read(unit)
        first = next(items)
        db.execute("begin exclusive")
        told = fold(chain([first], items))
    assert (told.counts.records, len(told.problems)) == (0, 1)
    assert "locked" in told.problems[0].reason
    assert only(told).closing.completeness == "partial"
