"""Recovery of sessions that have lost their messages."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.testing import cursor
from tests.builders.cursor import session_kinds as cursor_session_kinds
from tests.sources.cursor.reading import contents, read_session, read_sessions

START = 1_790_000_000_000
MESSAGES = [
    cursor.user("Totals are off"),
    cursor.tool("run_terminal_cmd", {"command": "pytest"}, {"output": "3 passed"}, call_id="call_7"),
    cursor.assistant("Rounding now happens once."),
]


@pytest.fixture
def home(tmp_path: Path) -> cursor.Home:
    return cursor.Home(tmp_path / "Cursor")


def test_a_session_without_bubbles_is_recovered_from_the_agent_record(home: cursor.Home) -> None:
    composer = home.composer(MESSAGES, has_bubbles=False)
    session = read_session(home.write(), composer.id)
    assert session.opening.store == "graph"
    assert [(message.role, message.content) for message in session.messages if message.role != "system"] == [
        ("user", "Totals are off"),
        ("tool", ""),
        ("assistant", "Rounding now happens once."),
    ]
    (call,) = [message.tool for message in session.messages if message.tool]
    assert call.id == "call_7"
    assert "3 passed" in (call.result or "")
    assert session.closing.completeness == "partial"
    assert session.closing.visibility == "listed"


def test_the_root_is_found_through_the_checkpoint(home: cursor.Home) -> None:
    composer = home.composer(MESSAGES, has_bubbles=False)
    home.put(composer.key, json.dumps({**composer.data, "conversationState": "~"}))
    assert read_session(home.write(), composer.id).opening.store == "graph"


@pytest.mark.parametrize("state", ["~!!!", "~AAAA", "~CgE", 7, {"a": 1}])
def test_a_damaged_root_does_not_prevent_reading(home: cursor.Home, state: object) -> None:
    composer = home.composer(MESSAGES, has_graph=False, has_bubbles=False)
    home.put(composer.key, json.dumps({**composer.data, "conversationState": state}))
    session = read_session(home.write(), composer.id)
    assert [message.kind for message in session.messages] == ["missing", "missing", "missing"]


def test_a_lost_prompt_and_a_lost_call_are_recovered_from_the_agent_record(home: cursor.Home) -> None:
    messages = [cursor.missing(MESSAGES[0]), cursor.missing(MESSAGES[1]), MESSAGES[2]]
    grouping = {"grouping": {"isRenderable": True, "capabilityType": 15, "toolCallId": "call_7"}}
    messages[1] = cursor.Message("assistant", tool=MESSAGES[1].tool, is_stored=False, header=grouping)
    composer = home.composer(messages)
    session = read_session(home.write(), composer.id)
    assert [(message.role, message.kind) for message in session.messages] == [
        ("user", "recovered"),
        ("tool", "recovered"),
        ("assistant", None),
    ]
    assert session.messages[0].content == "Totals are off"
    assert session.messages[1].tool and session.messages[1].tool.id == "call_7"


def test_lost_text_is_recovered_from_the_search_index(home: cursor.Home) -> None:
    composer = home.composer([cursor.missing(cursor.user("lost"))], has_graph=False)
    home.write()
    cursor.write_search(home.root, [(composer.id, "Title", "lost words of a session")])
    session = read_session(home.root, composer.id)
    assert session.opening.store == "search"
    assert contents(session) == [("assistant", "lost words of a session")]
    assert session.closing.completeness == "lossy"


def test_a_ghost_gets_the_prompts_typed_during_the_session(home: cursor.Home) -> None:
    id = cursor_session_kinds.KINDS["ghost"](home)
    log = [
        {"unixMs": START, "generationUUID": "g1", "type": "composer", "textDescription": "typed then"},
        {
            "unixMs": START - 9_000_000,
            "generationUUID": "g2",
            "type": "composer",
            "textDescription": "before",
        },
    ]
    home.put_item("aiService.generations", json.dumps(log), workspace=cursor.SHOP)
    session = read_session(home.write(), id)
    assert contents(session) == [("user", "typed then")]
    assert (session.opening.store, session.closing.completeness) == ("prompts", "lossy")


def test_the_prompt_log_of_a_workspace_without_conversations_is_a_session(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=2)
    home.add_workspace(cursor.SHOP)
    home.put_item("aiService.prompts", json.dumps([{"text": "one"}, {"text": "two"}]), workspace=cursor.SHOP)
    log = [{"unixMs": START, "generationUUID": "g1", "type": "composer", "textDescription": "two"}]
    home.put_item("aiService.generations", json.dumps(log), workspace=cursor.SHOP)
    ((id, session),) = read_sessions(home.write()).items()
    assert id == f"prompts-{cursor.SHOP.id}"
    assert contents(session) == [("user", "one"), ("user", "two")]
    assert [message.timestamp is not None for message in session.messages] == [False, True]
    assert (session.opening.store, session.closing.completeness) == ("prompts", "lossy")
    assert session.closing.workspace and session.closing.workspace.path == "/home/dev/shop"


def test_the_prompt_log_of_a_workspace_with_conversations_is_not_a_session(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=2)
    composer = home.composer(MESSAGES, workspace=cursor.SHOP)
    home.put_item("aiService.prompts", json.dumps([{"text": "Totals are off"}]), workspace=cursor.SHOP)
    assert read_sessions(home.write()).keys() == {composer.id}


def test_a_graph_without_blobs_leaves_missing_messages(home: cursor.Home) -> None:
    composer = home.composer(MESSAGES, has_bubbles=False)
    home.write()
    with closing(sqlite3.connect(home.database)) as db, db:
        db.execute("delete from cursorDiskKV where key glob 'agentKv:blob:*'")
    assert [message.kind for message in read_session(home.root, composer.id).messages] == ["missing"] * 3
