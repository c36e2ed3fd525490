"""Truncated, damaged and emptied stores: the rest is read, and missing data is reported."""

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

from .store_builder import (
    CWD,
    START,
    Store,
    assistant,
    call,
    main_session,
    read_all,
    read_one,
    result,
    roles_and_texts,
    user,
)

MESSAGES = (
    user("alpha"),
    assistant({"type": "reasoning", "text": "beta"}, "gamma", call("c1", command="delta")),
    result("c1", "epsilon"),
    assistant("zeta"),
    user("eta"),
    assistant("theta"),
)
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
MESSAGE_OF_WORD = (0, 1, 1, 1, 2, 3, 4, 5)  # index of the message that contains the word

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def put_messages(store: Store) -> list[str]:
    """Add messages, turns and a root. Return the ids of the messages."""
    ids = [store.put(message) for message in MESSAGES]
    prompt = store.put(record((1, "alpha"), (25, START)))
    turn = store.put(record((1, record((1, prompt), (2, store.put(record((1, record((1, "zeta"))))))))))
    store.root(*((1, id) for id in ids), (8, turn), (26, START), (27, "Europe/Paris"))
    return [id.hex() for id in ids]


def all_text(content: UnitContent) -> str:
    return "\n".join(
        f"{m.content} {m.tool.params if m.tool else ''} {m.tool.result if m.tool else ''}"
        for session in content.sessions
        for m in session.messages
    )


@pytest.mark.parametrize("pointer", ["", "d0" * 32, None])
def test_a_missing_root_is_recovered_and_the_session_is_partial(store: Store, pointer: str | None) -> None:
    put_messages(store)
    older = [store.put(message) for message in MESSAGES[:2]]
    store.put(record(*((1, id) for id in older)))
    store.meta["latestRootBlobId"] = pointer
    content = store.read()
    assert all(word in all_text(content) for word in WORDS)
    assert main_session(content).closing.completeness == "partial"
    assert len(content.problems) == 1


def test_a_root_that_another_blob_refers_to_is_not_used_as_the_latest(store: Store) -> None:
    abandoned = store.put(record(*((1, store.put(user(f"abandoned {n}"))) for n in range(9))))
    prompt = store.put(record((1, "kept"), (10, abandoned)))
    turn = store.put(record((1, record((1, prompt)))))
    store.root((1, store.put(user("kept"))), (8, turn))
    store.meta["latestRootBlobId"] = ""
    assert roles_and_texts(store.read()) == [("user", "kept")]


def test_without_any_root_the_messages_are_in_the_order_of_the_store(store: Store) -> None:
    for message in MESSAGES:
        store.put(message)
    content = store.read()
    assert all(word in all_text(content) for word in WORDS)
    assert main_session(content).closing.completeness == "partial"


def test_a_missing_message_is_reported_and_the_others_are_read(store: Store) -> None:
    ids = put_messages(store)
    del store.blobs[ids[3]]
    content = store.read()
    assert [word for word in WORDS if word not in all_text(content)] == ["zeta"]
    assert main_session(content).closing.completeness == "partial"
    assert [(problem.origin.place, "missing" in problem.reason) for problem in content.problems] == [
        (f"blob {ids[3]}", True)
    ]


def test_an_altered_message_is_used_and_reported(store: Store) -> None:
    ids = put_messages(store)
    store.blobs[ids[5]] = json.dumps(assistant("theta, changed")).encode()
    content = store.read()
    assert "theta, changed" in all_text(content)
    assert len(content.problems) == 1


def test_a_blob_stored_as_hex_text_is_read(store: Store) -> None:
    put_messages(store)
    root = store.meta["latestRootBlobId"]
    store.blobs[root] = (store.blobs[root] or b"").hex().encode()
    content = store.read()
    assert content.problems == ()
    assert all(word in all_text(content) for word in WORDS)


def test_a_group_ends_the_root_and_makes_the_session_partial(store: Store) -> None:
    ids = [store.put(message) for message in MESSAGES]
    store.meta["latestRootBlobId"] = store.put(
        record(*((1, id) for id in ids[:3])) + encode_group(40) + record(*((1, id) for id in ids[3:]))
    ).hex()
    content = store.read()
    assert all(word in all_text(content) for word in WORDS)
    assert main_session(content).closing.completeness == "partial"


def test_reading_circular_references_ends(store: Store) -> None:
    root = store.root((1, store.put(user("alpha"))))
    circular = record(
        (1, store.put(user("alpha"))),
        (8, bytes.fromhex(root)),
        (13, bytes.fromhex(root)),
        (31, record((1, "x" * 20), (2, bytes.fromhex(root)))),
    )
    store.blobs[root] = circular
    assert "alpha" in all_text(store.read())


def test_rows_without_id_or_content_are_counted(store: Store) -> None:
    put_messages(store)
    store.write()
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("insert into blobs values (null, x'00')")
        db.execute("insert into blobs values ('ee', null)")
        db.execute("insert into meta values (null, null)")
    content = read_one(store.folder.parent.parent.parent)
    assert content.counts.kinds["blob (empty)"] == 2
    assert content.counts.kinds["meta"] == 2
    assert content.problems == ()


@pytest.mark.parametrize("table", ["blobs", "meta"])
def test_a_missing_table_is_reported(store: Store, table: str) -> None:
    put_messages(store)
    store.write()
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("drop table blobs" if table == "blobs" else "drop table meta")
    content = read_one(store.folder.parent.parent.parent)
    assert f"has no table {table}" in [problem.reason for problem in content.problems]
    assert ("alpha" in all_text(content)) is (table == "meta")


def test_a_file_that_is_not_a_database_is_a_problem(store: Store) -> None:
    store.folder.mkdir(parents=True)
    store.path.write_bytes(b"no database" * 1000)
    content = read_one(store.folder.parent.parent.parent)
    assert (content.sessions, len(content.problems)) == ((), 1)


@given(data=st.data())
def test_damaging_any_byte_of_a_message_loses_no_other_message(tmp_path: Path, data: st.DataObject) -> None:
    store = Store(tmp_path)
    ids = put_messages(store)
    damaged_index = data.draw(st.integers(0, len(ids) - 1))
    intact = store.blobs[ids[damaged_index]] or b""
    at = data.draw(st.integers(0, len(intact) - 1))
    flipped = intact[:at] + bytes([intact[at] ^ data.draw(st.integers(1, 255))]) + intact[at + 1 :]
    store.blobs[ids[damaged_index]] = data.draw(st.sampled_from([intact[:at], flipped]))
    content = store.read()
    for word, message_index in zip(WORDS, MESSAGE_OF_WORD, strict=True):
        assert message_index == damaged_index or word in all_text(content)
    assert content.problems


@given(data=st.data())
def test_damaging_any_byte_of_a_root_loses_no_message(tmp_path: Path, data: st.DataObject) -> None:
    store = Store(tmp_path)
    put_messages(store)
    root = store.meta["latestRootBlobId"]
    intact = store.blobs[root] or b""
    at = data.draw(st.integers(0, len(intact) - 1))
    flipped = intact[:at] + bytes([intact[at] ^ data.draw(st.integers(1, 255))]) + intact[at + 1 :]
    store.blobs[root] = data.draw(st.sampled_from([intact[:at], flipped]))
    content = store.read()
    assert all(word in all_text(content) for word in WORDS)
    assert main_session(content).closing.completeness == "partial"


@given(data=st.data())
def test_damaging_any_byte_of_a_turn_or_step_loses_no_message(tmp_path: Path, data: st.DataObject) -> None:
    store = Store(tmp_path)
    ids = put_messages(store)
    others = [id for id in store.blobs if id not in ids and id != store.meta["latestRootBlobId"]]
    damaged_id = data.draw(st.sampled_from(others))
    intact = store.blobs[damaged_id] or b""
    at = data.draw(st.integers(0, len(intact) - 1))
    flipped = intact[:at] + b"\xff" + intact[at + 1 :]
    store.blobs[damaged_id] = data.draw(st.sampled_from([intact[:at], flipped]))
    assert all(word in all_text(store.read()) for word in WORDS)


@given(
    value=JSON,
    key=st.sampled_from(["role", "content", "id", "providerOptions", "tool_calls", "tool_call_id"]),
)
def test_any_value_in_any_field_of_a_message_loses_no_other_message(
    tmp_path: Path, value: object, key: str
) -> None:
    store = Store(tmp_path)
    store.with_messages(
        user("before"), MESSAGES[1], {**MESSAGES[1], key: value}, {**result("c1"), key: value}, user("after")
    )
    content = store.read()
    assert "before" in all_text(content)
    assert "after" in all_text(content)


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
def test_any_value_in_any_field_of_a_part_loses_no_other_part(
    tmp_path: Path, value: object, key: str, kind: str
) -> None:
    store = Store(tmp_path)
    part = {"type": kind, key: value}
    store.with_messages(
        user("before"),
        {"role": "assistant", "content": ["kept", part]},
        {"role": "tool", "content": [part]},
        {"role": "user", "content": [part]},
    )
    content = store.read()
    assert "before" in all_text(content)
    assert "kept" in all_text(content)


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
    put_messages(store)
    store.meta[key] = value
    assert all(word in all_text(store.read()) for word in WORDS)


@given(value=JSON)
def test_any_sidecar_loses_no_message(tmp_path: Path, value: object) -> None:
    store = Store(tmp_path)
    put_messages(store)
    fields = dict.fromkeys(
        ("schemaVersion", "createdAtMs", "updatedAtMs", "cwd", "title", "isSubagent"), value
    )
    for sidecar in (value, fields):
        assert all(word in all_text(store.read(sidecar=sidecar)) for word in WORDS)


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
def test_every_row_of_a_changed_table_is_counted(store: Store, change: list[str]) -> None:
    put_messages(store)
    store.write()
    rows = store.run(*change)
    content = read_one(store.folder.parent.parent.parent)
    assert content.counts.records == rows
    assert content.sessions


def test_a_damaged_page_loses_only_the_messages_on_it(store: Store) -> None:
    ids = [store.put(user(f"word{n} " + "x" * 3000)) for n in range(40)]
    store.root(*((1, id) for id in ids))
    store.write()
    data = bytearray(store.path.read_bytes())
    page_start = data.index(b"word20 ") // 4096 * 4096
    data[page_start : page_start + 4096] = b"\xa5" * 4096
    store.path.write_bytes(data)
    content = read_one(store.folder.parent.parent.parent)
    kept = [n for n in range(40) if f"word{n} " in all_text(content)]
    assert len(kept) >= 36
    assert main_session(content).closing.completeness == "partial"
    assert content.problems


def test_the_uri_of_a_plan_is_in_the_metadata(store: Store) -> None:
    store.meta["currentPlanUri"] = "file:///home/dev/.cursor/plans/a.plan.md"
    content = store.with_messages(user("go")).read()
    assert content.counts.unknown == {}
    assert main_session(content).closing.metadata["plan_uri"] == "file:///home/dev/.cursor/plans/a.plan.md"


def test_a_numeric_name_is_used_as_the_title(store: Store) -> None:
    store.with_messages(user("go"))
    rows = [("name", "2024"), ("createdAt", str(START)), ("latestRootBlobId", store.meta["latestRootBlobId"])]
    session = main_session(store.read(meta=rows))
    assert (session.closing.title, len(session.messages)) == ("2024", 1)


def test_a_store_that_is_locked_during_reading_has_no_counts_and_is_partial(store: Store) -> None:
    put_messages(store)
    store.write()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as db:
        source = CursorCli()
        (unit,) = source.units(store.folder.parent.parent.parent)
        items = source.read(unit)
        first = next(items)
        db.execute("begin exclusive")
        content = fold(chain([first], items))
    assert (content.counts.records, len(content.problems)) == (0, 1)
    assert "locked" in content.problems[0].reason
    assert main_session(content).closing.completeness == "partial"


def test_a_write_ahead_log_without_its_store_is_a_problem(tmp_path: Path) -> None:
    store = Store(tmp_path).with_messages(user("go")).write(sidecar={"schemaVersion": 1, "cwd": CWD})
    log = store.path.with_name("store.db-wal")
    store.path.unlink()
    log.write_bytes(bytes(32))
    assert [problem for content in read_all(tmp_path) for problem in content.problems] == []
    log.write_bytes(bytes(33))
    (problem,) = [problem for content in read_all(tmp_path) for problem in content.problems]
    assert (problem.code, problem.origin.path) == ("missing-database", str(log))
    assert problem.reason == "the write-ahead log cannot be read without its database store.db"
