"""Sessions assembled from several units, in any order."""

from pathlib import Path
from random import Random

import pytest

from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Prompt, Transcript, fork, resume, tool_calls
from backscroll.testing.claude_code.side_files import write_prompts
from tests.builders.claude_code.generations import GENERATIONS
from tests.oracle.fold import fold
from tests.oracle.join import Key, Session, join


def join_all(root: Path, seed: int | None = None) -> dict[Key, Session]:
    source = ClaudeCode()
    units = list(source.units(root))
    if seed is not None:
        Random(seed).shuffle(units)
    return join((source.platform, fold(source.read(unit))) for unit in units)


def session(root: Path, transcript: Transcript) -> Session:
    return join_all(root)["claude_code", transcript.session_id, None]


def test_a_summary_is_the_title_of_the_session_that_contains_its_leaf(tmp_path: Path) -> None:
    first = Transcript(version="1.0.98").user("about ferries").assistant("yes")
    second = Transcript(version="1.0.98", seed=1).summary("Ferries", first.last_uuid).user("else")
    first.write(tmp_path)
    second.write(tmp_path)
    assert session(tmp_path, first).closing.title == "Ferries"
    assert session(tmp_path, second).closing.title is None


def test_a_summary_with_an_unknown_leaf_is_ignored(tmp_path: Path) -> None:
    only = Transcript().summary("Lost", "10000000-0000-4000-8000-000000000000").user("a")
    only.write(tmp_path)
    assert session(tmp_path, only).closing.title is None


def test_a_summary_does_not_replace_a_custom_title(tmp_path: Path) -> None:
    only = Transcript().user("a").custom_title("Mine")
    only.summary("Theirs", only.last_uuid).write(tmp_path)
    assert session(tmp_path, only).closing.title == "Mine"


def test_messages_copied_by_a_resume_name_their_session_and_count_once(tmp_path: Path) -> None:
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
def test_messages_copied_by_a_fork_count_once(tmp_path: Path, remap: bool) -> None:
    first = Transcript().user("a").assistant("b")
    second = fork(first, remap=remap).user("c").assistant("d")
    first.write(tmp_path)
    before = session(tmp_path, first).tokens
    second.write(tmp_path)
    assert session(tmp_path, first).tokens == before
    assert [m.copied_from for m in session(tmp_path, second).messages][:2] == [first.session_id] * 2


def test_a_deleted_session_is_recovered_from_the_prompt_log(tmp_path: Path) -> None:
    present = Transcript().user("still here").assistant("yes")
    present.write(tmp_path)
    deleted_id = "5e551011-0000-4000-8000-0000000000ff"
    write_prompts(
        tmp_path, [Prompt("still here", session_id=present.session_id), Prompt("gone", session_id=deleted_id)]
    )
    sessions = join_all(tmp_path)
    assert session(tmp_path, present).closing.completeness == "complete"
    assert session(tmp_path, present).stores == (("claude-code", "lines"), ("claude-code", "prompts"))
    deleted = sessions["claude_code", deleted_id, None]
    assert (deleted.closing.completeness, [m.content for m in deleted.messages]) == ("lossy", ["gone"])


def test_a_subagent_without_other_evidence_is_linked_by_its_prompt(tmp_path: Path) -> None:
    parent = Transcript(version="2.0.40").user("go")
    parent.assistant(tools=[tool_calls.bash("ls")]).delegate("Look around", "Seen.").assistant("ok")
    for record in parent.records:
        if isinstance(record, dict) and isinstance(record.get("toolUseResult"), dict):
            record["toolUseResult"].pop("agentId", None)
    parent.write(tmp_path)
    (agent,) = [subagent for key, subagent in join_all(tmp_path).items() if key[2] is not None]
    assert agent.link is not None
    assert (agent.link.evidence, agent.link.tool_call_id) == ("same prompt", parent.tool_ids[-1])


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_order_of_reading_does_not_matter(generation: str, tmp_path: Path) -> None:
    GENERATIONS[generation](tmp_path, 0)
    expected = join_all(tmp_path)
    for seed in range(5):
        assert join_all(tmp_path, seed) == expected


def test_two_halves_of_a_session_in_two_folders_are_merged(tmp_path: Path) -> None:
    whole = Transcript().user("a").assistant("b").user("c").assistant("d")
    path = whole.write(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    other = tmp_path / "projects" / "-home-zoe-ferry-renamed" / path.name
    other.parent.mkdir()
    other.write_bytes(b"".join(lines[len(lines) // 2 :]))
    assert [m.content for m in session(tmp_path, whole).messages if m.content] == ["a", "b", "c", "d"]
