"""Lines that hold more than one record: every one of them is told."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from backscroll.testing.claude_code import Prompt, Transcript, tool_calls
from backscroll.testing.claude_code.blocks import encode
from backscroll.testing.claude_code.side_files import write_prompts
from tests.sources.claude_code.reading import only, said, tell, tools


def glued(session: Transcript, count: int = 2) -> Transcript:
    """The transcript with its last records on one line, as an append to a file without a last newline."""
    parts = [one if isinstance(one, bytes) else encode(one) for one in session.records[-count:]]
    session.records[-count:] = [b"".join(parts)]
    return session


def without(name: str, session: Transcript) -> Transcript:
    return session.change(lambda record: record.pop(name, None) and None)


def test_a_title_behind_a_prompt_is_taken(tmp_path: Path) -> None:
    told = tell(glued(Transcript().user("hello").custom_title("Mine")).write(tmp_path))
    (reading,) = told.sessions
    assert (said(reading.messages, "user"), reading.closing.title) == (["hello"], "Mine")
    assert (told.counts.records, told.counts.parsed, told.problems) == (1, 1, ())


def test_of_two_glued_titles_each_is_taken(tmp_path: Path) -> None:
    session = glued(Transcript().user("hello").ai_title("Made").custom_title("Chosen"))
    assert only(session, tmp_path).closing.title == "Chosen"


def test_a_queued_prompt_behind_a_prompt_is_told(tmp_path: Path) -> None:
    session = Transcript().user("hello")
    session.attachment("queued_command", prompt="also winter", origin={"kind": "human"})
    assert said(only(glued(session), tmp_path).messages, "user") == ["hello", "also winter"]


def test_two_prompts_queued_on_one_line_are_two(tmp_path: Path) -> None:
    session = Transcript().user("hello").queue("enqueue", "first").queue("enqueue", "second")
    assert said(only(glued(session, 3), tmp_path).messages, "user") == ["hello", "first", "second"]


def test_a_notice_behind_a_prompt_is_told(tmp_path: Path) -> None:
    session = glued(Transcript().user("hello").system("informational", "a note"))
    messages = only(session, tmp_path).messages
    assert [(m.role, m.content) for m in messages] == [("user", "hello"), ("system", "a note")]


def test_two_glued_lines_without_ids_are_two_messages(tmp_path: Path) -> None:
    session = glued(without("uuid", Transcript().user("one").user("two")))
    messages = only(session, tmp_path).messages
    assert said(messages, "user") == ["one", "two"]
    assert len({m.id for m in messages}) == 2


def test_two_glued_tool_lines_without_ids_are_two_calls(tmp_path: Path) -> None:
    session = Transcript().user("go")
    for number in (1, 2):
        session.line({"type": "tool_use", "name": "x", "input": {"n": number}, "sessionId": "s"})
    for result in ("first", "second"):
        session.line({"type": "tool_result", "name": "x", "output": result, "sessionId": "s"})
    found = tools(only(glued(session, 4), tmp_path).messages)
    assert [(tool.params, tool.result) for tool in found] == [({"n": 1}, "first"), ({"n": 2}, "second")]


def test_a_call_and_its_result_on_one_line_are_joined(tmp_path: Path) -> None:
    session = glued(Transcript().user("go").run(tool_calls.bash("ls", "a b")))
    (tool,) = tools(only(session, tmp_path).messages)
    assert tool.result == "a b"


def test_prompts_glued_in_the_log_are_all_told(tmp_path: Path) -> None:
    at = datetime(2026, 8, 1, 9, tzinfo=UTC)
    path = write_prompts(tmp_path, [Prompt(words, at, "/p", "s1") for words in ("one", "two", "three")])
    path.write_bytes(path.read_bytes().replace(b"\n", b"") + b"\n")
    told = tell(path, "prompts")
    (reading,) = told.sessions
    assert [m.content for m in reading.messages] == ["one", "two", "three"]
    assert len({m.id for m in reading.messages}) == 3
    assert (told.counts.records, told.problems) == (1, ())


def test_a_prompt_keeps_its_id_when_those_before_it_are_pruned(tmp_path: Path) -> None:
    at = datetime(2026, 8, 1, 9, tzinfo=UTC)
    prompts = [Prompt(words, at.replace(minute=minute), "/p", "s1") for minute, words in enumerate("abc")]
    ids = {m.content: m.id for m in _prompts(tmp_path / "all", prompts)}
    assert {m.content: m.id for m in _prompts(tmp_path / "pruned", prompts[1:])} == {
        words: id_ for words, id_ in ids.items() if words != "a"
    }


def _prompts(root: Path, prompts: list[Prompt]) -> Any:
    return tell(write_prompts(root, prompts), "prompts").sessions[0].messages
