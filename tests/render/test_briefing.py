"""What a briefing draws from a session, and how it is sized."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.redact.redactor import Redactor
from backscroll.render.handoff import Handoff, handoff_document, handoff_lines
from backscroll.render.handoff.sentences import is_open_item, sentences
from backscroll.testing.claude_code import Call, Transcript, tool_calls

ONE = "10000000-0000-4000-8000-000000000000"
CWD = "/home/zoe/ferry"

Make = Callable[..., Handoff]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home") as history:

        def made(session: Transcript, *, tokens: int = 2000, redactor: Redactor | None = None) -> Handoff:
            session.write(tmp_path / "claude")
            history.sync()
            return history.resume.handoff(ONE, tokens=tokens, redactor=redactor)

        yield made


def told(briefing: Handoff, name: str) -> list[str]:
    return [point.text for one in briefing.sections if one.name == name for point in one.points]


def begun(request: str = "Make the ferry leave on time.") -> Transcript:
    return Transcript(ONE, cwd=CWD).user(request)


def test_the_first_request_is_the_goal_and_later_questions_change_it(make: Make) -> None:
    briefing = make(begun().assistant("It does.").user("And on Sundays?").assistant("Then too."))
    assert told(briefing, "goal") == ["Make the ferry leave on time.", "Then: And on Sundays?"]


def test_what_the_human_says_later_is_a_decision(make: Make) -> None:
    said = begun().assistant("I would use cron.").user("Don't use cron, use a systemd timer instead.")
    assert "You: Don't use cron, use a systemd timer instead." in told(
        make(said.assistant("Done.")), "decisions"
    )


def test_rejected_edits_and_approved_plans_are_decisions(make: Make) -> None:
    said = begun().run(tool_calls.exit_plan("1. Read the timetable\n2. Leave"))
    said.assistant(tools=[tool_calls.edit(f"{CWD}/ferry.py", "noon", "one", original="noon\n")])
    said.reject(said.tool_ids[-1])
    decisions = "\n".join(told(make(said), "decisions"))
    assert "plan: 1. Read the timetable 2. Leave" in decisions
    assert "Rejected: an edit of ferry.py" in decisions


def test_files_are_told_with_what_was_done_to_them(make: Make) -> None:
    said = begun().run(tool_calls.write(f"{CWD}/new.py", "a\nb\n"))
    said.run(tool_calls.edit(f"{CWD}/old.py", "noon", "one", original="noon\n"))
    said.run(tool_calls.bash("git rm -q gone.py")).run(tool_calls.read(f"{CWD}/seen.py", "x"))
    assert told(make(said), "files") == [
        "new.py: new (+2 −0)",
        "old.py: changed (+1 −1)",
        "gone.py: deleted",
        "seen.py: read",
    ]


def test_a_check_that_failed_at_the_end_is_told_as_failing(make: Make) -> None:
    said = begun().run(tool_calls.bash("pytest -q tests/a.py", "1 passed"))
    said.run(tool_calls.bash("pytest -q tests/b.py").failed("2 failed in 0.1s"))
    assert told(make(said), "commands") == [
        "passed: `pytest -q tests/a.py`: 1 passed",
        "failed: `pytest -q tests/b.py`: 2 failed in 0.1s",
    ]


def test_a_check_that_passed_in_the_end_failed_only_at_first(make: Make) -> None:
    said = (
        begun()
        .run(tool_calls.bash("pytest -q").failed("Exit code 1\n2 failed"))
        .run(tool_calls.bash("pytest -q -x", "2 passed"))
    )
    first, second = told(make(said), "commands")
    assert first.startswith("failed at first:")
    assert second.startswith("passed:")


def test_a_check_whose_failure_went_through_a_pipe_is_no_pass(make: Make) -> None:
    said = begun().run(tool_calls.bash("pytest -q | tail -3", "3 failed, 10 passed in 2s"))
    assert told(make(said), "commands") == ["failed: `pytest -q | tail -3`: 3 failed, 10 passed in 2s"]


def test_unfinished_entries_of_the_list_are_open(make: Make) -> None:
    said = begun().run(tool_calls.todos([("Read it", "in_progress"), ("Fix it", "pending")]))
    said.run(tool_calls.todos([("Read it", "completed"), ("Fix it", "in_progress"), ("Test it", "pending")]))
    assert told(make(said.assistant("Going on.")), "open_ends") == ["Begun: Fix it", "To do: Test it"]


def test_entries_that_are_added_and_changed_one_by_one_are_known_too(make: Make) -> None:
    said = begun()
    for number, subject in enumerate(("Read it", "Fix it"), start=1):
        said.run(Call("TaskCreate", {"subject": subject}, f"Task #{number} created successfully"))
    said.run(Call("TaskUpdate", {"taskId": "1", "status": "completed"}, "Updated task #1 status"))
    assert told(make(said), "open_ends") == ["To do: Fix it"]


def test_what_was_not_committed_or_answered_or_ended_is_open(make: Make) -> None:
    said = begun().run(tool_calls.write(f"{CWD}/a.py", "a\n")).run(tool_calls.bash('git commit -qam "Add a"'))
    said.run(tool_calls.write(f"{CWD}/b.py", "b\n")).assistant("Both are there.").user("Now push it.")
    said.assistant(tools=[tool_calls.bash("git push")])
    ends = told(make(said), "open_ends")
    assert "Not committed since the last commit: b.py" in ends
    assert "Not answered to the end: Now push it." in ends
    assert "Had not ended: `git push`" in ends


def test_what_the_last_answer_leaves_open_is_open_and_the_rest_is_the_last_state(make: Make) -> None:
    briefing = make(begun().assistant("The ferry leaves on time. Sundays are still open. Shall I push?"))
    assert told(briefing, "open_ends") == ["Sundays are still open.", "Shall I push?"]
    assert told(briefing, "last_state") == ["The ferry leaves on time."]


def test_abandoned_branches_are_not_told(make: Make) -> None:
    said = begun().assistant("First try.")
    leaf = said.leaf
    said.user("Paint it red.").assistant("Red it is.")
    said.leaf = leaf
    said.user("Paint it blue.").assistant("Blue it is.")
    text = "\n".join(handoff_lines(make(said)))
    assert "blue" in text
    assert "red" not in text


def test_a_subagent_has_a_briefing_of_its_own(tmp_path: Path) -> None:
    said = begun().delegate("Count the ferries.", "There are two ferries.")
    said.write(tmp_path / "claude")
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home") as history:
        history.sync()
        (agent,) = history.find(ONE).agent_ids
        assert told(history.resume.handoff(agent), "goal") == ["Count the ferries."]
        assert "Count the ferries." not in told(history.resume.handoff(ONE), "goal")


@pytest.mark.parametrize("tokens", [100, 200, 400, 800])
def test_a_briefing_keeps_to_its_budget_and_says_first_what_matters_most(make: Make, tokens: int) -> None:
    said = begun()
    for number in range(60):
        said.user(f"Use knot {number} instead of knot {number + 1}.").assistant(
            f"Knot {number} holds because of friction."
        )
    briefing = make(said.assistant("Open: who ties the last knot is not decided."), tokens=tokens)
    text = "".join(f"{line}\n" for line in handoff_lines(briefing))
    assert len(text) <= tokens * 4
    assert briefing.tokens == -(-len(text) // 4)
    assert "Make the ferry leave on time." in text
    assert sum(section.left_out for section in briefing.sections) > 0
    assert handoff_document(briefing)["text"] == text


def test_secrets_are_replaced_before_anything_is_cut(make: Make) -> None:
    token = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    said = begun(f"Deploy with {token} please. " + "x" * 1150 + f" {token}")
    said.run(tool_calls.bash(f"curl -H 'Authorization: Bearer {token}' https://ferry.example"))
    redactor = Redactor()
    text = "\n".join(handoff_lines(make(said, redactor=redactor)))
    assert token[:12] not in text
    assert redactor.found_secrets()


def test_hostile_words_are_told_inert(make: Make) -> None:
    text = "\n".join(
        handoff_lines(make(begun("red \x1b[31m alert\x07 \u202eevil").assistant("\x1b]0;x\x07 done")))
    )
    assert not set("\x1b\x07\u202e") & set(text)


@pytest.mark.parametrize(
    "word", ["nothing ", "git ", "```\n", "not ", "a_", "**", "`", "Open: ", "rm x.py; "]
)
def test_a_message_of_a_megabyte_is_told_like_any_other(make: Make, word: str) -> None:
    text = word * (1_000_000 // len(word))
    said = (
        begun(text)
        .run(tool_calls.bash(text, text))
        .assistant(text)
        .user(text)
        .assistant(f"{text}. Done at last.")
    )
    assert make(said, redactor=Redactor(), tokens=300).tokens <= 300


def test_a_session_without_a_word_gives_a_head_and_nothing_else(make: Make) -> None:
    briefing = make(Transcript(ONE, cwd=CWD).meta("only injected"))
    assert all(not section.points for section in briefing.sections)


def test_prose_is_cut_into_sentences_and_code_is_left_out() -> None:
    text = (
        "# Title\nOne (e.g. Two) stays. **Three** goes.\n```py\nx = 1. Y\n```\n- item one\n| a | b |\nThis:\n"
    )
    assert list(sentences(text)) == ["One (e.g. Two) stays.", "Three goes.", "item one"]


@pytest.mark.parametrize(
    ("sentence", "is_last", "expected"),
    [
        ("Open: the months of 2021.", False, True),
        ("There is nothing left to do.", True, False),
        ("It waits until noon.", False, False),
        ("It waits until noon.", True, True),
        ("Open the file.", False, False),
        ("The tag is not set yet.", False, True),
        ("I left out the rest.", True, False),
    ],
)
def test_what_sounds_open(sentence: str, is_last: bool, expected: bool) -> None:
    assert is_open_item(sentence, is_last=is_last) is expected
