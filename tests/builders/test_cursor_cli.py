"""The command line's stores and transcripts, taken apart by a decoder that knows nothing of the builders."""

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing import cursor, cursor_cli, from_description, protobuf
from backscroll.testing.cursor_cli import damage

GOLDEN = Path(__file__).parents[1] / "golden"
AT = 1790000000000


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Protobuf, as plainly as it can be read."""
    place = 0

    def varint() -> int:
        nonlocal place
        number = shift = 0
        while True:
            byte = data[place]
            place += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while place < len(data):
        tag = varint()
        match tag & 7:
            case 0:
                yield tag >> 3, varint()
            case 2:
                length = varint()
                assert place + length <= len(data)
                yield tag >> 3, data[place : place + length]
                place += length
            case 1:
                place += 8
            case 5:
                place += 4
            case wire:
                raise AssertionError(f"wire type {wire}")


def every(data: bytes, number: int) -> list[Any]:
    return [value for field, value in fields(data) if field == number]


def blobs(store: Path) -> dict[str, bytes]:
    with closing(sqlite3.connect(store)) as db:
        return dict(db.execute("select id, data from blobs").fetchall())


def root(store: Path) -> bytes:
    return blobs(store)[damage.read_meta(store)["latestRootBlobId"]]


def said(store: Path) -> list[dict[str, Any]]:
    """The JSON messages the root names."""
    kept = blobs(store)
    return [json.loads(kept[id.hex()]) for id in every(root(store), 1)]


@pytest.fixture
def home(tmp_path: Path) -> cursor_cli.Home:
    return cursor_cli.Home(tmp_path)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, "00"), (1, "01"), (127, "7f"), (300, "ac02"), (200000, "c09a0c"), (-1, "ff" * 9 + "01")],
)
def test_varints_are_encoded_as_everybody_encodes_them(number: int, encoded: str) -> None:
    assert protobuf.varint(number).hex() == encoded


def test_a_message_is_encoded_as_everybody_encodes_it() -> None:
    assert (
        protobuf.encode_message((3, protobuf.encode_message((1, "think"), (2, 850)))).hex()
        == "1a0a0a057468696e6b10d206"
    )
    assert (
        protobuf.encode_message((26, 1), (27, "Europe/Paris"))
        == bytes.fromhex("d00101da010c") + b"Europe/Paris"
    )


def test_the_folder_of_a_working_directory_is_its_md5() -> None:
    assert cursor_cli.folder_hash("/home/dev/shop") == "11e9fe063b91149eb10c6daf331adfaa"


def test_a_chat_lies_below_its_directory_s_hash(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli.talk(), cwd="/home/dev/shop")
    assert chat.store.parent == home.root / "chats/11e9fe063b91149eb10c6daf331adfaa" / chat.id
    assert damage.read_meta(chat.store)["agentId"] == chat.id
    about = json.loads((chat.folder / "meta.json").read_text())
    assert about["cwd"] == "/home/dev/shop"
    assert about["updatedAtMs"] > about["createdAtMs"]


def test_every_blob_is_named_by_its_content(home: cursor_cli.Home) -> None:
    for name, chat in cursor_cli.write_every_store(home).items():
        if chat.store.exists():
            for id, data in blobs(chat.store).items():
                assert sha256(data).hexdigest() == id, name


def test_the_root_names_what_was_said_in_order(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli.talk())
    messages = said(chat.store)
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


def test_turns_hold_the_words_as_they_were_typed(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli.talk(), at=AT)
    kept, top = blobs(chat.store), root(chat.store)
    turns = [every(kept[id.hex()], 1)[0] for id in every(top, 8)]
    users = [kept[every(turn, 1)[0].hex()] for turn in turns]
    assert [every(user, 1)[0].decode() for user in users] == [
        "rename foo",
        "A background task has finished.",
        "and the tests?",
    ]
    assert [every(user, 5)[0] for user in users] == [0, 1, 0]
    assert every(users[0], 25) == [AT]
    assert every(users[0], 2)[0].decode() == chat.messages[0].id
    assert len(every(top, 14)) == len(turns)
    assert every(top, 26) == [AT]
    steps = [kept[id.hex()] for id in every(turns[0], 2)]
    assert every(every(steps[0], 3)[0], 1) == [b"Where is foo?"]
    call = chat.messages[2].tool
    assert call is not None
    assert every(every(steps[1], 2)[0], 57)[0].decode() == call.call_id


def test_turns_of_2025_have_no_wrapper(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli.talk(), turn_shape="old", is_timed=False)
    kept, top = blobs(chat.store), root(chat.store)
    assert every(top, 8) == [] and every(top, 26) == []
    turn = kept[every(top, 2)[0].hex()]
    assert every(kept[every(turn, 1)[0].hex()], 1) == [b"rename foo"]


def test_earlier_roots_stay_in_the_store(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli.talk())
    kept = blobs(chat.store)
    lengths = [len(every(kept[id], 1)) for id in chat.graph.older]
    assert lengths == sorted(lengths)
    assert lengths[-1] < len(every(root(chat.store), 1))
    assert chat.graph.root_id not in chat.graph.older


def test_what_was_compacted_is_in_the_archive(home: cursor_cli.Home) -> None:
    whole = home.chat(cursor_cli.talk(), id="whole", at=AT)
    short = home.chat(whole.messages, id="short", at=AT, compacted=5)
    kept, top = blobs(short.store), root(short.store)
    archive = kept[every(top, 13)[0].hex()]
    ids = every(top, 1)
    summary = every(archive, 4)[0]
    assert summary in ids
    restored = ids[:2] + every(archive, 1) + ids[3:]
    assert restored == every(root(whole.store), 1)


def test_a_pending_call_is_kept_beside_the_messages(home: cursor_cli.Home) -> None:
    chat = cursor_cli.STORES["pending call"](home)
    [pending] = every(root(chat.store), 4)
    assert json.loads(pending)["content"][0]["toolCallId"] == "call_pending"


def test_a_subagent_is_nested_or_named_by_its_id(home: cursor_cli.Home) -> None:
    nested = cursor_cli.STORES["subagents"](home)
    [entry] = every(root(nested.store), 16)
    state = every(every(entry, 2)[0], 1)[0]
    assert len(every(state, 1)) == 4
    by_id = cursor_cli.STORES["subagents by id"](home)
    [entry] = every(root(by_id.store), 31)
    assert every(blobs(by_id.store)[every(entry, 2)[0].hex()], 1) == [state]


def test_messages_can_stand_in_the_root_itself(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli.talk(), is_inline=True)
    assert [json.loads(message)["role"] for message in every(root(chat.store), 1)[:3]] == [
        "system",
        "user",
        "user",
    ]


def test_a_repeated_message_is_one_blob_named_again(home: cursor_cli.Home) -> None:
    chat = cursor_cli.STORES["repeated messages"](home)
    ids = every(root(chat.store), 1)
    assert len(ids) == 8
    assert len(set(ids)) == 4


def test_unknown_fields_of_every_wire_type_can_be_stepped_over(home: cursor_cli.Home) -> None:
    chat = home.chat(cursor_cli.talk(), has_unknown_fields=True)
    assert every(root(chat.store), 62) == [b"later"]


def test_metadata_is_hex_or_plain_or_rows_or_broken(home: cursor_cli.Home) -> None:
    found = {}
    for meta in ("hex", "plain", "rows", "odd"):
        chat = home.chat(cursor_cli.talk(), meta=meta)
        with closing(sqlite3.connect(chat.store)) as db:
            found[meta] = dict(db.execute("select key, value from meta").fetchall())
    assert json.loads(bytes.fromhex(found["hex"]["0"]))["name"] == "Rename foo"
    assert json.loads(found["plain"]["0"])["name"] == "Rename foo"
    assert found["rows"]["name"] == "Rename foo"
    with pytest.raises(ValueError, match="hexadecimal"):
        bytes.fromhex(found["odd"]["0"])


def test_the_pointer_to_the_root_can_be_empty_or_lead_nowhere(home: cursor_cli.Home) -> None:
    empty = home.chat(cursor_cli.talk(), pointer="empty")
    dangling = home.chat(cursor_cli.talk(), pointer="dangling")
    missing = home.chat(cursor_cli.talk(), pointer="missing")
    assert damage.read_meta(empty.store)["latestRootBlobId"] == ""
    assert damage.read_meta(dangling.store)["latestRootBlobId"] not in blobs(dangling.store)
    assert "latestRootBlobId" not in damage.read_meta(missing.store)
    assert empty.graph.root_id in blobs(empty.store)


def test_a_store_can_be_in_its_log_only(home: cursor_cli.Home) -> None:
    chat = cursor_cli.STORES["everything in the log"](home)
    assert chat.store.stat().st_size == 4096
    assert len(said(chat.store)) > 5


def test_the_same_seed_gives_the_same_stores(tmp_path: Path) -> None:
    found = []
    for folder in ("one", "two"):
        cursor_cli.write_history(tmp_path / folder, sessions=6, messages=8, seed=3)
        stores = sorted((tmp_path / folder).rglob("store.db"))
        found.append([(store.parent.name, sorted(blobs(store)), damage.read_meta(store)) for store in stores])
    assert found[0] == found[1]
    assert len(found[0]) == 6


@pytest.mark.parametrize("name", damage.DAMAGES)
def test_a_damaged_store_is_not_what_it_was(home: cursor_cli.Home, name: str) -> None:
    chat = home.chat(cursor_cli.talk(), compacted=3)
    before = blobs(chat.store)
    damage.DAMAGES[name](chat.store)
    assert blobs(chat.store) != before


def test_the_editor_keeps_the_same_graph(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path)
    made = home.composer([cursor.user("Totals are off"), cursor.assistant("Rounded.")])
    home.write()
    state = base64.b64decode(str(made.data["conversationState"]).removeprefix("~"), validate=True)
    with closing(sqlite3.connect(home.database)) as db:
        stored = db.execute("select key, value from cursorDiskKV where key glob 'agentKv:*'").fetchall()
    kept = dict(stored)
    texts = [json.loads(kept[f"agentKv:blob:{id.hex()}"])["content"] for id in every(state, 1)[2:]]
    assert texts[1] == [{"type": "text", "text": "Rounded."}]
    assert kept[f"agentKv:checkpoint:{made.id}"] == sha256(state).hexdigest()


@pytest.mark.parametrize(
    ("path", "separators", "alphanumeric"),
    [
        ("/home/dev/shop", "home-dev-shop", "home-dev-shop"),
        ("D:\\1\\Back", "d-1-Back", "D--1-Back"),
        ("/home/dev/docs.site v2", "home-dev-docs.site v2", "home-dev-docs-site-v2"),
    ],
)
def test_a_slug_follows_either_rule(path: str, separators: str, alphanumeric: str) -> None:
    assert cursor_cli.slug(path) == separators
    assert cursor_cli.slug(path, rule="alphanumeric") == alphanumeric


@pytest.mark.parametrize(
    ("minutes", "spoken"),
    [
        (120, "Monday, Sep 21, 2026, 4:13 PM (UTC+2)"),
        (-330, "Monday, Sep 21, 2026, 8:43 AM (UTC-5:30)"),
        (600, "Tuesday, Sep 22, 2026, 12:13 AM (UTC+10)"),
    ],
)
def test_a_time_is_spoken_to_the_minute(minutes: int, spoken: str) -> None:
    assert cursor_cli.spoken_time(AT, minutes=minutes) == spoken


def test_a_transcript_is_written_like_the_documented_one(tmp_path: Path) -> None:
    talk = [
        cursor.user("Totals are off"),
        cursor.assistant("Looking."),
        cursor.tool("Read", {"path": "/home/dev/shop/cart.py"}, "never written down"),
    ]
    path = cursor_cli.write_transcript(tmp_path, talk, id="c1", at=AT)
    assert path == tmp_path / "projects/home-dev-shop/agent-transcripts/c1/c1.jsonl"
    described = json.loads((GOLDEN / "cursor-cli/transcript-nested.native.json").read_text())
    [example] = described["files"].values()
    assert [json.loads(line) for line in path.read_text().splitlines()] == example["lines"]


def test_transcripts_lie_in_every_layout(tmp_path: Path) -> None:
    folder = tmp_path / "projects/home-dev-shop/agent-transcripts"
    talk = cursor_cli.talk()
    assert cursor_cli.write_transcript(tmp_path, talk, id="a", layout="flat") == folder / "a.jsonl"
    assert cursor_cli.write_transcript(tmp_path, talk, id="b", parent="a") == folder / "a/subagents/b.jsonl"
    old = cursor_cli.write_transcript(tmp_path, talk, id="c", layout="txt")
    assert old == folder / "c.txt"
    assert "[Tool call] Grep\n  pattern: foo\n" in old.read_text()
    stub = cursor_cli.write_transcript(tmp_path, [], id="d", project="empty-window", status="aborted")
    assert json.loads(stub.read_text()) == {"type": "turn_ended", "status": "aborted"}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("cursor*/*.native.json")), ids=lambda path: path.stem)
def test_a_description_builds_every_file_it_names(tmp_path: Path, path: Path) -> None:
    described = json.loads(path.read_text())
    from_description.build_file(path, tmp_path)
    for name, content in described["files"].items():
        assert (tmp_path / name).stat().st_mtime == described.get("mtime", AT) / 1000
        for table, told in content.get("tables", {}).items():
            with closing(sqlite3.connect(tmp_path / name)) as db:
                [[count]] = db.execute(f"select count(*) from {table}").fetchall()  # noqa: S608
            assert count == len(told["rows"] if isinstance(told, dict) else told)


def test_the_described_root_is_byte_for_byte_the_documented_one(tmp_path: Path) -> None:
    from_description.build_file(GOLDEN / "cursor-cli/rename-foo.native.json", tmp_path)
    [store] = tmp_path.rglob("store.db")
    top = root(store)
    assert [number for number, _ in fields(top)] == [1, 1, 1, 1, 5, 8, 9, 10, 14, 26, 27]
    assert top[:2] == b"\x0a\x20"
    assert bytes.fromhex("08ac0210c09a0c1a") in top
    assert b"\x4a\x09file:///w\x50\x01" in top
    assert top.endswith(b"\xda\x01\x0cEurope/Paris")
    turn = blobs(store)[every(top, 8)[0].hex()]
    assert turn.endswith(b"\x1a\x05req-1")
    user = blobs(store)[every(every(turn, 1)[0], 1)[0].hex()]
    assert user.startswith(b"\x0a\x0arename foo\x12\x24")
