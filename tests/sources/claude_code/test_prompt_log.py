"""The prompt log, which has the prompts of sessions without a transcript."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from backscroll.model.message import Message
from backscroll.model.store import Unit
from backscroll.model.stream import Closing, ClosingUpdate, Opening, RecordCounts
from backscroll.model.workspace import Workspace
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Prompt
from backscroll.testing.claude_code.side_files import write_prompts
from tests.sources.claude_code.read_helpers import read_file

START = datetime(2026, 8, 1, 9, tzinfo=UTC)
ONE = "5e551011-0000-4000-8000-0000000000aa"
TWO = "5e551011-0000-4000-8000-0000000000bb"


def test_prompts_of_a_session_become_a_lossy_session(tmp_path: Path) -> None:
    path = write_prompts(
        tmp_path,
        [
            Prompt("first", START, "/home/zoe/ferry", "5e551011-0000-4000-8000-0000000000aa"),
            Prompt("other", START, "/home/zoe/web", "5e551011-0000-4000-8000-0000000000bb"),
            Prompt(
                "second", START + timedelta(days=2), "/home/zoe/ferry", "5e551011-0000-4000-8000-0000000000aa"
            ),
        ],
    )
    first, other = read_file(path, "prompts").sessions
    assert [m.content for m in first.messages] == ["first", "second"]
    assert [m.content for m in other.messages] == ["other"]
    assert (first.opening.id, first.opening.store) == ("5e551011-0000-4000-8000-0000000000aa", "prompts")
    assert first.closing.completeness == "lossy"
    assert first.closing.workspace is not None
    assert first.closing.workspace.path == "/home/zoe/ferry"
    assert (first.closing.created_at, first.closing.updated_at) == (START, START + timedelta(days=2))


def test_prompts_without_a_session_id_are_grouped_by_project_and_pause(tmp_path: Path) -> None:
    path = write_prompts(
        tmp_path,
        [
            Prompt("a", START, "/p", None),
            Prompt("b", START + timedelta(minutes=5), "/p", None),
            Prompt("c", START + timedelta(minutes=6), "/q", None),
            Prompt("d", START + timedelta(hours=5), "/p", None),
        ],
    )
    content = read_file(path, "prompts")
    assert [[m.content for m in parsed.messages] for parsed in content.sessions] == [["a", "b"], ["c"], ["d"]]
    assert len({parsed.opening.id for parsed in content.sessions}) == 3


def test_a_damaged_line_loses_only_itself(tmp_path: Path) -> None:
    path = write_prompts(tmp_path, [Prompt("a", START, "/p", "s1"), Prompt("b", START, "/p", "s1")])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"display":"torn\n' + lines[1])
    content = read_file(path, "prompts")
    assert [m.content for m in content.sessions[0].messages] == ["a", "b"]
    assert (content.counts.records, content.counts.parsed, content.counts.problems) == (3, 2, 1)


def _mixed_prompts() -> list[Prompt]:
    """Return prompts with and without session ids, some at the same time, one out of order."""
    return [
        Prompt("first", START, "/p", ONE),
        Prompt("at the same time", START, "/p", ONE),
        Prompt("elsewhere", START, "/p", TWO),
        Prompt("without a session", START, "/q", None),
        Prompt("shortly after", START + timedelta(minutes=30), "/q", None),
        Prompt("the same again", START + timedelta(minutes=30), "/q", None),
        Prompt("later", START + timedelta(minutes=50), "/p", ONE),
        Prompt("with an earlier clock", START, "/p", ONE),
        Prompt("after a long pause", START + timedelta(hours=5), "/q", None),
    ]


@pytest.mark.parametrize("lines", range(10))
def test_reading_a_log_in_two_steps_gives_the_same_messages(tmp_path: Path, lines: int) -> None:
    whole = read_file(write_prompts(tmp_path / "whole", _mixed_prompts()), "prompts")
    path = write_prompts(tmp_path / "parts", _mixed_prompts())
    data = path.read_bytes()
    cut = len(b"".join(data.splitlines(keepends=True)[:lines])) + 7 * (lines < len(_mixed_prompts()))
    unit = Unit("claude-code", "", str(path), kind="prompts")
    path.write_bytes(data[:cut])
    first = list(ClaudeCode().read(unit))
    path.write_bytes(data)
    assert isinstance(first[-1], RecordCounts)
    second = list(ClaudeCode().read(unit, first[-1].checkpoint))
    messages = [item for item in (*first, *second) if isinstance(item, Message)]
    found = sorted((m.id, m.content) for m in messages)
    assert found == sorted((m.id, m.content) for one in whole.sessions for m in one.messages)
    assert len(found) == len(_mixed_prompts())
    openings = {item.id for item in (*first, *second) if isinstance(item, Opening)}
    assert openings == {one.opening.id for one in whole.sessions}


def test_an_update_of_a_closing_changes_only_the_end_time() -> None:
    before = Closing(
        workspace=Workspace("/p"), created_at=START, updated_at=START, completeness="lossy", reasons=("why",)
    )
    later = START + timedelta(days=1)
    added = ClosingUpdate(workspace=Workspace("/q"), created_at=later, updated_at=later).applied_to(before)
    assert added == replace(before, updated_at=later)
    assert type(added) is Closing
