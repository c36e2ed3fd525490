"""What is left of sessions whose messages are gone."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.testing import cursor
from tests.sources.cursor.reading import read, read_one, said

START = 1_790_000_000_000
TALK = [
    cursor.user("Totals are off"),
    cursor.tool("run_terminal_cmd", {"command": "pytest"}, {"output": "3 passed"}, call_id="call_7"),
    cursor.assistant("Rounding now happens once."),
]


@pytest.fixture
def home(tmp_path: Path) -> cursor.Home:
    return cursor.Home(tmp_path / "Cursor")


def test_the_agent_remembers_a_session_without_bubbles(home: cursor.Home) -> None:
    made = home.composer(TALK, has_bubbles=False)
    reading = read_one(home.write(), made.id)
    assert reading.opening.store == "graph"
    assert [(message.role, message.content) for message in reading.messages if message.role != "system"] == [
        ("user", "Totals are off"),
        ("tool", ""),
        ("assistant", "Rounding now happens once."),
    ]
    (call,) = [message.tool for message in reading.messages if message.tool]
    assert call.id == "call_7"
    assert "3 passed" in (call.result or "")
    assert reading.closing.completeness == "partial"
    assert reading.closing.visibility == "listed"


def test_a_root_named_by_a_checkpoint_is_followed(home: cursor.Home) -> None:
    made = home.composer(TALK, has_bubbles=False)
    home.put(made.key, json.dumps({**made.data, "conversationState": "~"}))
    assert read_one(home.write(), made.id).opening.store == "graph"


@pytest.mark.parametrize("state", ["~!!!", "~AAAA", "~CgE", 7, {"a": 1}])
def test_a_broken_root_costs_nothing_but_itself(home: cursor.Home, state: object) -> None:
    made = home.composer(TALK, has_graph=False, has_bubbles=False)
    home.put(made.key, json.dumps({**made.data, "conversationState": state}))
    reading = read_one(home.write(), made.id)
    assert [message.kind for message in reading.messages] == ["missing", "missing", "missing"]


def test_a_lost_prompt_and_a_lost_call_are_filled_in_from_memory(home: cursor.Home) -> None:
    said_ = [cursor.missing(TALK[0]), cursor.missing(TALK[1]), TALK[2]]
    grouping = {"grouping": {"isRenderable": True, "capabilityType": 15, "toolCallId": "call_7"}}
    said_[1] = cursor.Message("assistant", tool=TALK[1].tool, is_stored=False, header=grouping)
    made = home.composer(said_)
    reading = read_one(home.write(), made.id)
    assert [(message.role, message.kind) for message in reading.messages] == [
        ("user", "recovered"),
        ("tool", "recovered"),
        ("assistant", None),
    ]
    assert reading.messages[0].content == "Totals are off"
    assert reading.messages[1].tool and reading.messages[1].tool.id == "call_7"


def test_the_search_index_still_has_the_words(home: cursor.Home) -> None:
    made = home.composer([cursor.missing(cursor.user("lost"))], has_graph=False)
    home.write()
    cursor.write_search(home.root, [(made.id, "Title", "lost words of a session")])
    reading = read_one(home.root, made.id)
    assert reading.opening.store == "search"
    assert said(reading) == [("assistant", "lost words of a session")]
    assert reading.closing.completeness == "lossy"


def test_a_ghost_is_given_the_prompts_that_were_typed_while_it_lasted(home: cursor.Home) -> None:
    id = cursor.KINDS["ghost"](home)
    log = [
        {"unixMs": START, "generationUUID": "g1", "type": "composer", "textDescription": "typed then"},
        {
            "unixMs": START - 9_000_000,
            "generationUUID": "g2",
            "type": "composer",
            "textDescription": "before",
        },
    ]
    home.put_item("aiService.generations", json.dumps(log), place=cursor.SHOP)
    reading = read_one(home.write(), id)
    assert said(reading) == [("user", "typed then")]
    assert (reading.opening.store, reading.closing.completeness) == ("prompts", "lossy")


def test_the_log_of_a_workspace_without_any_conversation_is_a_session(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=2)
    home.workspace(cursor.SHOP)
    home.put_item("aiService.prompts", json.dumps([{"text": "one"}, {"text": "two"}]), place=cursor.SHOP)
    log = [{"unixMs": START, "generationUUID": "g1", "type": "composer", "textDescription": "two"}]
    home.put_item("aiService.generations", json.dumps(log), place=cursor.SHOP)
    ((id, reading),) = read(home.write()).items()
    assert id == f"prompts-{cursor.SHOP.id}"
    assert said(reading) == [("user", "one"), ("user", "two")]
    assert [message.timestamp is not None for message in reading.messages] == [False, True]
    assert (reading.opening.store, reading.closing.completeness) == ("prompts", "lossy")
    assert reading.closing.workspace and reading.closing.workspace.path == "/home/dev/shop"


def test_the_log_repeats_conversations_and_is_left_alone_where_there_are_any(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=2)
    made = home.composer(TALK, workspace=cursor.SHOP)
    home.put_item("aiService.prompts", json.dumps([{"text": "Totals are off"}]), place=cursor.SHOP)
    assert read(home.write()).keys() == {made.id}


def test_a_graph_whose_blobs_are_gone_leaves_the_places_of_the_messages(home: cursor.Home) -> None:
    made = home.composer(TALK, has_bubbles=False)
    home.write()
    with closing(sqlite3.connect(home.database)) as db, db:
        db.execute("delete from cursorDiskKV where key glob 'agentKv:blob:*'")
    assert [message.kind for message in read_one(home.root, made.id).messages] == ["missing"] * 3
