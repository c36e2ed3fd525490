"""Which agent belongs to which call and whose folder may be looked into."""

import json
from pathlib import Path

import pytest

from backscroll.model import Agent
from backscroll.testing.claude_code import Call, Transcript
from tests.oracle.fold import UnitContent
from tests.sources.claude_code.reading import everything, only, said, tell, tools

STUB = "<persisted-output>\nOutput too large (99KB). Full output saved to: /x/t1.txt\n\nPreview:\nab"


def told_of(agent: Transcript, root: Path) -> UnitContent:
    return everything(root)[agent.path(root).name]


def own(told: UnitContent) -> Agent:
    return told.sessions[0].closing.agents[0]


def test_a_forked_agent_with_a_sidecar_is_listed(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("working")
    fork = session.fork_agent("Look at the tests", "They pass.")
    session.write(tmp_path)
    told = told_of(fork, tmp_path)
    (reading,) = told.sessions
    assert (reading.closing.visibility, own(told).is_hidden, own(told).kind) == ("listed", False, "fork")


@pytest.mark.parametrize(
    ("prompt", "agent_id", "visibility"),
    [
        ("Warmup", "a1", "hidden"),
        ("Look", "acompact-1", "hidden"),
        ("Look", "a1", "listed"),
        (None, "a1", "hidden"),
    ],
)
def test_both_signs_of_a_hidden_agent_agree(
    prompt: str | None, agent_id: str, visibility: str, tmp_path: Path
) -> None:
    session = Transcript(version="2.0.40").user("go")
    agent = session.subagent(prompt, layout="flat", agent_id=agent_id)
    agent.assistant("ready")
    session.write(tmp_path)
    told = told_of(agent, tmp_path)
    (reading,) = told.sessions
    assert reading.closing.visibility == visibility
    assert own(told).is_hidden is (visibility == "hidden")
    assert (reading.closing.reasons != ()) is (visibility == "hidden")


def test_a_session_of_nothing_but_a_warm_up_is_hidden(tmp_path: Path) -> None:
    session = Transcript(version="1.0.98")
    with session.sidechain("Warmup"):
        session.assistant("Ready.")
    closing = only(session, tmp_path).closing
    assert (closing.visibility, [agent.is_hidden for agent in closing.agents]) == ("hidden", [True])


def parallel(*prompts: str) -> Transcript:
    """Two tasks started at once, whose agents were given these words."""
    session = Transcript(version="1.0.98").user("look")
    session.assistant(tools=[Call("Task", {"prompt": f"look at {name}"}, id=f"call_{name}") for name in "AB"])
    for prompt in prompts:
        with session.sidechain(prompt):
            session.assistant(f"seen for {prompt}")
    return session


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        (("look at A", "look at B"), ["call_A", "call_B"]),
        (("look at B", "look at A"), ["call_B", "call_A"]),
        (("look at A, all of it", "look at B"), ["call_A", "call_B"]),
        (("look at A", "look at B, all of it"), ["call_A", "call_B"]),
        (("look at A, all of it", "look at B, all of it"), [None, None]),
    ],
)
def test_parallel_tasks_are_linked_rightly_or_not_at_all(
    prompts: tuple[str, ...], expected: list[str | None], tmp_path: Path
) -> None:
    closing = only(parallel(*prompts), tmp_path).closing
    assert [
        agent.tool_call_id for agent in closing.agents if agent.agent_id.startswith("inline-")
    ] == expected


def test_a_task_after_unclear_ones_is_linked_again(tmp_path: Path) -> None:
    session = parallel("look at A, all of it", "look at B, all of it")
    session.assistant(tools=[Call("Task", {"prompt": "look at C"}, id="call_C")])
    with session.sidechain("look at C, all of it"):
        session.assistant("seen")
    closing = only(session, tmp_path).closing
    assert [agent.tool_call_id for agent in closing.agents] == [None, None, "call_C"]


def test_an_agent_is_never_started_by_a_call_of_its_own(tmp_path: Path) -> None:
    session = Transcript(version="2.1.97").user("go")
    agent = session.subagent("Look", layout="flat", agent_id="a1")
    agent.assistant(tools=[Call("Agent", {"prompt": "Look"}, id="toolu_below")])
    agent.result("toolu_below", "seen", tool_use_result={"agentId": "a2", "totalTokens": 3})
    session.write(tmp_path)
    first, second = told_of(agent, tmp_path).sessions[0].closing.agents
    assert (first.agent_id, first.tool_call_id, first.total_tokens) == ("a1", None, None)
    assert (second.agent_id, second.tool_call_id, second.parent_agent_id) == ("a2", "toolu_below", "a1")


def test_an_agent_whose_first_line_has_a_lost_parent_keeps_its_task(tmp_path: Path) -> None:
    session = Transcript(version="2.0.70").user("go")
    agent = session.subagent(None, layout="flat", agent_id="a1")
    agent.branch_from("dead0000-0000-4000-8000-000000000000").user_line("do the task").assistant("ok")
    session.write(tmp_path)
    told = told_of(agent, tmp_path)
    assert own(told).prompt == "do the task"
    assert [m.kind for m in told.sessions[0].messages if m.role == "user"] == ["task"]


def test_every_kind_of_sign_of_a_link_is_told_once(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("go").delegate("Look", "Seen.")
    for _ in range(3):
        session.progress(
            "agent_progress", parent_tool_id=session.tool_ids[-1], agentId=session.agents[0].agent_id
        )
    links = tell(session.write(tmp_path)).links
    assert sorted(link.strength for link in links) == [2, 3]


def spilling(agent: Transcript) -> Transcript:
    agent.assistant(tools=[Call("Bash", {"command": "cat"}, id="t1")])
    return agent.result("t1", STUB)


def put(folder: Path, words: str) -> None:
    folder.mkdir(parents=True)
    (folder / "t1.txt").write_text(words)


def test_a_flat_agents_spilled_result_lies_in_its_sessions_folder(tmp_path: Path) -> None:
    session = Transcript(version="2.1.10").user("go")
    agent = spilling(session.subagent("Look", layout="flat", agent_id="a1"))
    session.write(tmp_path)
    put(session.path(tmp_path).with_suffix("") / "tool-results", "the whole of it")
    (tool,) = tools(told_of(agent, tmp_path).sessions[0].messages)
    assert tool.result == "the whole of it"


@pytest.mark.parametrize("claimed", ["../../../outside", "/tmp", "..", "", ".", "a/b"])
def test_a_session_id_that_is_a_path_leads_nowhere(claimed: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    put(tmp_path / "outside" / "tool-results", "do not read me")
    put(root / "projects" / "tool-results", "nor me")
    session = Transcript(version="2.1.10").user("go")
    agent = spilling(session.subagent("Look", layout="flat", agent_id="a1"))
    agent.change(lambda record: record.update(sessionId=claimed))
    session.write(root)
    (tool,) = tools(told_of(agent, root).sessions[0].messages)
    assert tool.result == STUB


def test_a_linked_session_folder_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    outside = tmp_path / "outside"
    put(outside / "tool-results", "do not read me")
    (outside / "subagents").mkdir()
    session = spilling(Transcript(version="2.1.97").user("go"))
    path = session.write(root)
    (outside / "subagents" / "agent-a1.jsonl").write_bytes(path.read_bytes())
    path.with_suffix("").symlink_to(outside)
    (tool,) = tools(tell(path).sessions[0].messages)
    assert tool.result == STUB
    assert list(everything(root)) == [path.name]


def test_a_linked_folder_of_subagents_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    outside = tmp_path / "outside"
    outside.mkdir()
    session = Transcript().user("go")
    path = session.write(root)
    (outside / "agent-a1.jsonl").write_bytes(path.read_bytes())
    path.with_suffix("").mkdir()
    (path.with_suffix("") / "subagents").symlink_to(outside)
    assert list(everything(root)) == [path.name]


def test_a_home_below_a_folder_named_subagents_is_no_subagents_folder(tmp_path: Path) -> None:
    session = spilling(Transcript(version="2.1.97").user("go"))
    root = tmp_path / "subagents" / "home"
    put(tmp_path / "tool-results", "do not read me")
    put(session.path(root).with_suffix("") / "tool-results", "the whole of it")
    (tool,) = tools(tell(session.write(root)).sessions[0].messages)
    assert tool.result == "the whole of it"


def test_a_sidecar_may_hold_anything(tmp_path: Path) -> None:
    for number, found in enumerate((None, [], 3, "x", {"toolUseId": 3, "agentType": [], "model": {}})):
        session = Transcript(seed=number).user("go")
        agent = session.subagent("Look", layout="nested", agent_id=f"a{number}")
        agent.assistant("Seen.")
        session.write(tmp_path)
        agent.path(tmp_path).with_suffix(".meta.json").write_text(json.dumps(found))
        told = told_of(agent, tmp_path)
        assert said(told.sessions[0].messages, "assistant") == ["Seen."]
        assert told.links == ()
