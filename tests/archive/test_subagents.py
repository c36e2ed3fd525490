"""Subagents whose file does not contain their prompt, and subagents with copied messages."""

from contextlib import closing
from pathlib import Path

from backscroll import History
from backscroll.archive.archive import Archive
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


def test_a_subagent_with_copied_messages_leads_to_the_subagents_that_had_them_first(tmp_path: Path) -> None:
    with closing(Archive(tmp_path / "archive.db")) as archive:
        db = archive._db
        db.execute("pragma foreign_keys = off")
        db.executemany(
            "insert into subagent (id, platform, agent_id, parent_external_id, source)"
            " values (?, ?, ?, ?, 'x')",
            [
                (1, "claude_code", "copy", "new"),
                (2, "claude_code", "first", "old"),
                (3, "cursor", "first", "other"),
            ],
        )
        db.execute("insert into string values (900, 'first')")
        db.execute(
            "insert into fragment (id, unit_id, platform, source, store, external_id, parent_external_id,"
            " is_subagent, opening, closing)"
            " values (7, 1, 'claude_code', 'x', 'x', 'copy', 'new', 1, x'', x'')"
        )
        db.execute(
            "insert into message (fragment_id, position, record_hash, role_string_id, is_active,"
            " copied_from_string_id) values (7, 0, 1, 1, 1, 900)"
        )
        assert archive.sessions.with_copied_messages() == {1: {2}}
