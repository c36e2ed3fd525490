"""Sessions of every kind: their order, visibility, titles, subagents and fingerprints."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backscroll.sources.cursor import Cursor
from backscroll.testing import cursor
from tests.builders.cursor import damage as cursor_damage
from tests.builders.cursor import generations as cursor_generations
from tests.builders.cursor import session_kinds as cursor_session_kinds
from tests.sources.cursor.reading import contents, read_session, read_sessions, read_units, write_and_read

MESSAGES = [cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")]
EXPECTED = [("user", "Totals are off"), ("assistant", "Rounding now happens once.")]


@pytest.fixture
def home(tmp_path: Path) -> cursor.Home:
    return cursor.Home(tmp_path / "Cursor")


@pytest.mark.parametrize("generation", [1, 2, 3, 4, 5])
def test_a_conversation_of_every_generation_is_read(tmp_path: Path, generation: int) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=generation)
    session = write_and_read(home, *MESSAGES, name="Fix totals")
    assert contents(session) == EXPECTED
    assert session.opening.store == ("inline" if generation == 1 else "bubbles")
    assert (session.closing.title, session.closing.visibility) == ("Fix totals", "listed")
    assert session.closing.completeness == "complete"
    assert session.closing.workspace and session.closing.workspace.path == "/home/dev/shop"


@pytest.mark.parametrize("generation", [1, 2, 3, 4])
def test_old_and_new_sessions_are_read_from_one_database(home: cursor.Home, generation: int) -> None:
    home.composer(MESSAGES, name="New")
    assert contents(write_and_read(home, *MESSAGES, name="Old", generation=generation)) == EXPECTED


def test_every_kind_of_session_has_its_visibility(home: cursor.Home) -> None:
    ids = {name: add(home) for name, add in cursor_session_kinds.KINDS.items()}
    found = read_sessions(home.write())
    visibilities = {name: found[id].closing.visibility for name, id in ids.items()}
    assert visibilities == {
        "archived": "archived",
        "best_of_n": "listed",
        "both_lists": "listed",
        "parent_cycle": "listed",
        "cloud": "ghost",
        "draft": "draft",
        "emptied": "deleted",
        "ghost": "ghost",
        "hex_blobs": "listed",
        "with_keyless_row": "listed",
        "orphan_bubbles": "listed",
        "placeholder": "placeholder",
        "rich_text_only": "listed",
        "subagent": "listed",
        "task": "listed",
        "tombstone": "deleted",
        "unlisted": "listed",
        "without_folder": "listed",
        "with_gaps": "listed",
        "worktree": "listed",
    }
    assert found[ids["draft"]].closing.metadata["unsent_text"] == "half a thought"
    assert found[ids["unlisted"]].closing.metadata["in_index"] is False


def test_the_header_list_determines_the_order_including_missing_messages(home: cursor.Home) -> None:
    id = cursor_session_kinds.KINDS["with_gaps"](home)
    session = read_session(home.write(), id)
    assert contents(session) == [
        ("user", "first words"),
        ("assistant", "lost wor"),
        ("assistant", "last words"),
    ]
    assert [message.kind for message in session.messages] == [None, "missing", None, "orphan"]
    assert contents(session, is_active=False) == [("assistant", "words rewound")]
    assert session.closing.completeness == "partial"


def test_bubbles_without_a_list_are_ordered_by_time(home: cursor.Home) -> None:
    late, early = cursor.user("late", at=1_790_000_009_000), cursor.user("early", at=1_790_000_001_000)
    composer = home.composer([late, early])
    cursor_damage.null_headers(home.write() / "User/globalStorage/state.vscdb", composer.id)
    session = read_session(home.root, composer.id)
    assert contents(session) == [("user", "early"), ("user", "late")]
    assert session.closing.reasons == ("the order of messages is inferred from their times",)


def test_a_bubble_listed_twice_is_read_once(home: cursor.Home) -> None:
    composer = home.composer(MESSAGES)
    cursor_damage.repeat_header(home.write() / "User/globalStorage/state.vscdb", composer.id)
    assert contents(read_session(home.root, composer.id)) == EXPECTED


def test_the_key_of_a_bubble_determines_its_id(home: cursor.Home) -> None:
    composer = home.composer(MESSAGES)
    cursor_damage.mismatch_bubble(home.write() / "User/globalStorage/state.vscdb", composer.bubble_key(0))
    assert contents(read_session(home.root, composer.id)) == EXPECTED


def test_a_lost_row_is_replaced_by_the_copy_in_the_session_record(home: cursor.Home) -> None:
    id = cursor_session_kinds.KINDS["both_lists"](home)
    assert contents(read_session(home.write(), id)) == [("user", "in both"), ("assistant", "only inline")]


def test_a_lost_row_is_replaced_by_the_copy_in_the_conversation_map(home: cursor.Home) -> None:
    composer = home.composer(
        [cursor.user("here"), cursor.missing(cursor.assistant("mapped"))], has_graph=False
    )
    body = {"type": 2, "text": "mapped"}
    key = composer.bubble_key(1).rpartition(":")[2]
    home.put(composer.key, json.dumps({**composer.data, "conversationMap": {key: body}}))
    assert contents(read_session(home.write(), composer.id)) == [("user", "here"), ("assistant", "mapped")]


def test_a_record_of_50_megabytes_is_read(home: cursor.Home) -> None:
    composer = home.composer(MESSAGES)
    cursor_damage.embed_large_file(home.write() / "User/globalStorage/state.vscdb", composer.id, megabytes=50)
    assert contents(read_session(home.root, composer.id)) == EXPECTED


def test_a_session_with_3000_messages_is_read_completely(home: cursor.Home) -> None:
    session = write_and_read(home, *[cursor.assistant(f"word {n}") for n in range(3000)], has_graph=False)
    assert contents(session) == [("assistant", f"word {n}") for n in range(3000)]


def test_a_compaction_summary_follows_the_last_message_it_replaces(home: cursor.Home) -> None:
    first = cursor.Message("user", "first", id="b1")
    summary = {"summary": {"summary": "So far: first.", "truncationLastBubbleIdInclusive": "b1"}}
    session = write_and_read(home, first, cursor.user("second"), data={"latestConversationSummary": summary})
    assert [(message.content, message.kind) for message in session.messages] == [
        ("first", None),
        ("So far: first.", "compaction"),
        ("second", None),
    ]


def test_a_subagent_has_its_parent_and_the_call_that_started_it(home: cursor.Home) -> None:
    parent = cursor_session_kinds.KINDS["subagent"](home)
    units = read_units(home.write())
    found = {session.opening.id: session for content in units.values() for session in content.sessions}
    (child,) = found[parent].closing.child_ids
    opening, closing_ = found[child].opening, found[child].closing
    assert (opening.agent_id, opening.parent_id) == (child, parent)
    (agent,) = closing_.agents
    assert (agent.kind, agent.prompt, agent.parent_session_id) == ("explore", "Where is it rounded?", parent)
    (link,) = [link for content in units.values() for link in content.links]
    call = next(message.tool for message in found[parent].messages if message.tool)
    assert (link.agent_id, link.tool_call_id) == (child, call.id)
    assert {unit.session_id: unit.kind for unit in units}[child] == "agent"


def test_an_old_task_is_linked_by_the_call_id_in_its_session_id(home: cursor.Home) -> None:
    parent = cursor_session_kinds.KINDS["task"](home)
    units = read_units(home.write())
    (link,) = [link for content in units.values() for link in content.links]
    found = {session.opening.id: session for content in units.values() for session in content.sessions}
    call = next(message.tool for message in found[parent].messages if message.tool)
    assert (link.agent_id, link.tool_call_id) == (f"task-{call.id}", call.id)
    assert found[f"task-{call.id}"].opening.agent_id == f"task-{call.id}"


def test_the_candidates_of_a_best_of_n_run_are_subagents(home: cursor.Home) -> None:
    parent = cursor_session_kinds.KINDS["best_of_n"](home)
    found = read_sessions(home.write())
    children = found[parent].closing.child_ids
    assert len(children) == 3
    assert [found[child].closing.metadata["best_of_n"] for child in children] == [
        "loser",
        "winner",
        "loser",
    ]
    assert all(found[child].opening.agent_id == child for child in children)


def test_sessions_with_circular_parents_are_not_subagents(home: cursor.Home) -> None:
    id = cursor_session_kinds.KINDS["parent_cycle"](home)
    opening = read_session(home.write(), id).opening
    assert (opening.agent_id, opening.parent_id) == (None, None)


def test_tabs_of_the_chat_panel_are_sessions(tmp_path: Path) -> None:
    root = tmp_path / "Cursor"
    cursor_generations.GENERATIONS["g0-chat-panel"].write(root)
    found = {session.closing.title: session for session in read_sessions(root).values()}
    conversations = [contents(session) for session in read_sessions(root).values()]
    assert [("user", "match dates?"), ("assistant", "Use a group for each part.")] in conversations
    assert contents(found["Odd spellings"]) == [
        ("user", "typed in the editor"),
        ("assistant", "answer in text"),
        ("user", "said through a delegate"),
        ("assistant", "answer with a picture"),
        ("user", "about this"),
    ]
    kinds = [[each.kind for each in message.attachments] for message in found["Odd spellings"].messages]
    assert kinds == [[], [], [], ["image"], ["selection"]]
    assert contents(found["Global"]) == [("user", "asked without a workspace")]
    assert all(session.opening.store == "chat" for session in found.values())


def test_tabs_with_the_same_id_in_two_workspaces_are_two_sessions(tmp_path: Path) -> None:
    root = tmp_path / "Cursor"
    cursor_generations.GENERATIONS["g0-chat-panel"].write(root)
    ids = [id for id in read_sessions(root) if id.endswith("shared-tab")]
    assert len(ids) == 2
    assert "shared-tab" in ids


def test_a_conversation_in_the_list_of_a_workspace_is_a_session(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=1)
    home.add_workspace(cursor.DOCS, is_bare_list=True)
    one = home.composer(MESSAGES, workspace=cursor.SHOP, is_in_workspace=True)
    two = home.composer(MESSAGES, workspace=cursor.DOCS, is_in_workspace=True)
    found = read_sessions(home.write())
    assert contents(found[one.id]) == contents(found[two.id]) == EXPECTED
    assert found[two.id].closing.workspace and found[two.id].closing.workspace.path == cursor.DOCS.path


def test_the_global_copy_of_a_session_is_used_unless_it_is_empty(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=1)
    composer = home.composer(MESSAGES, workspace=cursor.SHOP, is_in_workspace=True)
    home.put(composer.key, json.dumps({"composerId": composer.id, "conversation": []}))
    assert contents(read_session(home.write(), composer.id)) == EXPECTED
    home.put(composer.key, json.dumps({"conversation": [{"type": 1, "bubbleId": "x", "text": "global"}]}))
    assert contents(read_session(home.write(), composer.id)) == [("user", "global")]


def test_the_header_table_replaces_the_older_list(home: cursor.Home) -> None:
    composer = home.composer(MESSAGES, name="New name")
    old = {"composerId": composer.id, "name": "Old name"}
    dead = {"composerId": "dead0000-0000-4000-8000-00000000dead", "name": "Deleted long ago"}
    home.put_item("composer.composerHeaders", json.dumps({"allComposers": [old, dead]}))
    found = read_sessions(home.write())
    assert found.keys() == {composer.id}
    assert found[composer.id].closing.title == "New name"


def test_an_empty_header_table_replaces_the_older_list(home: cursor.Home) -> None:
    dead = {"composerId": "dead0000-0000-4000-8000-00000000dead", "name": "Deleted long ago"}
    home.put_item("composer.composerHeaders", json.dumps({"allComposers": [dead]}))
    assert read_sessions(home.write()) == {}


def test_a_header_table_that_was_never_filled_does_not_replace_the_list(home: cursor.Home) -> None:
    head = {"composerId": "9057e000-0000-4000-8000-00000000dead", "name": "Listed"}
    home.put_item("composer.composerHeaders", json.dumps({"allComposers": [head]}))
    with closing(sqlite3.connect(home.write() / "User/globalStorage/state.vscdb")) as db, db:
        db.execute("delete from ItemTable where key like 'composer.composerHeaders._%'")
    assert read_sessions(home.root).keys() == {head["composerId"]}


def test_a_damaged_header_row_loses_only_its_own_facts(home: cursor.Home) -> None:
    composer = home.composer(MESSAGES, name="In the record too")
    whole = home.composer(MESSAGES, name="Whole")
    cursor_damage.break_header(home.write() / "User/globalStorage/state.vscdb", composer.id)
    units = read_units(home.root)
    found = {session.opening.id: session for content in units.values() for session in content.sessions}
    assert contents(found[composer.id]) == contents(found[whole.id]) == EXPECTED
    assert found[composer.id].closing.title == "In the record too"
    (problem,) = [problem for content in units.values() for problem in content.problems]
    assert composer.id in problem.origin.place


def test_a_header_row_with_the_value_of_another_session_is_a_problem(home: cursor.Home) -> None:
    composer = home.composer(MESSAGES)
    cursor_damage.mismatch_header(home.write() / "User/globalStorage/state.vscdb", composer.id)
    units = read_units(home.root)
    assert [problem.reason for content in units.values() for problem in content.problems] == [
        "the row and its value are of different sessions"
    ]


@pytest.mark.parametrize("column", ["before", "after"])
def test_header_columns_are_found_by_name(tmp_path: Path, column: str) -> None:
    home = cursor.Home(tmp_path / "Cursor", is_upgraded=column == "after")
    assert write_and_read(home, *MESSAGES, name="Named").closing.title == "Named"


def test_titles_come_from_the_best_store(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / ".config/Cursor")
    ids = [home.composer(MESSAGES, name=None, has_graph=False).id for _ in range(3)]
    home.write()
    cursor.write_search(home.root, [(ids[0], "From the search", "body")])
    cursor.write_tracking(tmp_path / ".cursor", conversation=ids[1], title="From the summary")
    found = read_sessions(home.root)
    assert [(found[id].closing.title, found[id].closing.title_source) for id in ids] == [
        ("From the search", "conversation-search"),
        ("From the summary", "conversation_summaries"),
        ("Totals are off", "first message"),
    ]


def test_the_last_message_determines_the_time_of_the_last_change(home: cursor.Home) -> None:
    session = write_and_read(
        home, cursor.user("a", at=1_790_000_000_000), cursor.user("b", at=1_790_000_600_000)
    )
    assert session.closing.updated_at == session.messages[-1].timestamp


def test_a_rewritten_bubble_changes_only_the_fingerprint_of_its_session(home: cursor.Home) -> None:
    one, two, _ = home.composer(MESSAGES), home.composer(MESSAGES), home.composer(MESSAGES)
    home.write()
    before = fingerprints(home.root)
    cursor_damage.put(
        home.root / "User/globalStorage/state.vscdb", one.bubble_key(0), '{"type":1,"text":"x"}'
    )
    after = fingerprints(home.root)
    assert before[one.id] != after[one.id]
    assert before[two.id] == after[two.id]


def test_a_blob_written_after_its_session_changes_the_fingerprint(home: cursor.Home) -> None:
    home.composer(MESSAGES)
    composer = home.composer(MESSAGES)
    home.write()
    path = home.database
    with closing(sqlite3.connect(path)) as db, db:
        query = "select key, value from cursorDiskKV where key glob 'agentKv:blob:*' order by rowid"
        blobs = db.execute(query).fetchall()
        db.execute("delete from cursorDiskKV where key glob 'agentKv:blob:*'")
    before = fingerprints(home.root)
    assert fingerprints(home.root) == before
    cursor_damage.put(path, *blobs[-1])
    after = fingerprints(home.root)
    assert {id for id in before if id and before[id] != after[id]} == {composer.id}
    other = home.composer(MESSAGES)
    home.write()
    assert fingerprints(home.root)[composer.id] != after[composer.id]
    assert other.id in fingerprints(home.root)


def test_a_new_root_of_the_agent_record_changes_the_fingerprint(home: cursor.Home) -> None:
    composer = home.composer(MESSAGES)
    home.composer(MESSAGES)
    home.write()
    before = fingerprints(home.root)
    cursor_damage.put(home.database, f"agentKv:checkpoint:{composer.id}", "0" * 64)
    assert fingerprints(home.root)[composer.id] != before[composer.id]


def test_a_new_title_changes_the_fingerprint(home: cursor.Home) -> None:
    composer = home.composer(MESSAGES)
    home.write()
    before = fingerprints(home.root)
    path = home.root / "User/globalStorage/state.vscdb"
    cursor_damage.change_header(path, composer.id, lambda head: head | {"name": "Renamed"})
    assert before[composer.id] != fingerprints(home.root)[composer.id]


def fingerprints(root: Path) -> dict[Any, str]:
    source = Cursor()
    found = {unit.session_id: unit.fingerprint for unit in source.units(root)}
    source.close()
    return found
