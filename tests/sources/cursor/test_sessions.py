"""Which sessions there are, in which order they were said, and where they stand."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backscroll.sources.cursor import Cursor
from backscroll.testing import cursor
from tests.sources.cursor.reading import converse, read, read_one, said, tell

TALK = [cursor.user("Totals are off"), cursor.assistant("Rounding now happens once.")]
SAID = [("user", "Totals are off"), ("assistant", "Rounding now happens once.")]


@pytest.fixture
def home(tmp_path: Path) -> cursor.Home:
    return cursor.Home(tmp_path / "Cursor")


@pytest.mark.parametrize("generation", [1, 2, 3, 4, 5])
def test_a_conversation_of_every_generation_comes_back(tmp_path: Path, generation: int) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=generation)
    reading = converse(home, *TALK, name="Fix totals")
    assert said(reading) == SAID
    assert reading.opening.store == ("inline" if generation == 1 else "bubbles")
    assert (reading.closing.title, reading.closing.visibility) == ("Fix totals", "listed")
    assert reading.closing.completeness == "complete"
    assert reading.closing.workspace and reading.closing.workspace.path == "/home/dev/shop"


@pytest.mark.parametrize("generation", [1, 2, 3, 4])
def test_old_sessions_are_read_beside_new_ones(home: cursor.Home, generation: int) -> None:
    home.composer(TALK, name="New")
    assert said(converse(home, *TALK, name="Old", generation=generation)) == SAID


def test_the_kinds_of_session_are_told_apart(home: cursor.Home) -> None:
    ids = {name: add(home) for name, add in cursor.KINDS.items()}
    found = read(home.write())
    standing = {name: found[id].closing.visibility for name, id in ids.items()}
    assert standing == {
        "archived": "archived",
        "best_of_n": "listed",
        "both_lists": "listed",
        "circle": "listed",
        "cloud": "ghost",
        "draft": "draft",
        "emptied": "deleted",
        "ghost": "ghost",
        "hex_blobs": "listed",
        "keyless": "listed",
        "orphan_bubbles": "listed",
        "placeholder": "placeholder",
        "rich_only": "listed",
        "subagent": "listed",
        "task": "listed",
        "tombstone": "deleted",
        "unlisted": "listed",
        "windowless": "listed",
        "with_gaps": "listed",
        "worktree": "listed",
    }
    assert found[ids["draft"]].closing.metadata["unsent_text"] == "half a thought"
    assert found[ids["unlisted"]].closing.metadata["in_index"] is False


def test_the_list_decides_the_order_and_keeps_the_place_of_what_is_gone(home: cursor.Home) -> None:
    id = cursor.KINDS["with_gaps"](home)
    reading = read_one(home.write(), id)
    assert said(reading) == [("user", "first words"), ("assistant", "lost wor"), ("assistant", "last words")]
    assert [message.kind for message in reading.messages] == [None, "missing", None, "orphan"]
    assert said(reading, is_active=False) == [("assistant", "words rewound")]
    assert reading.closing.completeness == "partial"


def test_bubbles_without_a_list_are_ordered_by_their_times(home: cursor.Home) -> None:
    late, early = cursor.user("late", at=1_790_000_009_000), cursor.user("early", at=1_790_000_001_000)
    made = home.composer([late, early])
    cursor.damage.null_headers(home.write() / "User/globalStorage/state.vscdb", made.id)
    reading = read_one(home.root, made.id)
    assert said(reading) == [("user", "early"), ("user", "late")]
    assert reading.closing.reasons == ("the order of messages is inferred from their times",)


def test_a_bubble_named_twice_is_told_once(home: cursor.Home) -> None:
    made = home.composer(TALK)
    cursor.damage.double_header(home.write() / "User/globalStorage/state.vscdb", made.id)
    assert said(read_one(home.root, made.id)) == SAID


def test_a_bubble_is_what_its_key_says(home: cursor.Home) -> None:
    made = home.composer(TALK)
    cursor.damage.mismatch_bubble(home.write() / "User/globalStorage/state.vscdb", made.bubble_key(0))
    assert said(read_one(home.root, made.id)) == SAID


def test_a_body_inside_the_sessions_record_stands_in_for_a_lost_row(home: cursor.Home) -> None:
    id = cursor.KINDS["both_lists"](home)
    assert said(read_one(home.write(), id)) == [("user", "in both"), ("assistant", "only inline")]


def test_a_body_in_the_conversation_map_stands_in_too(home: cursor.Home) -> None:
    made = home.composer([cursor.user("here"), cursor.missing(cursor.assistant("mapped"))], has_graph=False)
    body = {"type": 2, "text": "mapped"}
    key = made.bubble_key(1).rpartition(":")[2]
    home.put(made.key, json.dumps({**made.data, "conversationMap": {key: body}}))
    assert said(read_one(home.write(), made.id)) == [("user", "here"), ("assistant", "mapped")]


def test_a_record_of_50_megabytes_is_no_burden(home: cursor.Home) -> None:
    made = home.composer(TALK)
    cursor.damage.swell(home.write() / "User/globalStorage/state.vscdb", made.id, megabytes=50)
    assert said(read_one(home.root, made.id)) == SAID


def test_a_list_of_3000_messages_is_told_whole(home: cursor.Home) -> None:
    reading = converse(home, *[cursor.assistant(f"word {n}") for n in range(3000)], has_graph=False)
    assert said(reading) == [("assistant", f"word {n}") for n in range(3000)]


def test_a_summary_follows_the_last_message_it_stands_for(home: cursor.Home) -> None:
    first = cursor.Message("user", "first", id="b1")
    summary = {"summary": {"summary": "So far: first.", "truncationLastBubbleIdInclusive": "b1"}}
    reading = converse(home, first, cursor.user("second"), data={"latestConversationSummary": summary})
    assert [(message.content, message.kind) for message in reading.messages] == [
        ("first", None),
        ("So far: first.", "compaction"),
        ("second", None),
    ]


def test_a_subagent_knows_its_parent_and_the_call_that_started_it(home: cursor.Home) -> None:
    parent = cursor.KINDS["subagent"](home)
    told = tell(home.write())
    found = {reading.opening.id: reading for each in told.values() for reading in each.sessions}
    (child,) = found[parent].closing.child_ids
    opening, closing_ = found[child].opening, found[child].closing
    assert (opening.agent_id, opening.parent_id) == (child, parent)
    (agent,) = closing_.agents
    assert (agent.kind, agent.prompt, agent.parent_session_id) == ("explore", "Where is it rounded?", parent)
    (link,) = [link for each in told.values() for link in each.links]
    call = next(message.tool for message in found[parent].messages if message.tool)
    assert (link.agent_id, link.tool_call_id) == (child, call.id)
    assert {unit.session_id: unit.kind for unit in told}[child] == "agent"


def test_an_old_task_is_linked_by_the_call_in_its_own_id(home: cursor.Home) -> None:
    parent = cursor.KINDS["task"](home)
    told = tell(home.write())
    (link,) = [link for each in told.values() for link in each.links]
    found = {reading.opening.id: reading for each in told.values() for reading in each.sessions}
    call = next(message.tool for message in found[parent].messages if message.tool)
    assert (link.agent_id, link.tool_call_id) == (f"task-{call.id}", call.id)
    assert found[f"task-{call.id}"].opening.agent_id == f"task-{call.id}"


def test_the_attempts_of_a_best_of_n_run_are_children(home: cursor.Home) -> None:
    parent = cursor.KINDS["best_of_n"](home)
    found = read(home.write())
    children = found[parent].closing.child_ids
    assert len(children) == 3
    assert [found[child].closing.metadata["best_of_n"] for child in children] == [
        "loser",
        "winner",
        "loser",
    ]
    assert all(found[child].opening.agent_id == child for child in children)


def test_sessions_that_started_each_other_are_nobodys_children(home: cursor.Home) -> None:
    id = cursor.KINDS["circle"](home)
    opening = read_one(home.write(), id).opening
    assert (opening.agent_id, opening.parent_id) == (None, None)


def test_tabs_of_the_chat_panel_are_sessions(tmp_path: Path) -> None:
    root = tmp_path / "Cursor"
    cursor.GENERATIONS["g0-chat-panel"].write(root)
    found = {reading.closing.title: reading for reading in read(root).values()}
    spoken = [said(reading) for reading in read(root).values()]
    assert [("user", "match dates?"), ("assistant", "Use a group for each part.")] in spoken
    assert said(found["Odd spellings"]) == [
        ("user", "typed in the editor"),
        ("assistant", "answer in text"),
        ("user", "said through a delegate"),
        ("assistant", "answer with a picture"),
        ("user", "about this"),
    ]
    kinds = [[each.kind for each in message.attachments] for message in found["Odd spellings"].messages]
    assert kinds == [[], [], [], ["image"], ["selection"]]
    assert said(found["Global"]) == [("user", "asked without a workspace")]
    assert all(reading.opening.store == "chat" for reading in found.values())


def test_two_workspaces_may_hold_a_tab_of_the_same_id(tmp_path: Path) -> None:
    root = tmp_path / "Cursor"
    cursor.GENERATIONS["g0-chat-panel"].write(root)
    ids = [id for id in read(root) if id.endswith("shared-tab")]
    assert len(ids) == 2
    assert "shared-tab" in ids


def test_a_conversation_in_its_workspaces_list_is_a_session(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=1)
    home.workspace(cursor.DOCS, is_bare_list=True)
    one = home.composer(TALK, workspace=cursor.SHOP, is_in_workspace=True)
    two = home.composer(TALK, workspace=cursor.DOCS, is_in_workspace=True)
    found = read(home.write())
    assert said(found[one.id]) == said(found[two.id]) == SAID
    assert found[two.id].closing.workspace and found[two.id].closing.workspace.path == cursor.DOCS.path


def test_the_global_copy_of_a_session_wins_unless_it_is_empty(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor", generation=1)
    made = home.composer(TALK, workspace=cursor.SHOP, is_in_workspace=True)
    home.put(made.key, json.dumps({"composerId": made.id, "conversation": []}))
    assert said(read_one(home.write(), made.id)) == SAID
    home.put(made.key, json.dumps({"conversation": [{"type": 1, "bubbleId": "x", "text": "global"}]}))
    assert said(read_one(home.write(), made.id)) == [("user", "global")]


def test_the_table_is_believed_and_the_frozen_list_is_not(home: cursor.Home) -> None:
    made = home.composer(TALK, name="New name")
    old = {"composerId": made.id, "name": "Old name"}
    dead = {"composerId": "dead0000-0000-4000-8000-00000000dead", "name": "Deleted long ago"}
    home.put_item("composer.composerHeaders", json.dumps({"allComposers": [old, dead]}))
    found = read(home.write())
    assert found.keys() == {made.id}
    assert found[made.id].closing.title == "New name"


def test_an_empty_table_does_not_bring_the_frozen_list_back(home: cursor.Home) -> None:
    dead = {"composerId": "dead0000-0000-4000-8000-00000000dead", "name": "Deleted long ago"}
    home.put_item("composer.composerHeaders", json.dumps({"allComposers": [dead]}))
    assert read(home.write()) == {}


def test_a_table_that_was_never_filled_leaves_the_list_in_force(home: cursor.Home) -> None:
    head = {"composerId": "9057e000-0000-4000-8000-00000000dead", "name": "Listed"}
    home.put_item("composer.composerHeaders", json.dumps({"allComposers": [head]}))
    with closing(sqlite3.connect(home.write() / "User/globalStorage/state.vscdb")) as db, db:
        db.execute("delete from ItemTable where key like 'composer.composerHeaders._%'")
    assert read(home.root).keys() == {head["composerId"]}


def test_a_broken_row_of_the_table_costs_only_what_it_said(home: cursor.Home) -> None:
    made = home.composer(TALK, name="In the record too")
    whole = home.composer(TALK, name="Whole")
    cursor.damage.break_header(home.write() / "User/globalStorage/state.vscdb", made.id)
    told = tell(home.root)
    found = {reading.opening.id: reading for each in told.values() for reading in each.sessions}
    assert said(found[made.id]) == said(found[whole.id]) == SAID
    assert found[made.id].closing.title == "In the record too"
    (problem,) = [problem for each in told.values() for problem in each.problems]
    assert made.id in problem.origin.place


def test_a_row_of_the_table_about_another_session_is_a_problem(home: cursor.Home) -> None:
    made = home.composer(TALK)
    cursor.damage.mismatch_header(home.write() / "User/globalStorage/state.vscdb", made.id)
    told = tell(home.root)
    assert [problem.reason for each in told.values() for problem in each.problems] == [
        "the row is of another session than its value"
    ]


@pytest.mark.parametrize("column", ["before", "after"])
def test_columns_are_found_by_name(tmp_path: Path, column: str) -> None:
    home = cursor.Home(tmp_path / "Cursor", is_upgraded=column == "after")
    assert converse(home, *TALK, name="Named").closing.title == "Named"


def test_titles_come_from_the_next_best_store(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / ".config/Cursor")
    ids = [home.composer(TALK, name=None, has_graph=False).id for _ in range(3)]
    home.write()
    cursor.write_search(home.root, [(ids[0], "From the search", "body")])
    cursor.write_tracking(tmp_path / ".cursor", conversation=ids[1], title="From the summary")
    found = read(home.root)
    assert [(found[id].closing.title, found[id].closing.title_source) for id in ids] == [
        ("From the search", "conversation-search"),
        ("From the summary", "conversation_summaries"),
        ("Totals are off", "first message"),
    ]


def test_a_session_ends_with_its_last_message_when_its_record_lags(home: cursor.Home) -> None:
    reading = converse(home, cursor.user("a", at=1_790_000_000_000), cursor.user("b", at=1_790_000_600_000))
    assert reading.closing.updated_at == reading.messages[-1].timestamp


def test_a_rewritten_bubble_changes_the_mark_of_its_session_only(home: cursor.Home) -> None:
    one, two, _ = home.composer(TALK), home.composer(TALK), home.composer(TALK)
    home.write()
    before = marks(home.root)
    cursor.damage.put(
        home.root / "User/globalStorage/state.vscdb", one.bubble_key(0), '{"type":1,"text":"x"}'
    )
    after = marks(home.root)
    assert before[one.id] != after[one.id]
    assert before[two.id] == after[two.id]


def test_a_blob_that_is_written_after_the_session_that_names_it_changes_its_mark(home: cursor.Home) -> None:
    home.composer(TALK)
    made = home.composer(TALK)
    home.write()
    path = home.database
    with closing(sqlite3.connect(path)) as db, db:
        query = "select key, value from cursorDiskKV where key glob 'agentKv:blob:*' order by rowid"
        blobs = db.execute(query).fetchall()
        db.execute("delete from cursorDiskKV where key glob 'agentKv:blob:*'")
    before = marks(home.root)
    assert marks(home.root) == before
    cursor.damage.put(path, *blobs[-1])
    after = marks(home.root)
    assert {id for id in before if id and before[id] != after[id]} == {made.id}
    other = home.composer(TALK)
    home.write()
    assert marks(home.root)[made.id] != after[made.id]
    assert other.id in marks(home.root)


def test_another_root_of_the_agents_record_changes_the_mark(home: cursor.Home) -> None:
    made = home.composer(TALK)
    home.composer(TALK)
    home.write()
    before = marks(home.root)
    cursor.damage.put(home.database, f"agentKv:checkpoint:{made.id}", "0" * 64)
    assert marks(home.root)[made.id] != before[made.id]


def test_a_new_title_changes_the_mark(home: cursor.Home) -> None:
    made = home.composer(TALK)
    home.write()
    before = marks(home.root)
    path = home.root / "User/globalStorage/state.vscdb"
    cursor.damage.change_header(path, made.id, lambda head: head | {"name": "Renamed"})
    assert before[made.id] != marks(home.root)[made.id]


def marks(root: Path) -> dict[Any, str]:
    source = Cursor()
    found = {unit.session_id: unit.fingerprint for unit in source.units(root)}
    source.close()
    return found
