"""Reading a session: where it begins, what of it is shown, and the records behind it."""

import json
from pathlib import Path

import pytest

from backscroll.testing import demo
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.cli.running import Ran, Shell, backscroll
from tests.cli.terminal import in_terminal, uncoloured

ID = "5e551011-0000-4000-8000-0000000000cc"


class Reading(Shell):
    """The command where it is always Greenwich time."""

    def run(self, *arguments: str | Path, **environ: str) -> Ran:
        return super().run(*arguments, **{"TZ": "UTC"} | environ)

    def show(self, *arguments: str, **environ: str) -> str:
        ran = self.run("show", ID, *arguments, **environ)
        assert ran.code == 0, ran.err
        return ran.out


@pytest.fixture
def shell(tmp_path: Path) -> Reading:
    """A session of three turns: one that was taken back and said anew, and one with a subagent."""
    shell = Reading(tmp_path)
    session = Transcript(ID, seed=11, cwd="/home/zoe/ferry")
    session.user("first prompt").run(
        tool_calls.bash("ls", "a.py\nb.py"), thinking="a thought", text="Looking."
    )
    answered = session.leaf
    session.user("taken back").assistant("an answer nobody kept")
    session.leaf = answered
    session.user("second prompt").delegate("Where is it?", "In the shed.", description="Find it")
    session.assistant("It is in the shed.")
    session.user("third prompt").error("API Error: Overloaded").assistant("Done.")
    session.write(shell.root)
    return shell


def words(text: str) -> set[str]:
    known = ("first prompt", "taken back", "second prompt", "third prompt")
    return {word for word in known if f"\n{word}\n" in text}


def test_a_session_is_shown_turn_by_turn_without_what_was_abandoned(shell: Reading) -> None:
    text = shell.show()
    assert words(text) == {"first prompt", "second prompt", "third prompt"}
    assert [line.split(" · ")[0] for line in text.splitlines() if " · You · " in line] == [
        "── 1",
        "── 2",
        "── 3",
    ]
    assert "In the shed." not in text
    assert "⤷ subagent  Find it" in text


def test_with_all_the_abandoned_is_there_and_marked_and_turns_keep_their_numbers(shell: Reading) -> None:
    text = shell.show("--all")
    assert words(text) == {"first prompt", "taken back", "second prompt", "third prompt"}
    assert "── You (abandoned) · " in text
    assert "── 3 · You · " in text


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
def test_turns_are_shown_alone_and_with_the_numbers_they_have(
    shell: Reading, turns: str, prompts: set[str]
) -> None:
    text = shell.show("--turn", turns)
    assert words(text) == prompts
    whole = shell.show().splitlines()
    assert all(line in whole for line in text.splitlines() if line.startswith("──") and "20" not in line)


@pytest.mark.parametrize("turns", ["4", "-4", "3-2", "x", "1-2-3"])
def test_a_turn_that_is_not_there_is_said(shell: Reading, turns: str) -> None:
    ran = shell.run("show", ID, "--turn", turns)
    assert (ran.code, ran.out) == (2, "")
    assert "turn" in ran.err


def test_a_turn_has_its_subagents_and_no_others(shell: Reading) -> None:
    assert "⤷ subagent" in shell.show("--turn", "2")
    assert "⤷ subagent" not in shell.show("--turn", "1")
    assert "⤷ subagent" not in shell.show("--turn", "3")


def test_subagents_say_what_they_said_when_asked(shell: Reading) -> None:
    assert "  │ In the shed.\n" in shell.show("--agents")
    assert "  │ In the shed.\n" in shell.show("--full")


def test_only_some_roles_are_shown(shell: Reading) -> None:
    text = shell.show("--only", "user,error")
    assert words(text) == {"first prompt", "second prompt", "third prompt"}
    assert "Overloaded" in text
    assert "Looking." not in text
    assert "▸" not in text
    assert "⤷" not in text
    wrong = shell.run("show", ID, "--only", "user,robot")
    assert wrong.code == 2
    assert "'robot' is no role" in wrong.err


def test_nothing_to_show_is_said(shell: Reading) -> None:
    assert shell.show("--only", "system").endswith("\n\nNo message to show.\n")
    assert shell.show("--turn", "0").endswith("\n\nNo message to show.\n")
    assert "No message" not in shell.show("--only", "error")


def test_reading_begins_at_a_message_which_is_unfolded(shell: Reading) -> None:
    messages = json.loads(shell.run("show", ID, "--json").out)["messages"]
    tool = next(message for message in messages if message["tool_name"] == "Bash")
    for name in (str(tool["position"]), tool["id"], tool["id"][:13]):
        text = shell.show("--message", name)
        assert "first prompt\n" not in text.partition("UTC")[2]
        assert "    │ b.py\n" in text
        assert "third prompt" in text


def test_an_abandoned_message_can_be_begun_at(shell: Reading) -> None:
    messages = json.loads(shell.run("show", ID, "--json").out)["messages"]
    abandoned = next(message for message in messages if message["content"] == "taken back")
    assert "── You (abandoned)" in shell.show("--message", abandoned["id"])


@pytest.mark.parametrize("name", ["999", "nothing-like-it", ""])
def test_a_message_that_is_not_there_is_said(shell: Reading, name: str) -> None:
    ran = shell.run("show", ID, "--message", name)
    assert (ran.code, ran.out) == (2, "")
    assert "has no message" in ran.err


def test_records_are_the_lines_of_the_file_each_once(shell: Reading) -> None:
    lines = next(shell.root.rglob(f"{ID}.jsonl")).read_text("utf-8").splitlines()
    records = shell.show("--raw").splitlines()
    assert len(records) == len(set(records))
    assert set(records) <= set(lines)
    assert sum('"first prompt"' in record for record in records) == 1
    last = shell.show("--raw", "--turn", "-1").splitlines()
    assert json.loads(last[0])["message"]["content"] == "third prompt"


def test_the_record_of_a_call_comes_with_that_of_its_answer(tmp_path: Path) -> None:
    session = Transcript(ID).user("go").run(tool_calls.bash("make", "made"), tool_calls.bash("ls", "listed"))
    path = session.assistant("done").write(tmp_path / "claude")
    roots = f"--root=claude-code={tmp_path / 'claude'}"
    for is_there in (True, False):
        if not is_there:
            path.unlink()
        ran = backscroll("--home", tmp_path / "home", roots, "show", ID, "--raw")
        assert (ran.code, ran.err) == (0, "")
        blocks = [json.loads(line)["message"]["content"][0] for line in ran.out.splitlines()[1:-1]]
        assert [block.get("content") or block["input"]["command"] for block in blocks] == [
            "make",
            "made",
            "ls",
            "listed",
        ]


def test_records_are_there_when_the_file_is_not(shell: Reading) -> None:
    before = shell.show("--raw")
    next(shell.root.rglob(f"{ID}.jsonl")).unlink()
    assert shell.show("--raw") == before


def test_a_record_of_a_rewritten_file_is_the_one_that_was_read(shell: Reading) -> None:
    before = shell.show("--raw", "--all").splitlines()
    path = next(shell.root.rglob(f"{ID}.jsonl"))
    path.write_text("\n".join(path.read_text("utf-8").splitlines()[3:]) + "\n", "utf-8")
    assert set(before) <= set(shell.show("--raw", "--all").splitlines())


@pytest.mark.parametrize("id_", ["92d12695", "82c523ad"])  # one of the editor, one of its command line
def test_rows_of_databases_are_records_too(tmp_path: Path, id_: str) -> None:
    roots = [f"--root={name}={root}" for name, root in demo.write(tmp_path / "demo").roots.items()]
    ran = backscroll("--home", tmp_path / "home", *roots, "show", id_, "--raw")
    assert (ran.code, ran.err) == (0, "")
    records = [json.loads(line) for line in ran.out.splitlines()]
    assert len(records) >= 3
    if id_ == "82c523ad":
        assert [record["role"] for record in records] == ["user", "assistant", *["tool"] * 3, "assistant"]
    assert all(isinstance(record, dict) for record in records)


def test_json_is_not_mixed_with_what_is_for_readers(shell: Reading) -> None:
    ran = shell.run("show", ID, "--json", "--turn", "1")
    assert (ran.code, ran.out) == (2, "")


# --- in a terminal ------------------------------------------------------------------------------------------


def test_a_short_session_is_printed_and_a_long_one_goes_to_the_pager(shell: Reading) -> None:
    pager = "sh -c 'echo paged; cat'"
    tall = in_terminal(*shell.options, "show", ID, lines=200, pager=pager)
    assert "paged" not in tall
    assert "third prompt" in tall
    low = in_terminal(*shell.options, "show", ID, lines=10, pager=pager)
    assert low.startswith("paged\n")
    assert "third prompt" in low


def test_a_pager_that_is_left_early_ends_it_quietly(shell: Reading) -> None:
    session = Transcript("5e551011-0000-4000-8000-0000000000dd", seed=3)
    for number in range(400):
        session.user(f"prompt {number} " + "word " * 200)
    session.write(shell.root)
    shell.run("sync")
    told = in_terminal(*shell.options, "show", session.session_id, "--no-sync", pager="head -n 3")
    assert len(told.splitlines()) == 3
    assert "Traceback" not in told


def test_colours_are_for_terminals_and_for_those_who_ask(shell: Reading) -> None:
    assert "\x1b" not in shell.show()
    assert "\x1b" not in shell.show("--color", "never")
    assert "\x1b[" in shell.show("--color", "always")
    assert "\x1b[" in shell.show("--color", "always", NO_COLOR="1")
    run = (*shell.options, "show", ID, "--no-sync")
    assert "\x1b[" in in_terminal(*run, lines=200)
    assert "\x1b[" not in in_terminal(*run, lines=200, NO_COLOR="1")
    assert "\x1b[" not in in_terminal(*run, lines=200, TERM="dumb")
    assert uncoloured(shell.show("--color", "always")) == shell.show()


def test_a_list_in_a_terminal_has_columns_that_fit(shell: Reading) -> None:
    shell.run("sync")  # on a busy machine its progress would be shown as well
    for columns in (40, 80, 200):
        told = uncoloured(in_terminal(*shell.options, "list", "--no-sync", columns=columns))
        head, row = told.splitlines()
        assert head.split()[:3] == ["#", "when", "title"]
        assert len(head) <= columns
        assert len(row) <= columns
        assert "first prompt" in row
        assert row.endswith("5e551011")


def test_a_list_elsewhere_has_a_line_for_each_session(shell: Reading) -> None:
    [line] = shell.run("list").out.splitlines()
    index, at, id_, source, workspace, number, tokens, *title = line.split()
    assert (index, id_, source, workspace) == ("1", "5e551011", "claude-code", "ferry")
    assert at.endswith("Z")
    assert int(number) > 0
    assert tokens
    assert " ".join(title) == "first prompt"


def test_a_session_that_is_gone_says_so_in_the_list(shell: Reading) -> None:
    shell.run("sync")
    next(shell.root.rglob(f"{ID}.jsonl")).unlink()
    assert shell.run("list").out.rstrip().endswith("[gone]")
    assert "  gone  " in uncoloured(in_terminal(*shell.options, "list", columns=120))


def test_candidates_for_a_ref_are_shown_inert(shell: Reading) -> None:
    for last in "12":
        hostile = Transcript(f"77777777-0000-4000-8000-00000000000{last}", seed=int(last))
        hostile.user("\x1b]0;owned\x07\u202eevil").write(shell.root)
    ran = shell.run("show", "7777")
    assert ran.code == 1
    assert ran.err.count("claude-code:77777777") == 2
    assert "\x1b" not in ran.err
    assert "\u202e" not in ran.err
