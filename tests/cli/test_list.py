"""``list`` in a pipe and on a terminal: columns, order, colors, footer and subagents."""

from pathlib import Path
from typing import Any

import pytest

from backscroll.testing.claude_code import Transcript, resume
from tests.cli.run_command import Shell
from tests.cli.terminal import in_terminal, without_escapes

IDS = [f"{number}0000000-0000-4000-8000-000000000000" for number in range(3)]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Three sessions: the first is the longest, the last has the first title."""
    shell = Shell(tmp_path)
    for number, title in enumerate(("Cable", "Boat", "Anchor")):
        session = Transcript(IDS[number], seed=number, cwd=f"/home/zoe/p{number}")
        session.user(title)
        for _ in range(3 - number):
            session.assistant("Yes.")
        session.write(shell.root)
    shell.sync()
    return shell


def ids(shell: Shell, *options: str) -> list[str]:
    return [summary["id"] for summary in shell.json("list", *options)["data"]]


def test_a_pipe_gets_tab_separated_columns_with_complete_values(shell: Shell) -> None:
    result = shell.run("list", "--workspace", "p0")
    index, updated, id_, source, workspace, messages, tokens, title, tags, state = result.out.removesuffix(
        "\n"
    ).split("\t")
    (listed,) = shell.json("list", "--workspace", "p0")["data"]
    assert (index, id_, source, workspace) == (str(listed["index"]), IDS[0], "claude-code", "p0")
    assert updated == f"{listed['updated_at'][:19]}Z"
    assert (messages, tokens) == (str(listed["message_count"]), str(listed["total_tokens"]))
    assert (title, tags, state) == ("Cable", "", "")
    assert result.err == ""


def test_in_a_pipe_the_footer_goes_to_standard_error(shell: Shell) -> None:
    result = shell.run("list", "-n", "2")
    assert (len(result.out.splitlines()), result.err) == (2, "1 to 2 of 3\n")
    assert in_terminal(*shell.options, "list", "-n", "2", NO_COLOR="1").endswith("1 to 2 of 3\n")


@pytest.mark.parametrize("options", [["--workspace", "nowhere"], ["--offset", "7"]])
def test_in_a_pipe_a_message_goes_to_standard_error(shell: Shell, options: list[str]) -> None:
    result = shell.run("list", *options)
    assert (result.code, result.out) == (0, "")
    assert "No sessions" in result.err


def test_color_always_colors_a_pipe(shell: Shell) -> None:
    colored = shell.run("list", "--color", "always").out
    assert "\x1b[1mAnchor\x1b[0m" in colored
    assert without_escapes(colored) == shell.run("list").out == shell.run("list", "--color", "never").out


def test_columns_can_be_chosen(shell: Shell) -> None:
    result = shell.run("list", "--columns", "title,prompts,path", "--sort", "title", "-n", "1")
    assert result.out == "Anchor\t1\t/home/zoe/p2\n"
    heading, _ = in_terminal(
        *shell.options, "list", "--columns", "title,prompts", "--workspace", "p0", NO_COLOR="1"
    ).splitlines()
    assert heading.split() == ["title", "prompts"]


@pytest.mark.parametrize("columns", ["title,colour", "title,title", ""])
def test_invalid_columns_are_a_usage_error(shell: Shell, columns: str) -> None:
    result = shell.run("list", "--columns", columns)
    assert (result.code, result.out, "column" in result.err) == (2, "", True)


def test_columns_do_not_apply_to_json(shell: Shell) -> None:
    assert shell.run("list", "--columns", "id", "--json").code == 2


def test_titles_are_sorted_without_regard_to_case_in_any_script(shell: Shell) -> None:
    for id_, title in zip(IDS, ("ÖFEN", "öfchen", "Étude"), strict=True):
        shell.run("rename", id_, title)
    assert ids(shell, "--sort", "title") == [IDS[2], IDS[1], IDS[0]]
    assert ids(shell, "--sort", "title", "--reverse") == IDS
    for id_, title in zip(IDS, ("ГОРОД", "город", "Город"), strict=True):
        shell.run("rename", id_, title)
    assert ids(shell, "--sort", "title") == ids(shell)  # equal titles: newest first


def test_sessions_are_sorted_by_a_column(shell: Shell) -> None:
    assert ids(shell, "--sort", "messages") == IDS
    assert ids(shell, "--sort", "messages", "--reverse") == IDS[::-1]
    assert ids(shell, "--sort", "title") == IDS[::-1]
    shell.run("rename", IDS[0], "aardvark")
    assert ids(shell, "--sort", "title") == [IDS[0], IDS[2], IDS[1]]
    assert ids(shell, "--reverse") == ids(shell)[::-1]


def test_the_order_does_not_change_the_index(shell: Shell) -> None:
    indexes = {summary["id"]: summary["index"] for summary in shell.json("list")["data"]}
    for options in (["--sort", "messages"], ["--reverse"], ["--sort", "created", "--offset", "1"]):
        for summary in shell.json("list", *options)["data"]:
            assert summary["index"] == indexes[summary["id"]]


def test_unknown_values_are_last_in_any_order(shell: Shell) -> None:
    Transcript("90000000-0000-4000-8000-000000000000", seed=9).user("Only a prompt").write(shell.root)
    for order in ([], ["--reverse"]):
        assert ids(shell, "--sort", "tokens", *order)[-1].startswith("9")


@pytest.fixture
def with_subagents(tmp_path: Path) -> Shell:
    """A session with a subagent in its own file, and a resumed session with an inlined subagent."""
    shell = Shell(tmp_path)
    newer = Transcript(IDS[0], seed=0, cwd="/home/zoe/p0").user("Which quays are open?")
    newer.delegate("Count the quays", "Two quays.", description="Count").write(shell.root)
    older = Transcript(IDS[1], seed=1, cwd="/home/zoe/p1", version="1.0.98").user("Which boats are late?")
    older.delegate("Count the boats", "Three boats.", description="Count boats").write(shell.root)
    resume(older).user("And today?").assistant("None.").write(shell.root)
    shell.sync()
    return shell


def subagents(shell: Shell, *options: str) -> list[dict[str, Any]]:
    page = shell.json("list", "--subagents", *options)
    assert len(page["data"]) == page["pagination"]["total"]
    return [summary for summary in page["data"] if summary["parent_ref"] is not None]


def test_subagents_are_marked_and_have_no_index(with_subagents: Shell) -> None:
    rows = [line.split("\t") for line in with_subagents.run("list", "--subagents").out.splitlines()]
    assert sorted((row[7], row[0]) for row in rows if row[9] == "subagent") == [
        ("Count", ""),
        ("Count boats", ""),
    ]
    assert sorted(row[0] for row in rows if row[9] == "") == ["1", "2", "3"]
    shown = in_terminal(*with_subagents.options, "list", "--subagents", NO_COLOR="1")
    assert "  ⤷ Count boats  " in shown
    parents = with_subagents.run("list", "--subagents", "--columns", "title,parent").out
    assert f"Count\tclaude-code:{IDS[0]}\n" in parents


def test_an_inlined_subagent_that_a_resume_repeats_is_listed_once(with_subagents: Shell) -> None:
    (agent,) = subagents(with_subagents, "--workspace", "p1")
    assert (agent["title"], agent["parent_ref"]) == ("Count boats", f"claude-code:{IDS[1]}")
    assert len(subagents(with_subagents)) == 2


def test_an_inlined_subagent_has_the_time_of_its_last_message(with_subagents: Shell) -> None:
    (agent,) = subagents(with_subagents, "--workspace", "p1")
    messages = with_subagents.json("show", agent["ref"])["messages"]
    assert agent["updated_at"] == messages[-1]["timestamp"] > messages[0]["timestamp"]


def test_search_labels_subagents(with_subagents: Shell) -> None:
    (match,) = [one for one in with_subagents.json("search", "count quays")["data"] if one["parent_ref"]]
    assert (match["parent_ref"], match["session_index"]) == (f"claude-code:{IDS[0]}", None)
    lines = with_subagents.run("search", "count quays").out.splitlines()
    at = lines.index("      ⤷ Count")
    assert f" · subagent of {IDS[0][:8]} · " in lines[at + 1]
