"""Messages that a rewritten file no longer contains, and messages that two files of a session contain."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.model.message import Message
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript, fork, resume, tool_calls
from tests.archive.cursor_rows import execute, synced_cursor_home
from tests.archive.synced_archive import SyncedArchive
from tests.builders.cursor.session_kinds import best_of_n


@pytest.fixture
def synced(tmp_path: Path) -> SyncedArchive:
    (tmp_path / "root").mkdir()
    return SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")


def contents(messages: list[Message]) -> list[tuple[str, bool]]:
    return [(message.content, message.is_active) for message in messages]


def write_prompt_log(root: Path, session: str, words: str) -> None:
    line = {"display": words, "pastedContents": {}, "timestamp": 1_760_000_000_000, "sessionId": session}
    (root / "history.jsonl").write_text(json.dumps(line | {"project": "/home/zoe/ferry"}) + "\n", "utf-8")


def test_a_session_whose_file_was_emptied_stays_unchanged(synced: SyncedArchive) -> None:
    path = Transcript().user("where is the quay?").assistant("behind the dike").write(synced.root)
    write_prompt_log(synced.root, path.stem, "where is the quay?")
    synced.sync()
    before, found = synced.summaries()[0], synced.messages(path.stem)
    whole = path.read_bytes()
    path.write_bytes(b"")
    synced.sync()
    (after,) = synced.summaries()
    assert synced.messages(path.stem) == found
    assert (after.message_count, after.total_tokens) == (2, before.total_tokens)
    assert after.is_gone
    assert synced.archive.events.log(None).events[0].what == "overwritten"
    path.write_bytes(whole)
    synced.sync()
    (again,) = synced.summaries()
    assert synced.messages(path.stem) == found
    assert (again.message_count, again.total_tokens, again.is_gone) == (2, before.total_tokens, False)
    assert synced.archive.maintenance.verify() == []


def test_the_earlier_text_of_a_changed_record_stays(synced: SyncedArchive) -> None:
    path = Transcript().user("where is the quay?").assistant("behind the dike").write(synced.root)
    synced.sync()
    path.write_text(path.read_text("utf-8").replace("behind the dike", "[removed]"), "utf-8")
    synced.sync()
    assert contents(synced.messages(path.stem)) == [
        ("where is the quay?", True),
        ("[removed]", True),
        ("behind the dike", False),
    ]
    assert synced.summaries()[0].message_count == 2


def test_a_record_that_contains_its_earlier_text_replaces_it(synced: SyncedArchive) -> None:
    path = Transcript().user("where is the quay?").assistant("behind the dike").write(synced.root)
    synced.sync()
    path.write_text(path.read_text("utf-8").replace("behind the dike", "It is behind the dike."), "utf-8")
    synced.sync()
    assert contents(synced.messages(path.stem)) == [
        ("where is the quay?", True),
        ("It is behind the dike.", True),
    ]


@pytest.mark.parametrize("appends", [1, 3])
def test_a_record_changed_in_place_before_the_file_grew_is_detected(
    synced: SyncedArchive, appends: int
) -> None:
    session = Transcript().user("where is the quay? " + "x " * 3000).assistant("behind the dike")
    path = session.user("and the lamp? " + "y " * 3000).write(synced.root)
    for index in range(appends):
        path.write_bytes(session.assistant(f"wait {index}").lines())
        synced.sync()
    changed = session.assistant("on the pier").lines().replace(b"behind the dike", b"removed removed")
    with path.open("r+b") as file:
        file.write(changed)
    synced.sync()
    found = contents(synced.messages(path.stem))
    assert ("removed removed", True) in found
    assert ("behind the dike", False) in found
    assert synced.archive.originals.is_same_file(synced.archive.originals.units_with_file()[0].id, path)
    with closing(sqlite3.connect(synced.archive.path)) as db:
        assert db.execute("select count(distinct version) from raw_segment").fetchone() == (2,)


def test_a_session_that_was_moved_and_changed_has_its_new_and_its_earlier_text(synced: SyncedArchive) -> None:
    path = Transcript().user("where is the quay?").assistant("behind the dike").write(synced.root)
    synced.sync()
    moved = path.parent.with_name("-home-zoe-quay") / path.name
    path.parent.rename(moved.parent)
    moved.write_text(moved.read_text("utf-8").replace("behind the dike", "[removed]"), "utf-8")
    synced.sync()
    assert contents(synced.messages(path.stem)) == [
        ("where is the quay?", True),
        ("[removed]", True),
        ("behind the dike", False),
    ]
    (summary,) = synced.summaries()
    assert (summary.message_count, summary.is_gone) == (2, False)


def test_an_older_copy_of_a_session_adds_no_duplicates(synced: SyncedArchive) -> None:
    session = Transcript().user("list them").assistant(tools=[tool_calls.bash("ls")])
    older = session.write(synced.root)
    copy = older.parent.with_name("-home-zoe-copy") / older.name
    copy.parent.mkdir()
    shutil.copy2(older, copy)
    session.result(session.tool_ids[-1], "a b").assistant("two of them").write(synced.root)
    synced.sync()
    messages = synced.messages(older.stem)
    assert contents(messages) == [("list them", True), ("", True), ("two of them", True)]
    assert messages[1].tool is not None
    assert messages[1].tool.result == "a b"


def test_the_other_messages_stay_in_order_when_one_is_removed(synced: SyncedArchive) -> None:
    session = Transcript().user("first").wait(-3600).user("second").wait(-3600).user("third").user("fourth")
    path = session.write(synced.root)
    synced.sync()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    synced.sync()
    found = contents(synced.messages(path.stem))
    assert [words for words, is_active in found if is_active] == ["first", "second", "fourth"]
    assert ("third", False) in found


def test_the_tokens_of_removed_responses_still_count(synced: SyncedArchive) -> None:
    path = Transcript().user("first").assistant("one").user("second").assistant("two").write(synced.root)
    synced.sync()
    tokens, whole = synced.summaries()[0].total_tokens, path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for content in (lines[:2], lines[:1], lines[:2], lines):
        path.write_bytes(b"".join(content))
        synced.sync()
        assert synced.summaries()[0].total_tokens == tokens
    assert [message.content for message in synced.messages(path.stem)] == ["first", "one", "second", "two"]


def test_the_tokens_of_a_response_with_changed_text_count_once(synced: SyncedArchive) -> None:
    path = Transcript().user("where is the quay?").assistant("behind the dike").write(synced.root)
    synced.sync()
    tokens = synced.summaries()[0].total_tokens
    path.write_text(path.read_text("utf-8").replace("behind the dike", "[removed]"), "utf-8")
    synced.sync()
    assert len(synced.messages(path.stem)) == 3
    assert synced.summaries()[0].total_tokens == tokens


@pytest.mark.parametrize("is_first", [True, False])
def test_a_response_counts_in_the_same_session_whichever_was_read_first(
    synced: SyncedArchive, is_first: bool
) -> None:
    first = Transcript().user("list them").assistant(tools=[tool_calls.bash("ls")])
    second = resume(first, restamp=False)
    second.result(second.tool_ids[-1], "a b")
    for session in (first, second) if is_first else (second, first):
        session.write(synced.root)
        synced.sync()
    counted = {one.id for one in synced.summaries() if one.total_tokens}
    assert counted == {min(first.session_id, second.session_id)}


def test_a_message_that_only_a_copy_still_contains_counts_there(synced: SyncedArchive) -> None:
    first = Transcript().user("where is the quay?").assistant("behind the dike").user("and the lamp?")
    path = first.write(synced.root)
    second = resume(first).user("is it wet?").assistant("yes")
    second.write(synced.root)
    synced.sync()
    before = {one.id: (one.total_tokens, one.interaction_count) for one in synced.summaries()}
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    synced.sync()
    after = {one.id: (one.total_tokens, one.interaction_count) for one in synced.summaries()}
    assert sum(tokens or 0 for tokens, _ in after.values()) == sum(
        tokens or 0 for tokens, _ in before.values()
    )
    assert {id_: prompts for id_, (_, prompts) in before.items()} == {path.stem: 2, second.session_id: 1}
    assert {id_: prompts for id_, (_, prompts) in after.items()} == {path.stem: 1, second.session_id: 2}
    assert [message.copied_from for message in synced.messages(second.session_id)] == [path.stem, *[None] * 4]
    synced.archive.invalidate_derived()
    synced.archive.derive()
    assert {one.id: (one.total_tokens, one.interaction_count) for one in synced.summaries()} == after


@pytest.mark.parametrize("known", [None, "session", "subagent"])
def test_a_subagent_that_turns_out_to_belong_to_another_session_is_listed_only_there(
    synced: SyncedArchive, known: str | None
) -> None:
    session = Transcript(version="2.0.40").user("go").delegate("Look", "Seen.")
    path = session.write(synced.root).with_name(f"agent-{session.agents[0].agent_id}.jsonl")
    other = Transcript(seed=2, version="2.0.40").user("hello").delegate("Look again", "Nothing.")
    if known is not None:
        (other if known == "session" else other.agents[0]).write(synced.root)
    known_parents = {f"claude-code:{other.session_id}"} if known else set()
    right = path.read_text("utf-8")
    path.write_text(right.replace(session.session_id, other.session_id), "utf-8")
    synced.sync()
    assert f"claude-code:{other.session_id}" in {one.parent_ref for one in synced.summaries()}
    path.write_text(right, "utf-8")
    synced.sync()
    parents = {one.parent_ref for one in synced.summaries()}
    assert parents == {None, f"claude-code:{session.session_id}", *known_parents}
    assert sum(one.id == session.agents[0].agent_id for one in synced.summaries()) == 1
    assert (other.session_id in {one.id for one in synced.summaries()}) is (known is not None)


def test_the_earlier_text_of_a_changed_bubble_stays(tmp_path: Path) -> None:
    home, synced, composer = synced_cursor_home(tmp_path)
    other = "replace(value, 'Rounding now happens once.', 'Never mind.')"
    query = f"insert into cursorDiskKV select key, {other} from cursorDiskKV where key = ?"  # noqa: S608
    execute(home, query, composer.bubble_key(1))
    synced.sync()
    found = contents(synced.messages(composer.id))
    assert ("Rounding now happens once.", False) in found
    assert ("Never mind.", True) in found


def test_a_session_in_two_folders_counts_once(synced: SyncedArchive) -> None:
    transcript = (
        Transcript(cwd="/home/zoe/ferry")
        .user("look")
        .run(tool_calls.edit("/a.py", "one", "two", original="one\n"))
    )
    transcript.delegate("look at the quay", "it is wet", calls=[tool_calls.bash("tide", "low")])
    path = transcript.write(synced.root)
    synced.sync()
    once = {one.ref: one for one in synced.summaries()}
    shutil.copytree(path.parent, synced.root / "projects" / "-copied")
    synced.sync()
    twice = {one.ref: one for one in synced.summaries()}
    for ref, one in once.items():
        for name in ("message_count", "interaction_count", "total_tokens", "total_changes"):
            assert getattr(twice[ref], name) == getattr(one, name), (ref, name)
    tools = "select tool_sequence, acceptance_decisions from conversations"
    files = synced.archive.originals.write_session(path.stem, synced.root.parent / "back")
    assert [file.read_bytes() for file in files if file.name == path.name] == [path.read_bytes()] * 2
    (sequence, decisions) = synced.archive._db.execute(tools).fetchone()
    assert len(json.loads(sequence)) == 2
    assert len(json.loads(decisions)) <= 1


@pytest.mark.parametrize("order", [1, -1])
def test_two_folders_of_a_session_give_the_same_result_in_either_order(
    order: int, synced: SyncedArchive
) -> None:
    path = Transcript(cwd="/home/zoe/ferry").user("look").assistant("seen").write(synced.root)
    other = synced.root / "projects" / "-another" / path.name
    other.parent.mkdir()
    paths = [path, other][::order]
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.unlink()
    for each in paths:
        each.write_text("".join(lines).replace("seen", f"seen in {each.parent.name}"), "utf-8")
        synced.sync()
    assert contents(synced.messages(path.stem))[1] == (f"seen in {other.parent.name}", True)


def test_a_file_that_was_replaced_or_changed_in_the_middle_is_read_from_the_start(
    synced: SyncedArchive, tmp_path: Path
) -> None:
    transcript = Transcript()
    for index in range(40):
        transcript.user(f"question {index} {'word ' * 40}").assistant(f"answer <{index:02}> {'word ' * 40}")
    path = transcript.write(synced.root)
    synced.sync()
    replaced = tmp_path / "replaced.jsonl"
    replaced.write_bytes(path.read_bytes().replace(b"<20>", b"[20]") + b"\n")
    replaced.replace(path)
    assert synced.sync().rewritten == 1
    found = [
        words.split(" word")[0] for words, is_active in contents(synced.messages(path.stem)) if is_active
    ]
    assert "answer [20]" in found
    assert "answer <20>" not in found
    with path.open("r+b") as file:
        file.seek(path.read_bytes().index(b"<30>"))
        file.write(b"[30]")
    assert synced.sync().rewritten == 1
    (summary,) = synced.summaries()
    assert summary.message_count == 80
    assert len(synced.messages(path.stem)) == 82


def test_the_record_counts_of_a_file_that_grew_equal_those_of_the_whole_file(
    synced: SyncedArchive, tmp_path: Path
) -> None:
    path = (
        Transcript()
        .user("one")
        .run(tool_calls.bash("ls", "a"))
        .assistant("two")
        .user("three")
        .write(synced.root)
    )
    lines = path.read_bytes().splitlines(keepends=True)
    counts_query = "select record_counts from unit"
    for line in range(len(lines)):
        path.write_bytes(b"".join(lines[:line]) + lines[line][:20])
        synced.sync()
    path.write_bytes(b"".join(lines))
    synced.sync()
    whole = SyncedArchive("claude-code", synced.root, tmp_path / "whole")
    whole.sync()
    expected = json.loads(whole.archive._db.execute(counts_query).fetchone()[0])
    assert json.loads(synced.archive._db.execute(counts_query).fetchone()[0]) == expected
    assert expected["records"] == len(lines)


def test_an_attempt_whose_parent_arrives_later_is_stored_once(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    parent = best_of_n(home)
    home.write()
    key = f"composerData:{parent}"
    with closing(sqlite3.connect(home.database)) as db, db:
        row = db.execute("select * from cursorDiskKV where key = ?", [key]).fetchone()
        db.execute("delete from cursorDiskKV where key = ?", [key])
    synced = SyncedArchive("cursor", tmp_path / "root", tmp_path / "home")
    synced.sync()
    with closing(sqlite3.connect(home.database)) as db, db:
        db.execute("insert into cursorDiskKV values (?, ?)", row)
    synced.sync()
    fresh = SyncedArchive("cursor", tmp_path / "root", tmp_path / "fresh")
    fresh.sync()
    assert synced.content() == fresh.content()


def test_a_subagent_is_found_when_its_session_is_gone(synced: SyncedArchive) -> None:
    transcript = Transcript(cwd="/home/zoe/ferry").user("look")
    transcript.delegate("look at the quay", "it is wet", calls=[tool_calls.bash("tide", "low")])
    path = transcript.write(synced.root)
    whole = path.read_bytes()
    path.unlink()
    synced.sync()
    left = {one.parent_ref: one for one in synced.summaries()}
    stub = left[None]
    assert (stub.id, stub.message_count, stub.completeness) == (path.stem, 0, "lossy")
    assert (stub.workspace_path, stub.is_gone) == ("/home/zoe/ferry", True)
    assert stub.title == left[stub.ref].title
    assert contents(synced.messages(left[stub.ref].id))[0] == ("look at the quay", True)
    path.write_bytes(whole)
    synced.sync()
    fresh = SyncedArchive("claude-code", synced.root, synced.root.parent / "fresh")
    fresh.sync()
    assert synced.content() == fresh.content()
    path.unlink()
    synced.sync()
    synced.archive.maintenance.forget(stub)
    synced.sync()
    assert synced.summaries() == []


def test_a_new_prompt_in_the_log_changes_no_other_session(synced: SyncedArchive) -> None:
    paths = [
        Transcript(seed=seed).user(f"question {seed}").assistant("yes").write(synced.root)
        for seed in range(5)
    ]
    log = ""
    for index, path in enumerate(paths):
        write_prompt_log(synced.root, path.stem, f"question {index}")
        log += (synced.root / "history.jsonl").read_text("utf-8")
    (synced.root / "history.jsonl").write_text(log, "utf-8")
    synced.sync()
    before = synced.content()
    synced.archive.index_queue.mark_done(synced.archive.index_queue.next_jobs(100))
    write_prompt_log(synced.root, paths[2].stem, "and another one")
    more = (synced.root / "history.jsonl").read_text("utf-8")
    (synced.root / "history.jsonl").write_text(log + more, "utf-8")
    assert synced.sync().sessions == 1
    assert synced.archive.index_queue.next_jobs(100) == []
    assert synced.content() == before
    with paths[2].open("a", encoding="utf-8") as file:
        last = json.loads(paths[2].read_text("utf-8").splitlines()[-1])
        last |= {"uuid": "10000000-0000-4000-8000-000000000009", "parentUuid": last["uuid"]}
        file.write(json.dumps(last) + "\n")
    synced.sync()
    assert [job.first_position for job in synced.archive.index_queue.next_jobs(100)] == [2]


def test_a_fact_filled_in_from_another_fragment_has_that_fragments_source(synced: SyncedArchive) -> None:
    path = Transcript().user("where is the quay?").write(synced.root)
    write_prompt_log(synced.root, path.stem, "where is the quay?")
    line = json.loads(path.read_text("utf-8").splitlines()[0])
    del line["timestamp"]
    path.write_text(json.dumps(line) + "\n", "utf-8")
    synced.sync()
    query = "select started_at, metadata ->> 'started_at_source' from conversations"
    assert synced.archive._db.execute(query).fetchone() == ("2025-10-09T08:53:20.000Z", "stored")


def test_a_failure_stays_when_its_line_is_removed(synced: SyncedArchive) -> None:
    path = (
        Transcript()
        .user("go")
        .run(tool_calls.bash("make", "").failed("no rule to make it"))
        .write(synced.root)
    )
    synced.sync()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    synced.sync()
    results = [(one.tool.result, one.is_active) for one in synced.messages(path.stem) if one.tool is not None]
    assert results == [(None, True), ("<tool_use_error>no rule to make it</tool_use_error>", False)]


def test_a_title_stays_when_its_line_is_removed(synced: SyncedArchive) -> None:
    session = Transcript(version="1.0.98").user("where is the quay?").assistant("behind the dike")
    path = session.summary("Finding the quay", session.last_uuid).write(synced.root)
    synced.sync()
    whole = path.read_bytes()
    for left in (b"".join(whole.splitlines(keepends=True)[:-1]), b"", whole.replace(b"quay?", b"ferry?")):
        path.write_bytes(left)
        synced.sync()
        assert synced.summaries()[0].title == "Finding the quay"
    path.write_bytes(whole.replace(b"Finding the quay", b"Where ships lie"))
    synced.sync()
    assert synced.summaries()[0].title == "Where ships lie"


def test_a_session_with_only_subagent_lines_left_is_still_listed(synced: SyncedArchive) -> None:
    session = Transcript(version="1.0.98")
    with session.sidechain("count the ferries"):
        session.assistant("three")
    first = len(session.records)
    path = session.user("where is the quay?").assistant("behind the dike").write(synced.root)
    synced.sync()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:first]))
    synced.sync()
    (found,) = synced.summaries(with_subagents=False)
    assert found.id == path.stem
    assert ("where is the quay?", False) in contents(synced.messages(path.stem))


def test_a_tool_result_without_its_call_stays_in_its_position(synced: SyncedArchive, tmp_path: Path) -> None:
    session = (
        Transcript().run(tool_calls.bash("make", "done")).assistant("made").user("thanks").assistant("bye")
    )
    del session.records[0]
    path = session.write(synced.root)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    synced.sync()
    path.write_bytes(whole)
    synced.sync()
    found = synced.messages(path.stem)
    assert [one.tool.result if one.tool else one.content for one in found] == [
        "done",
        "made",
        "thanks",
        "bye",
    ]
    fresh = SyncedArchive("claude-code", synced.root, tmp_path / "fresh")
    fresh.sync()
    assert fresh.content() == synced.content()


def test_a_prompt_read_while_queued_is_one_message_after_delivery(synced: SyncedArchive) -> None:
    session = Transcript(version="2.1.50").user("go").assistant("going").queue("enqueue", "and the winter?")
    path = session.write(synced.root)
    synced.sync()
    assert contents(synced.messages(path.stem))[-1] == ("and the winter?", True)
    session.queue("dequeue").user("and the winter?").assistant("cold").write(synced.root)
    synced.sync()
    found = synced.messages(path.stem)
    assert contents(found) == [("go", True), ("going", True), ("and the winter?", True), ("cold", True)]
    assert [one.kind for one in found] == [None] * 4
    assert synced.summaries()[0].interaction_count == 2
    assert synced.archive.maintenance.verify() == []


def test_a_response_that_continues_after_it_was_copied_has_the_same_usage_everywhere(
    synced: SyncedArchive,
) -> None:
    def spent(output: int) -> dict[str, int]:
        return {"input_tokens": 1, "output_tokens": output}

    first = Transcript(version="1.0.98").user("go").assistant("one", message_id="msg_1", usage=spent(30))
    path = first.write(synced.root)
    second = resume(first).user("on").assistant("two", message_id="msg_2", usage=spent(5))
    second.write(synced.root)
    synced.sync()
    first.assistant("more", message_id="msg_1", usage=spent(285)).write(synced.root)
    synced.sync()
    found = {one.id: one.total_tokens for one in synced.summaries()}
    assert found == {path.stem: 286, second.session_id: 6}
    costs = [one.usage.output_tokens for one in synced.messages(second.session_id) if one.usage is not None]
    assert costs == [285, 5]


def test_a_subagent_file_that_names_its_parent_late_is_one_fragment(
    synced: SyncedArchive, tmp_path: Path
) -> None:
    session = Transcript(version="2.0.64").user("go")
    agent = session.subagent("count the ferries")
    agent.assistant("three").user("and the boats?").assistant("none")
    path = agent.write(synced.root)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    del lines[0]["sessionId"]
    whole = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(whole[: whole.index("\n") + 1], "utf-8")
    synced.sync()
    path.write_text(whole, "utf-8")
    synced.sync()
    fresh = SyncedArchive("claude-code", synced.root, tmp_path / "fresh")
    fresh.sync()
    assert fresh.content() == synced.content()
    assert [one.content for one in synced.messages(agent.path(synced.root).stem.removeprefix("agent-"))] == [
        "count the ferries",
        "three",
        "and the boats?",
        "none",
    ]


@pytest.mark.parametrize("remap", [True, False])
def test_messages_copied_by_a_fork_belong_to_it_until_the_original_session_is_read(
    synced: SyncedArchive, tmp_path: Path, remap: bool
) -> None:
    first = Transcript().user("where is the lighthouse?").assistant("behind the dike")
    second = fork(first, remap=remap).user("and the quay?").assistant("beside it")
    second.write(synced.root)
    synced.sync()
    (alone,) = synced.summaries()
    assert alone.interaction_count == 2
    assert {one.copied_from for one in synced.messages(second.session_id)} == {None}
    path = first.write(synced.root)
    synced.sync()
    found = {one.id: one.interaction_count for one in synced.summaries()}
    assert found == {path.stem: 1, second.session_id: 1}
    copied = [one.copied_from for one in synced.messages(second.session_id)]
    assert copied == [path.stem, path.stem, None, None]
    fresh = SyncedArchive("claude-code", synced.root, tmp_path / "fresh")
    fresh.sync()
    assert fresh.content() == synced.content()
    path.unlink()
    synced.sync()
    assert [one.copied_from for one in synced.messages(second.session_id)] == copied


@pytest.mark.parametrize("message_count", [1, 3, pytest.param(450, marks=pytest.mark.soak)])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_queued_prompt_is_in_its_final_place_however_often_the_file_is_read(
    synced: SyncedArchive, tmp_path: Path, message_count: int, is_first: bool
) -> None:
    """The messages between the queue operation and the delivery do not follow the prompt."""
    session = Transcript(version="2.1.212")
    if not is_first:
        session.user("go").assistant("working")
    session.queue("enqueue", "and the lamp?")
    cuts = [len(session.lines())]
    if is_first:
        session.user("is it wet?")
    for number in range(message_count):
        session.assistant(f"step {number}", tools=[tool_calls.bash("ls")])
        cuts.append(len(session.lines()))
        session.result(session.tool_ids[-1], f"result {number}")
    cuts.append(len(session.lines()))
    session.queue("dequeue").user("and the lamp?").assistant("on the pier")
    path = session.write(synced.root)
    synced.sync()
    expected, summary = synced.messages(path.stem), synced.summaries()[0]
    assert sum(message.content == "and the lamp?" for message in expected) == 1

    again = SyncedArchive("claude-code", tmp_path / "root2", tmp_path / "home2")
    again.root.mkdir()
    copy = session.write(again.root)
    whole = copy.read_bytes()
    for cut in (*cuts[:2], *cuts[-2:], len(whole)):
        copy.write_bytes(whole[:cut])
        again.sync()
    found, summary_again = again.messages(path.stem), again.summaries()[0]
    assert [message.content for message in found] == [message.content for message in expected]
    assert [message.tool and message.tool.result for message in found] == [
        message.tool and message.tool.result for message in expected
    ]
    for name in ("title", "first_message_preview", "message_count", "interaction_count", "total_tokens"):
        assert getattr(summary_again, name) == getattr(summary, name)
    assert again.archive.maintenance.verify() == []
