"""Subagents whose file does not contain their prompt."""

from pathlib import Path

from backscroll import History
from backscroll.config import NamedRoot
from backscroll.testing.claude_code import Transcript


def test_a_subagent_without_a_prompt_is_listed_with_the_prompt_of_its_call(tmp_path: Path) -> None:
    """2.0.58 writes the prompt into the call only. A warm-up looks the same, but no call started it."""
    session = Transcript(version="2.0.58").user("go").delegate("Look", "Seen.").assistant("ok")
    (agent,) = session.agents
    agent.records.pop(0)
    session.subagent(None).assistant("Ready.")
    session.write(tmp_path / "root")
    roots = [NamedRoot("claude-code", tmp_path / "root")]
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        (summary,) = history.all_sessions()
        assert summary.agent_ids == (agent.agent_id,)
        found = history.get_agent_session(f"claude-code:{agent.agent_id}")
    assert found.prompt == "Look"
    assert [message.content for message in found.messages] == ["Seen."]
