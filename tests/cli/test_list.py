"""``list`` in a pipe and on a terminal: columns, order, colors and the footer."""

from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript
from tests.cli.run_command import Shell
from tests.cli.terminal import in_terminal, uncoloured

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
    shell.run("sync")
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
    coloured = shell.run("list", "--color", "always").out
    assert "\x1b[1mAnchor\x1b[0m" in coloured
    assert uncoloured(coloured) == shell.run("list").out == shell.run("list", "--color", "never").out


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
