"""Subagents in all file layouts: inlined, flat files, and files in the session folder."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.model.stream import Agent
from backscroll.render.turns import is_visible
from backscroll.testing.claude_code import Transcript, tool_calls
from backscroll.testing.claude_code.events import task_notification
from tests.oracle.fold import ParsedSession
from tests.sources.claude_code.read_helpers import read_file, read_root, read_session, texts_of


def agents(parsed: ParsedSession) -> dict[str, Agent]:
    return {agent.agent_id: agent for agent in parsed.closing.agents}


def test_an_inlined_subagent_has_its_own_messages_and_its_call(tmp_path: Path) -> None:
    session = Transcript(version="1.0.98").user("where is it read?")
    session.delegate("Find all callers", "Two.", calls=[tool_calls.grep("parse", ["a.py"])]).assistant(
        "In two places."
    )
    parsed = read_session(session, tmp_path)
    (agent,) = agents(parsed).values()
    assert agent.agent_id.startswith("inline-")
    assert agent.prompt == "Find all callers"
    (task,) = [m for m in parsed.messages if m.tool and m.tool.name == "Task"]
    assert task.tool is not None
    assert agent.tool_call_id == task.tool.id
    own = [m for m in parsed.messages if m.agent_id == agent.agent_id]
    assert all(m.is_sidechain and m.is_active for m in own)
    assert texts_of(tuple(own), "assistant") == ["Two."]
    assert texts_of(tuple(m for m in parsed.messages if m.agent_id is None), "user") == ["where is it read?"]


def test_two_inlined_subagents_are_distinguished_by_their_prompts(tmp_path: Path) -> None:
    session = Transcript(version="1.0.98").user("look").delegate("Look left", "Nothing.")
    session.delegate("Look right", "Something.").assistant("Right.")
    found = agents(read_session(session, tmp_path))
    assert {agent.prompt for agent in found.values()} == {"Look left", "Look right"}
    assert len({agent.tool_call_id for agent in found.values()}) == 2


def test_a_flat_file_belongs_to_the_session_id_in_its_lines(tmp_path: Path) -> None:
    session = Transcript(version="2.0.40").user("go").delegate("Look", "Seen.").assistant("ok")
    session.write(tmp_path)
    contents = read_root(tmp_path)
    (name,) = [name for name in contents if name.startswith("agent-")]
    (parsed,) = contents[name].sessions
    assert parsed.opening.parent_id == session.session_id
    assert parsed.opening.agent_id == name.removeprefix("agent-").removesuffix(".jsonl")
    assert all(m.agent_id == parsed.opening.agent_id for m in parsed.messages)
    (link,) = contents[f"{session.session_id}.jsonl"].links
    assert link.agent_id == parsed.opening.agent_id


def test_a_file_in_the_session_folder_is_linked_by_its_sidecar(tmp_path: Path) -> None:
    session = Transcript(version="2.1.230").user("go").delegate("Look", "Seen.").assistant("ok")
    session.write(tmp_path)
    contents = read_root(tmp_path)
    (name,) = [name for name in contents if name.startswith("agent-")]
    (parsed,) = contents[name].sessions
    (link,) = contents[name].links
    assert (link.strength, link.tool_call_id) == (1, session.tool_ids[-1])
    assert parsed.opening.parent_id == session.session_id
    own = parsed.closing.agents[0]
    assert (own.tool_call_id, own.prompt) == (link.tool_call_id, "Look")


def test_totals_of_a_subagent_come_from_its_parent(tmp_path: Path) -> None:
    session = Transcript(version="2.1.230").user("go").delegate("Look", "Seen.").assistant("ok")
    (agent,) = agents(read_session(session, tmp_path)).values()
    assert agent.total_duration_ms is not None
    assert agent.total_tokens is not None
    assert agent.total_tool_use_count is not None


@pytest.mark.parametrize("version", ["1.0.98", "2.0.60", "2.1.230"])
def test_the_totals_of_a_subagent_are_the_same_in_the_library_and_in_sql(
    tmp_path: Path, version: str
) -> None:
    session = Transcript(version=version).user("go")
    session.delegate("Look", "Seen.", calls=[tool_calls.bash("ls", "a"), tool_calls.bash("ls b", "b")])
    session.write(tmp_path / "claude")
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home") as history:
        history.sync()
        (listed,) = [one for one in history.list_sessions(Filter(with_subagents=True)).data if one.parent_ref]
        agent = history.get_agent_session(listed.ref)
    with closing(sqlite3.connect(history.archive_path)) as db:
        (row,) = db.execute("select total_duration_ms, total_tool_use_count, total_tokens from subagent")
    assert (agent.total_duration_ms, agent.total_tool_use_count, agent.total_tokens) == row
    assert agent.total_tool_use_count == 2
    if version == "2.1.230":
        (own,) = agents(read_session(session, tmp_path / "parsed")).values()
        assert row[:2] == (own.total_duration_ms, own.total_tool_use_count)


def test_warm_ups_and_replays_are_hidden(tmp_path: Path) -> None:
    session = Transcript(version="2.0.64").user("go")
    session.subagent("Warmup").assistant("Ready.")
    session.subagent("real work").assistant("Done.")
    session.subagent("x", agent_id="acompact-123").assistant("replayed")
    session.subagent(None, agent_id="b1").assistant("an answer first")
    session.write(tmp_path)
    found = {
        content.sessions[0].opening.agent_id: content.sessions[0].closing.visibility
        for name, content in read_root(tmp_path).items()
        if name.startswith("agent-")
    }
    assert sorted(found.values()) == ["hidden", "hidden", "hidden", "listed"]
    assert found["acompact-123"] == found["b1"] == "hidden"


def test_repeated_progress_lines_link_a_subagent_once(tmp_path: Path) -> None:
    session = Transcript(version="2.1.30").user("go")
    for _ in range(5):
        session.progress("agent_progress", parent_tool_id="toolu_7", agentId="a1b2c3d", prompt="find")
    content = read_file(session.write(tmp_path))
    assert [(link.agent_id, link.tool_call_id) for link in content.links] == [("a1b2c3d", "toolu_7")]


def test_the_report_of_a_background_agent_is_a_message_with_its_totals(tmp_path: Path) -> None:
    session = Transcript(version="2.1.325").user("go").delegate_in_background("Count", "There are 9.")
    session.assistant("Nine.")
    content = read_file(session.write(tmp_path))
    (parsed,) = content.sessions
    (report,) = [message for message in parsed.messages if message.kind == "report"]
    assert report.role == "system"
    assert report.content == 'Agent "Look it up" finished\n\nThere are 9.'
    assert is_visible(report)
    assert texts_of(parsed.messages, "user") == ["go"]
    (agent,) = agents(parsed).values()
    assert (agent.total_duration_ms, agent.total_tokens, agent.total_tool_use_count) == (1301, 460, 2)
    assert not content.problems


def test_a_report_in_a_user_line_has_its_trailing_text(tmp_path: Path) -> None:
    session = Transcript(version="2.1.90").user("go")
    markup = task_notification("a1", "toolu_1", "Agent finished", result="<b>Nine</b> </result> left")
    session.user_line(f"{markup}\nRead the output file.", origin={"kind": "task-notification"})
    (report,) = [m for m in read_session(session, tmp_path).messages if m.kind == "report"]
    assert report.content == "Agent finished\n\n<b>Nine</b> </result> left\n\nRead the output file."


def test_the_notification_of_a_shell_command_is_not_a_report(tmp_path: Path) -> None:
    session = Transcript(version="2.1.230").user("go").notification("b1", "toolu_1", "Command finished")
    assert "report" not in {message.kind for message in read_session(session, tmp_path).messages}
