"""What several units tell together, in whatever order they are read."""

from pathlib import Path
from random import Random

import pytest

from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import GENERATIONS, Prompt, Transcript, fork, resume, tool_calls
from backscroll.testing.claude_code.side_files import write_prompts
from tests.oracle.fold import fold
from tests.oracle.join import Key, Session, join


def everything(root: Path, seed: int | None = None) -> dict[Key, Session]:
    source = ClaudeCode()
    units = list(source.units(root))
    if seed is not None:
        Random(seed).shuffle(units)
    return join((source.platform, fold(source.read(unit))) for unit in units)


def session(root: Path, transcript: Transcript) -> Session:
    return everything(root)["claude_code", transcript.session_id, None]


def test_a_summary_names_the_session_that_holds_its_leaf(tmp_path: Path) -> None:
    first = Transcript(version="1.0.98").user("about ferries").assistant("yes")
    second = Transcript(version="1.0.98", seed=1).summary("Ferries", first.last_uuid).user("else")
    first.write(tmp_path)
    second.write(tmp_path)
    assert session(tmp_path, first).closing.title == "Ferries"
    assert session(tmp_path, second).closing.title is None


def test_a_summary_of_nobody_names_nobody(tmp_path: Path) -> None:
    only = Transcript().summary("Lost", "10000000-0000-4000-8000-000000000000").user("a")
    only.write(tmp_path)
    assert session(tmp_path, only).closing.title is None


def test_a_summary_does_not_replace_a_chosen_title(tmp_path: Path) -> None:
    only = Transcript().user("a").custom_title("Mine")
    only.summary("Theirs", only.last_uuid).write(tmp_path)
    assert session(tmp_path, only).closing.title == "Mine"


def test_messages_repeated_by_a_resume_say_whose_they_are_and_cost_once(tmp_path: Path) -> None:
    first = Transcript(version="1.0.98").user("a").assistant("b")
    second = resume(first).user("c").assistant("d")
    first.write(tmp_path)
    second.write(tmp_path)
    one, two = session(tmp_path, first), session(tmp_path, second)
    assert [m.copied_from for m in one.messages] == [None, None]
    assert [m.copied_from for m in two.messages] == [first.session_id] * 2 + [None] * 2
    alone = tmp_path / "alone"
    first.write(alone)
    assert one.tokens == session(alone, first).tokens
    assert two.tokens is not None
    assert two.tokens > 0


@pytest.mark.parametrize("remap", [True, False])
def test_messages_copied_by_a_fork_cost_once(tmp_path: Path, remap: bool) -> None:
    first = Transcript().user("a").assistant("b")
    second = fork(first, remap=remap).user("c").assistant("d")
    first.write(tmp_path)
    before = session(tmp_path, first).tokens
    second.write(tmp_path)
    assert session(tmp_path, first).tokens == before
    assert [m.copied_from for m in session(tmp_path, second).messages][:2] == [first.session_id] * 2


def test_a_deleted_session_survives_in_its_prompts(tmp_path: Path) -> None:
    kept = Transcript().user("still here").assistant("yes")
    kept.write(tmp_path)
    gone = "5e551011-0000-4000-8000-0000000000ff"
    write_prompts(
        tmp_path, [Prompt("still here", session_id=kept.session_id), Prompt("gone", session_id=gone)]
    )
    found = everything(tmp_path)
    assert session(tmp_path, kept).closing.completeness == "complete"
    assert session(tmp_path, kept).stores == (("claude-code", "lines"), ("claude-code", "prompts"))
    lost = found["claude_code", gone, None]
    assert (lost.closing.completeness, [m.content for m in lost.messages]) == ("lossy", ["gone"])


def test_an_agent_without_a_sign_is_linked_by_its_prompt(tmp_path: Path) -> None:
    parent = Transcript(version="2.0.40").user("go")
    parent.assistant(tools=[tool_calls.bash("ls")]).delegate("Look around", "Seen.").assistant("ok")
    for record in parent.records:
        if isinstance(record, dict) and isinstance(record.get("toolUseResult"), dict):
            record["toolUseResult"].pop("agentId", None)
    parent.write(tmp_path)
    (agent,) = [one for key, one in everything(tmp_path).items() if key[2] is not None]
    assert agent.link is not None
    assert (agent.link.evidence, agent.link.tool_call_id) == ("same prompt", parent.tool_ids[-1])


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_order_of_reading_does_not_matter(generation: str, tmp_path: Path) -> None:
    GENERATIONS[generation](tmp_path, 0)
    expected = everything(tmp_path)
    for seed in range(5):
        assert everything(tmp_path, seed) == expected


def test_halves_of_one_session_in_two_folders_are_one(tmp_path: Path) -> None:
    whole = Transcript().user("a").assistant("b").user("c").assistant("d")
    path = whole.write(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    other = tmp_path / "projects" / "-home-zoe-ferry-renamed" / path.name
    other.parent.mkdir()
    other.write_bytes(b"".join(lines[len(lines) // 2 :]))
    assert [m.content for m in session(tmp_path, whole).messages if m.content] == ["a", "b", "c", "d"]
