"""Messages, tool calls and facts of a transcript."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backscroll.model.message import Attachment, Message, TokenUsage
from backscroll.model.store import Unit
from backscroll.model.stream import Checkpoint
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Call, Transcript, blocks, repeat_lines, tool_calls
from tests.builders.claude_code.generations import GENERATIONS
from tests.oracle.fold import fold
from tests.sources.claude_code.read_helpers import read_file, read_in_two_steps, read_session, texts_of


@pytest.mark.parametrize("generation", GENERATIONS)
def test_all_messages_and_calls_of_every_generation_are_read(generation: str, tmp_path: Path) -> None:
    for transcript in GENERATIONS[generation](tmp_path, 0):
        content = read_file(transcript.path(tmp_path))
        if not transcript.prompts and not transcript.replies:
            continue
        messages = content.sessions[0].messages
        users = "\n".join(texts_of(messages, "user", active=False))
        answers = "\n".join(
            texts_of(messages, "assistant", active=False) + texts_of(messages, "error", active=False)
        )
        assert [text for text in transcript.prompts if text not in users] == []
        assert [text for text in transcript.replies if text not in answers] == []
        assert set(transcript.tool_ids) <= {m.tool.id for m in messages if m.tool}


def test_a_call_and_its_result_are_one_message(tmp_path: Path) -> None:
    session = (
        Transcript().user("tz?").run(tool_calls.bash("grep tz ferry.toml", "tz = Oslo")).assistant("Oslo.")
    )
    (tool,) = [m for m in read_session(session, tmp_path).messages if m.role == "tool"]
    assert tool.tool is not None
    assert (tool.tool.name, tool.tool.result, tool.tool.status) == ("Bash", "tz = Oslo", "completed")
    assert tool.tool.params["command"] == "grep tz ferry.toml"


def test_a_call_without_a_result_is_pending(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant(tools=[tool_calls.bash("sleep 100")])
    (tool,) = [m.tool for m in read_session(session, tmp_path).messages if m.tool]
    assert (tool.status, tool.result) == ("pending", None)


def test_a_call_with_an_empty_result_is_completed(tmp_path: Path) -> None:
    session = Transcript().user("go").run(tool_calls.bash("true", ""))
    (tool,) = [m.tool for m in read_session(session, tmp_path).messages if m.tool]
    assert (tool.status, tool.result) == ("completed", "")


def test_a_call_can_be_failed_or_rejected(tmp_path: Path) -> None:
    session = Transcript().user("go").run(tool_calls.bash("false").failed("exit code 1"))
    session.assistant(tools=[tool_calls.edit("/a.py", "x", "y", original="x\n")])
    session.reject(session.tool_ids[-1])
    failed, rejected = [m.tool for m in read_session(session, tmp_path).messages if m.tool]
    assert (failed.status, failed.decision, failed.is_error) == ("failed", None, True)
    assert (rejected.status, rejected.decision) == ("cancelled", "rejected")
    assert [edit.path for edit in rejected.edits] == ["/a.py"]  # the proposed edit


def test_an_edit_contains_removed_and_added_lines(tmp_path: Path) -> None:
    original = "one\ntwo\nthree\nfour\n"
    session = (
        Transcript().user("go").run(tool_calls.edit("/a.py", "three", "3\nand a half", original=original))
    )
    (tool,) = [m.tool for m in read_session(session, tmp_path).messages if m.tool]
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


def test_a_new_file_counts_its_lines_as_added(tmp_path: Path) -> None:
    session = Transcript().user("go").run(tool_calls.write("/new.py", "a\nb\n"))
    (tool,) = [m.tool for m in read_session(session, tmp_path).messages if m.tool]
    assert [(e.kind, e.added, e.removed) for e in tool.edits] == [("create", 2, 0)]


def test_a_response_has_the_largest_token_counts_of_its_lines(tmp_path: Path) -> None:
    early = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 50}
    nested = {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 4}
    late = {**early, "output_tokens": 90, "cache_creation_input_tokens": 0, "cache_creation": nested}
    session = Transcript().user("go").assistant("Done.", thinking="Hm.", streamed=True)
    session.records[1]["message"]["usage"] = early
    session.records[2]["message"]["usage"] = late
    parsed = read_session(session, tmp_path)
    assert list(parsed.usage.values()) == [TokenUsage(3, 90, 11, 50, 4, False, None)]
    assert [m.usage is not None for m in parsed.messages] == [False, True, False]


def test_token_counts_of_an_unfinished_response_are_lower_bounds(tmp_path: Path) -> None:
    session = Transcript(version="2.1.30").user("go").assistant("Done.")
    (usage,) = read_session(session, tmp_path).usage.values()
    assert usage.is_at_least


def test_messages_of_the_tool_itself_have_no_token_counts(tmp_path: Path) -> None:
    parsed = read_session(Transcript().user("go").error("API Error: Overloaded"), tmp_path)
    assert texts_of(parsed.messages, "error") == ["API Error: Overloaded"]
    assert parsed.usage == {}


def test_empty_thinking_with_a_signature_is_kept(tmp_path: Path) -> None:
    parsed = read_session(Transcript().user("go").assistant("Done.", thinking=""), tmp_path)
    assert [(m.content, m.kind) for m in parsed.messages if m.role == "thinking"] == [("", "signed")]


def test_lines_of_a_response_need_not_be_adjacent(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant(tools=[tool_calls.bash("ls")], message_id="msg_1")
    session.result(session.tool_ids[-1], "a").assistant("Here it is.", message_id="msg_1")
    parsed = read_session(session, tmp_path)
    assert {m.response_id for m in parsed.messages if m.role in ("tool", "assistant")} == {"msg_1"}
    assert len(parsed.usage) == 1


def test_injected_text_is_not_a_user_message(tmp_path: Path) -> None:
    session = Transcript().meta("a reminder").user("the question").command("model", "opus", stdout="set")
    session.bash_mode("ls", "a b").interrupt().compact("Summary: all is well.").peer("hello from next door")
    session.notification("a1", "toolu_1", "done", trailing="\nRead it.")
    parsed = read_session(session, tmp_path)
    assert texts_of(parsed.messages, "user") == ["the question"]
    kinds = [m.kind for m in parsed.messages if m.role == "system"]
    assert kinds == [
        "meta", "caveat", "command", "command output", "shell", "shell output", "interruption",
        "compact_boundary", "compaction", "peer", "notification",
    ]  # fmt: skip


@pytest.mark.parametrize("version", ["0.2.122", "1.0.50", "1.0.120", "2.1.288"])
def test_a_compaction_summary_is_recognized_with_and_without_its_flag(version: str, tmp_path: Path) -> None:
    parsed = read_session(Transcript(version=version).user("a").assistant("b").compact().user("c"), tmp_path)
    assert texts_of(parsed.messages, "user") == ["a", "c"]


def test_messages_before_a_compaction_stay_active(tmp_path: Path) -> None:
    for version in ("1.0.50", "2.1.288"):
        session = Transcript(version=version).user("before").assistant("yes").compact().user("after")
        assert texts_of(read_session(session, tmp_path).messages, "user") == ["before", "after"]


def test_a_rewound_prompt_is_kept_but_not_active(tmp_path: Path) -> None:
    session = Transcript().user("first").assistant("one")
    leaf = session.leaf
    session.user("second, wrong").assistant("two, wrong").branch_from(leaf).user("second").assistant("two")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["first", "second"]
    assert texts_of(messages, "user", active=False) == ["first", "second, wrong", "second"]
    assert texts_of(messages, "assistant") == ["one", "two"]


def test_parallel_calls_are_all_active(tmp_path: Path) -> None:
    session = (
        Transcript()
        .user("go")
        .run(tool_calls.bash("a", "1"), tool_calls.bash("b", "2"), tool_calls.bash("c", "3"))
    )
    messages = read_session(session.assistant("done"), tmp_path).messages
    assert [m.tool.result for m in messages if m.tool and m.is_active] == ["1", "2", "3"]


def test_a_command_and_its_output_below_one_caveat_are_a_sequence(tmp_path: Path) -> None:
    session = Transcript().command("cost", stdout="$1", siblings=True).user("next").assistant("ok")
    assert all(m.is_active for m in read_session(session, tmp_path).messages)


def test_retracted_lines_are_inactive(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("half an answer")
    session.refusal([session.last_uuid]).assistant("a whole one")
    assert "half an answer" not in texts_of(read_session(session, tmp_path).messages, "assistant")


def test_a_repeated_line_is_emitted_once(tmp_path: Path) -> None:
    session = Transcript(version="2.0.20").user("go").assistant("Done.")
    before = read_session(session, tmp_path / "once").messages
    messages = read_session(repeat_lines(session, 2), tmp_path).messages
    assert [m.content for m in messages] == [m.content for m in before]


@pytest.mark.parametrize("delivered", ["attachment", "user", "removed", "never"])
def test_a_queued_prompt_is_emitted_once_for_every_kind_of_delivery(delivered: str, tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("working")
    session.queued("also the winter table", delivered=delivered).assistant("done")  # type: ignore[arg-type]
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["go", "also the winter table"]


def test_a_queued_notification_is_not_a_prompt(tmp_path: Path) -> None:
    notice = "<task-notification><task-id>a1</task-id><tool-use-id>toolu_9</tool-use-id></task-notification>"
    session = Transcript().user("go").queue("enqueue", notice).queue("dequeue").assistant("ok")
    content = read_file(session.write(tmp_path))
    assert texts_of(content.sessions[0].messages, "user") == ["go"]
    assert [(link.agent_id, link.tool_call_id) for link in content.links] == [("a1", "toolu_9")]


def test_images_are_attachments_with_type_and_size(tmp_path: Path) -> None:
    session = Transcript().user([blocks.text("what is this?"), blocks.image(b"x" * 300)]).assistant("x")
    (user,) = [m for m in read_session(session, tmp_path).messages if m.role == "user"]
    assert [(a.kind, a.media_type, a.size) for a in user.attachments] == [("image", "image/png", 300)]


def test_an_image_without_text_is_a_message(tmp_path: Path) -> None:
    session = Transcript().user([blocks.image(b"x" * 30)]).assistant("a picture")
    (user,) = [m for m in read_session(session, tmp_path).messages if m.role == "user"]
    assert (user.content, len(user.attachments)) == ("", 1)


def test_a_spilled_result_is_read_from_the_session_folder(tmp_path: Path) -> None:
    session = Transcript().user("go").spill(tool_calls.bash("cat big.log"), "line\n" * 20_000)
    (tool,) = [m.tool for m in read_session(session, tmp_path).messages if m.tool]
    assert tool.result == "line\n" * 20_000


def test_a_spilled_result_is_never_read_from_another_folder(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("do not read me")
    for seed, claimed in enumerate((str(secret), "../../../secret.txt", "..", "linked.txt")):
        text = f"<persisted-output>\nOutput too large (1MB). Full output saved to: {claimed}\n\nPreview:\nab"
        session = Transcript(seed=seed).user("go").assistant(tools=[tool_calls.bash("cat")])
        session.result(session.tool_ids[-1], text)
        folder = session.path(tmp_path).with_suffix("") / "tool-results"
        folder.mkdir(parents=True)
        (folder / "linked.txt").symlink_to(secret)
        (tool,) = [m.tool for m in read_session(session, tmp_path).messages if m.tool]
        assert tool.result == text


def test_a_line_without_a_timestamp_has_that_of_the_line_before(tmp_path: Path) -> None:
    session = Transcript(start=datetime(2026, 1, 1, tzinfo=UTC)).user("a")
    session.user("b", timestamp="not a time").user("c", timestamp=None)
    first, *rest = read_session(session, tmp_path).messages
    assert first.timestamp_source == "stored"
    assert [(m.timestamp, m.timestamp_source) for m in rest] == [(first.timestamp, "neighbour")] * 2


def test_lines_with_another_session_id_belong_to_the_session_of_the_file(tmp_path: Path) -> None:
    session = Transcript().user("a").user("b", sessionId="99999999-0000-4000-8000-000000000000")
    parsed = read_session(session, tmp_path)
    assert texts_of(parsed.messages, "user") == ["a", "b"]
    assert parsed.closing.metadata["other_session_ids"] == ["99999999-0000-4000-8000-000000000000"]


def test_the_last_custom_title_takes_precedence_over_a_generated_one(tmp_path: Path) -> None:
    session = Transcript().custom_title("Old").custom_title("Chosen").ai_title("Made").user("a")
    closing = read_session(session, tmp_path).closing
    assert (closing.title, closing.title_source) == ("Chosen", "custom-title")


def test_a_file_with_only_state_lines_is_not_a_session(tmp_path: Path) -> None:
    leaf = "10000000-0000-4000-8000-000000000000"
    session = Transcript().summary("About another", leaf).custom_title("Mine").mode().opaque()
    content = read_file(session.snapshot(leaf, {"a.py": ("0a@v1", 1)}).write(tmp_path))
    assert content.sessions == ()
    assert [(hint.message_id, hint.title) for hint in content.title_hints] == [(leaf, "About another")]
    assert (content.counts.unknown, content.counts.ignored) == ({}, content.counts.records)


def test_every_type_of_state_line_is_known(tmp_path: Path) -> None:
    content = read_file(Transcript().user("a").every_state().write(tmp_path))
    assert (content.counts.unknown, content.problems) == ({}, ())


def test_tracked_files_are_listed_with_their_last_version(tmp_path: Path) -> None:
    session = Transcript().user("a")
    session.snapshot(session.last_uuid, {"src/tz.py": ("0a@v1", 1), "new.txt": (None, 1)})
    session.snapshot(session.last_uuid, {"src/tz.py": ("0a@v2", 2)})
    files = {
        file.path: (file.version, file.backup)
        for file in read_session(session, tmp_path).closing.tracked_files
    }
    assert files == {"src/tz.py": (2, "0a@v2"), "new.txt": (1, None)}


def test_an_unknown_record_type_is_a_problem(tmp_path: Path) -> None:
    content = read_file(Transcript().user("a").state("brand-new", x=1).write(tmp_path))
    assert content.counts.unknown == {"record type brand-new": 1}
    assert [problem.reason for problem in content.problems] == ["unknown record type brand-new"]
    assert content.counts.problems == 1


def test_a_call_in_two_lines_is_one_message(tmp_path: Path) -> None:
    call = Call("Bash", {"command": "ls"}, id="toolu_twice")
    session = Transcript(version="2.0.20").user("go").assistant("Look.", tools=[call], message_id="msg_1")
    session.result("toolu_twice", "a b")
    session.assistant("Look.", tools=[call], message_id="msg_1").result("toolu_twice", "a b")
    messages = read_session(session, tmp_path).messages
    assert [m.tool.result for m in messages if m.tool] == ["a b"]
    assert texts_of(messages, "assistant") == ["Look."]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_reading_in_two_steps_gives_the_same_messages(generation: str, tmp_path: Path) -> None:
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
            second = list(ClaudeCode().read(unit, _checkpoint_of(first)))
            assert _messages(first, second) == _messages(list(ClaudeCode().read(unit)), [])
            assert fold(second).counts.records + fold(first).counts.records == whole.counts.records


def _checkpoint_of(items: list[object]) -> Checkpoint:
    counts = fold(items).counts  # type: ignore[arg-type]
    assert counts.checkpoint is not None
    return counts.checkpoint


def _messages(first: list[object], second: list[object]) -> list[tuple[str, str, str | None]]:
    """Return the active messages of two reads of one session, merged as the archive does."""
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


def test_state_and_attachments_without_content_are_known_and_counted(tmp_path: Path) -> None:
    session = Transcript(version="2.1.325").user("go")
    session.tools_used("Read", "Edit").attachment("structured_output", data={"a": 1}, toolUseID="toolu_1")
    session.attachment(
        "unknown_command_fallback", commandName="no", availableCommandNames=[], availableCommandCount=0
    )
    content = read_file(session.write(tmp_path))
    assert not content.problems
    assert not content.counts.unknown
    assert content.counts.kinds["tools-used"] == 1
    assert content.counts.kinds["attachment"] == 2


def test_a_detached_head_is_not_a_branch(tmp_path: Path) -> None:
    session = Transcript(version="2.1.105", branch="HEAD").user("go").assistant("Done.")
    parsed = read_session(session, tmp_path)
    assert parsed.closing.git_branch is None
    assert {message.git_branch for message in parsed.messages} == {None}


def test_mentioned_files_and_folders_are_attachments_of_the_prompt(tmp_path: Path) -> None:
    session = Transcript(version="2.1.325").user("Look at @a.txt and @src/")
    session.attachment("date", date="2026-11-17").mention_file("a.txt", "alpha\n").mention_folder("src", "x")
    session.assistant("Seen.").mention_file("later.txt", "b")
    parsed = read_session(session, tmp_path)
    prompt, answer = parsed.messages
    assert prompt.attachments == (
        Attachment("file", name="a.txt", size=6, path=f"{session.cwd}/a.txt"),
        Attachment("folder", name="src", path=f"{session.cwd}/src"),
    )
    assert not answer.attachments
    path = session.write(tmp_path)
    whole = path.read_bytes()
    cut = whole.rindex(b"\n", 0, whole.index(b'"directory"')) + 1
    (again,) = read_in_two_steps(path, cut).sessions
    assert again.messages == parsed.messages


def test_files_restored_after_a_compaction_are_not_attachments_of_a_prompt(tmp_path: Path) -> None:
    session = Transcript(version="2.1.325").user("go").assistant("Done.").compact()
    session.mention_file("a.txt", "alpha\n")
    assert not any(message.attachments for message in read_session(session, tmp_path).messages)
