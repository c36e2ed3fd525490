"""What a unit told before it was rewritten, and what two files of one session hold both."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.model import Message
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript, fork, resume, tool_calls
from backscroll.testing.cursor.session_kinds import best_of_n
from tests.archive.keeping import Kept
from tests.archive.kept import change, home_with


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    (tmp_path / "root").mkdir()
    return Kept("claude-code", tmp_path / "root", tmp_path / "home")


def said(messages: list[Message]) -> list[tuple[str, bool]]:
    return [(message.content, message.is_active) for message in messages]


def typed(root: Path, session: str, words: str) -> None:
    line = {"display": words, "pastedContents": {}, "timestamp": 1_760_000_000_000, "sessionId": session}
    (root / "history.jsonl").write_text(json.dumps(line | {"project": "/home/zoe/ferry"}) + "\n", "utf-8")


def test_a_session_whose_file_was_emptied_is_told_as_it_was(kept: Kept) -> None:
    path = Transcript().user("where is the quay?").assistant("behind the dike").write(kept.root)
    typed(kept.root, path.stem, "where is the quay?")
    kept.sync()
    before, told = kept.summaries()[0], kept.messages(path.stem)
    whole = path.read_bytes()
    path.write_bytes(b"")
    kept.sync()
    (after,) = kept.summaries()
    assert kept.messages(path.stem) == told
    assert (after.message_count, after.total_tokens) == (2, before.total_tokens)
    assert after.is_gone
    assert kept.archive.events.log(None).fates[0].what == "overwritten"
    path.write_bytes(whole)
    kept.sync()
    (again,) = kept.summaries()
    assert kept.messages(path.stem) == told
    assert (again.message_count, again.total_tokens, again.is_gone) == (2, before.total_tokens, False)
    assert kept.archive.maintenance.verify() == []


def test_what_a_record_said_before_it_was_changed_stays(kept: Kept) -> None:
    path = Transcript().user("where is the quay?").assistant("behind the dike").write(kept.root)
    kept.sync()
    path.write_text(path.read_text("utf-8").replace("behind the dike", "[removed]"), "utf-8")
    kept.sync()
    assert said(kept.messages(path.stem)) == [
        ("where is the quay?", True),
        ("[removed]", True),
        ("behind the dike", False),
    ]
    assert kept.summaries()[0].message_count == 2


def test_a_record_that_says_more_takes_the_place_of_what_it_said(kept: Kept) -> None:
    path = Transcript().user("where is the quay?").assistant("behind the dike").write(kept.root)
    kept.sync()
    path.write_text(path.read_text("utf-8").replace("behind the dike", "It is behind the dike."), "utf-8")
    kept.sync()
    assert said(kept.messages(path.stem)) == [("where is the quay?", True), ("It is behind the dike.", True)]


@pytest.mark.parametrize("appends", [1, 3])
def test_a_record_that_was_changed_in_its_place_before_the_file_grew_is_noticed(
    kept: Kept, appends: int
) -> None:
    session = Transcript().user("where is the quay? " + "x " * 3000).assistant("behind the dike")
    path = session.user("and the lamp? " + "y " * 3000).write(kept.root)
    for number in range(appends):
        path.write_bytes(session.assistant(f"wait {number}").lines())
        kept.sync()
    changed = session.assistant("on the pier").lines().replace(b"behind the dike", b"removed removed")
    with path.open("r+b") as file:
        file.write(changed)
    kept.sync()
    told = said(kept.messages(path.stem))
    assert ("removed removed", True) in told
    assert ("behind the dike", False) in told
    assert kept.archive.originals.is_same_file(kept.archive.originals.units_with_file()[0], path)
    with closing(sqlite3.connect(kept.archive.path)) as db:
        assert db.execute("select count(distinct version) from raw_segment").fetchone() == (2,)


def test_a_session_that_was_moved_and_changed_tells_what_it_says_now_and_what_it_said(kept: Kept) -> None:
    path = Transcript().user("where is the quay?").assistant("behind the dike").write(kept.root)
    kept.sync()
    moved = path.parent.with_name("-home-zoe-quay") / path.name
    path.parent.rename(moved.parent)
    moved.write_text(moved.read_text("utf-8").replace("behind the dike", "[removed]"), "utf-8")
    kept.sync()
    assert said(kept.messages(path.stem)) == [
        ("where is the quay?", True),
        ("[removed]", True),
        ("behind the dike", False),
    ]
    (summary,) = kept.summaries()
    assert (summary.message_count, summary.is_gone) == (2, False)


def test_an_older_copy_beside_a_session_says_nothing_twice(kept: Kept) -> None:
    session = Transcript().user("list them").assistant(tools=[tool_calls.bash("ls")])
    older = session.write(kept.root)
    copy = older.parent.with_name("-home-zoe-copy") / older.name
    copy.parent.mkdir()
    shutil.copy2(older, copy)
    session.result(session.tool_ids[-1], "a b").assistant("two of them").write(kept.root)
    kept.sync()
    messages = kept.messages(older.stem)
    assert said(messages) == [("list them", True), ("", True), ("two of them", True)]
    assert messages[1].tool is not None
    assert messages[1].tool.result == "a b"


def test_what_vanished_leaves_the_rest_in_its_order(kept: Kept) -> None:
    session = Transcript().user("first").wait(-3600).user("second").wait(-3600).user("third").user("fourth")
    path = session.write(kept.root)
    kept.sync()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    kept.sync()
    told = said(kept.messages(path.stem))
    assert [words for words, is_active in told if is_active] == ["first", "second", "fourth"]
    assert ("third", False) in told


@pytest.mark.parametrize("is_first", [True, False])
def test_a_response_counts_in_the_same_session_whichever_was_read_first(kept: Kept, is_first: bool) -> None:
    first = Transcript().user("list them").assistant(tools=[tool_calls.bash("ls")])
    second = resume(first, restamp=False)
    second.result(second.tool_ids[-1], "a b")
    for session in (first, second) if is_first else (second, first):
        session.write(kept.root)
        kept.sync()
    counted = {one.id for one in kept.summaries() if one.total_tokens}
    assert counted == {min(first.session_id, second.session_id)}


def test_what_only_a_copy_still_has_counts_there(kept: Kept) -> None:
    first = Transcript().user("where is the quay?").assistant("behind the dike").user("and the lamp?")
    path = first.write(kept.root)
    second = resume(first).user("is it wet?").assistant("yes")
    second.write(kept.root)
    kept.sync()
    before = {one.id: (one.total_tokens, one.interaction_count) for one in kept.summaries()}
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    kept.sync()
    after = {one.id: (one.total_tokens, one.interaction_count) for one in kept.summaries()}
    assert sum(tokens or 0 for tokens, _ in after.values()) == sum(
        tokens or 0 for tokens, _ in before.values()
    )
    assert {id_: prompts for id_, (_, prompts) in before.items()} == {path.stem: 2, second.session_id: 1}
    assert {id_: prompts for id_, (_, prompts) in after.items()} == {path.stem: 1, second.session_id: 2}
    assert [message.copied_from for message in kept.messages(second.session_id)] == [path.stem, *[None] * 4]
    kept.archive.invalidate_derived()
    kept.archive.derive()
    assert {one.id: (one.total_tokens, one.interaction_count) for one in kept.summaries()} == after


@pytest.mark.parametrize("known", [None, "session", "subagent"])
def test_a_subagent_that_turns_out_to_be_another_sessions_is_told_only_there(
    kept: Kept, known: str | None
) -> None:
    session = Transcript(version="2.0.40").user("go").delegate("Look", "Seen.")
    path = session.write(kept.root).with_name(f"agent-{session.agents[0].agent_id}.jsonl")
    other = Transcript(seed=2, version="2.0.40").user("hello").delegate("Look again", "Nothing.")
    if known is not None:
        (other if known == "session" else other.agents[0]).write(kept.root)
    known_parents = {f"claude-code:{other.session_id}"} if known else set()
    right = path.read_text("utf-8")
    path.write_text(right.replace(session.session_id, other.session_id), "utf-8")
    kept.sync()
    assert f"claude-code:{other.session_id}" in {one.parent_ref for one in kept.summaries()}
    path.write_text(right, "utf-8")
    kept.sync()
    parents = {one.parent_ref for one in kept.summaries()}
    assert parents == {None, f"claude-code:{session.session_id}", *known_parents}
    assert sum(one.id == session.agents[0].agent_id for one in kept.summaries()) == 1
    assert (other.session_id in {one.id for one in kept.summaries()}) is (known is not None)


def test_what_a_bubble_said_before_it_was_changed_stays(tmp_path: Path) -> None:
    home, kept, composer = home_with(tmp_path)
    other = "replace(value, 'Rounding now happens once.', 'Never mind.')"
    query = f"insert into cursorDiskKV select key, {other} from cursorDiskKV where key = ?"  # noqa: S608
    change(home, query, composer.bubble_key(1))
    kept.sync()
    told = said(kept.messages(composer.id))
    assert ("Rounding now happens once.", False) in told
    assert ("Never mind.", True) in told


def test_a_session_that_lies_in_two_folders_counts_once(kept: Kept) -> None:
    transcript = (
        Transcript(cwd="/home/zoe/ferry")
        .user("look")
        .run(tool_calls.edit("/a.py", "one", "two", original="one\n"))
    )
    transcript.delegate("look at the quay", "it is wet", calls=[tool_calls.bash("tide", "low")])
    path = transcript.write(kept.root)
    kept.sync()
    once = {one.ref: one for one in kept.summaries()}
    shutil.copytree(path.parent, kept.root / "projects" / "-copied")
    kept.sync()
    twice = {one.ref: one for one in kept.summaries()}
    for ref, one in once.items():
        for name in ("message_count", "interaction_count", "total_tokens", "total_changes"):
            assert getattr(twice[ref], name) == getattr(one, name), (ref, name)
    tools = "select tool_sequence, acceptance_decisions from conversations"
    files = kept.archive.originals.write_session(path.stem, kept.root.parent / "back")
    assert [file.read_bytes() for file in files if file.name == path.name] == [path.read_bytes()] * 2
    (sequence, decisions) = kept.archive._db.execute(tools).fetchone()
    assert len(json.loads(sequence)) == 2
    assert len(json.loads(decisions)) <= 1


@pytest.mark.parametrize("order", [1, -1])
def test_two_folders_of_a_session_tell_the_same_in_either_order(order: int, kept: Kept) -> None:
    path = Transcript(cwd="/home/zoe/ferry").user("look").assistant("seen").write(kept.root)
    other = kept.root / "projects" / "-another" / path.name
    other.parent.mkdir()
    places = [path, other][::order]
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.unlink()
    for place in places:
        place.write_text("".join(lines).replace("seen", f"seen in {place.parent.name}"), "utf-8")
        kept.sync()
    assert said(kept.messages(path.stem))[1] == (f"seen in {other.parent.name}", True)


def test_a_file_that_was_replaced_or_changed_within_is_read_anew(kept: Kept, tmp_path: Path) -> None:
    transcript = Transcript()
    for number in range(40):
        transcript.user(f"question {number} {'word ' * 40}").assistant(f"answer <{number:02}> {'word ' * 40}")
    path = transcript.write(kept.root)
    kept.sync()
    replaced = tmp_path / "replaced.jsonl"
    replaced.write_bytes(path.read_bytes().replace(b"<20>", b"[20]") + b"\n")
    replaced.replace(path)
    assert kept.sync().rewritten == 1
    told = [words.split(" word")[0] for words, is_active in said(kept.messages(path.stem)) if is_active]
    assert "answer [20]" in told
    assert "answer <20>" not in told
    with path.open("r+b") as file:
        file.seek(path.read_bytes().index(b"<30>"))
        file.write(b"[30]")
    assert kept.sync().rewritten == 1
    (summary,) = kept.summaries()
    assert summary.message_count == 80
    assert len(kept.messages(path.stem)) == 82


def test_the_account_of_a_file_that_grew_is_that_of_the_whole_file(kept: Kept, tmp_path: Path) -> None:
    path = (
        Transcript()
        .user("one")
        .run(tool_calls.bash("ls", "a"))
        .assistant("two")
        .user("three")
        .write(kept.root)
    )
    lines = path.read_bytes().splitlines(keepends=True)
    tally = "select record_counts from unit"
    for line in range(len(lines)):
        path.write_bytes(b"".join(lines[:line]) + lines[line][:20])
        kept.sync()
    path.write_bytes(b"".join(lines))
    kept.sync()
    whole = Kept("claude-code", kept.root, tmp_path / "whole")
    whole.sync()
    expected = json.loads(whole.archive._db.execute(tally).fetchone()[0])
    assert json.loads(kept.archive._db.execute(tally).fetchone()[0]) == expected
    assert expected["records"] == len(lines)


def test_an_attempt_whose_parent_comes_later_is_told_once(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "root")
    parent = best_of_n(home)
    home.write()
    key = f"composerData:{parent}"
    with closing(sqlite3.connect(home.database)) as db, db:
        row = db.execute("select * from cursorDiskKV where key = ?", [key]).fetchone()
        db.execute("delete from cursorDiskKV where key = ?", [key])
    kept = Kept("cursor", tmp_path / "root", tmp_path / "home")
    kept.sync()
    with closing(sqlite3.connect(home.database)) as db, db:
        db.execute("insert into cursorDiskKV values (?, ?)", row)
    kept.sync()
    fresh = Kept("cursor", tmp_path / "root", tmp_path / "fresh")
    fresh.sync()
    assert kept.told() == fresh.told()


def test_a_subagent_is_found_when_its_session_is_gone(kept: Kept) -> None:
    transcript = Transcript(cwd="/home/zoe/ferry").user("look")
    transcript.delegate("look at the quay", "it is wet", calls=[tool_calls.bash("tide", "low")])
    path = transcript.write(kept.root)
    whole = path.read_bytes()
    path.unlink()
    kept.sync()
    left = {one.parent_ref: one for one in kept.summaries()}
    stub = left[None]
    assert (stub.id, stub.message_count, stub.completeness) == (path.stem, 0, "lossy")
    assert (stub.workspace_path, stub.is_gone) == ("/home/zoe/ferry", True)
    assert stub.title == left[stub.ref].title
    assert said(kept.messages(left[stub.ref].id))[0] == ("look at the quay", True)
    path.write_bytes(whole)
    kept.sync()
    fresh = Kept("claude-code", kept.root, kept.root.parent / "fresh")
    fresh.sync()
    assert kept.told() == fresh.told()
    path.unlink()
    kept.sync()
    kept.archive.maintenance.forget(stub)
    kept.sync()
    assert kept.summaries() == []


def test_one_more_prompt_in_the_log_bears_on_no_other_session(kept: Kept) -> None:
    paths = [
        Transcript(seed=seed).user(f"question {seed}").assistant("yes").write(kept.root) for seed in range(5)
    ]
    log = ""
    for number, path in enumerate(paths):
        typed(kept.root, path.stem, f"question {number}")
        log += (kept.root / "history.jsonl").read_text("utf-8")
    (kept.root / "history.jsonl").write_text(log, "utf-8")
    kept.sync()
    before = kept.told()
    kept.archive.index_queue.mark_done(kept.archive.index_queue.next_jobs(100))
    typed(kept.root, paths[2].stem, "and another one")
    more = (kept.root / "history.jsonl").read_text("utf-8")
    (kept.root / "history.jsonl").write_text(log + more, "utf-8")
    assert kept.sync().sessions == 1
    assert kept.archive.index_queue.next_jobs(100) == []
    assert kept.told() == before
    with paths[2].open("a", encoding="utf-8") as file:
        last = json.loads(paths[2].read_text("utf-8").splitlines()[-1])
        last |= {"uuid": "10000000-0000-4000-8000-000000000009", "parentUuid": last["uuid"]}
        file.write(json.dumps(last) + "\n")
    kept.sync()
    assert [lack.first_position for lack in kept.archive.index_queue.next_jobs(100)] == [2]


def test_what_another_account_completes_says_how_it_is_known(kept: Kept) -> None:
    path = Transcript().user("where is the quay?").write(kept.root)
    typed(kept.root, path.stem, "where is the quay?")
    line = json.loads(path.read_text("utf-8").splitlines()[0])
    del line["timestamp"]
    path.write_text(json.dumps(line) + "\n", "utf-8")
    kept.sync()
    query = "select started_at, metadata ->> 'started_at_source' from conversations"
    assert kept.archive._db.execute(query).fetchone() == ("2025-10-09T08:53:20.000Z", "stored")


def test_a_failure_stays_when_the_line_that_told_of_it_is_gone(kept: Kept) -> None:
    path = (
        Transcript().user("go").run(tool_calls.bash("make", "").failed("no rule to make it")).write(kept.root)
    )
    kept.sync()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    kept.sync()
    results = [(one.tool.result, one.is_active) for one in kept.messages(path.stem) if one.tool is not None]
    assert results == [(None, True), ("<tool_use_error>no rule to make it</tool_use_error>", False)]


def test_a_title_stays_when_the_line_that_gave_it_is_gone(kept: Kept) -> None:
    session = Transcript(version="1.0.98").user("where is the quay?").assistant("behind the dike")
    path = session.summary("Finding the quay", session.last).write(kept.root)
    kept.sync()
    whole = path.read_bytes()
    for left in (b"".join(whole.splitlines(keepends=True)[:-1]), b"", whole.replace(b"quay?", b"ferry?")):
        path.write_bytes(left)
        kept.sync()
        assert kept.summaries()[0].title == "Finding the quay"
    path.write_bytes(whole.replace(b"Finding the quay", b"Where ships lie"))
    kept.sync()
    assert kept.summaries()[0].title == "Where ships lie"


def test_a_session_of_which_only_subagents_lines_are_left_is_still_listed(kept: Kept) -> None:
    session = Transcript(version="1.0.98")
    with session.sidechain("count the ferries"):
        session.assistant("three")
    first = len(session.records)
    path = session.user("where is the quay?").assistant("behind the dike").write(kept.root)
    kept.sync()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:first]))
    kept.sync()
    (found,) = kept.summaries(with_subagents=False)
    assert found.id == path.stem
    assert ("where is the quay?", False) in said(kept.messages(path.stem))


def test_an_answer_whose_call_is_elsewhere_stands_where_it_was_given(kept: Kept, tmp_path: Path) -> None:
    session = (
        Transcript().run(tool_calls.bash("make", "done")).assistant("made").user("thanks").assistant("bye")
    )
    del session.records[0]
    path = session.write(kept.root)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    kept.sync()
    path.write_bytes(whole)
    kept.sync()
    told = kept.messages(path.stem)
    assert [one.tool.result if one.tool else one.content for one in told] == ["done", "made", "thanks", "bye"]
    anew = Kept("claude-code", kept.root, tmp_path / "anew")
    anew.sync()
    assert anew.told() == kept.told()


def test_a_prompt_read_while_it_waited_is_one_message_when_it_has_arrived(kept: Kept) -> None:
    session = Transcript(version="2.1.50").user("go").assistant("going").queue("enqueue", "and the winter?")
    path = session.write(kept.root)
    kept.sync()
    assert said(kept.messages(path.stem))[-1] == ("and the winter?", True)
    session.queue("dequeue").user("and the winter?").assistant("cold").write(kept.root)
    kept.sync()
    told = kept.messages(path.stem)
    assert said(told) == [("go", True), ("going", True), ("and the winter?", True), ("cold", True)]
    assert [one.kind for one in told] == [None] * 4
    assert kept.summaries()[0].interaction_count == 2
    assert kept.archive.maintenance.verify() == []


def test_a_response_that_goes_on_after_it_was_copied_costs_the_same_everywhere(kept: Kept) -> None:
    def spent(output: int) -> dict[str, int]:
        return {"input_tokens": 1, "output_tokens": output}

    first = Transcript(version="1.0.98").user("go").assistant("one", message_id="msg_1", usage=spent(30))
    path = first.write(kept.root)
    second = resume(first).user("on").assistant("two", message_id="msg_2", usage=spent(5))
    second.write(kept.root)
    kept.sync()
    first.assistant("more", message_id="msg_1", usage=spent(285)).write(kept.root)
    kept.sync()
    told = {one.id: one.total_tokens for one in kept.summaries()}
    assert told == {path.stem: 286, second.session_id: 6}
    costs = [one.usage.output_tokens for one in kept.messages(second.session_id) if one.usage is not None]
    assert costs == [285, 5]


def test_an_agents_file_that_says_late_whose_it_is_is_one_account(kept: Kept, tmp_path: Path) -> None:
    session = Transcript(version="2.0.64").user("go")
    agent = session.subagent("count the ferries")
    agent.assistant("three").user("and the boats?").assistant("none")
    path = agent.write(kept.root)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    del lines[0]["sessionId"]
    whole = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(whole[: whole.index("\n") + 1], "utf-8")
    kept.sync()
    path.write_text(whole, "utf-8")
    kept.sync()
    anew = Kept("claude-code", kept.root, tmp_path / "anew")
    anew.sync()
    assert anew.told() == kept.told()
    assert [one.content for one in kept.messages(agent.path(kept.root).stem.removeprefix("agent-"))] == [
        "count the ferries",
        "three",
        "and the boats?",
        "none",
    ]


@pytest.mark.parametrize("remap", [True, False])
def test_what_a_fork_copied_is_its_own_until_the_session_it_is_from_is_met(
    kept: Kept, tmp_path: Path, remap: bool
) -> None:
    first = Transcript().user("where is the lighthouse?").assistant("behind the dike")
    second = fork(first, remap=remap).user("and the quay?").assistant("beside it")
    second.write(kept.root)
    kept.sync()
    (alone,) = kept.summaries()
    assert alone.interaction_count == 2
    assert {one.copied_from for one in kept.messages(second.session_id)} == {None}
    path = first.write(kept.root)
    kept.sync()
    told = {one.id: one.interaction_count for one in kept.summaries()}
    assert told == {path.stem: 1, second.session_id: 1}
    copied = [one.copied_from for one in kept.messages(second.session_id)]
    assert copied == [path.stem, path.stem, None, None]
    anew = Kept("claude-code", kept.root, tmp_path / "anew")
    anew.sync()
    assert anew.told() == kept.told()
    path.unlink()
    kept.sync()
    assert [one.copied_from for one in kept.messages(second.session_id)] == copied
