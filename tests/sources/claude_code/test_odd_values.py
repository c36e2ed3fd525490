"""Any JSON value in any field: nothing raises, nothing else is lost, nothing is invented."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from backscroll.readers import jsonl
from backscroll.testing.claude_code import Transcript, blocks, tool_calls
from backscroll.testing.claude_code.blocks import encode
from tests.sources.claude_code.reading import only, said, tell

ODD = (None, True, 3, -1, 1.5, 10**30, "x", "", [], {}, [None], [[]], [{}], {"a": 1}, ["text"])


@pytest.mark.parametrize("value", ODD)
def test_a_type_may_be_anything(value: Any, tmp_path: Path) -> None:
    session = Transcript().user("before")
    session.system(None, "a note")
    session.records[-1]["subtype"] = value  # type: ignore[index]
    session.attachment("date")
    session.records[-1]["attachment"]["type"] = value  # type: ignore[index]
    session.assistant("x", extra_blocks=[{"type": value, "text": "block"}])
    session.user([{"type": value, "text": "block"}, {"type": "tool_result", "tool_use_id": value}])
    session.line({"type": value, "sessionId": value, "uuid": value}).user("after")
    told = tell(session.write(tmp_path))
    users = said(told.sessions[0].messages, "user", active=False)
    assert "before" in users and "after" in users
    assert told.counts.records == told.counts.parsed + told.counts.ignored + told.counts.problems


def test_every_field_of_a_queued_prompt_may_be_anything(tmp_path: Path) -> None:
    prompt = [blocks.text("see"), blocks.image(b"x")]
    session = Transcript().user("before")
    session.attachment("queued_command", prompt=prompt, commandMode="prompt", origin={"kind": "human"})
    base = session.records.pop()
    assert isinstance(base, dict)
    for path in (("prompt",), ("prompt", 0), ("prompt", 1, "source"), ("prompt", 0, "text"), ("origin",)):
        for value in ODD:
            record: Any = deepcopy(base)
            holder = record["attachment"]
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = value
            session.line({**record, "uuid": session.new_uuid()})
    told = tell(session.user("after").write(tmp_path))
    users = said(told.sessions[0].messages, "user", active=False)
    assert (users[0], users[-1]) == ("before", "after")


def test_a_number_too_large_for_anyone_is_no_fault(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant(tools=[tool_calls.bash("ls")], message_id="m")
    record = session.records.pop()
    assert isinstance(record, dict)
    record["message"]["content"][0]["input"]["limit"] = "@"
    session.raw(encode(record).replace(b'"@"', b"1e999")).raw(encode(record).replace(b'"@"', b"9" * 400))
    assert [m.role for m in only(session, tmp_path).messages] == ["user", "tool"]


@pytest.mark.parametrize("kind", ["user", "system", "attachment", "queue-operation", "tool_use", "brand-new"])
def test_a_line_too_large_to_decode_is_one_problem(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 4096)
    huge = b'{"cwd":"C:\\x","type":"%b","uuid":"u1","content":"%b"}' % (kind.encode(), b"x" * 9000)
    plain = huge.replace(b"\\x", b"x")
    for line in (huge, plain):
        told = tell(Transcript().user("before").raw(line).user("after").write(tmp_path))
        assert said(told.sessions[0].messages, "user") == ["before", "after"]
        assert (told.counts.records, told.counts.problems, told.counts.unknown) == (3, 1, {})


def test_content_that_holds_nothing_gives_no_message(tmp_path: Path) -> None:
    session = Transcript().user("go").user_line([None])  # type: ignore[list-item]
    session.linked_line({"type": "assistant", "message": {"role": "assistant", "content": [None]}}, {})
    assert [m.role for m in only(session, tmp_path).messages] == ["user"]


def test_an_injected_image_was_not_sent_by_the_user(tmp_path: Path) -> None:
    session = Transcript().user("go").user_line([blocks.image(b"x" * 30)], isMeta=True)
    messages = only(session, tmp_path).messages
    assert said(messages, "user") == ["go"]
    assert [(m.role, len(m.attachments)) for m in messages[1:]] == [("system", 1)]


@pytest.mark.parametrize(
    "words",
    [
        "This session is being continued from another machine. Summary: x",
        "\nThis session is being continued from a previous conversation that ran out of context.",
    ],
)
def test_a_summary_is_known_by_its_first_words(words: str, tmp_path: Path) -> None:
    messages = only(Transcript(version="1.0.3").user("go").user(words), tmp_path).messages
    assert [m.kind for m in messages if m.role == "system"] == ["compaction"]


def test_an_attribute_may_hold_an_arrow(tmp_path: Path) -> None:
    words = '<teammate-message teammate_id="x" color="red" summary="A -> B">hi</teammate-message>'
    messages = only(Transcript().user("go").user_line(words), tmp_path).messages
    assert [(m.role, m.kind, m.content) for m in messages[1:]] == [("system", "peer", "hi")]


def test_the_programs_error_without_its_flag_is_an_error(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("API Error: 529 overloaded", model="<synthetic>")
    session.assistant("No response requested.", model="<synthetic>")
    session.assistant("API Error is what I would print here.")
    messages = only(session, tmp_path).messages
    assert said(messages, "error") == ["API Error: 529 overloaded"]
    assert said(messages, "assistant") == ["No response requested.", "API Error is what I would print here."]


def test_a_prompt_typed_after_an_interruption_is_the_users(tmp_path: Path) -> None:
    session = Transcript().user("go").user("please use tabs", interruptedMessageId="msg_1")
    session.user_line("[Request interrupted by user] no, the other file")
    messages = only(session, tmp_path).messages
    assert [words.strip() for words in said(messages, "user")] == [
        "go",
        "please use tabs",
        "no, the other file",
    ]
    assert [m.kind for m in messages if m.role == "system"] == ["interruption"]


def test_an_attachment_nobody_knows_is_a_problem_and_a_new_output_style_is_not(tmp_path: Path) -> None:
    session = Transcript().user("go").attachment("output_style_foo").attachment("brand_new")
    told = tell(session.write(tmp_path))
    assert told.counts.unknown == {"attachment brand_new": 1}
    assert (told.counts.parsed, told.counts.ignored, told.counts.problems) == (1, 1, 1)


def test_a_block_nobody_knows_is_said_out_loud_wherever_it_stands(tmp_path: Path) -> None:
    session = Transcript().user([blocks.text("look"), {"type": "hologram", "data": 1}])
    session.assistant("I see", extra_blocks=[{"type": "hologram", "data": 1}])
    told = tell(session.write(tmp_path))
    assert told.counts.unknown == {"content block hologram": 2}
    assert said(told.sessions[0].messages, "user") == ["look"]
    assert [m.kind for m in told.sessions[0].messages if m.content == "[hologram]"] == ["unknown block"] * 2


def test_a_message_copied_by_a_fork_says_where_from(tmp_path: Path) -> None:
    origin = {"sessionId": "11111111-0000-4000-8000-000000000000", "messageUuid": "u"}
    session = Transcript().user("copied", forkedFrom=origin).user("own")
    session.user("mine after all", forkedFrom={"sessionId": session.session_id, "messageUuid": "u"})
    assert [m.copied_from for m in only(session, tmp_path).messages] == [origin["sessionId"], None, None]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "compaction", "content": "what was said so far"},
        {
            "type": "search_result",
            "source": "https://example.invalid",
            "content": [blocks.text("what was said so far")],
        },
        {
            "type": "resource",
            "resource": {"uri": "file:///x", "text": "what was said so far", "mimeType": "text/plain"},
        },
        {"type": "text", "text": [{"text": "what was said so far"}]},
        {"type": None, "words": {"more": "what was said so far"}},
    ],
)
def test_a_block_of_an_unknown_form_still_says_its_words(block: Any, tmp_path: Path) -> None:
    session = (
        Transcript().user("go").assistant("before", extra_blocks=[block]).user([blocks.text("and"), block])
    )
    told = " ".join(message.content for message in only(session, tmp_path).messages)
    assert told.count("what was said so far") == 2


def test_data_in_a_block_of_an_unknown_form_is_nobodys_words(tmp_path: Path) -> None:
    audio = {"type": "audio", "data": "UklGRg==", "waveform": "A" * 5000}
    session = Transcript().user("go").assistant("before", extra_blocks=[audio]).user([audio])
    told = [m.content for m in only(session, tmp_path).messages if m.kind == "unknown block"]
    assert told == ["[audio]", "[audio]"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "no message in it"),
        ({"message": {"role": "assistant", "parts": ["hello"]}}, "no content in its message"),
        ({"message": ["hello"]}, "its message is of no known form"),
        ({"message": None}, None),
        ({"message": {"role": "assistant", "content": None}}, None),
        ({"message": {"role": "assistant", "content": []}}, None),
    ],
)
def test_a_line_that_must_say_something_and_does_not_is_a_problem(
    fields: dict[str, Any], reason: str | None, tmp_path: Path
) -> None:
    session = Transcript().user("go")
    session.linked_line({"type": "assistant", **fields}, {})
    told = tell(session.assistant("done").write(tmp_path))
    assert [problem.reason for problem in told.problems] == ([reason] if reason else [])
    assert told.counts.problems == len(told.problems)
