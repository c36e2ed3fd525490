"""Unexpected JSON values: reading never raises, and other records are not affected."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from backscroll.readers import jsonl
from backscroll.testing.claude_code import Transcript, blocks, tool_calls
from backscroll.testing.claude_code.blocks import encode
from tests.sources.claude_code.read_helpers import read_file, read_session, texts_of

JSON_VALUES = (None, True, 3, -1, 1.5, 10**30, "x", "", [], {}, [None], [[]], [{}], {"a": 1}, ["text"])


@pytest.mark.parametrize("value", JSON_VALUES)
def test_a_type_can_be_any_json_value(value: Any, tmp_path: Path) -> None:
    session = Transcript().user("before")
    session.system(None, "a note")
    session.records[-1]["subtype"] = value  # type: ignore[index]
    session.attachment("date")
    session.records[-1]["attachment"]["type"] = value  # type: ignore[index]
    session.assistant("x", extra_blocks=[{"type": value, "text": "block"}])
    session.user([{"type": value, "text": "block"}, {"type": "tool_result", "tool_use_id": value}])
    session.line({"type": value, "sessionId": value, "uuid": value}).user("after")
    content = read_file(session.write(tmp_path))
    users = texts_of(content.sessions[0].messages, "user", active=False)
    assert "before" in users and "after" in users
    assert content.counts.records == content.counts.parsed + content.counts.ignored + content.counts.problems


def test_every_field_of_a_queued_prompt_can_be_any_json_value(tmp_path: Path) -> None:
    prompt = [blocks.text("see"), blocks.image(b"x")]
    session = Transcript().user("before")
    session.attachment("queued_command", prompt=prompt, commandMode="prompt", origin={"kind": "human"})
    base = session.records.pop()
    assert isinstance(base, dict)
    for path in (("prompt",), ("prompt", 0), ("prompt", 1, "source"), ("prompt", 0, "text"), ("origin",)):
        for value in JSON_VALUES:
            record: Any = deepcopy(base)
            holder = record["attachment"]
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = value
            session.line({**record, "uuid": session.new_uuid()})
    content = read_file(session.user("after").write(tmp_path))
    users = texts_of(content.sessions[0].messages, "user", active=False)
    assert (users[0], users[-1]) == ("before", "after")


def test_a_number_that_is_too_large_is_not_a_problem(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant(tools=[tool_calls.bash("ls")], message_id="m")
    record = session.records.pop()
    assert isinstance(record, dict)
    record["message"]["content"][0]["input"]["limit"] = "@"
    session.raw(encode(record).replace(b'"@"', b"1e999")).raw(encode(record).replace(b'"@"', b"9" * 400))
    assert [m.role for m in read_session(session, tmp_path).messages] == ["user", "tool"]


@pytest.mark.parametrize("kind", ["user", "system", "attachment", "queue-operation", "tool_use", "brand-new"])
def test_a_line_too_large_to_decode_is_one_problem(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 4096)
    huge = b'{"cwd":"C:\\x","type":"%b","uuid":"u1","content":"%b"}' % (kind.encode(), b"x" * 9000)
    plain = huge.replace(b"\\x", b"x")
    for line in (huge, plain):
        content = read_file(Transcript().user("before").raw(line).user("after").write(tmp_path))
        assert texts_of(content.sessions[0].messages, "user") == ["before", "after"]
        assert (content.counts.records, content.counts.problems, content.counts.unknown) == (3, 1, {})


def test_empty_content_yields_no_message(tmp_path: Path) -> None:
    session = Transcript().user("go").user_line([None])  # type: ignore[list-item]
    session.linked_line({"type": "assistant", "message": {"role": "assistant", "content": [None]}}, {})
    assert [m.role for m in read_session(session, tmp_path).messages] == ["user"]


def test_an_injected_image_is_not_a_user_message(tmp_path: Path) -> None:
    session = Transcript().user("go").user_line([blocks.image(b"x" * 30)], isMeta=True)
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["go"]
    assert [(m.role, len(m.attachments)) for m in messages[1:]] == [("system", 1)]


@pytest.mark.parametrize(
    "text",
    [
        "This session is being continued from a previous conversation that ran out of context. The tea.",
        "\nThis session is being continued from a previous conversation that ran out of context.",
    ],
)
def test_a_compaction_summary_is_recognized_by_its_first_words(text: str, tmp_path: Path) -> None:
    messages = read_session(Transcript(version="1.0.3").user("go").user(text), tmp_path).messages
    assert [m.kind for m in messages if m.role == "system"] == ["compaction"]


def test_an_attribute_of_a_tag_can_contain_an_arrow(tmp_path: Path) -> None:
    text = '<teammate-message teammate_id="x" color="red" summary="A -> B">hi</teammate-message>'
    messages = read_session(Transcript().user("go").user_line(text), tmp_path).messages
    assert [(m.role, m.kind, m.content) for m in messages[1:]] == [("system", "peer", "hi")]


def test_an_error_of_the_tool_without_its_flag_is_an_error(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("API Error: 529 overloaded", model="<synthetic>")
    session.assistant("API Error is what I would print here.")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "error") == ["API Error: 529 overloaded"]
    assert texts_of(messages, "assistant") == ["API Error is what I would print here."]


@pytest.mark.parametrize("version", ["1.0.69", "2.0.76", "2.1.105", "2.1.212", "2.1.325"])
def test_the_sentence_in_place_of_an_answer_is_a_notice(version: str, tmp_path: Path) -> None:
    session = Transcript(version=version).user("go").interrupt().no_response().user("go on").assistant("ok")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "assistant") == ["ok"]
    assert [(m.kind, m.content) for m in messages if m.role == "system"] == [
        ("interruption", "[Request interrupted by user]"),
        ("notice", "No response requested."),
    ]


def test_an_empty_answer_of_a_model_is_a_notice_with_its_tokens(tmp_path: Path) -> None:
    session = Transcript(version="1.0.69").user("go").assistant("(no content)")
    notice = read_session(session, tmp_path).messages[-1]
    assert (notice.role, notice.kind, notice.model) == ("system", "notice", session.release.model)
    assert notice.usage is not None


def test_an_interrupted_answer_with_the_synthetic_model_is_an_answer(tmp_path: Path) -> None:
    session = Transcript(version="2.1.105").user("go").assistant("Slow words", model="<synthetic>")
    session.assistant("No response requested.")
    messages = read_session(session.interrupt(), tmp_path).messages
    assert texts_of(messages, "assistant") == ["Slow words", "No response requested."]


@pytest.mark.parametrize("as_system", [False, True])
def test_a_command_without_output_has_no_message_for_it(as_system: bool, tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("ok").command("clear", as_system=as_system).user("next")
    content = read_file(session.assistant("done").write(tmp_path))
    messages = content.sessions[0].messages
    assert [m.content for m in messages if m.kind != "caveat"] == ["go", "ok", "/clear", "next", "done"]
    assert all(m.is_active for m in messages)
    assert content.counts.problems == 0


def test_text_in_the_line_of_an_interruption_is_a_user_message(tmp_path: Path) -> None:
    session = Transcript().user("go").user("please use tabs", interruptedMessageId="msg_1")
    session.user_line([blocks.text("[Request interrupted by user]"), blocks.text("no, the other file")])
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["go", "please use tabs", "no, the other file"]
    assert [m.kind for m in messages if m.role == "system"] == ["interruption"]


def test_an_unknown_attachment_is_a_problem_but_a_new_output_style_is_not(tmp_path: Path) -> None:
    session = Transcript().user("go").attachment("output_style_foo").attachment("brand_new")
    content = read_file(session.write(tmp_path))
    assert content.counts.unknown == {"attachment brand_new": 1}
    assert (content.counts.parsed, content.counts.ignored, content.counts.problems) == (1, 1, 1)


def test_an_unknown_block_is_reported_in_any_line(tmp_path: Path) -> None:
    session = Transcript().user([blocks.text("look"), {"type": "hologram", "data": 1}])
    session.assistant("I see", extra_blocks=[{"type": "hologram", "data": 1}])
    content = read_file(session.write(tmp_path))
    assert content.counts.unknown == {"content block hologram": 2}
    assert texts_of(content.sessions[0].messages, "user") == ["look"]
    assert [m.kind for m in content.sessions[0].messages if m.content == "[hologram]"] == [
        "unknown block"
    ] * 2


def test_a_message_copied_by_a_fork_has_its_original_session(tmp_path: Path) -> None:
    origin = {"sessionId": "11111111-0000-4000-8000-000000000000", "messageUuid": "u"}
    session = Transcript().user("copied", forkedFrom=origin).user("own")
    session.user("mine after all", forkedFrom={"sessionId": session.session_id, "messageUuid": "u"})
    assert [m.copied_from for m in read_session(session, tmp_path).messages] == [
        origin["sessionId"],
        None,
        None,
    ]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "compaction", "content": "earlier text"},
        {
            "type": "search_result",
            "source": "https://example.invalid",
            "content": [blocks.text("earlier text")],
        },
        {
            "type": "resource",
            "resource": {"uri": "file:///x", "text": "earlier text", "mimeType": "text/plain"},
        },
        {"type": "text", "text": [{"text": "earlier text"}]},
        {"type": None, "words": {"more": "earlier text"}},
    ],
)
def test_the_text_of_a_block_in_an_unknown_form_is_kept(block: Any, tmp_path: Path) -> None:
    session = (
        Transcript().user("go").assistant("before", extra_blocks=[block]).user([blocks.text("and"), block])
    )
    text = " ".join(message.content for message in read_session(session, tmp_path).messages)
    assert text.count("earlier text") == 2


def test_data_in_a_block_of_an_unknown_form_is_not_text(tmp_path: Path) -> None:
    audio = {"type": "audio", "data": "UklGRg==", "waveform": "A" * 5000}
    session = Transcript().user("go").assistant("before", extra_blocks=[audio]).user([audio])
    texts = [m.content for m in read_session(session, tmp_path).messages if m.kind == "unknown block"]
    assert texts == ["[audio]", "[audio]"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "the line has no message"),
        ({"message": {"role": "assistant", "parts": ["hello"]}}, "the message has no content"),
        ({"message": ["hello"]}, "the message has an unknown form"),
        ({"message": None}, None),
        ({"message": {"role": "assistant", "content": None}}, None),
        ({"message": {"role": "assistant", "content": []}}, None),
    ],
)
def test_an_assistant_line_without_its_required_fields_is_a_problem(
    fields: dict[str, Any], reason: str | None, tmp_path: Path
) -> None:
    session = Transcript().user("go")
    session.linked_line({"type": "assistant", **fields}, {})
    content = read_file(session.assistant("done").write(tmp_path))
    assert [problem.reason for problem in content.problems] == ([reason] if reason else [])
    assert content.counts.problems == len(content.problems)
