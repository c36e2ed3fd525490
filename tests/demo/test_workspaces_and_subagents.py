"""Workspaces and subagents of the demo, and the redaction of search results."""

from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.errors import SessionNotFoundError
from backscroll.history.history import History
from backscroll.redact import Redactor
from backscroll.testing.claude_code import Transcript

KEY = "sk-ant-api03-" + "Qm7xT2vLk9RbWz4pNc8s" * 4 + "-AAAA"


def test_workspaces_have_session_counts_and_are_sorted_by_last_use(history: History) -> None:
    workspaces = history.list_workspaces()
    assert workspaces == sorted(workspaces, key=lambda one: str(one.updated_at), reverse=True)
    sessions = history.all_sessions()
    for workspace in workspaces:
        own = [session for session in sessions if session.workspace_path == workspace.path]
        assert (workspace.session_count, workspace.updated_at) == (len(own), own[0].updated_at)
    with_workspace = [session for session in sessions if session.workspace_path]
    assert sum(workspace.session_count for workspace in workspaces) == len(with_workspace)


def test_a_subagent_has_its_prompt_tool_count_and_duration(history: History) -> None:
    review = history.find("f841ceec")
    agent = history.get_agent_session(review.agent_ids[0])
    assert (agent.agent_id, agent.parent_session_id) == (review.agent_ids[0], review.id)
    assert agent.prompt == agent.messages[0].content
    assert agent.total_tool_use_count == sum(message.role == "tool" for message in agent.messages)
    assert agent.total_duration_ms is not None and agent.total_duration_ms > 0


def test_a_session_is_not_a_subagent(history: History) -> None:
    with pytest.raises(SessionNotFoundError, match="is a session, not a subagent"):
        history.get_agent_session("f841ceec")


@pytest.mark.parametrize("pattern", ["words", "exact", "regex"])
def test_a_search_result_contains_no_part_of_a_secret(tmp_path: Path, pattern: str) -> None:
    session = Transcript("10000000-0000-4000-8000-000000000000", seed=1, cwd="/home/zoe/ferry")
    session.user("x" * 400 + f" the key {KEY} opens the lighthouse " + "y" * 400).assistant("Thanks.")
    session.write(tmp_path / "claude")
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home") as history:
        history.sync()
        for query in ("lighthouse", "Qm7xT2vLk9RbWz4pNc8s"):
            for match in history.search_sessions(query, pattern=pattern, redactor=Redactor()).data:  # type: ignore[arg-type]
                text = "\n".join([match.match, *match.context])
                assert "Qm7xT2vL" not in text
                assert all(0 <= a < b <= len(match.match) for a, b in match.highlights)
