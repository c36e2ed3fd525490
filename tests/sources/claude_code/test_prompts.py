"""The log of typed prompts: what is left when a transcript is gone."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from backscroll.testing.claude_code import Prompt
from backscroll.testing.claude_code.stores import write_prompts
from tests.sources.claude_code.reading import tell

START = datetime(2026, 8, 1, 9, tzinfo=UTC)


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
    first, other = tell(path, "prompts").readings
    assert [m.content for m in first.messages] == ["first", "second"]
    assert [m.content for m in other.messages] == ["other"]
    assert (first.opening.id, first.opening.store) == ("5e551011-0000-4000-8000-0000000000aa", "prompts")
    assert first.closing.completeness == "lossy"
    assert first.closing.workspace is not None
    assert first.closing.workspace.path == "/home/zoe/ferry"
    assert (first.closing.created_at, first.closing.updated_at) == (START, START + timedelta(days=2))


def test_prompts_without_a_session_are_grouped_by_project_and_sitting(tmp_path: Path) -> None:
    path = write_prompts(
        tmp_path,
        [
            Prompt("a", START, "/p", None),
            Prompt("b", START + timedelta(minutes=5), "/p", None),
            Prompt("c", START + timedelta(minutes=6), "/q", None),
            Prompt("d", START + timedelta(hours=5), "/p", None),
        ],
    )
    told = tell(path, "prompts")
    assert [[m.content for m in reading.messages] for reading in told.readings] == [["a", "b"], ["c"], ["d"]]
    assert len({reading.opening.id for reading in told.readings}) == 3


def test_a_broken_line_loses_only_itself(tmp_path: Path) -> None:
    path = write_prompts(tmp_path, [Prompt("a", START, "/p", "s1"), Prompt("b", START, "/p", "s1")])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"display":"torn\n' + lines[1])
    told = tell(path, "prompts")
    assert [m.content for m in told.readings[0].messages] == ["a", "b"]
    assert (told.tally.records, told.tally.understood, told.tally.problems) == (3, 2, 1)
