"""Lines with more than one record: all records are read."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from backscroll.testing.claude_code import Prompt, Transcript, tool_calls
from backscroll.testing.claude_code.blocks import encode
from backscroll.testing.claude_code.side_files import write_prompts
from tests.sources.claude_code.read_helpers import calls_of, read_file, read_session, texts_of


def with_joined_records(session: Transcript, count: int = 2) -> Transcript:
    """Put the last records on one line, as if they were appended to a file without a final newline."""
    parts = [one if isinstance(one, bytes) else encode(one) for one in session.records[-count:]]
    session.records[-count:] = [b"".join(parts)]
    return session


def without_field(name: str, session: Transcript) -> Transcript:
    return session.change(lambda record: record.pop(name, None) and None)


def test_a_title_after_a_prompt_on_one_line_is_read(tmp_path: Path) -> None:
    content = read_file(with_joined_records(Transcript().user("hello").custom_title("Mine")).write(tmp_path))
    (parsed,) = content.sessions
    assert (texts_of(parsed.messages, "user"), parsed.closing.title) == (["hello"], "Mine")
    assert (content.counts.records, content.counts.parsed, content.problems) == (1, 1, ())


def test_both_titles_on_one_line_are_read(tmp_path: Path) -> None:
    session = with_joined_records(Transcript().user("hello").ai_title("Made").custom_title("Chosen"))
    assert read_session(session, tmp_path).closing.title == "Chosen"


def test_a_queued_prompt_after_a_prompt_on_one_line_is_read(tmp_path: Path) -> None:
    session = Transcript().user("hello")
    session.attachment("queued_command", prompt="also winter", origin={"kind": "human"})
    assert texts_of(read_session(with_joined_records(session), tmp_path).messages, "user") == [
        "hello",
        "also winter",
    ]


def test_two_queued_prompts_on_one_line_are_two_messages(tmp_path: Path) -> None:
    session = Transcript().user("hello").queue("enqueue", "first").queue("enqueue", "second")
    assert texts_of(read_session(with_joined_records(session, 3), tmp_path).messages, "user") == [
        "hello",
        "first",
        "second",
    ]


def test_a_notice_after_a_prompt_on_one_line_is_read(tmp_path: Path) -> None:
    session = with_joined_records(Transcript().user("hello").system("informational", "a note"))
    messages = read_session(session, tmp_path).messages
    assert [(m.role, m.content) for m in messages] == [("user", "hello"), ("system", "a note")]


def test_two_records_without_ids_on_one_line_are_two_messages(tmp_path: Path) -> None:
    session = with_joined_records(without_field("uuid", Transcript().user("one").user("two")))
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["one", "two"]
    assert len({m.id for m in messages}) == 2


def test_two_tool_records_without_ids_on_one_line_are_two_calls(tmp_path: Path) -> None:
    session = Transcript().user("go")
    for number in (1, 2):
        session.line({"type": "tool_use", "name": "x", "input": {"n": number}, "sessionId": "s"})
    for result in ("first", "second"):
        session.line({"type": "tool_result", "name": "x", "output": result, "sessionId": "s"})
    found = calls_of(read_session(with_joined_records(session, 4), tmp_path).messages)
    assert [(tool.params, tool.result) for tool in found] == [({"n": 1}, "first"), ({"n": 2}, "second")]


def test_a_call_and_its_result_on_one_line_are_one_message(tmp_path: Path) -> None:
    session = with_joined_records(Transcript().user("go").run(tool_calls.bash("ls", "a b")))
    (tool,) = calls_of(read_session(session, tmp_path).messages)
    assert tool.result == "a b"


def test_all_prompts_on_one_line_of_the_log_are_read(tmp_path: Path) -> None:
    at = datetime(2026, 8, 1, 9, tzinfo=UTC)
    path = write_prompts(tmp_path, [Prompt(text, at, "/p", "s1") for text in ("one", "two", "three")])
    path.write_bytes(path.read_bytes().replace(b"\n", b"") + b"\n")
    content = read_file(path, "prompts")
    (parsed,) = content.sessions
    assert [m.content for m in parsed.messages] == ["one", "two", "three"]
    assert len({m.id for m in parsed.messages}) == 3
    assert (content.counts.records, content.problems) == (1, ())


def test_a_prompt_keeps_its_id_when_earlier_lines_are_deleted(tmp_path: Path) -> None:
    at = datetime(2026, 8, 1, 9, tzinfo=UTC)
    prompts = [Prompt(text, at.replace(minute=minute), "/p", "s1") for minute, text in enumerate("abc")]
    ids = {m.content: m.id for m in read_prompts(tmp_path / "all", prompts)}
    assert {m.content: m.id for m in read_prompts(tmp_path / "pruned", prompts[1:])} == {
        text: id_ for text, id_ in ids.items() if text != "a"
    }


def read_prompts(root: Path, prompts: list[Prompt]) -> Any:
    return read_file(write_prompts(root, prompts), "prompts").sessions[0].messages
