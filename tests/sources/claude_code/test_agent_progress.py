"""Subagents that are known only from the progress lines of their parent."""

from pathlib import Path
from typing import Any

import pytest

from backscroll import History
from backscroll.config import NamedRoot
from backscroll.model.session import Filter
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.sources.claude_code.read_helpers import calls_of, read_file

_CALLS = [
    tool_calls.write("notes.md", "first line\nsecond line\n"),
    tool_calls.bash("git commit -m 'feat: add notes'", "[main 1a2b3c4] feat: add notes\n"),
]


def _session(*, with_file: bool = False) -> Transcript:
    session = Transcript(version="2.1.39").user("add notes")
    return session.delegate_with_progress(
        "Write the notes", "Written.", _CALLS, description="Write notes", with_file=with_file
    ).assistant("Done.")


def _history(root: Path, home: Path) -> History:
    return History(home=home, roots=[NamedRoot("claude-code", root)])


def _figures(history: History) -> list[dict[str, Any]]:
    """Return what a list shows of each session, without the order of equal times."""
    page = history.list_sessions(Filter(with_subagents=True))
    rows = [
        {
            "id": row.id,
            "messages": row.message_count,
            "tokens": row.total_tokens,
            "changes": row.total_changes,
            "title": row.title,
            "completeness": row.completeness,
        }
        for row in page.data
    ]
    return sorted(rows, key=lambda row: str(row["id"]))


def test_a_subagent_without_a_file_has_its_prompt_and_calls(tmp_path: Path) -> None:
    main, agent = read_file(_session().write(tmp_path)).sessions
    assert agent.opening.parent_id == main.opening.id
    assert agent.opening.store == "progress"
    assert agent.closing.completeness == "partial"
    assert [m.content for m in agent.messages if m.role == "user"] == ["Write the notes"]
    assert [call.name for call in calls_of(agent.messages)] == ["Write", "Bash"]
    assert "1a2b3c4" in (calls_of(agent.messages)[1].result or "")
    (described,) = agent.closing.agents
    assert described.description == "Write notes"
    assert not any(m.agent_id for m in main.messages)


def test_a_subagent_with_a_file_is_not_read_from_progress_lines(tmp_path: Path) -> None:
    content = read_file(_session(with_file=True).write(tmp_path))
    assert [session.opening.store for session in content.sessions] == ["lines"]


def test_a_repeated_progress_line_adds_no_message(tmp_path: Path) -> None:
    path = _session().write(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line * (2 if b"agent_progress" in line else 1) for line in lines))
    _, agent = read_file(path).sessions
    assert [call.name for call in calls_of(agent.messages)] == ["Write", "Bash"]


@pytest.mark.parametrize(
    "message", [None, 7, "text", [], {}, {"type": "user"}, {"type": "user", "message": 3}, {"type": []}]
)
def test_a_progress_line_with_another_message_is_only_a_link(tmp_path: Path, message: Any) -> None:
    session = Transcript(version="2.1.39").user("go")
    session.progress("agent_progress", parent_tool_id="toolu_1", agentId="a1b2c3d", message=message)
    content = read_file(session.write(tmp_path))
    assert len(content.sessions) == 1
    assert [link.agent_id for link in content.links] == ["a1b2c3d"]


def test_a_growing_file_gives_the_same_subagent_as_a_complete_one(tmp_path: Path) -> None:
    root = tmp_path / "root"
    path = _session().write(root)
    whole = path.read_bytes()
    ends = [number + 1 for number, byte in enumerate(whole) if byte == ord("\n")]
    with _history(root, tmp_path / "complete") as history:
        history.sync()
        expected = _figures(history)
    with _history(root, tmp_path / "growing") as history:
        for end in ends:
            path.write_bytes(whole[:end])
            history.sync()
        assert _figures(history) == expected


def test_the_file_of_a_subagent_replaces_its_progress_lines(tmp_path: Path) -> None:
    session = _session(with_file=True)
    session.write(tmp_path / "with_file")
    with _history(tmp_path / "with_file", tmp_path / "expected") as history:
        history.sync()
        expected = _figures(history)
    root = tmp_path / "root"
    path = session.write(root)
    (agent_file,) = path.with_suffix("").rglob("agent-*.jsonl")
    hidden = agent_file.rename(tmp_path / "hidden")
    with _history(root, tmp_path / "home") as history:
        history.sync()
        assert {row["id"] for row in _figures(history)} == {row["id"] for row in expected}
        hidden.rename(agent_file)
        history.sync()
        assert _figures(history) == expected
        assert len(history.search_sessions("second line").data) == 1


def test_a_rebuild_without_the_tools_files_has_the_same_figures(tmp_path: Path) -> None:
    root = tmp_path / "root"
    path = _session(with_file=True).write(root)
    with _history(root, tmp_path / "home") as history:
        history.sync()
        expected = _figures(history)
        for file in [*path.parent.rglob("*.jsonl")]:
            file.unlink()
        history.archive_admin.rebuild()
        assert _figures(history) == expected
