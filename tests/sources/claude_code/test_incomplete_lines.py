"""Files that are read while they are written: the next read completes the result."""

import os
from pathlib import Path
from typing import Any

import pytest

from backscroll.model.store import Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.builders.claude_code.generations import GENERATIONS
from tests.oracle.fold import ParsedSession, fold
from tests.sources.claude_code.read_helpers import read_file, read_in_two_steps, read_session, texts_of


def outline(parsed: ParsedSession) -> dict[str, Any]:
    """Return everything that must not depend on when a file was read."""
    messages = [m for m in parsed.messages if m.is_active or m.kind != "queued"]
    return {
        "messages": {m.id: (m.role, m.kind, m.content, m.is_active, m.timestamp, m.tool) for m in messages},
        "usage": parsed.usage,
        "agents": parsed.closing.agents,
        "times": (parsed.closing.created_at, parsed.closing.updated_at),
        "completeness": parsed.closing.completeness,
    }


def test_a_truncated_line_yields_its_message_once_when_it_is_complete(tmp_path: Path) -> None:
    session = Transcript().assistant("Noon.").user("thanks")
    path = session.write(tmp_path)
    data = path.read_bytes()
    (whole,) = read_file(path).sessions
    for cut in range(data.index(b"\n"), len(data)):
        (parsed,) = read_in_two_steps(path, cut).sessions
        assert outline(parsed) == outline(whole)


def test_joined_records_of_a_last_line_without_newline_are_read_once(tmp_path: Path) -> None:
    session = Transcript().user("hello").assistant("Noon.").user("thanks")
    path = session.write(tmp_path)
    first, second, third = path.read_bytes().splitlines()
    path.write_bytes(first + second + third[:40])
    content = read_file(path)
    assert [m.content for m in content.sessions[0].messages] == ["hello", "Noon."]
    assert [problem.code for problem in content.problems] == ["truncated-line"]
    path.write_bytes(first + second + third + b"\n")
    (whole,) = read_file(path).sessions
    (parsed,) = read_in_two_steps(path, len(first + second) + 40).sessions
    assert outline(parsed) == outline(whole)


def test_a_truncated_call_yields_nothing(tmp_path: Path) -> None:
    session = Transcript().user("go").run(tool_calls.bash("ls", "a b")).assistant("Two files.")
    path = session.write(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    (whole,) = read_file(path).sessions
    for cut in range(len(lines[0]), len(lines[0] + lines[1]) - 1, 5):
        path.write_bytes(b"".join(lines)[:cut])
        content = read_file(path)
        assert [m.role for m in content.sessions[0].messages] == ["user"]
        assert content.counts.unknown == {}
        path.write_bytes(b"".join(lines))
        assert outline(read_in_two_steps(path, cut).sessions[0]) == outline(whole)


def test_a_nested_object_in_a_damaged_line_is_not_a_record(tmp_path: Path) -> None:
    session = Transcript(version="2.1.30").user("go")
    inner = {"type": "user", "message": {"role": "user", "content": "from a subagent"}, "uuid": "u-1"}
    session.progress("agent_progress", agentId="a1", message=inner, normalizedMessages=[inner])
    session.assistant(tools=[tool_calls.bash("ls")]).user("done")
    path = session.write(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    for damaged_index in (1, 2):
        for cut in range(20, len(lines[damaged_index]) - 2):
            damaged = [
                *lines[:damaged_index],
                lines[damaged_index][:cut] + b"\n",
                *lines[damaged_index + 1 :],
            ]
            path.write_bytes(b"".join(damaged))
            content = read_file(path)
            parsed = content.sessions[0]
            assert texts_of(parsed.messages, "user") == ["go", "done"]
            assert content.counts.unknown == {}
            assert (content.counts.records, content.counts.problems) == (4, 1)


def test_a_truncated_line_makes_a_session_partial_until_it_is_complete(tmp_path: Path) -> None:
    session = Transcript().user("a").assistant("b")
    path = session.write(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:-30])
    assert read_file(path).sessions[0].closing.completeness == "partial"
    path.write_bytes(data)
    assert read_in_two_steps(path, len(data) - 30).sessions[0].closing.completeness == "complete"


def test_a_session_with_a_damaged_line_is_partial(tmp_path: Path) -> None:
    session = Transcript().user("a").raw(b'{"type":"user","mess').assistant("b")
    closing = read_session(session, tmp_path).closing
    assert (closing.completeness, closing.reasons) == ("partial", ("1 line cannot be read",))


def test_a_last_line_without_a_newline_is_read_immediately_and_once(tmp_path: Path) -> None:
    session = Transcript().user("a").assistant("b")
    path = session.write(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert texts_of(read_file(path).sessions[0].messages, "assistant") == ["b"]
    path.write_bytes(data)
    content = read_in_two_steps(path, len(data) - 1)
    assert texts_of(content.sessions[0].messages, "assistant") == ["b"]
    assert content.problems == ()


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_result_does_not_depend_on_where_the_first_read_ended(generation: str, tmp_path: Path) -> None:
    GENERATIONS[generation](tmp_path, 0)
    source = ClaudeCode()
    for unit in source.units(tmp_path):
        path = Path(unit.path)
        if unit.kind not in ("session", "agent") or not unit.size:
            continue
        data = path.read_bytes()
        modified_at = path.stat().st_mtime
        whole = [
            outline(parsed) for parsed in fold(source.read(Unit("", "", unit.path, kind=unit.kind))).sessions
        ]
        lines = [at + 1 for at, byte in enumerate(data) if byte == 10]
        for cut in {*lines, *range(0, len(data), 997)}:
            content = read_in_two_steps(path, cut, unit.kind)
            os.utime(path, (modified_at, modified_at))
            assert [outline(parsed) for parsed in content.sessions] == whole, cut
