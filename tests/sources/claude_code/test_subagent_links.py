"""Links between subagents and calls, and the folders of spilled results."""

import json
from pathlib import Path

import pytest

from backscroll.model.stream import Agent
from backscroll.testing.claude_code import Call, Transcript
from tests.oracle.fold import UnitContent
from tests.sources.claude_code.read_helpers import calls_of, read_file, read_root, read_session, texts_of

SPILLED_STUB = "<persisted-output>\nOutput too large (99KB). Full output saved to: /x/t1.txt\n\nPreview:\nab"


def read_agent(agent: Transcript, root: Path) -> UnitContent:
    return read_root(root)[agent.path(root).name]


def first_agent(content: UnitContent) -> Agent:
    return content.sessions[0].closing.agents[0]


def test_a_forked_subagent_with_a_sidecar_is_listed(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("working")
    fork = session.fork_agent("Look at the tests", "They pass.")
    session.write(tmp_path)
    content = read_agent(fork, tmp_path)
    (parsed,) = content.sessions
    assert (parsed.closing.visibility, first_agent(content).is_hidden, first_agent(content).kind) == (
        "listed",
        False,
        "fork",
    )


@pytest.mark.parametrize(
    ("prompt", "agent_id", "visibility"),
    [
        ("Warmup", "a1", "hidden"),
        ("Look", "acompact-1", "hidden"),
        ("Suggest a prompt", "aprompt_suggestion-5c959e", "hidden"),
        ("Look", "a1", "listed"),
        (None, "a1", "hidden"),
    ],
)
def test_visibility_and_hidden_flag_of_a_subagent_agree(
    prompt: str | None, agent_id: str, visibility: str, tmp_path: Path
) -> None:
    session = Transcript(version="2.0.40").user("go")
    agent = session.subagent(prompt, layout="flat", agent_id=agent_id)
    agent.assistant("ready")
    session.write(tmp_path)
    content = read_agent(agent, tmp_path)
    (parsed,) = content.sessions
    assert parsed.closing.visibility == visibility
    assert first_agent(content).is_hidden is (visibility == "hidden")
    assert (parsed.closing.reasons != ()) is (visibility == "hidden")


def test_a_session_with_only_a_warm_up_is_hidden(tmp_path: Path) -> None:
    session = Transcript(version="1.0.98")
    with session.sidechain("Warmup"):
        session.assistant("Ready.")
    closing = read_session(session, tmp_path).closing
    assert (closing.visibility, [agent.is_hidden for agent in closing.agents]) == ("hidden", [True])


def parallel_session(*prompts: str) -> Transcript:
    """Build a session with two parallel calls and inlined subagents with these prompts."""
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
def test_parallel_subagents_are_linked_correctly_or_not_at_all(
    prompts: tuple[str, ...], expected: list[str | None], tmp_path: Path
) -> None:
    closing = read_session(parallel_session(*prompts), tmp_path).closing
    assert [
        agent.tool_call_id for agent in closing.agents if agent.agent_id.startswith("inline-")
    ] == expected


def test_a_subagent_after_ambiguous_ones_is_linked(tmp_path: Path) -> None:
    session = parallel_session("look at A, all of it", "look at B, all of it")
    session.assistant(tools=[Call("Task", {"prompt": "look at C"}, id="call_C")])
    with session.sidechain("look at C, all of it"):
        session.assistant("seen")
    closing = read_session(session, tmp_path).closing
    assert [agent.tool_call_id for agent in closing.agents] == [None, None, "call_C"]


def test_a_subagent_is_never_linked_to_one_of_its_own_calls(tmp_path: Path) -> None:
    session = Transcript(version="2.1.97").user("go")
    agent = session.subagent("Look", layout="flat", agent_id="a1")
    agent.assistant(tools=[Call("Agent", {"prompt": "Look"}, id="toolu_below")])
    agent.result("toolu_below", "seen", tool_use_result={"agentId": "a2", "totalTokens": 3})
    session.write(tmp_path)
    first, second = read_agent(agent, tmp_path).sessions[0].closing.agents
    assert (first.agent_id, first.tool_call_id, first.total_tokens) == ("a1", None, None)
    assert (second.agent_id, second.tool_call_id, second.parent_agent_id) == ("a2", "toolu_below", "a1")


def test_a_subagent_with_a_missing_parent_line_keeps_its_prompt(tmp_path: Path) -> None:
    session = Transcript(version="2.0.70").user("go")
    agent = session.subagent(None, layout="flat", agent_id="a1")
    agent.branch_from("dead0000-0000-4000-8000-000000000000").user_line("do the task").assistant("ok")
    session.write(tmp_path)
    content = read_agent(agent, tmp_path)
    assert first_agent(content).prompt == "do the task"
    assert [m.kind for m in content.sessions[0].messages if m.role == "user"] == ["task"]


def test_each_kind_of_evidence_for_a_link_is_emitted_once(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("go").delegate("Look", "Seen.")
    for _ in range(3):
        session.progress(
            "agent_progress", parent_tool_id=session.tool_ids[-1], agentId=session.agents[0].agent_id
        )
    links = read_file(session.write(tmp_path)).links
    assert sorted(link.strength for link in links) == [2, 3]


def with_spilled_result(agent: Transcript) -> Transcript:
    agent.assistant(tools=[Call("Bash", {"command": "cat"}, id="t1")])
    return agent.result("t1", SPILLED_STUB)


def write_spilled_result(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "t1.txt").write_text(text)


def test_a_spilled_result_of_a_flat_subagent_is_read_from_the_session_folder(tmp_path: Path) -> None:
    session = Transcript(version="2.1.10").user("go")
    agent = with_spilled_result(session.subagent("Look", layout="flat", agent_id="a1"))
    session.write(tmp_path)
    write_spilled_result(session.path(tmp_path).with_suffix("") / "tool-results", "the whole of it")
    (tool,) = calls_of(read_agent(agent, tmp_path).sessions[0].messages)
    assert tool.result == "the whole of it"


@pytest.mark.parametrize("claimed", ["../../../outside", "/tmp", "..", "", ".", "a/b"])
def test_a_session_id_that_is_a_path_is_not_followed(claimed: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_spilled_result(tmp_path / "outside" / "tool-results", "do not read me")
    write_spilled_result(root / "projects" / "tool-results", "nor me")
    session = Transcript(version="2.1.10").user("go")
    agent = with_spilled_result(session.subagent("Look", layout="flat", agent_id="a1"))
    agent.change(lambda record: record.update(sessionId=claimed))
    session.write(root)
    (tool,) = calls_of(read_agent(agent, root).sessions[0].messages)
    assert tool.result == SPILLED_STUB


def test_a_session_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    outside = tmp_path / "outside"
    write_spilled_result(outside / "tool-results", "do not read me")
    (outside / "subagents").mkdir()
    session = with_spilled_result(Transcript(version="2.1.97").user("go"))
    path = session.write(root)
    (outside / "subagents" / "agent-a1.jsonl").write_bytes(path.read_bytes())
    path.with_suffix("").symlink_to(outside)
    (tool,) = calls_of(read_file(path).sessions[0].messages)
    assert tool.result == SPILLED_STUB
    assert list(read_root(root)) == [path.name]


def test_a_subagents_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    outside = tmp_path / "outside"
    outside.mkdir()
    session = Transcript().user("go")
    path = session.write(root)
    (outside / "agent-a1.jsonl").write_bytes(path.read_bytes())
    path.with_suffix("").mkdir()
    (path.with_suffix("") / "subagents").symlink_to(outside)
    assert list(read_root(root)) == [path.name]


def test_a_root_below_a_folder_named_subagents_is_read_normally(tmp_path: Path) -> None:
    session = with_spilled_result(Transcript(version="2.1.97").user("go"))
    root = tmp_path / "subagents" / "home"
    write_spilled_result(tmp_path / "tool-results", "do not read me")
    write_spilled_result(session.path(root).with_suffix("") / "tool-results", "the whole of it")
    (tool,) = calls_of(read_file(session.write(root)).sessions[0].messages)
    assert tool.result == "the whole of it"


def test_a_sidecar_can_contain_any_json_value(tmp_path: Path) -> None:
    for number, found in enumerate((None, [], 3, "x", {"toolUseId": 3, "agentType": [], "model": {}})):
        session = Transcript(seed=number).user("go")
        agent = session.subagent("Look", layout="nested", agent_id=f"a{number}")
        agent.assistant("Seen.")
        session.write(tmp_path)
        agent.path(tmp_path).with_suffix(".meta.json").write_text(json.dumps(found))
        content = read_agent(agent, tmp_path)
        assert texts_of(content.sessions[0].messages, "assistant") == ["Seen."]
        assert content.links == ()
