"""A file that is being written: whatever was there at the first look, the second completes it."""

import os
from pathlib import Path
from typing import Any

import pytest

from backscroll.model import Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import GENERATIONS, Transcript, tool_calls
from tests.oracle.fold import ParsedSession, fold
from tests.sources.claude_code.reading import in_two, only, said, tell


def outline(reading: ParsedSession) -> dict[str, Any]:
    """Everything that must not depend on when a file was looked at."""
    messages = [m for m in reading.messages if m.is_active or m.kind != "queued"]
    return {
        "messages": {m.id: (m.role, m.kind, m.content, m.is_active, m.timestamp, m.tool) for m in messages},
        "usage": reading.usage,
        "agents": reading.closing.agents,
        "times": (reading.closing.created_at, reading.closing.updated_at),
        "completeness": reading.closing.completeness,
    }


def test_a_half_written_line_gives_its_message_once_when_it_is_whole(tmp_path: Path) -> None:
    session = Transcript().assistant("Noon.").user("thanks")
    path = session.write(tmp_path)
    data = path.read_bytes()
    (whole,) = tell(path).sessions
    for cut in range(data.index(b"\n"), len(data)):
        (reading,) = in_two(path, cut).sessions
        assert outline(reading) == outline(whole)


def test_a_call_cut_off_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    session = Transcript().user("go").run(tool_calls.bash("ls", "a b")).assistant("Two files.")
    path = session.write(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    (whole,) = tell(path).sessions
    for cut in range(len(lines[0]), len(lines[0] + lines[1]) - 1, 5):
        path.write_bytes(b"".join(lines)[:cut])
        told = tell(path)
        assert [m.role for m in told.sessions[0].messages] == ["user"]
        assert told.counts.unknown == {}
        path.write_bytes(b"".join(lines))
        assert outline(in_two(path, cut).sessions[0]) == outline(whole)


def test_the_inside_of_a_broken_line_is_no_record(tmp_path: Path) -> None:
    session = Transcript(version="2.1.30").user("go")
    inner = {"type": "user", "message": {"role": "user", "content": "said by an agent"}, "uuid": "u-1"}
    session.progress("agent_progress", agentId="a1", message=inner, normalizedMessages=[inner])
    session.assistant(tools=[tool_calls.bash("ls")]).user("done")
    path = session.write(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    for broken in (1, 2):
        for cut in range(20, len(lines[broken]) - 2):
            torn = [*lines[:broken], lines[broken][:cut] + b"\n", *lines[broken + 1 :]]
            path.write_bytes(b"".join(torn))
            told = tell(path)
            (reading,) = told.sessions
            assert said(reading.messages, "user") == ["go", "done"]
            assert told.counts.unknown == {}
            assert (told.counts.records, told.counts.problems) == (4, 1)


def test_a_torn_line_makes_a_session_partial_until_it_is_whole(tmp_path: Path) -> None:
    session = Transcript().user("a").assistant("b")
    path = session.write(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:-30])
    assert tell(path).sessions[0].closing.completeness == "partial"
    path.write_bytes(data)
    assert in_two(path, len(data) - 30).sessions[0].closing.completeness == "complete"


def test_a_session_with_a_line_that_cannot_be_read_is_partial(tmp_path: Path) -> None:
    session = Transcript().user("a").raw(b'{"type":"user","mess').assistant("b")
    closing = only(session, tmp_path).closing
    assert (closing.completeness, closing.reasons) == ("partial", ("a line cannot be read",))


def test_a_last_line_without_its_newline_is_told_at_once_and_only_once(tmp_path: Path) -> None:
    session = Transcript().user("a").assistant("b")
    path = session.write(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert said(tell(path).sessions[0].messages, "assistant") == ["b"]
    path.write_bytes(data)
    told = in_two(path, len(data) - 1)
    assert said(told.sessions[0].messages, "assistant") == ["b"]
    assert told.problems == ()


@pytest.mark.parametrize("generation", GENERATIONS)
def test_where_a_file_ended_at_the_first_look_changes_nothing(generation: str, tmp_path: Path) -> None:
    GENERATIONS[generation](tmp_path, 0)
    source = ClaudeCode()
    for unit in source.units(tmp_path):
        path = Path(unit.path)
        if unit.kind not in ("session", "agent") or not unit.size:
            continue
        data = path.read_bytes()
        moment = path.stat().st_mtime
        whole = [
            outline(reading)
            for reading in fold(source.read(Unit("", "", unit.path, kind=unit.kind))).sessions
        ]
        lines = [at + 1 for at, byte in enumerate(data) if byte == 10]
        for cut in {*lines, *range(0, len(data), 997)}:
            told = in_two(path, cut, unit.kind)
            os.utime(path, (moment, moment))
            assert [outline(reading) for reading in told.sessions] == whole, cut
