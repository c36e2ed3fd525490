"""A transcript as a conversation."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backscroll.model import Checkpoint, Message, TokenUsage, Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import GENERATIONS, Call, Transcript, blocks, repeat_lines, tool_calls
from tests.oracle.fold import fold
from tests.sources.claude_code.reading import only, said, tell


@pytest.mark.parametrize("generation", GENERATIONS)
def test_everything_said_in_any_generation_comes_back(generation: str, tmp_path: Path) -> None:
    for transcript in GENERATIONS[generation](tmp_path, 0):
        told = tell(transcript.path(tmp_path))
        if not transcript.prompts and not transcript.replies:
            continue
        messages = told.sessions[0].messages
        users = "\n".join(said(messages, "user", active=False))
        answers = "\n".join(said(messages, "assistant", active=False) + said(messages, "error", active=False))
        assert [text for text in transcript.prompts if text not in users] == []
        assert [text for text in transcript.replies if text not in answers] == []
        assert set(transcript.tool_ids) <= {m.tool.id for m in messages if m.tool}


def test_a_call_and_its_result_are_one_message(tmp_path: Path) -> None:
    session = (
        Transcript().user("tz?").run(tool_calls.bash("grep tz ferry.toml", "tz = Oslo")).assistant("Oslo.")
    )
    (tool,) = [m for m in only(session, tmp_path).messages if m.role == "tool"]
    assert tool.tool is not None
    assert (tool.tool.name, tool.tool.result, tool.tool.status) == ("Bash", "tz = Oslo", "completed")
    assert tool.tool.params["command"] == "grep tz ferry.toml"


def test_a_call_nobody_answered_is_pending(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant(tools=[tool_calls.bash("sleep 100")])
    (tool,) = [m.tool for m in only(session, tmp_path).messages if m.tool]
    assert (tool.status, tool.result) == ("pending", None)


def test_an_empty_result_is_an_answer(tmp_path: Path) -> None:
    session = Transcript().user("go").run(tool_calls.bash("true", ""))
    (tool,) = [m.tool for m in only(session, tmp_path).messages if m.tool]
    assert (tool.status, tool.result) == ("completed", "")


def test_a_failed_call_is_failed_and_a_refused_one_is_rejected(tmp_path: Path) -> None:
    session = Transcript().user("go").run(tool_calls.bash("false").failed("exit code 1"))
    session.assistant(tools=[tool_calls.edit("/a.py", "x", "y", original="x\n")])
    session.reject(session.tool_ids[-1])
    failed, refused = [m.tool for m in only(session, tmp_path).messages if m.tool]
    assert (failed.status, failed.decision, failed.is_error) == ("failed", None, True)
    assert (refused.status, refused.decision) == ("cancelled", "rejected")
    assert [edit.path for edit in refused.edits] == ["/a.py"]  # what was proposed


def test_an_edit_is_kept_as_lines_taken_out_and_put_in(tmp_path: Path) -> None:
    original = "one\ntwo\nthree\nfour\n"
    session = (
        Transcript().user("go").run(tool_calls.edit("/a.py", "three", "3\nand a half", original=original))
    )
    (tool,) = [m.tool for m in only(session, tmp_path).messages if m.tool]
    (edit,) = tool.edits
    assert (edit.path, edit.kind, edit.added, edit.removed) == ("/a.py", "update", 2, 1)
    (hunk,) = edit.hunks
    assert (hunk.removed, hunk.added, hunk.old_start, hunk.new_start) == (
        ("three",),
        ("3", "and a half"),
        3,
        3,
    )
    assert tool.decision == "accepted"


def test_a_file_written_anew_counts_its_lines(tmp_path: Path) -> None:
    session = Transcript().user("go").run(tool_calls.write("/new.py", "a\nb\n"))
    (tool,) = [m.tool for m in only(session, tmp_path).messages if m.tool]
    assert [(e.kind, e.added, e.removed) for e in tool.edits] == [("create", 2, 0)]


def test_a_response_costs_what_its_largest_line_says(tmp_path: Path) -> None:
    early = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 50}
    nested = {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 4}
    late = {**early, "output_tokens": 90, "cache_creation_input_tokens": 0, "cache_creation": nested}
    session = Transcript().user("go").assistant("Done.", thinking="Hm.", streamed=True)
    session.records[1]["message"]["usage"] = early
    session.records[2]["message"]["usage"] = late
    reading = only(session, tmp_path)
    assert list(reading.usage.values()) == [TokenUsage(3, 90, 11, 50, 4, False, None)]
    assert [m.usage is not None for m in reading.messages] == [False, True, False]


def test_a_response_that_was_never_finished_is_counted_as_at_least(tmp_path: Path) -> None:
    session = Transcript(version="2.1.30").user("go").assistant("Done.")
    (usage,) = only(session, tmp_path).usage.values()
    assert usage.is_at_least


def test_the_programs_own_words_cost_nothing(tmp_path: Path) -> None:
    reading = only(Transcript().user("go").error("API Error: Overloaded"), tmp_path)
    assert said(reading.messages, "error") == ["API Error: Overloaded"]
    assert reading.usage == {}


def test_thinking_that_is_empty_but_signed_is_kept_as_such(tmp_path: Path) -> None:
    reading = only(Transcript().user("go").assistant("Done.", thinking=""), tmp_path)
    assert [(m.content, m.kind) for m in reading.messages if m.role == "thinking"] == [("", "signed")]


def test_fragments_of_a_response_belong_together_wherever_they_lie(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant(tools=[tool_calls.bash("ls")], message_id="msg_1")
    session.result(session.tool_ids[-1], "a").assistant("Here it is.", message_id="msg_1")
    reading = only(session, tmp_path)
    assert {m.response_id for m in reading.messages if m.role in ("tool", "assistant")} == {"msg_1"}
    assert len(reading.usage) == 1


def test_what_was_injected_is_not_what_the_user_said(tmp_path: Path) -> None:
    session = Transcript().meta("a reminder").user("the question").command("model", "opus", stdout="set")
    session.bash_mode("ls", "a b").interrupt().compact("Summary: all is well.").peer("hello from next door")
    session.notification("a1", "toolu_1", "done", trailing="\nRead it.")
    reading = only(session, tmp_path)
    assert said(reading.messages, "user") == ["the question"]
    kinds = [m.kind for m in reading.messages if m.role == "system"]
    assert kinds == [
        "meta", "caveat", "command", "command output", "shell", "shell output", "interruption",
        "compact_boundary", "compaction", "peer", "notification",
    ]  # fmt: skip


@pytest.mark.parametrize("version", ["0.2.122", "1.0.50", "1.0.120", "2.1.288"])
def test_a_compaction_summary_is_known_with_and_without_its_flag(version: str, tmp_path: Path) -> None:
    reading = only(Transcript(version=version).user("a").assistant("b").compact().user("c"), tmp_path)
    assert said(reading.messages, "user") == ["a", "c"]


def test_what_was_said_before_a_compaction_stays_active(tmp_path: Path) -> None:
    for version in ("1.0.50", "2.1.288"):
        session = Transcript(version=version).user("before").assistant("yes").compact().user("after")
        assert said(only(session, tmp_path).messages, "user") == ["before", "after"]


def test_a_rewound_prompt_is_kept_but_not_active(tmp_path: Path) -> None:
    session = Transcript().user("first").assistant("one")
    leaf = session.leaf
    session.user("second, wrong").assistant("two, wrong").branch_from(leaf).user("second").assistant("two")
    messages = only(session, tmp_path).messages
    assert said(messages, "user") == ["first", "second"]
    assert said(messages, "user", active=False) == ["first", "second, wrong", "second"]
    assert said(messages, "assistant") == ["one", "two"]


def test_parallel_calls_are_all_active(tmp_path: Path) -> None:
    session = (
        Transcript()
        .user("go")
        .run(tool_calls.bash("a", "1"), tool_calls.bash("b", "2"), tool_calls.bash("c", "3"))
    )
    messages = only(session.assistant("done"), tmp_path).messages
    assert [m.tool.result for m in messages if m.tool and m.is_active] == ["1", "2", "3"]


def test_command_and_output_hanging_on_one_caveat_are_a_sequence(tmp_path: Path) -> None:
    session = Transcript().command("cost", stdout="$1", siblings=True).user("next").assistant("ok")
    assert all(m.is_active for m in only(session, tmp_path).messages)


def test_lines_the_model_refused_are_dead(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("half an answer")
    session.refusal([session.last_uuid]).assistant("a whole one")
    assert "half an answer" not in said(only(session, tmp_path).messages, "assistant")


def test_a_line_written_twice_is_told_once(tmp_path: Path) -> None:
    session = Transcript(version="2.0.20").user("go").assistant("Done.")
    before = only(session, tmp_path / "once").messages
    messages = only(repeat_lines(session, 2), tmp_path).messages
    assert [m.content for m in messages] == [m.content for m in before]


@pytest.mark.parametrize("delivered", ["attachment", "user", "removed", "never"])
def test_a_queued_prompt_is_shown_once_however_it_arrived(delivered: str, tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("working")
    session.queued("also the winter table", delivered=delivered).assistant("done")  # type: ignore[arg-type]
    assert said(only(session, tmp_path).messages, "user") == ["go", "also the winter table"]


def test_what_the_tool_queued_for_itself_is_no_prompt(tmp_path: Path) -> None:
    notice = "<task-notification><task-id>a1</task-id><tool-use-id>toolu_9</tool-use-id></task-notification>"
    session = Transcript().user("go").queue("enqueue", notice).queue("dequeue").assistant("ok")
    told = tell(session.write(tmp_path))
    assert said(told.sessions[0].messages, "user") == ["go"]
    assert [(link.agent_id, link.tool_call_id) for link in told.links] == [("a1", "toolu_9")]


def test_images_and_documents_come_along_with_type_and_size(tmp_path: Path) -> None:
    session = Transcript().user([blocks.text("what is this?"), blocks.image(b"x" * 300)]).assistant("x")
    (user,) = [m for m in only(session, tmp_path).messages if m.role == "user"]
    assert [(a.kind, a.media_type, a.size) for a in user.attachments] == [("image", "image/png", 300)]


def test_an_image_alone_is_still_a_message(tmp_path: Path) -> None:
    session = Transcript().user([blocks.image(b"x" * 30)]).assistant("a picture")
    (user,) = [m for m in only(session, tmp_path).messages if m.role == "user"]
    assert (user.content, len(user.attachments)) == ("", 1)


def test_a_spilled_result_is_read_from_the_sessions_own_folder(tmp_path: Path) -> None:
    session = Transcript().user("go").spill(tool_calls.bash("cat big.log"), "line\n" * 20_000)
    (tool,) = [m.tool for m in only(session, tmp_path).messages if m.tool]
    assert tool.result == "line\n" * 20_000


def test_a_spilled_result_is_never_read_from_elsewhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("do not read me")
    for seed, claimed in enumerate((str(secret), "../../../secret.txt", "..", "linked.txt")):
        text = f"<persisted-output>\nOutput too large (1MB). Full output saved to: {claimed}\n\nPreview:\nab"
        session = Transcript(seed=seed).user("go").assistant(tools=[tool_calls.bash("cat")])
        session.result(session.tool_ids[-1], text)
        folder = session.path(tmp_path).with_suffix("") / "tool-results"
        folder.mkdir(parents=True)
        (folder / "linked.txt").symlink_to(secret)
        (tool,) = [m.tool for m in only(session, tmp_path).messages if m.tool]
        assert tool.result == text


def test_a_line_without_a_time_takes_its_neighbours(tmp_path: Path) -> None:
    session = Transcript(start=datetime(2026, 1, 1, tzinfo=UTC)).user("a")
    session.user("b", timestamp="not a time").user("c", timestamp=None)
    first, *rest = only(session, tmp_path).messages
    assert first.timestamp_source == "stored"
    assert [(m.timestamp, m.timestamp_source) for m in rest] == [(first.timestamp, "neighbour")] * 2


def test_lines_of_another_session_stay_in_the_file_they_lie_in(tmp_path: Path) -> None:
    session = Transcript().user("a").user("b", sessionId="99999999-0000-4000-8000-000000000000")
    reading = only(session, tmp_path)
    assert said(reading.messages, "user") == ["a", "b"]
    assert reading.closing.metadata["other_session_ids"] == ["99999999-0000-4000-8000-000000000000"]


def test_the_last_title_counts_and_a_chosen_one_before_a_made_one(tmp_path: Path) -> None:
    session = Transcript().custom_title("Old").custom_title("Chosen").ai_title("Made").user("a")
    closing = only(session, tmp_path).closing
    assert (closing.title, closing.title_source) == ("Chosen", "custom-title")


def test_a_file_of_titles_and_snapshots_is_no_session(tmp_path: Path) -> None:
    leaf = "10000000-0000-4000-8000-000000000000"
    session = Transcript().summary("About another", leaf).custom_title("Mine").mode().opaque()
    told = tell(session.snapshot(leaf, {"a.py": ("0a@v1", 1)}).write(tmp_path))
    assert told.sessions == ()
    assert [(naming.message_id, naming.title) for naming in told.title_hints] == [(leaf, "About another")]
    assert (told.counts.unknown, told.counts.ignored) == ({}, told.counts.records)


def test_every_type_of_state_line_is_known(tmp_path: Path) -> None:
    told = tell(Transcript().user("a").every_state().write(tmp_path))
    assert (told.counts.unknown, told.problems) == ({}, ())


def test_tracked_files_are_listed_with_their_last_version(tmp_path: Path) -> None:
    session = Transcript().user("a")
    session.snapshot(session.last_uuid, {"src/tz.py": ("0a@v1", 1), "new.txt": (None, 1)})
    session.snapshot(session.last_uuid, {"src/tz.py": ("0a@v2", 2)})
    files = {file.path: (file.version, file.backup) for file in only(session, tmp_path).closing.tracked_files}
    assert files == {"src/tz.py": (2, "0a@v2"), "new.txt": (1, None)}


def test_a_type_nobody_knows_is_said_out_loud(tmp_path: Path) -> None:
    told = tell(Transcript().user("a").state("brand-new", x=1).write(tmp_path))
    assert told.counts.unknown == {"record type brand-new": 1}
    assert [problem.reason for problem in told.problems] == ["unknown record type brand-new"]
    assert told.counts.problems == 1


def test_a_call_that_stands_in_two_lines_is_one_message(tmp_path: Path) -> None:
    call = Call("Bash", {"command": "ls"}, id="toolu_twice")
    session = Transcript(version="2.0.20").user("go").assistant("Look.", tools=[call], message_id="msg_1")
    session.result("toolu_twice", "a b")
    session.assistant("Look.", tools=[call], message_id="msg_1").result("toolu_twice", "a b")
    messages = only(session, tmp_path).messages
    assert [m.tool.result for m in messages if m.tool] == ["a b"]
    assert said(messages, "assistant") == ["Look."]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_reading_in_two_parts_tells_the_same(generation: str, tmp_path: Path) -> None:
    for transcript in GENERATIONS[generation](tmp_path, 0):
        path = transcript.path(tmp_path)
        unit = Unit("claude-code", "", str(path))
        data = path.read_bytes()
        whole = fold(ClaudeCode().read(unit))
        lines = data.splitlines(keepends=True)
        for cut in range(1, len(lines)):
            path.write_bytes(b"".join(lines[:cut]))
            first = list(ClaudeCode().read(unit))
            path.write_bytes(data)
            second = list(ClaudeCode().read(unit, _mark(first)))
            assert _messages(first, second) == _messages(list(ClaudeCode().read(unit)), [])
            assert fold(second).counts.records + fold(first).counts.records == whole.counts.records


def _mark(items: list[object]) -> Checkpoint:
    tally = fold(items).counts  # type: ignore[arg-type]
    assert tally.checkpoint is not None
    return tally.checkpoint


def _messages(first: list[object], second: list[object]) -> list[tuple[str, str, str | None]]:
    """What both parts say of one session, as whoever keeps it would put it together."""
    head = [item for item in first if type(item).__name__ != "Closing"]
    tail = [item for item in second if type(item).__name__ != "Opening"] if head and second else second
    if not any(type(item).__name__ == "Opening" for item in head):
        tail = second
    closings = [item for item in tail if type(item).__name__ == "Closing"]
    if second and not closings:
        tail = tail + [item for item in first if type(item).__name__ == "Closing"]
    if not second:
        head = first
    readings = fold([*head, *tail]).sessions  # type: ignore[list-item]
    return sorted(
        (m.id, m.content, m.tool.result if m.tool else None) for r in readings for m in _active(r.messages)
    )


def _active(messages: tuple[Message, ...]) -> list[Message]:
    return [message for message in messages if message.is_active]
