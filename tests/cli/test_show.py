"""``show``: turns, roles, messages and original records; ``list`` in a terminal."""

import json
from pathlib import Path

import pytest

from backscroll.testing import demo
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.run_command import Result, Shell, backscroll
from tests.cli.terminal import in_terminal, without_escapes

ID = "5e551011-0000-4000-8000-0000000000cc"


class ShowShell(Shell):
    """Runs the command in UTC."""

    def run(self, *arguments: str | Path, **environ: str) -> Result:
        return super().run(*arguments, **{"TZ": "UTC"} | environ)

    def show(self, *arguments: str, **environ: str) -> str:
        result = self.run("show", ID, *arguments, **environ)
        assert result.code == 0, result.err
        return result.out


@pytest.fixture
def shell(tmp_path: Path) -> ShowShell:
    """Session with three turns: one was edited and sent again, one has a subagent."""
    shell = ShowShell(tmp_path)
    session = Transcript(ID, seed=11, cwd="/home/zoe/ferry")
    session.user("first prompt").run(
        tool_calls.bash("ls", "a.py\nb.py"), thinking="a thought", text="Looking."
    )
    fork_point = session.leaf
    session.user("taken back").assistant("an abandoned answer")
    session.leaf = fork_point
    session.user("second prompt").delegate("Where is it?", "In the shed.", description="Find it")
    session.assistant("It is in the shed.")
    session.user("third prompt").error("API Error: Overloaded").assistant("Done.")
    session.write(shell.root)
    return shell


def shown_prompts(text: str) -> set[str]:
    prompts = ("first prompt", "taken back", "second prompt", "third prompt")
    return {prompt for prompt in prompts if f"\n{prompt}\n" in text}


def test_a_session_is_shown_by_turn_without_abandoned_branches(shell: ShowShell) -> None:
    text = shell.show()
    assert shown_prompts(text) == {"first prompt", "second prompt", "third prompt"}
    assert [line.split(" · ")[0] for line in text.splitlines() if " · You · " in line] == [
        "── 1",
        "── 2",
        "── 3",
    ]
    assert "In the shed." not in text
    assert "⤷ subagent  Find it" in text


def test_all_includes_marked_abandoned_messages_and_keeps_turn_numbers(shell: ShowShell) -> None:
    text = shell.show("--all")
    assert shown_prompts(text) == {"first prompt", "taken back", "second prompt", "third prompt"}
    assert "── You (abandoned) · " in text
    assert "── 3 · You · " in text
    assert shell.show("--everything") == text


@pytest.mark.parametrize(
    ("turns", "prompts"),
    [
        ("1", {"first prompt"}),
        ("2", {"second prompt"}),
        ("-1", {"third prompt"}),
        ("2-3", {"second prompt", "third prompt"}),
        ("2-", {"second prompt", "third prompt"}),
        ("-2-", {"second prompt", "third prompt"}),
        ("-3--2", {"first prompt", "second prompt"}),
        ("0-1", {"first prompt"}),
        ("2-99", {"second prompt", "third prompt"}),
        ("-99-", {"first prompt", "second prompt", "third prompt"}),
    ],
)
def test_selected_turns_keep_their_numbers(shell: ShowShell, turns: str, prompts: set[str]) -> None:
    text = shell.show("--turn", turns)
    assert shown_prompts(text) == prompts
    whole = shell.show().splitlines()
    assert all(line in whole for line in text.splitlines() if line.startswith("──") and "20" not in line)


@pytest.mark.parametrize("turns", ["4", "-4", "3-2", "x", "1-2-3"])
def test_an_unknown_turn_is_reported(shell: ShowShell, turns: str) -> None:
    result = shell.run("show", ID, "--turn", turns)
    assert (result.code, result.out) == (2, "")
    assert "turn" in result.err


def test_a_turn_contains_only_its_own_subagents(shell: ShowShell) -> None:
    assert "⤷ subagent" in shell.show("--turn", "2")
    assert "⤷ subagent" not in shell.show("--turn", "1")
    assert "⤷ subagent" not in shell.show("--turn", "3")


def test_messages_of_subagents_are_shown_if_requested(shell: ShowShell) -> None:
    assert "  │ In the shed.\n" in shell.show("--agents")
    assert "  │ In the shed.\n" in shell.show("--full")


def test_only_some_roles_are_shown(shell: ShowShell) -> None:
    text = shell.show("--only", "user,error")
    assert shown_prompts(text) == {"first prompt", "second prompt", "third prompt"}
    assert "Overloaded" in text
    assert "Looking." not in text
    assert "▸" not in text
    assert "⤷" not in text
    wrong = shell.run("show", ID, "--only", "user,robot")
    assert wrong.code == 2
    assert "'robot' is not a role" in wrong.err


def test_errors_include_failed_tool_calls(tmp_path: Path) -> None:
    shell = ShowShell(tmp_path)
    session = Transcript(ID, seed=12).user("run it")
    session.run(tool_calls.bash("true", "fine")).run(tool_calls.bash("false").failed("exit 1"))
    session.error("API Error: Overloaded").write(shell.root)
    text = shell.show("--only", "error")
    assert "API Error: Overloaded" in text and "exit 1" in text
    assert "\nrun it\n" not in text and "Bash  true" not in text
    assert "exit 1" in shell.show("--only", "error", "--raw")


def test_one_message_is_shown_alone_and_in_full(shell: ShowShell) -> None:
    text = shell.show("--message", "3", "--alone")
    assert "Bash  ls" in text.splitlines()[0]
    assert "a.py\n" in text and "b.py\n" in text
    assert not shown_prompts(text)
    assert ID not in text
    assert len(shell.show("--message", "0", "--alone", "--raw").splitlines()) == 1


def test_a_message_is_shown_alone_even_if_it_was_abandoned(shell: ShowShell) -> None:
    messages = shell.json("show", ID)["messages"]
    (position,) = [message["position"] for message in messages if message["content"] == "taken back"]
    text = shell.show("--message", str(position), "--alone")
    assert text.splitlines()[1:] == ["taken back"]


def test_alone_requires_a_message(shell: ShowShell) -> None:
    result = shell.run("show", ID, "--alone")
    assert (result.code, result.out) == (2, "")
    assert "--alone requires --message." in result.err


def test_if_no_messages_match_this_is_reported(shell: ShowShell) -> None:
    assert shell.show("--only", "system").endswith("\n\nNo messages to show.\n")
    assert shell.show("--turn", "0").endswith("\n\nNo messages to show.\n")
    assert "No messages" not in shell.show("--only", "error")


def test_show_starts_at_a_message_shown_in_full(shell: ShowShell) -> None:
    messages = json.loads(shell.run("show", ID, "--json").out)["messages"]
    tool = next(message for message in messages if message["tool_name"] == "Bash")
    for name in (str(tool["position"]), tool["id"], tool["id"][:13]):
        text = shell.show("--message", name)
        assert "first prompt\n" not in text.partition("UTC")[2]
        assert "    │ b.py\n" in text
        assert "third prompt" in text


def test_show_can_start_at_an_abandoned_message(shell: ShowShell) -> None:
    messages = json.loads(shell.run("show", ID, "--json").out)["messages"]
    abandoned = next(message for message in messages if message["content"] == "taken back")
    assert "── You (abandoned)" in shell.show("--message", abandoned["id"])


@pytest.mark.parametrize("name", ["999", "nothing-like-it", ""])
def test_an_unknown_message_is_reported(shell: ShowShell, name: str) -> None:
    result = shell.run("show", ID, "--message", name)
    assert (result.code, result.out) == (2, "")
    assert "has no message" in result.err


def test_raw_prints_each_line_of_the_file_once(shell: ShowShell) -> None:
    lines = next(shell.root.rglob(f"{ID}.jsonl")).read_text("utf-8").splitlines()
    records = shell.show("--raw").splitlines()
    assert len(records) == len(set(records))
    assert set(records) <= set(lines)
    assert sum('"first prompt"' in record for record in records) == 1
    last = shell.show("--raw", "--turn", "-1").splitlines()
    assert json.loads(last[0])["message"]["content"] == "third prompt"


def test_the_record_of_a_tool_result_follows_the_record_of_its_call(tmp_path: Path) -> None:
    session = Transcript(ID).user("go").run(tool_calls.bash("make", "made"), tool_calls.bash("ls", "listed"))
    path = session.assistant("done").write(tmp_path / "claude")
    roots = f"--root=claude-code={tmp_path / 'claude'}"
    for exists in (True, False):
        if not exists:
            path.unlink()
        result = backscroll("--home", tmp_path / "home", roots, "show", ID, "--raw")
        assert (result.code, result.err) == (0, "")
        blocks = [json.loads(line)["message"]["content"][0] for line in result.out.splitlines()[1:-1]]
        assert [block.get("content") or block["input"]["command"] for block in blocks] == [
            "make",
            "made",
            "ls",
            "listed",
        ]


def test_raw_works_after_the_file_is_deleted(shell: ShowShell) -> None:
    before = shell.show("--raw")
    next(shell.root.rglob(f"{ID}.jsonl")).unlink()
    assert shell.show("--raw") == before


def test_raw_prints_the_records_that_were_read_from_a_rewritten_file(shell: ShowShell) -> None:
    before = shell.show("--raw", "--all").splitlines()
    path = next(shell.root.rglob(f"{ID}.jsonl"))
    path.write_text("\n".join(path.read_text("utf-8").splitlines()[3:]) + "\n", "utf-8")
    assert set(before) <= set(shell.show("--raw", "--all").splitlines())


@pytest.mark.parametrize("id_", ["92d12695", "82c523ad"])  # Cursor IDE, Cursor CLI
def test_raw_prints_database_rows(tmp_path: Path, id_: str) -> None:
    roots = [f"--root={name}={root}" for name, root in demo.write(tmp_path / "demo").roots.items()]
    result = backscroll("--home", tmp_path / "home", *roots, "show", id_, "--raw")
    assert (result.code, result.err) == (0, "")
    records = [json.loads(line) for line in result.out.splitlines()]
    assert len(records) >= 3
    if id_ == "82c523ad":
        assert [record["role"] for record in records] == ["user", "assistant", *["tool"] * 3, "assistant"]
    assert all(isinstance(record, dict) for record in records)


def test_json_cannot_be_combined_with_turn(shell: ShowShell) -> None:
    result = shell.run("show", ID, "--json", "--turn", "1")
    assert (result.code, result.out) == (2, "")


# --- in a terminal ------------------------------------------------------------------------------------------


def test_a_short_session_is_printed_and_a_long_one_goes_to_the_pager(shell: ShowShell) -> None:
    pager = "sh -c 'echo paged; cat'"
    assert shell.run("sync").code == 0
    high_terminal = in_terminal(*shell.options, "show", "--no-sync", ID, lines=200, pager=pager)
    assert "paged" not in high_terminal
    assert "third prompt" in high_terminal
    low_terminal = in_terminal(*shell.options, "show", "--no-sync", ID, lines=10, pager=pager)
    assert low_terminal.startswith("paged\n")
    assert "third prompt" in low_terminal


def test_quitting_the_pager_early_is_not_an_error(shell: ShowShell) -> None:
    session = Transcript("5e551011-0000-4000-8000-0000000000dd", seed=3)
    for index in range(400):
        session.user(f"prompt {index} " + "word " * 200)
    session.write(shell.root)
    shell.sync()
    output = in_terminal(*shell.options, "show", session.session_id, "--no-sync", pager="head -n 3")
    assert len(output.splitlines()) == 3
    assert "Traceback" not in output


def test_colors_are_used_on_a_terminal_or_if_requested(shell: ShowShell) -> None:
    assert "\x1b" not in shell.show()
    assert "\x1b" not in shell.show("--color", "never")
    assert "\x1b[" in shell.show("--color", "always")
    assert "\x1b[" in shell.show("--color", "always", NO_COLOR="1")
    run = (*shell.options, "show", ID, "--no-sync")
    assert "\x1b[" in in_terminal(*run, lines=200)
    assert "\x1b[" not in in_terminal(*run, lines=200, NO_COLOR="1")
    assert "\x1b[" not in in_terminal(*run, lines=200, TERM="dumb")
    assert without_escapes(shell.show("--color", "always")) == shell.show()


def test_list_fits_the_width_of_the_terminal(shell: ShowShell) -> None:
    shell.sync()  # prevents a progress bar on a busy machine
    for columns in (40, 80, 200):
        output = without_escapes(in_terminal(*shell.options, "list", "--no-sync", columns=columns))
        head, row = output.splitlines()
        assert head.split()[:3] == ["#", "when", "title"]
        assert len(head) <= columns
        assert len(row) <= columns
        assert "first prompt" in row
        assert row.endswith("5e551011")


def test_a_gone_session_is_marked_in_the_list(shell: ShowShell) -> None:
    shell.sync()
    next(shell.root.rglob(f"{ID}.jsonl")).unlink()
    assert shell.run("list").out.rstrip().endswith("\tgone")
    assert "  gone  " in without_escapes(in_terminal(*shell.options, "list", columns=120))


def test_candidates_for_a_ref_are_sanitized(shell: ShowShell) -> None:
    for last in "12":
        hostile = Transcript(f"77777777-0000-4000-8000-00000000000{last}", seed=int(last))
        hostile.user("\x1b]0;owned\x07\u202eevil").write(shell.root)
    result = shell.run("show", "7777")
    assert result.code == 1
    assert result.err.count("claude-code:77777777") == 2
    assert "\x1b" not in result.err
    assert "\u202e" not in result.err
