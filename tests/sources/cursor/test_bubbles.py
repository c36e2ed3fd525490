"""Messages of one bubble: text, thinking, calls, times and tokens."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing import cursor
from tests.sources.cursor.reading import contents, read_session, write_and_read

START = 1_790_000_000_000


@pytest.fixture
def home(tmp_path: Path) -> cursor.Home:
    return cursor.Home(tmp_path / "Cursor")


def test_a_bubble_with_thinking_text_and_call_yields_three_messages(home: cursor.Home) -> None:
    call = cursor.Tool("list_dir", {"path": "/w"}, {"files": [{"name": "a.py"}]})
    session = write_and_read(home, cursor.Message("assistant", "Looking.", "Where is it?", call, id="b1"))
    assert contents(session) == [
        ("thinking", "Where is it?"),
        ("assistant", "Looking."),
        ("tool", "list_dir: a.py"),
    ]
    assert [message.id for message in session.messages] == ["b1", "b1.1", "b1.2"]


@pytest.mark.parametrize("spelling", ["object", "text", "json"])
def test_thinking_is_read_in_every_format(home: cursor.Home, spelling: Any) -> None:
    assert contents(write_and_read(home, cursor.thinking("Round once.", encoding=spelling))) == [
        ("thinking", "Round once.")
    ]


def test_all_thinking_blocks_are_joined(home: cursor.Home) -> None:
    blocks = ["one", {"text": "two"}, {"signature": "x"}, 3]
    session = write_and_read(home, cursor.assistant("", thinking="first", allThinkingBlocks=blocks))
    assert contents(session) == [("thinking", "first\n\none\n\ntwo")]


def test_an_empty_bubble_yields_no_message(home: cursor.Home) -> None:
    assert contents(write_and_read(home, cursor.user("Hello"), cursor.empty())) == [("user", "Hello")]


def test_empty_tool_data_is_not_a_call(home: cursor.Home) -> None:
    session = write_and_read(home, cursor.with_empty_tool_data(cursor.user("Hello")))
    assert contents(session) == [("user", "Hello")]


@pytest.mark.parametrize("field", ["rawText", "content", "message"])
def test_text_is_read_from_older_field_names(home: cursor.Home, field: str) -> None:
    assert contents(write_and_read(home, cursor.assistant("", **{field: "Old words"}))) == [
        ("assistant", "Old words")
    ]


def test_text_is_read_from_the_editor_document(home: cursor.Home) -> None:
    lexical = {
        "root": {"children": [{"type": "paragraph", "children": [{"text": "one"}, {"type": "linebreak"}]}]}
    }
    prose = {"type": "doc", "content": [{"type": "paragraph", "content": [{"type": "text", "text": "two"}]}]}
    session = write_and_read(home, cursor.user("", richText=lexical), cursor.user("", richText=prose))
    assert contents(session) == [("user", "one"), ("user", "two")]


@pytest.mark.parametrize(("kind", "role"), [("user", "user"), ("ai", "assistant")])
def test_older_bubble_types_have_a_role(home: cursor.Home, kind: object, role: str) -> None:
    session = write_and_read(home, cursor.user("Hello", type=kind))
    assert [(message.role, message.content) for message in session.messages] == [(role, "Hello")]
    assert session.messages[0].kind is None


def test_text_that_cursor_writes_for_the_user_is_simulated(home: cursor.Home) -> None:
    (message,) = write_and_read(home, cursor.simulated("The task has ended.")).messages
    assert (message.role, message.kind) == ("user", "simulated")


def test_an_error_is_a_separate_message(home: cursor.Home) -> None:
    session = write_and_read(
        home, cursor.assistant("Half an ans", errorDetails={"message": "Connection lost"})
    )
    assert contents(session) == [("assistant", "Half an ans"), ("error", "Connection lost")]


def test_an_image_without_text_is_a_message(home: cursor.Home) -> None:
    cursor.write_image(home.root, cursor.SHOP)
    (message,) = write_and_read(home, cursor.image(), workspace=cursor.SHOP).messages
    (picture,) = message.attachments
    assert (picture.kind, picture.media_type, picture.size) == ("image", "image/png", 8)


def test_an_image_file_has_its_size(home: cursor.Home) -> None:
    path = cursor.write_image(home.root, cursor.SHOP, uuid="5f0e0000-0000-4000-8000-00000000beef")
    chosen = {"uuid": "5f0e0000-0000-4000-8000-00000000beef", "path": str(path)}
    session = write_and_read(home, cursor.user("See", context={"selectedImages": [chosen]}))
    assert session.messages[0].attachments[0].size == path.stat().st_size


def test_attachments_have_a_kind_and_a_name(home: cursor.Home) -> None:
    context = {
        "fileSelections": [{"uri": {"fsPath": "/w/cart.py", "scheme": "file"}}],
        "folderSelections": [{"uri": "file:///w/src"}],
        "selections": [{"text": "def f(): ...", "uri": {"path": "/w/a.py"}, "range": {"start": 1}}],
        "externalLinks": [{"url": "https://example.invalid/x"}],
        "cursorRules": [{"filename": "style.mdc"}],
        "mentions": {"selectedDocs": {"Python": [{}]}, "gitDiff": [{}]},
    }
    (message,) = write_and_read(home, cursor.user("Look", context=context)).messages
    assert {(each.kind, each.name) for each in message.attachments} == {
        ("file", "cart.py"),
        ("folder", "src"),
        ("selection", "a.py"),
        ("link", "https://example.invalid/x"),
        ("rule", "style.mdc"),
        ("document", "Python"),
        ("diff", None),
    }


@pytest.mark.parametrize(
    ("file_name", "name", "path"),
    [
        ("auth.py", "auth.py", "auth.py"),
        ("src/auth.py", "auth.py", "src/auth.py"),
        ("/home/dev/shop/auth.py", "auth.py", "/home/dev/shop/auth.py"),
        ("C:\\shop\\auth.py", "auth.py", "c:\\shop\\auth.py"),
    ],
)
def test_an_attached_file_can_have_a_file_name_and_content(
    home: cursor.Home, file_name: str, name: str, path: str
) -> None:
    chosen = {"fileName": file_name, "content": "größe = 1"}
    (message,) = write_and_read(home, cursor.user("Look", context={"fileSelections": [chosen]})).messages
    assert [(each.kind, each.name, each.path, each.size) for each in message.attachments] == [
        ("file", name, path, 11)
    ]


def test_token_counts_of_zero_are_unknown(home: cursor.Home) -> None:
    session = write_and_read(
        home,
        cursor.assistant("a", tokenCount={"inputTokens": 1200, "outputTokens": 340}),
        cursor.assistant("b", tokenCount={"inputTokens": 0, "outputTokens": 0}),
        cursor.assistant("c", tokenCount=None, usage={"input_tokens": 5, "output_tokens": 0}),
    )
    usage = [message.usage for message in session.messages]
    assert [each and (each.input_tokens, each.output_tokens) for each in usage] == [
        (1200, 340),
        None,
        (5, None),
    ]


def test_the_model_is_of_the_bubble_else_the_turn_else_the_session(home: cursor.Home) -> None:
    session = write_and_read(
        home,
        cursor.assistant("before", modelInfo=None),
        cursor.user("ask", modelInfo={"modelName": "chosen"}),
        cursor.assistant("turn", modelInfo={"modelName": "default"}),
        cursor.assistant("own", modelInfo={"modelName": "own"}),
        data={"modelConfig": {"modelName": "session"}},
    )
    assert [message.model for message in session.messages] == ["session", None, "chosen", "own"]


def test_the_model_of_an_auto_session_comes_from_the_tracking_database(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / ".config/Cursor")
    composer = home.composer(
        [cursor.user("ask", modelInfo=None), cursor.assistant("answer", modelInfo=None)],
        data={"modelConfig": {"modelName": "default"}},
    )
    cursor.write_tracking(tmp_path / ".cursor", conversation=composer.id, model="model-z")
    assert read_session(home.write(), composer.id).messages[1].model == "model-z"


def test_times_of_a_clock_that_starts_with_the_window_are_ignored(home: cursor.Home) -> None:
    """1.7e9 ms of uptime would be a date in 2023 if they were parsed as seconds."""
    timing = {
        "clientStartTime": 1_700_000_000.5,
        "clientRpcSendTime": 1_700_000_001.5,
        "clientEndTime": START + 5000,
    }
    session = write_and_read(
        home, cursor.assistant("a", createdAt=None, timingInfo=timing), generation=2, bubble_version=2
    )
    (message,) = session.messages
    assert message.timestamp == datetime.fromtimestamp((START + 5000) / 1000, UTC)
    assert message.timestamp_source == "timing"


def test_times_come_from_the_best_source_and_name_it(home: cursor.Home) -> None:
    late = {"createdAt": None, "timingInfo": None}
    call = cursor.Tool("grep", {"pattern": "x"}, {}, additional={"startedAtMs": START + 70_000})
    session = write_and_read(
        home,
        cursor.Message("user", "next", fields=late, header={"createdAt": None}),
        cursor.Message("assistant", "header", fields=late, header={"createdAt": "2026-09-21T14:13:40Z"}),
        cursor.Message("assistant", "started", fields=late, header={"createdAt": None, "startedAtMs": START}),
        cursor.Message("assistant", tool=call, fields=late, header={"createdAt": None}),
        cursor.Message("assistant", "last", fields=late, header={"createdAt": None}),
    )
    assert [message.timestamp_source for message in session.messages] == [
        "neighbour",
        "header",
        "header",
        "timing",
        "neighbour",
    ]
    assert session.messages[0].timestamp == session.messages[1].timestamp
    assert session.messages[4].timestamp == session.messages[3].timestamp


def test_messages_without_times_are_between_the_start_and_the_end_of_the_session(home: cursor.Home) -> None:
    late = {"createdAt": None, "timingInfo": None}
    messages = [cursor.Message("user", text, fields=late, header={"createdAt": None}) for text in "abc"]
    data = {"createdAt": START, "lastUpdatedAt": START + 600_000}
    found = write_and_read(home, *messages, is_listed=False, data=data).messages
    assert [(m.timestamp and m.timestamp.timestamp() * 1000, m.timestamp_source) for m in found] == [
        (START, "session"),
        (START + 300_000, "interpolated"),
        (START + 600_000, "session"),
    ]


def test_a_session_without_a_last_change_has_one_time(home: cursor.Home) -> None:
    late = {"createdAt": None, "timingInfo": None}
    messages = [cursor.Message("user", text, fields=late, header={"createdAt": None}) for text in "abc"]
    for ended_at in (None, START - 1000):  # the last change can be missing, or before the start
        data = {"createdAt": START, "lastUpdatedAt": ended_at}
        found = write_and_read(home, *messages, is_listed=False, data=data).messages
        assert {m.timestamp and m.timestamp.timestamp() * 1000 for m in found} == {START}
        assert {m.timestamp_source for m in found} == {"session"}


def test_a_message_without_time_has_the_time_of_the_session_or_none(home: cursor.Home) -> None:
    late = {"createdAt": None, "timingInfo": None}
    alone = cursor.Message("user", "hm", fields=late, header={"createdAt": None})
    (message,) = write_and_read(home, alone).messages
    assert message.timestamp_source == "session"
    nowhere = {"createdAt": 0, "lastUpdatedAt": None}
    (message,) = write_and_read(home, alone, is_listed=False, data=nowhere).messages
    assert (message.timestamp, message.timestamp_source) == (None, None)


def test_a_time_in_the_future_is_ignored(home: cursor.Home) -> None:
    session = write_and_read(home, cursor.user("hm", createdAt="2091-01-01T00:00:00Z"))
    assert session.messages[0].timestamp_source == "header"


def test_messages_with_the_same_id_are_all_kept(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=1)
    composer = home.composer([cursor.user("first"), cursor.assistant("second")])
    home.write()
    with closing(sqlite3.connect(home.database)) as db, db:
        (value,) = db.execute("select value from cursorDiskKV where key = ?", [composer.key]).fetchone()
        record = json.loads(value)
        for body in record["conversation"]:
            body["bubbleId"] = "same"
        record["conversation"].append(dict(record["conversation"][0]))
        db.execute("update cursorDiskKV set value = ? where key = ?", [json.dumps(record), composer.key])
    assert contents(read_session(home.root, composer.id)) == [("user", "first"), ("assistant", "second")]


def test_an_empty_row_does_not_hide_the_copy_in_the_session_record(home: cursor.Home) -> None:
    composer = home.composer([cursor.user("first"), cursor.assistant("second")], has_graph=False)
    record = {
        **composer.data,
        "conversation": [{"bubbleId": composer.messages[0].id, "type": 1, "text": "first"}],
    }
    home.put(composer.key, json.dumps(record))
    home.put(composer.bubble_key(0), "{}")
    assert contents(read_session(home.write(), composer.id)) == [("user", "first"), ("assistant", "second")]


def test_an_unknown_type_has_the_role_of_its_header_and_its_own_kind(home: cursor.Home) -> None:
    odd = [cursor.user("hello", type=7), cursor.assistant("hi", type=7), cursor.user("gone", type=7)]
    session = write_and_read(home, *odd[:2], cursor.orphaned(odd[2]), has_graph=False)
    assert [each.role for each in session.messages] == ["user", "assistant", "assistant"]
    assert [each.kind for each in session.messages] == ["type 7", "type 7", "orphan"]


def test_an_auto_turn_does_not_get_a_model_selected_later(home: cursor.Home) -> None:
    session = write_and_read(
        home,
        cursor.user("one", modelInfo={"modelName": "default"}),
        cursor.assistant("two"),
        cursor.user("three", modelInfo={"modelName": "model-x"}),
        cursor.assistant("four"),
        cursor.user("five"),
        cursor.assistant("six"),
        data={"modelConfig": {"modelName": "model-z"}},
    )
    assert [each.model for each in session.messages if each.role == "assistant"] == [
        None,
        "model-x",
        "model-z",
    ]


def test_simulated_and_rewound_messages_are_not_used_as_title(home: cursor.Home) -> None:
    session = write_and_read(
        home,
        cursor.simulated("A background task ended"),
        cursor.user("Totals are off"),
        cursor.orphaned(cursor.user("rewound")),
        name=None,
    )
    assert (session.closing.title, session.closing.title_source) == ("Totals are off", "first message")
