"""What one bubble gives: words, thoughts, calls, times, tokens."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing import cursor
from tests.sources.cursor.reading import converse, read_one, said

START = 1_790_000_000_000


@pytest.fixture
def home(tmp_path: Path) -> cursor.Home:
    return cursor.Home(tmp_path / "Cursor")


def test_a_bubble_with_thought_words_and_call_gives_three_messages(home: cursor.Home) -> None:
    call = cursor.Tool("list_dir", {"path": "/w"}, {"files": [{"name": "a.py"}]})
    reading = converse(home, cursor.Message("assistant", "Looking.", "Where is it?", call, id="b1"))
    assert said(reading) == [
        ("thinking", "Where is it?"),
        ("assistant", "Looking."),
        ("tool", "list_dir: a.py"),
    ]
    assert [message.id for message in reading.messages] == ["b1", "b1.1", "b1.2"]


@pytest.mark.parametrize("spelling", ["object", "text", "json"])
def test_a_thought_is_read_however_it_is_spelled(home: cursor.Home, spelling: Any) -> None:
    assert said(converse(home, cursor.thinking("Round once.", spelling=spelling))) == [
        ("thinking", "Round once.")
    ]


def test_further_thoughts_follow_the_first(home: cursor.Home) -> None:
    blocks = ["one", {"text": "two"}, {"signature": "x"}, 3]
    reading = converse(home, cursor.assistant("", thinking="first", allThinkingBlocks=blocks))
    assert said(reading) == [("thinking", "first\n\none\n\ntwo")]


def test_an_empty_shell_says_nothing(home: cursor.Home) -> None:
    assert said(converse(home, cursor.user("Hello"), cursor.empty())) == [("user", "Hello")]


def test_hollow_tool_data_is_no_call(home: cursor.Home) -> None:
    reading = converse(home, cursor.with_hollow_tool(cursor.user("Hello")))
    assert said(reading) == [("user", "Hello")]


@pytest.mark.parametrize("field", ["rawText", "content", "message"])
def test_old_names_of_the_text_are_known(home: cursor.Home, field: str) -> None:
    assert said(converse(home, cursor.assistant("", **{field: "Old words"}))) == [("assistant", "Old words")]


def test_words_that_are_only_in_the_editor_document_are_found(home: cursor.Home) -> None:
    lexical = {
        "root": {"children": [{"type": "paragraph", "children": [{"text": "one"}, {"type": "linebreak"}]}]}
    }
    prose = {"type": "doc", "content": [{"type": "paragraph", "content": [{"type": "text", "text": "two"}]}]}
    reading = converse(home, cursor.user("", richText=lexical), cursor.user("", richText=prose))
    assert said(reading) == [("user", "one"), ("user", "two")]


@pytest.mark.parametrize(("kind", "role"), [("user", "user"), ("ai", "assistant")])
def test_types_of_every_age_have_a_role(home: cursor.Home, kind: object, role: str) -> None:
    reading = converse(home, cursor.user("Hello", type=kind))
    assert [(message.role, message.content) for message in reading.messages] == [(role, "Hello")]
    assert reading.messages[0].kind is None


def test_what_cursor_wrote_in_the_name_of_the_user_is_marked(home: cursor.Home) -> None:
    (message,) = converse(home, cursor.simulated("The task has ended.")).messages
    assert (message.role, message.kind) == ("user", "simulated")


def test_an_error_is_told_as_one_beside_the_words(home: cursor.Home) -> None:
    reading = converse(home, cursor.assistant("Half an ans", errorDetails={"message": "Connection lost"}))
    assert said(reading) == [("assistant", "Half an ans"), ("error", "Connection lost")]


def test_a_picture_without_words_is_a_message(home: cursor.Home) -> None:
    cursor.write_picture(home.root, cursor.SHOP)
    (message,) = converse(home, cursor.image(), workspace=cursor.SHOP).messages
    (picture,) = message.attachments
    assert (picture.kind, picture.media_type, picture.size) == ("image", "image/png", 8)


def test_a_picture_kept_as_a_file_is_measured(home: cursor.Home) -> None:
    path = cursor.write_picture(home.root, cursor.SHOP, uuid="5f0e0000-0000-4000-8000-00000000beef")
    chosen = {"uuid": "5f0e0000-0000-4000-8000-00000000beef", "path": str(path)}
    reading = converse(home, cursor.user("See", context={"selectedImages": [chosen]}))
    assert reading.messages[0].attachments[0].size == path.stat().st_size


def test_what_is_attached_is_named(home: cursor.Home) -> None:
    context = {
        "fileSelections": [{"uri": {"fsPath": "/w/cart.py", "scheme": "file"}}],
        "folderSelections": [{"uri": "file:///w/src"}],
        "selections": [{"text": "def f(): ...", "uri": {"path": "/w/a.py"}, "range": {"start": 1}}],
        "externalLinks": [{"url": "https://example.invalid/x"}],
        "cursorRules": [{"filename": "style.mdc"}],
        "mentions": {"selectedDocs": {"Python": [{}]}, "gitDiff": [{}]},
    }
    (message,) = converse(home, cursor.user("Look", context=context)).messages
    assert {(each.kind, each.name) for each in message.attachments} == {
        ("file", "cart.py"),
        ("folder", "src"),
        ("selection", "a.py"),
        ("link", "https://example.invalid/x"),
        ("rule", "style.mdc"),
        ("document", "Python"),
        ("diff", None),
    }


def test_tokens_are_kept_where_they_were_counted(home: cursor.Home) -> None:
    reading = converse(
        home,
        cursor.assistant("a", tokenCount={"inputTokens": 1200, "outputTokens": 340}),
        cursor.assistant("b", tokenCount={"inputTokens": 0, "outputTokens": 0}),
        cursor.assistant("c", tokenCount=None, usage={"input_tokens": 5, "output_tokens": 0}),
    )
    usage = [message.usage for message in reading.messages]
    assert [each and (each.input_tokens, each.output_tokens) for each in usage] == [
        (1200, 340),
        None,
        (5, None),
    ]


def test_the_model_is_the_bubbles_own_then_the_turns_then_the_sessions(home: cursor.Home) -> None:
    reading = converse(
        home,
        cursor.assistant("before", modelInfo=None),
        cursor.user("ask", modelInfo={"modelName": "chosen"}),
        cursor.assistant("turn", modelInfo={"modelName": "default"}),
        cursor.assistant("own", modelInfo={"modelName": "own"}),
        data={"modelConfig": {"modelName": "session"}},
    )
    assert [message.model for message in reading.messages] == ["session", None, "chosen", "own"]


def test_auto_is_no_model_but_the_tracking_database_knows_one(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / ".config/Cursor")
    made = home.composer(
        [cursor.user("ask", modelInfo=None), cursor.assistant("answer", modelInfo=None)],
        data={"modelConfig": {"modelName": "default"}},
    )
    cursor.write_tracking(tmp_path / ".cursor", conversation=made.id, model="model-z")
    assert read_one(home.write(), made.id).messages[1].model == "model-z"


def test_a_clock_that_began_with_the_window_gives_no_date(home: cursor.Home) -> None:
    """1.7e9 ms of uptime would be a date in 2023 if it were read as seconds."""
    timing = {
        "clientStartTime": 1_700_000_000.5,
        "clientRpcSendTime": 1_700_000_001.5,
        "clientEndTime": START + 5000,
    }
    reading = converse(
        home, cursor.assistant("a", createdAt=None, timingInfo=timing), generation=2, bubble_version=2
    )
    (message,) = reading.messages
    assert message.timestamp == datetime.fromtimestamp((START + 5000) / 1000, UTC)
    assert message.timestamp_source == "timing"


def test_times_come_from_the_best_evidence_and_say_so(home: cursor.Home) -> None:
    late = {"createdAt": None, "timingInfo": None}
    call = cursor.Tool("grep", {"pattern": "x"}, {}, additional={"startedAtMs": START + 70_000})
    reading = converse(
        home,
        cursor.Message("user", "next", fields=late, header={"createdAt": None}),
        cursor.Message("assistant", "header", fields=late, header={"createdAt": "2026-09-21T14:13:40Z"}),
        cursor.Message("assistant", "started", fields=late, header={"createdAt": None, "startedAtMs": START}),
        cursor.Message("assistant", tool=call, fields=late, header={"createdAt": None}),
        cursor.Message("assistant", "last", fields=late, header={"createdAt": None}),
    )
    assert [message.timestamp_source for message in reading.messages] == [
        "neighbour",
        "header",
        "header",
        "timing",
        "neighbour",
    ]
    assert reading.messages[0].timestamp == reading.messages[1].timestamp
    assert reading.messages[4].timestamp == reading.messages[3].timestamp


def test_without_any_time_a_message_has_the_sessions_or_none(home: cursor.Home) -> None:
    late = {"createdAt": None, "timingInfo": None}
    alone = cursor.Message("user", "hm", fields=late, header={"createdAt": None})
    (message,) = converse(home, alone).messages
    assert message.timestamp_source == "session"
    nowhere = {"createdAt": 0, "lastUpdatedAt": None}
    (message,) = converse(home, alone, is_listed=False, data=nowhere).messages
    assert (message.timestamp, message.timestamp_source) == (None, None)


def test_a_time_in_the_future_is_not_believed(home: cursor.Home) -> None:
    reading = converse(home, cursor.user("hm", createdAt="2091-01-01T00:00:00Z"))
    assert reading.messages[0].timestamp_source == "header"


def test_messages_of_one_record_that_share_an_id_are_all_kept(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=1)
    made = home.composer([cursor.user("first"), cursor.assistant("second")])
    home.write()
    with closing(sqlite3.connect(home.database)) as db, db:
        (value,) = db.execute("select value from cursorDiskKV where key = ?", [made.key]).fetchone()
        record = json.loads(value)
        for body in record["conversation"]:
            body["bubbleId"] = "same"
        record["conversation"].append(dict(record["conversation"][0]))
        db.execute("update cursorDiskKV set value = ? where key = ?", [json.dumps(record), made.key])
    assert said(read_one(home.root, made.id)) == [("user", "first"), ("assistant", "second")]


def test_an_empty_row_does_not_hide_the_copy_in_the_sessions_record(home: cursor.Home) -> None:
    made = home.composer([cursor.user("first"), cursor.assistant("second")], has_graph=False)
    record = {**made.data, "conversation": [{"bubbleId": made.messages[0].id, "type": 1, "text": "first"}]}
    home.put(made.key, json.dumps(record))
    home.put(made.bubble_key(0), "{}")
    assert said(read_one(home.write(), made.id)) == [("user", "first"), ("assistant", "second")]


def test_a_type_nobody_knows_is_decided_by_the_list_and_named(home: cursor.Home) -> None:
    odd = [cursor.user("hello", type=7), cursor.assistant("hi", type=7), cursor.user("gone", type=7)]
    reading = converse(home, *odd[:2], cursor.orphaned(odd[2]), has_graph=False)
    assert [each.role for each in reading.messages] == ["user", "assistant", "assistant"]
    assert [each.kind for each in reading.messages] == ["type 7", "type 7", "orphan"]


def test_a_turn_left_to_auto_names_no_model_that_was_chosen_later(home: cursor.Home) -> None:
    reading = converse(
        home,
        cursor.user("one", modelInfo={"modelName": "default"}),
        cursor.assistant("two"),
        cursor.user("three", modelInfo={"modelName": "model-x"}),
        cursor.assistant("four"),
        cursor.user("five"),
        cursor.assistant("six"),
        data={"modelConfig": {"modelName": "model-z"}},
    )
    assert [each.model for each in reading.messages if each.role == "assistant"] == [
        None,
        "model-x",
        "model-z",
    ]


def test_what_cursor_wrote_itself_and_what_was_rewound_give_no_title(home: cursor.Home) -> None:
    reading = converse(
        home,
        cursor.simulated("A background task ended"),
        cursor.user("Totals are off"),
        cursor.orphaned(cursor.user("rewound")),
        name=None,
    )
    assert (reading.closing.title, reading.closing.title_source) == ("Totals are off", "first message")
