"""Tags, stars, notes and titles: stored in the archive, shown and searchable."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backscroll.testing.claude_code import Transcript, resume
from tests.cli.run_command import Shell, backscroll
from tests.cli.terminal import in_terminal

ONE = "10000000-0000-4000-8000-000000000000"
TWO = "20000000-0000-4000-8000-000000000000"


class AnnotationShell(Shell):
    """Runs the command and reads annotations."""

    def session(self, id_: str) -> Any:
        (summary,) = [session for session in self.json("list")["data"] if session["id"] == id_]
        return summary

    def search(self, *words: str) -> list[str]:
        """Return the ids of the sessions that a search finds."""
        return [session["session_id"] for session in self.json("search", *words)["data"]]


@pytest.fixture
def shell(tmp_path: Path) -> AnnotationShell:
    shell = AnnotationShell(tmp_path)
    for index, id_ in enumerate((ONE, TWO)):
        transcript = Transcript(id_, seed=index, cwd=f"/home/zoe/p{index}")
        transcript.user(f"question {index}").assistant("yes").write(shell.root)
    shell.sync()
    return shell


def test_a_new_session_has_no_annotations(shell: AnnotationShell) -> None:
    session = shell.session(ONE)
    names = ("tags", "is_starred", "notes", "original_title")
    assert [session[name] for name in names] == [[], False, [], None]


def test_a_session_is_listed_and_found_by_its_tags(shell: AnnotationShell) -> None:
    shell.run("tag", ONE, "#Flaky", "ci")
    shell.run("tag", TWO, "ci")
    assert shell.session(ONE)["tags"] == ["ci", "flaky"]
    assert [session["id"] for session in shell.json("list", "--tag", "Flaky", "--tag", "ci")["data"]] == [ONE]
    assert shell.search("tag:flaky") == [ONE]
    assert shell.search("tag:fla*") == [ONE]
    assert shell.search("question", "-tag:flaky") == [TWO]
    assert shell.search("yes", "--tag", "flaky", "--tag", "ci") == [ONE]
    assert "\tci flaky\t" in shell.run("list").out


def test_a_removed_tag_no_longer_matches(shell: AnnotationShell) -> None:
    shell.run("tag", ONE, "flaky")
    shell.run("untag", ONE, "flaky", "never-given")
    assert shell.session(ONE)["tags"] == []
    assert shell.search("tag:flaky") == []
    assert shell.search("flaky") == []


def test_tags_that_need_no_change_are_reported(shell: AnnotationShell) -> None:
    shell.run("tag", ONE, "flaky")
    assert shell.run("tag", ONE, "#Flaky", "ci").out.startswith(
        "Added #ci.\nAlready set: #flaky.\nquestion 0"
    )
    assert shell.run("untag", ONE, "ci", "Never").out.startswith("Removed #ci.\nNot set: #never.\nquestion 0")
    assert shell.run("untag", ONE, "ci").out.startswith("Not set: #ci.\nquestion 0")


@pytest.mark.parametrize(
    ("tag", "message"),
    [("two words", "one word"), ("bad\x1b[31m", "invisible characters"), ("x" * 101, "at most 100")],
)
def test_an_invalid_tag_is_reported(shell: AnnotationShell, tag: str, message: str) -> None:
    result = shell.run("tag", ONE, tag)
    assert result.code == 2
    assert message in result.err
    assert "\x1b" not in result.err
    assert shell.session(ONE)["tags"] == []


def test_a_star_can_be_set_and_removed(shell: AnnotationShell) -> None:
    assert "\n★ question 0\n" in shell.run("star", ONE).out
    assert [session["id"] for session in shell.json("list", "--starred")["data"]] == [ONE]
    assert shell.run("show", ONE).out.startswith("★ question 0")
    assert shell.search("is:starred") == [ONE]
    assert shell.search("yes", "--starred") == [ONE]
    shell.run("star", ONE, "--off")
    assert shell.json("list", "--starred")["data"] == []


def test_a_session_is_found_by_the_words_of_its_notes(shell: AnnotationShell) -> None:
    shell.run("note", ONE, "the heron is in the second half")
    shell.run("note", ONE, "so is the egret")
    (match,) = shell.json("search", "heron")["data"]
    assert (match["session_id"], match["is_note"], match["message_index"]) == (ONE, True, 0)
    assert match["match"] == "the heron is in the second half"
    assert [match["match"][a:b] for a, b in match["highlights"]] == ["heron"]
    assert shell.search("--exact", "is the egret") == [ONE]
    assert shell.search("--regex", "egr.t$") == [ONE]


def test_the_time_of_a_note_is_local(shell: AnnotationShell) -> None:
    shell.run("note", ONE, "heron")
    (note,) = shell.session(ONE)["notes"]
    written = datetime.fromisoformat(note["written_at"])
    text = shell.run("note", ONE, TZ="XYZ-5:45").out
    assert f"note 1 ({written + timedelta(hours=5, minutes=45):%Y-%m-%d %H:%M}): heron" in text


def test_a_note_is_not_a_message(shell: AnnotationShell) -> None:
    shell.run("note", ONE, "heron")
    assert shell.search("role:user", "heron") == []
    counted = {
        session["session_id"]: session["match_count"]
        for session in shell.json("search", "source:claude-code")["data"]
    }
    assert counted == {ONE: 2, TWO: 2}


def test_a_note_can_be_edited_and_deleted(shell: AnnotationShell) -> None:
    shell.run("note", ONE, "heron")
    shell.run("note", ONE, "egret")
    shell.run("note", ONE, "--edit", "1", "stork")
    first, second = shell.session(ONE)["notes"]
    assert (first["number"], first["text"], second["text"]) == (1, "stork", "egret")
    assert first["edited_at"] is not None
    assert second["edited_at"] is None
    shell.run("note", ONE, "--delete", "1")
    assert [note["number"] for note in shell.session(ONE)["notes"]] == [2]
    assert [shell.search(word) for word in ("heron", "stork", "egret")] == [[], [], [ONE]]
    result = shell.run("note", ONE, "--delete", "7")
    assert (result.code, result.err.strip()) == (2, f"claude-code:{ONE} has no note 7. Its notes are 2.")


def test_a_new_title_is_shown_and_the_old_title_is_still_searchable(shell: AnnotationShell) -> None:
    shell.run("rename", ONE, "The night  of the clocks")
    session = shell.session(ONE)
    assert (session["title"], session["original_title"]) == ("The night of the clocks", "question 0")
    assert shell.search("clocks") == [ONE]
    assert shell.json("search", "yes")["data"][0]["title"] in ("The night of the clocks", "question 1")
    assert "original title: question 0" in shell.run("show", ONE).out
    shell.run("rename", ONE, "--reset")
    assert shell.session(ONE)["title"] == "question 0"
    assert shell.search("clocks") == []


def test_annotations_survive_growth_rebuilds_and_deletion_by_the_tool(shell: AnnotationShell) -> None:
    shell.run("tag", ONE, "flaky")
    shell.run("star", ONE)
    shell.run("note", ONE, "heron")
    shell.run("rename", ONE, "The clocks")
    grown = Transcript(ONE, seed=0, cwd="/home/zoe/p0").user("question 0").assistant("yes").user("and now?")
    grown.write(shell.root)
    shell.sync()
    assert shell.search("heron") == [ONE]
    shutil.rmtree(shell.root / "projects" / "-home-zoe-p0")
    shell.sync()
    shell.run("archive", "rebuild")
    shutil.rmtree(shell.home / "index")
    session = shell.session(ONE)
    assert session["is_gone"]
    assert (session["tags"], session["is_starred"], session["title"]) == (["flaky"], True, "The clocks")
    assert [note["text"] for note in session["notes"]] == ["heron"]
    assert shell.search("heron") == [ONE]


def test_annotations_are_erased_with_a_forgotten_session(shell: AnnotationShell) -> None:
    shell.run("tag", ONE, "flaky")
    shell.run("star", ONE)
    shell.run("note", ONE, "a heron named Ludmilla")
    shell.run("rename", ONE, "Ludmilla again")
    assert shell.run("archive", "forget", ONE, "--yes").code == 0
    assert shell.search("Ludmilla") == []
    for file in shell.home.rglob("*"):
        assert not file.is_file() or b"udmilla" not in file.read_bytes(), file


def test_annotations_do_not_change_the_tools_files(shell: AnnotationShell) -> None:
    before = {path: path.read_bytes() for path in shell.root.rglob("*.jsonl")}
    for line in (("tag", ONE, "x"), ("star", ONE), ("note", ONE, "x"), ("rename", ONE, "x")):
        assert shell.run(*line).code == 0
    assert {path: path.read_bytes() for path in shell.root.rglob("*.jsonl")} == before


def test_secrets_in_notes_are_redacted(shell: AnnotationShell) -> None:
    token = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    shell.run("note", ONE, f"the key was {token}")
    assert token not in shell.run("export", ONE, "--format", "json", "--redact").out


def test_control_characters_in_annotations_are_removed(shell: AnnotationShell) -> None:
    shell.run("note", ONE, "red \x1b[31m alert\x07")
    shell.run("rename", ONE, "title \x1b]0;owned\x07")
    shown = shell.run("list").out + shell.run("show", ONE).out + shell.run("search", "alert").out
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_a_subagent_cannot_be_annotated(shell: AnnotationShell) -> None:
    transcript = Transcript(ONE, seed=0, cwd="/home/zoe/p0").user("question 0").assistant("yes")
    transcript.delegate("Look around", "Two ferries.").write(shell.root)
    (agent,) = [session for session in shell.json("list", "--subagents")["data"] if session["parent_ref"]]
    for line in (("tag", agent["ref"], "x"), ("star", agent["ref"]), ("note", agent["ref"], "x")):
        result = shell.run(*line)
        assert result.code == 2
        assert f"claude-code:{ONE}" in result.err
    assert shell.session(ONE)["tags"] == []


def test_tags_are_completed(shell: AnnotationShell) -> None:
    shell.run("tag", ONE, "flaky", "ferry")
    result = backscroll(
        _BACKSCROLL_COMPLETE="bash_complete",
        COMP_WORDS=f"backscroll --home {shell.home} list --tag f",
        COMP_CWORD="5",
    )
    assert {line.partition(",")[2] for line in result.out.splitlines()} == {"ferry", "flaky"}


def test_a_session_that_only_repeats_another_is_found_by_its_notes(shell: AnnotationShell) -> None:
    original = Transcript(ONE, seed=0, cwd="/home/zoe/p0").user("question 0").assistant("yes")
    copy = resume(original)
    copy.write(shell.root)
    shell.sync()
    shell.run("note", copy.session_id, "the heron")
    assert shell.search("heron") == [copy.session_id]


def first_line(shell: AnnotationShell, *arguments: str) -> str:
    result = shell.run(*arguments)
    assert result.code == 0, result.err
    return result.out.splitlines()[0]


def test_every_change_is_confirmed(shell: AnnotationShell) -> None:
    assert first_line(shell, "star", ONE) == "Added the star."
    assert first_line(shell, "star", ONE, "--off") == "Removed the star."
    assert first_line(shell, "tag", ONE, "flaky", "CI") == "Added #ci #flaky."
    assert first_line(shell, "untag", ONE, "ci", "never-given") == "Removed #ci."
    assert first_line(shell, "note", ONE, "a heron") == "Added note 1."
    assert first_line(shell, "note", ONE, "--edit", "1", "an egret") == "Changed note 1."
    assert first_line(shell, "note", ONE, "--delete", "1") == 'Deleted note 1: "an egret"'
    assert first_line(shell, "rename", ONE, "Birds") == 'Renamed from "question 0".'
    assert first_line(shell, "rename", ONE, "--reset") == "Restored the tool's title."


def test_a_command_that_changes_nothing_says_so(shell: AnnotationShell) -> None:
    assert first_line(shell, "unstar", ONE) == "The session has no star."
    shell.run("star", ONE)
    assert first_line(shell, "star", ONE) == "The session already has a star."
    assert first_line(shell, "untag", ONE, "flaky") == "Not set: #flaky."
    shell.run("tag", ONE, "flaky")
    assert first_line(shell, "tag", ONE, "flaky") == "Already set: #flaky."
    assert first_line(shell, "rename", ONE, "question 0") == "The session already has this title."
    assert shell.run("note", TWO).out.endswith("No notes.\n")


def test_unstar_removes_the_star(shell: AnnotationShell) -> None:
    shell.run("star", ONE)
    assert first_line(shell, "unstar", ONE) == "Removed the star."
    assert shell.json("list", "--starred")["data"] == []
    assert shell.json("unstar", ONE)["is_starred"] is False


def test_tags_lists_every_tag_with_its_number_of_sessions(shell: AnnotationShell) -> None:
    empty = shell.run("tags")
    assert (empty.code, empty.out, "tag REF TAG" in empty.err) == (0, "", True)
    shell.run("tag", ONE, "flaky", "ci")
    shell.run("tag", TWO, "ci")
    assert shell.run("tags").out == "ci\t2\nflaky\t1\n"
    assert in_terminal(*shell.options, "tags") == "#ci     2 sessions\n#flaky  1 session\n"
    data = shell.json("tags")["data"]
    assert data == [{"tag": "ci", "session_count": 2}, {"tag": "flaky", "session_count": 1}]
