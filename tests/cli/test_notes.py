"""Tags, stars, notes and titles of one's own: kept in the archive, shown, and found."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing.claude_code import Transcript, resume
from tests.cli.running import Shell, backscroll

ONE = "10000000-0000-4000-8000-000000000000"
TWO = "20000000-0000-4000-8000-000000000000"


class Noting(Shell):
    """The command, asked about notes."""

    def session(self, id_: str) -> Any:
        (found,) = [one for one in self.json("list")["data"] if one["id"] == id_]
        return found

    def found(self, *words: str) -> list[str]:
        return [one["session_id"] for one in self.json("search", *words)["data"]]


@pytest.fixture
def shell(tmp_path: Path) -> Noting:
    shell = Noting(tmp_path)
    for number, id_ in enumerate((ONE, TWO)):
        said = Transcript(id_, seed=number, cwd=f"/home/zoe/p{number}")
        said.user(f"question {number}").assistant("yes").write(shell.root)
    assert shell.run("sync").code == 0
    return shell


def test_a_session_has_nothing_until_somebody_adds_it(shell: Noting) -> None:
    told = shell.session(ONE)
    names = ("tags", "is_starred", "notes", "original_title")
    assert [told[name] for name in names] == [[], False, [], None]


def test_a_session_is_listed_and_found_by_its_tags(shell: Noting) -> None:
    shell.run("tag", ONE, "#Flaky", "ci")
    shell.run("tag", TWO, "ci")
    assert shell.session(ONE)["tags"] == ["ci", "flaky"]
    assert [one["id"] for one in shell.json("list", "--tag", "Flaky", "--tag", "ci")["data"]] == [ONE]
    assert shell.found("tag:flaky") == [ONE]
    assert shell.found("tag:fla*") == [ONE]
    assert shell.found("question", "-tag:flaky") == [TWO]
    assert shell.found("yes", "--tag", "flaky", "--tag", "ci") == [ONE]
    assert "#ci #flaky" in shell.run("list").out


def test_a_tag_taken_away_finds_nothing_any_more(shell: Noting) -> None:
    shell.run("tag", ONE, "flaky")
    shell.run("untag", ONE, "flaky", "never-given")
    assert shell.session(ONE)["tags"] == []
    assert shell.found("tag:flaky") == []
    assert shell.found("flaky") == []


@pytest.mark.parametrize(
    ("tag", "said"),
    [("two words", "one word"), ("bad\x1b[31m", "cannot be seen"), ("x" * 101, "at most 100")],
)
def test_what_is_no_tag_is_said(shell: Noting, tag: str, said: str) -> None:
    ran = shell.run("tag", ONE, tag)
    assert ran.code == 2
    assert said in ran.err
    assert "\x1b" not in ran.err
    assert shell.session(ONE)["tags"] == []


def test_a_star_can_be_set_and_taken(shell: Noting) -> None:
    assert shell.run("star", ONE).out.startswith("★ question 0")
    assert [one["id"] for one in shell.json("list", "--starred")["data"]] == [ONE]
    assert shell.run("show", ONE).out.startswith("★ question 0")
    assert shell.found("is:starred") == [ONE]
    assert shell.found("yes", "--starred") == [ONE]
    shell.run("star", ONE, "--off")
    assert shell.json("list", "--starred")["data"] == []


def test_a_session_is_found_by_the_words_of_its_notes(shell: Noting) -> None:
    shell.run("note", ONE, "the heron is in the second half")
    shell.run("note", ONE, "so is the egret")
    (match,) = shell.json("search", "heron")["data"]
    assert (match["session_id"], match["is_note"], match["message_index"]) == (ONE, True, 0)
    assert match["match"] == "the heron is in the second half"
    assert [match["match"][a:b] for a, b in match["highlights"]] == ["heron"]
    assert shell.found("--exact", "is the egret") == [ONE]
    assert shell.found("--regex", "egr.t$") == [ONE]


def test_a_note_is_no_message(shell: Noting) -> None:
    shell.run("note", ONE, "heron")
    assert shell.found("role:user", "heron") == []
    counted = {
        one["session_id"]: one["match_count"] for one in shell.json("search", "source:claude-code")["data"]
    }
    assert counted == {ONE: 2, TWO: 2}


def test_a_note_can_be_edited_and_deleted(shell: Noting) -> None:
    shell.run("note", ONE, "heron")
    shell.run("note", ONE, "egret")
    shell.run("note", ONE, "--edit", "1", "stork")
    first, second = shell.session(ONE)["notes"]
    assert (first["number"], first["text"], second["text"]) == (1, "stork", "egret")
    assert first["edited_at"] is not None
    assert second["edited_at"] is None
    shell.run("note", ONE, "--delete", "1")
    assert [note["number"] for note in shell.session(ONE)["notes"]] == [2]
    assert [shell.found(word) for word in ("heron", "stork", "egret")] == [[], [], [ONE]]
    ran = shell.run("note", ONE, "--delete", "7")
    assert (ran.code, ran.err.strip()) == (2, f"claude-code:{ONE} has no note 7; it has 2")


def test_a_new_title_is_shown_and_the_old_one_still_finds_it(shell: Noting) -> None:
    shell.run("rename", ONE, "The night  of the clocks")
    told = shell.session(ONE)
    assert (told["title"], told["original_title"]) == ("The night of the clocks", "question 0")
    assert shell.found("clocks") == [ONE]
    assert shell.json("search", "yes")["data"][0]["title"] in ("The night of the clocks", "question 1")
    assert "in the tool: question 0" in shell.run("show", ONE).out
    shell.run("rename", ONE, "--reset")
    assert shell.session(ONE)["title"] == "question 0"
    assert shell.found("clocks") == []


def test_what_was_added_outlives_growth_rebuilds_and_deletion_by_the_tool(shell: Noting) -> None:
    shell.run("tag", ONE, "flaky")
    shell.run("star", ONE)
    shell.run("note", ONE, "heron")
    shell.run("rename", ONE, "The clocks")
    grown = Transcript(ONE, seed=0, cwd="/home/zoe/p0").user("question 0").assistant("yes").user("and now?")
    grown.write(shell.root)
    shell.run("sync")
    assert shell.found("heron") == [ONE]
    shutil.rmtree(shell.root / "projects" / "-home-zoe-p0")
    shell.run("sync")
    shell.run("archive", "rebuild")
    shutil.rmtree(shell.home / "index")
    told = shell.session(ONE)
    assert told["is_gone"]
    assert (told["tags"], told["is_starred"], told["title"]) == (["flaky"], True, "The clocks")
    assert [note["text"] for note in told["notes"]] == ["heron"]
    assert shell.found("heron") == [ONE]


def test_what_was_added_goes_when_the_session_is_forgotten(shell: Noting) -> None:
    shell.run("tag", ONE, "flaky")
    shell.run("star", ONE)
    shell.run("note", ONE, "a heron named Ludmilla")
    shell.run("rename", ONE, "Ludmilla again")
    assert shell.run("archive", "forget", ONE, "--yes").code == 0
    assert shell.found("Ludmilla") == []
    for file in shell.home.rglob("*"):
        assert not file.is_file() or b"udmilla" not in file.read_bytes(), file


def test_the_tools_own_files_stay_as_they_are(shell: Noting) -> None:
    before = {path: path.read_bytes() for path in shell.root.rglob("*.jsonl")}
    for line in (("tag", ONE, "x"), ("star", ONE), ("note", ONE, "x"), ("rename", ONE, "x")):
        assert shell.run(*line).code == 0
    assert {path: path.read_bytes() for path in shell.root.rglob("*.jsonl")} == before


def test_secrets_in_notes_are_redacted_with_the_rest(shell: Noting) -> None:
    token = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    shell.run("note", ONE, f"the key was {token}")
    assert token not in shell.run("export", ONE, "--format", "json", "--redact").out


def test_hostile_words_are_shown_inert(shell: Noting) -> None:
    shell.run("note", ONE, "red \x1b[31m alert\x07")
    shell.run("rename", ONE, "title \x1b]0;owned\x07")
    shown = shell.run("list").out + shell.run("show", ONE).out + shell.run("search", "alert").out
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_nothing_is_noted_of_a_subagent(shell: Noting) -> None:
    said = Transcript(ONE, seed=0, cwd="/home/zoe/p0").user("question 0").assistant("yes")
    said.delegate("Look around", "Two ferries.").write(shell.root)
    (agent,) = [one for one in shell.json("list", "--subagents")["data"] if one["parent_ref"]]
    for line in (("tag", agent["ref"], "x"), ("star", agent["ref"]), ("note", agent["ref"], "x")):
        ran = shell.run(*line)
        assert ran.code == 2
        assert f"claude-code:{ONE}" in ran.err
    assert shell.session(ONE)["tags"] == []


def test_tags_are_offered_while_somebody_types(shell: Noting) -> None:
    shell.run("tag", ONE, "flaky", "ferry")
    ran = backscroll(
        _BACKSCROLL_COMPLETE="bash_complete",
        COMP_WORDS=f"backscroll --home {shell.home} list --tag f",
        COMP_CWORD="5",
    )
    assert {line.partition(",")[2] for line in ran.out.splitlines()} == {"ferry", "flaky"}


def test_a_session_that_only_repeats_another_is_found_by_its_notes(shell: Noting) -> None:
    original = Transcript(ONE, seed=0, cwd="/home/zoe/p0").user("question 0").assistant("yes")
    copy = resume(original)
    copy.write(shell.root)
    shell.run("sync")
    shell.run("note", copy.session_id, "the heron")
    assert shell.found("heron") == [copy.session_id]
