"""The Cursor CLI builders write stores and transcripts. The tests use their own protobuf decoder."""

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing import cursor, cursor_cli, protobuf
from tests.builders import from_description
from tests.builders.cursor_cli import damage
from tests.builders.cursor_cli import stores as cursor_cli_stores
from tests.builders.cursor_cli.history import write_history as write_cursor_cli_history

GOLDEN = Path(__file__).parents[1] / "golden"
AT = 1790000000000


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a protobuf message."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(data):
        tag = varint()
        match tag & 7:
            case 0:
                yield tag >> 3, varint()
            case 2:
                length = varint()
                assert position + length <= len(data)
                yield tag >> 3, data[position : position + length]
                position += length
            case 1:
                position += 8
            case 5:
                position += 4
            case wire:
                raise AssertionError(f"wire type {wire}")


def field_values(data: bytes, number: int) -> list[Any]:
    return [value for field, value in fields(data) if field == number]


def read_blobs(store: Path) -> dict[str, bytes]:
    with closing(sqlite3.connect(store)) as db:
        return dict(db.execute("select id, data from blobs").fetchall())


def read_root(store: Path) -> bytes:
    return read_blobs(store)[damage.read_meta(store)["latestRootBlobId"]]


def read_messages(store: Path) -> list[dict[str, Any]]:
    """Return the JSON messages of the current root."""
    blobs = read_blobs(store)
    return [json.loads(blobs[id.hex()]) for id in field_values(read_root(store), 1)]


@pytest.fixture
def home(tmp_path: Path) -> cursor_cli.Home:
    return cursor_cli.Home(tmp_path)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (1, "01"), (127, "7f"), (300, "ac02"), (200000, "c09a0c"), (-1, "ff" * 9 + "01")],
)
def test_varints_have_the_standard_encoding(value: int, encoded: str) -> None:
    assert protobuf.varint(value).hex() == encoded


def test_a_message_has_the_standard_encoding() -> None:
    assert (
        protobuf.encode_message((3, protobuf.encode_message((1, "think"), (2, 850)))).hex()
        == "1a0a0a057468696e6b10d206"
    )
    assert (
        protobuf.encode_message((26, 1), (27, "Europe/Paris"))
        == bytes.fromhex("d00101da010c") + b"Europe/Paris"
    )


def test_the_folder_name_of_a_working_directory_is_its_md5() -> None:
    assert cursor_cli.folder_hash("/home/dev/shop") == "11e9fe063b91149eb10c6daf331adfaa"


def test_a_chat_is_in_the_folder_of_its_working_directory(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli_stores.example_messages(), cwd="/home/dev/shop")
    assert chat.store.parent == home.root / "chats/11e9fe063b91149eb10c6daf331adfaa" / chat.id
    assert damage.read_meta(chat.store)["agentId"] == chat.id
    metadata = json.loads((chat.folder / "meta.json").read_text())
    assert metadata["cwd"] == "/home/dev/shop"
    assert metadata["updatedAtMs"] > metadata["createdAtMs"]


def test_the_id_of_a_blob_is_its_hash(home: cursor_cli.Home) -> None:
    for name, chat in cursor_cli_stores.write_all_stores(home).items():
        if chat.store.exists():
            for id, data in read_blobs(chat.store).items():
                assert sha256(data).hexdigest() == id, name


def test_the_root_contains_the_messages_in_order(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli_stores.example_messages())
    messages = read_messages(chat.store)
    assert [message["role"] for message in messages[:5]] == ["system", "user", "user", "assistant", "tool"]
    assert messages[2]["content"][0]["text"] == "<user_query>\nrename foo\n</user_query>"
    parts = [part for message in messages if message["role"] == "assistant" for part in message["content"]]
    calls = [part["toolCallId"] for part in parts if part["type"] == "tool-call"]
    assert calls == [message.tool.call_id for message in chat.messages if message.tool is not None]
    assert [part["text"] for part in parts if part["type"] == "reasoning"] == [
        "Where is foo?",
        "One place only.",
    ]
    results = [message["content"][0] for message in messages if message["role"] == "tool"]
    assert {type(result.get("result")) for result in results} == {str, dict, list, type(None)}
    assert {message["id"] for message in messages if message["role"] == "assistant"} == {"1"}


def test_turns_contain_the_prompts_as_typed(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli_stores.example_messages(), at=AT)
    blobs, root = read_blobs(chat.store), read_root(chat.store)
    turns = [field_values(blobs[id.hex()], 1)[0] for id in field_values(root, 8)]
    users = [blobs[field_values(turn, 1)[0].hex()] for turn in turns]
    assert [field_values(user, 1)[0].decode() for user in users] == [
        "rename foo",
        "A background task has finished.",
        "and the tests?",
    ]
    assert [field_values(user, 5)[0] for user in users] == [0, 1, 0]
    assert field_values(users[0], 25) == [AT]
    assert field_values(users[0], 2)[0].decode() == chat.messages[0].id
    assert len(field_values(root, 14)) == len(turns)
    assert field_values(root, 26) == [AT]
    steps = [blobs[id.hex()] for id in field_values(turns[0], 2)]
    assert field_values(field_values(steps[0], 3)[0], 1) == [b"Where is foo?"]
    call = chat.messages[2].tool
    assert call is not None
    assert field_values(field_values(steps[1], 2)[0], 57)[0].decode() == call.call_id


def test_turns_of_2025_have_no_wrapper(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli_stores.example_messages(), turn_shape="old", is_timed=False)
    blobs, root = read_blobs(chat.store), read_root(chat.store)
    assert field_values(root, 8) == [] and field_values(root, 26) == []
    turn = blobs[field_values(root, 2)[0].hex()]
    assert field_values(blobs[field_values(turn, 1)[0].hex()], 1) == [b"rename foo"]


def test_earlier_roots_stay_in_the_store(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli_stores.example_messages())
    blobs = read_blobs(chat.store)
    lengths = [len(field_values(blobs[id], 1)) for id in chat.graph.older_roots]
    assert lengths == sorted(lengths)
    assert lengths[-1] < len(field_values(read_root(chat.store), 1))
    assert chat.graph.root_id not in chat.graph.older_roots


def test_compacted_messages_are_in_the_archive(home: cursor_cli.Home) -> None:
    complete = home.chat(cursor_cli_stores.example_messages(), id="whole", at=AT)
    compacted = home.chat(complete.messages, id="short", at=AT, compacted=5)
    blobs, root = read_blobs(compacted.store), read_root(compacted.store)
    archive = blobs[field_values(root, 13)[0].hex()]
    ids = field_values(root, 1)
    summary = field_values(archive, 4)[0]
    assert summary in ids
    restored = ids[:2] + field_values(archive, 1) + ids[3:]
    assert restored == field_values(read_root(complete.store), 1)


def test_a_pending_call_is_not_among_the_messages(home: cursor_cli.Home) -> None:
    chat = cursor_cli_stores.STORES["pending call"](home)
    [pending] = field_values(read_root(chat.store), 4)
    assert json.loads(pending)["content"][0]["toolCallId"] == "call_pending"


def test_a_subagent_is_nested_or_referenced_by_id(home: cursor_cli.Home) -> None:
    nested = cursor_cli_stores.STORES["subagents"](home)
    [entry] = field_values(read_root(nested.store), 16)
    state = field_values(field_values(entry, 2)[0], 1)[0]
    assert len(field_values(state, 1)) == 4
    by_id = cursor_cli_stores.STORES["subagents by id"](home)
    [entry] = field_values(read_root(by_id.store), 31)
    assert field_values(read_blobs(by_id.store)[field_values(entry, 2)[0].hex()], 1) == [state]


def test_the_root_can_contain_whole_messages(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli_stores.example_messages(), is_inline=True)
    assert [json.loads(message)["role"] for message in field_values(read_root(chat.store), 1)[:3]] == [
        "system",
        "user",
        "user",
    ]


def test_a_repeated_message_is_stored_once(home: cursor_cli.Home) -> None:
    chat = cursor_cli_stores.STORES["repeated messages"](home)
    ids = field_values(read_root(chat.store), 1)
    assert len(ids) == 8
    assert len(set(ids)) == 4


def test_a_root_can_have_unknown_fields_of_every_wire_type(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli_stores.example_messages(), has_unknown_fields=True)
    assert field_values(read_root(chat.store), 62) == [b"later"]


def test_metadata_has_four_encodings(home: cursor_cli.Home) -> None:
    found = {}
    for meta in ("hex", "plain", "rows", "odd"):
        chat = home.chat(cursor_cli_stores.example_messages(), meta=meta)
        with closing(sqlite3.connect(chat.store)) as db:
            found[meta] = dict(db.execute("select key, value from meta").fetchall())
    assert json.loads(bytes.fromhex(found["hex"]["0"]))["name"] == "Rename foo"
    assert json.loads(found["plain"]["0"])["name"] == "Rename foo"
    assert found["rows"]["name"] == "Rename foo"
    with pytest.raises(ValueError, match="hexadecimal"):
        bytes.fromhex(found["odd"]["0"])


def test_the_root_id_can_be_empty_unknown_or_missing(home: cursor_cli.Home) -> None:
    empty = home.chat(cursor_cli_stores.example_messages(), pointer="empty")
    dangling = home.chat(cursor_cli_stores.example_messages(), pointer="dangling")
    missing = home.chat(cursor_cli_stores.example_messages(), pointer="missing")
    assert damage.read_meta(empty.store)["latestRootBlobId"] == ""
    assert damage.read_meta(dangling.store)["latestRootBlobId"] not in read_blobs(dangling.store)
    assert "latestRootBlobId" not in damage.read_meta(missing.store)
    assert empty.graph.root_id in read_blobs(empty.store)


def test_a_store_can_be_only_in_its_log(home: cursor_cli.Home) -> None:
    chat = cursor_cli_stores.STORES["everything in the log"](home)
    assert chat.store.stat().st_size == 4096
    assert len(read_messages(chat.store)) > 5


def test_the_same_seed_gives_the_same_stores(tmp_path: Path) -> None:
    found = []
    for folder in ("one", "two"):
        write_cursor_cli_history(tmp_path / folder, sessions=6, messages=8, seed=3)
        stores = sorted((tmp_path / folder).rglob("store.db"))
        found.append(
            [(store.parent.name, sorted(read_blobs(store)), damage.read_meta(store)) for store in stores]
        )
    assert found[0] == found[1]
    assert len(found[0]) == 6


@pytest.mark.parametrize("name", damage.DAMAGES)
def test_damage_changes_the_blobs_of_a_store(home: cursor_cli.Home, name: str) -> None:
    chat = home.chat(cursor_cli_stores.example_messages(), compacted=3)
    before = read_blobs(chat.store)
    damage.DAMAGES[name](chat.store)
    assert read_blobs(chat.store) != before


def test_the_ide_stores_the_same_graph(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    composer = home.composer([cursor.user("Totals are off"), cursor.assistant("Rounded.")])
    home.write()
    state = base64.b64decode(str(composer.data["conversationState"]).removeprefix("~"), validate=True)
    with closing(sqlite3.connect(home.database)) as db:
        stored = db.execute("select key, value from cursorDiskKV where key glob 'agentKv:*'").fetchall()
    blobs = dict(stored)
    texts = [json.loads(blobs[f"agentKv:blob:{id.hex()}"])["content"] for id in field_values(state, 1)[2:]]
    assert texts[1] == [{"type": "text", "text": "Rounded."}]
    assert blobs[f"agentKv:checkpoint:{composer.id}"] == sha256(state).hexdigest()


@pytest.mark.parametrize(
    ("path", "separators", "alphanumeric"),
    [
        ("/home/dev/shop", "home-dev-shop", "home-dev-shop"),
        ("D:\\1\\Back", "d-1-Back", "D--1-Back"),
        ("/home/dev/docs.site v2", "home-dev-docs.site v2", "home-dev-docs-site-v2"),
    ],
)
def test_a_slug_can_have_two_rules(path: str, separators: str, alphanumeric: str) -> None:
    assert cursor_cli.project_slug(path) == separators
    assert cursor_cli.project_slug(path, rule="alphanumeric") == alphanumeric


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        (120, "Monday, Sep 21, 2026, 4:13 PM (UTC+2)"),
        (-330, "Monday, Sep 21, 2026, 8:43 AM (UTC-5:30)"),
        (600, "Tuesday, Sep 22, 2026, 12:13 AM (UTC+10)"),
    ],
)
def test_the_time_of_a_prompt_has_minutes_and_a_zone(minutes: int, expected: str) -> None:
    assert cursor_cli.format_prompt_time(AT, minutes=minutes) == expected


def test_a_transcript_equals_the_documented_one(tmp_path: Path) -> None:
    messages = [
        cursor.user("Totals are off"),
        cursor.assistant("Looking."),
        cursor.tool("Read", {"path": "/home/dev/shop/cart.py"}, "never written down"),
    ]
    path = cursor_cli.write_transcript(tmp_path, messages, id="c1", at=AT)
    assert path == tmp_path / "projects/home-dev-shop/agent-transcripts/c1/c1.jsonl"
    described = json.loads((GOLDEN / "cursor-cli/transcript-nested.native.json").read_text())
    [golden] = described["files"].values()
    assert [json.loads(line) for line in path.read_text().splitlines()] == golden["lines"]


def test_transcripts_can_have_every_layout(tmp_path: Path) -> None:
    folder = tmp_path / "projects/home-dev-shop/agent-transcripts"
    messages = cursor_cli_stores.example_messages()
    assert cursor_cli.write_transcript(tmp_path, messages, id="a", layout="flat") == folder / "a.jsonl"
    assert (
        cursor_cli.write_transcript(tmp_path, messages, id="b", parent="a") == folder / "a/subagents/b.jsonl"
    )
    text_path = cursor_cli.write_transcript(tmp_path, messages, id="c", layout="txt")
    assert text_path == folder / "c.txt"
    assert "[Tool call] Grep\n  pattern: foo\n" in text_path.read_text()
    stub = cursor_cli.write_transcript(tmp_path, [], id="d", project="empty-window", status="aborted")
    assert json.loads(stub.read_text()) == {"type": "turn_ended", "status": "aborted"}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("cursor*/*.native.json")), ids=lambda path: path.stem)
def test_every_file_of_a_description_is_written(tmp_path: Path, path: Path) -> None:
    described = json.loads(path.read_text())
    from_description.build_file(path, tmp_path)
    for name, content in described["files"].items():
        assert (tmp_path / name).stat().st_mtime == described.get("mtime", AT) / 1000
        for table, described_rows in content.get("tables", {}).items():
            with closing(sqlite3.connect(tmp_path / name)) as db:
                [[count]] = db.execute(f"select count(*) from {table}").fetchall()  # noqa: S608
            if isinstance(described_rows, dict):
                described_rows = described_rows["rows"]
            assert count == len(described_rows)


def test_a_described_root_has_the_documented_bytes(tmp_path: Path) -> None:
    from_description.build_file(GOLDEN / "cursor-cli/rename-foo.native.json", tmp_path)
    [store] = tmp_path.rglob("store.db")
    root = read_root(store)
    assert [number for number, _ in fields(root)] == [1, 1, 1, 1, 5, 8, 9, 10, 14, 26, 27]
    assert root[:2] == b"\x0a\x20"
    assert bytes.fromhex("08ac0210c09a0c1a") in root
    assert b"\x4a\x09file:///w\x50\x01" in root
    assert root.endswith(b"\xda\x01\x0cEurope/Paris")
    turn = read_blobs(store)[field_values(root, 8)[0].hex()]
    assert turn.endswith(b"\x1a\x05req-1")
    user = read_blobs(store)[field_values(field_values(turn, 1)[0], 1)[0].hex()]
    assert user.startswith(b"\x0a\x0arename foo\x12\x24")
