"""Contents and size of a handoff."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.highlights.sentences import is_open_item, plain_sentences, sentences
from backscroll.history.history import History
from backscroll.redact import Redactor
from backscroll.render.handoff import Handoff, handoff_document, handoff_lines
from backscroll.testing.claude_code import Call, Transcript, tool_calls

ONE = "10000000-0000-4000-8000-000000000000"
CWD = "/home/zoe/ferry"

Make = Callable[..., Handoff]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home") as history:

        def build(transcript: Transcript, *, tokens: int = 2000, redactor: Redactor | None = None) -> Handoff:
            transcript.write(tmp_path / "claude")
            history.sync()
            return history.resume.handoff(ONE, tokens=tokens, redactor=redactor)

        yield build


def points(handoff: Handoff, name: str) -> list[str]:
    return [point.text for section in handoff.sections if section.name == name for point in section.points]


def session(request: str = "Make the ferry leave on time.") -> Transcript:
    return Transcript(ONE, cwd=CWD).user(request)


def test_the_first_request_is_the_goal_and_later_questions_change_it(make: Make) -> None:
    handoff = make(session().assistant("It does.").user("And on Sundays?").assistant("Then too."))
    assert points(handoff, "goal") == ["Make the ferry leave on time.", "Later: And on Sundays?"]


def test_a_later_instruction_is_a_decision(make: Make) -> None:
    transcript = session().assistant("I would use cron.").user("Don't use cron, use a systemd timer instead.")
    assert "User: Don't use cron, use a systemd timer instead." in points(
        make(transcript.assistant("Done.")), "decisions"
    )


def test_rejected_edits_and_approved_plans_are_decisions(make: Make) -> None:
    transcript = session().run(tool_calls.exit_plan("1. Read the timetable\n2. Leave"))
    transcript.assistant(tools=[tool_calls.edit(f"{CWD}/ferry.py", "noon", "one", original="noon\n")])
    transcript.reject(transcript.tool_ids[-1])
    decisions = "\n".join(points(make(transcript), "decisions"))
    assert "plan: 1. Read the timetable 2. Leave" in decisions
    assert "Rejected: 1 edit of ferry.py" in decisions


def test_files_are_listed_with_their_changes(make: Make) -> None:
    transcript = session().run(tool_calls.write(f"{CWD}/new.py", "a\nb\n"))
    transcript.run(tool_calls.edit(f"{CWD}/old.py", "noon", "one", original="noon\n"))
    transcript.run(tool_calls.bash("git rm -q gone.py")).run(tool_calls.read(f"{CWD}/seen.py", "x"))
    assert points(make(transcript), "files") == [
        "new.py: new (+2 −0)",
        "old.py: changed (+1 −1)",
        "gone.py: deleted",
        "seen.py: read",
    ]


def test_a_check_that_failed_last_is_listed_as_failed(make: Make) -> None:
    transcript = session().run(tool_calls.bash("pytest -q tests/a.py", "1 passed"))
    transcript.run(tool_calls.bash("pytest -q tests/b.py").failed("2 failed in 0.1s"))
    assert points(make(transcript), "commands") == [
        "passed: `pytest -q tests/a.py`: 1 passed",
        "failed: `pytest -q tests/b.py`: 2 failed in 0.1s",
    ]


def test_a_failed_check_that_passed_later_failed_at_first(make: Make) -> None:
    transcript = (
        session()
        .run(tool_calls.bash("pytest -q").failed("Exit code 1\n2 failed"))
        .run(tool_calls.bash("pytest -q -x", "2 passed"))
    )
    first, second = points(make(transcript), "commands")
    assert first.startswith("failed at first:")
    assert second.startswith("passed:")


def test_a_failure_in_a_pipe_is_detected_from_the_output(make: Make) -> None:
    transcript = session().run(tool_calls.bash("pytest -q | tail -3", "3 failed, 10 passed in 2s"))
    assert points(make(transcript), "commands") == [
        "failed: `pytest -q | tail -3`: 3 failed, 10 passed in 2s"
    ]


def test_unfinished_tasks_are_open_items(make: Make) -> None:
    transcript = session().run(tool_calls.todos([("Read it", "in_progress"), ("Fix it", "pending")]))
    transcript.run(
        tool_calls.todos([("Read it", "completed"), ("Fix it", "in_progress"), ("Test it", "pending")])
    )
    assert points(make(transcript.assistant("Going on.")), "open_ends") == [
        "In progress: Fix it",
        "To do: Test it",
    ]


def test_tasks_created_and_updated_one_by_one_are_tracked(make: Make) -> None:
    transcript = session()
    for number, subject in enumerate(("Read it", "Fix it"), start=1):
        transcript.run(Call("TaskCreate", {"subject": subject}, f"Task #{number} created successfully"))
    transcript.run(Call("TaskUpdate", {"taskId": "1", "status": "completed"}, "Updated task #1 status"))
    assert points(make(transcript), "open_ends") == ["To do: Fix it"]


def test_uncommitted_changes_unanswered_requests_and_running_commands_are_open_items(make: Make) -> None:
    transcript = (
        session().run(tool_calls.write(f"{CWD}/a.py", "a\n")).run(tool_calls.bash('git commit -qam "Add a"'))
    )
    transcript.run(tool_calls.write(f"{CWD}/b.py", "b\n")).assistant("Both are there.").user("Now push it.")
    transcript.assistant(tools=[tool_calls.bash("git push")])
    ends = points(make(transcript), "open_ends")
    assert "Uncommitted changes since the last commit: b.py" in ends
    assert "Answer incomplete: Now push it." in ends
    assert "Still running: `git push`" in ends


def test_an_unanswered_request_is_not_repeated_as_a_decision(make: Make) -> None:
    handoff = make(session().assistant("It does.").user("Now push the branch."))
    assert points(handoff, "open_ends") == ["Unanswered: Now push the branch."]
    assert points(handoff, "decisions") == []


def test_open_questions_of_the_last_answer_are_open_items_and_the_rest_is_the_last_state(make: Make) -> None:
    handoff = make(session().assistant("The ferry leaves on time. Sundays are still open. Shall I push?"))
    assert points(handoff, "open_ends") == ["Sundays are still open.", "Shall I push?"]
    assert points(handoff, "last_state") == ["The ferry leaves on time."]


def test_abandoned_branches_are_left_out(make: Make) -> None:
    transcript = session().assistant("First try.")
    leaf = transcript.leaf
    transcript.user("Paint it red.").assistant("Red it is.")
    transcript.leaf = leaf
    transcript.user("Paint it blue.").assistant("Blue it is.")
    text = "\n".join(handoff_lines(make(transcript)))
    assert "blue" in text
    assert "red" not in text


def test_a_subagent_has_its_own_handoff(tmp_path: Path) -> None:
    transcript = session().delegate("Count the ferries.", "There are two ferries.")
    transcript.write(tmp_path / "claude")
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home") as history:
        history.sync()
        (agent,) = history.find(ONE).agent_ids
        assert points(history.resume.handoff(agent), "goal") == ["Count the ferries."]
        assert "Count the ferries." not in points(history.resume.handoff(ONE), "goal")


@pytest.mark.parametrize("tokens", [100, 200, 400, 800])
def test_a_handoff_stays_within_its_budget_and_keeps_the_most_important_points(
    make: Make, tokens: int
) -> None:
    transcript = session()
    for number in range(60):
        transcript.user(f"Use knot {number} instead of knot {number + 1}.").assistant(
            f"Knot {number} holds because of friction."
        )
    handoff = make(transcript.assistant("Open: who ties the last knot is not decided."), tokens=tokens)
    text = "".join(f"{line}\n" for line in handoff_lines(handoff))
    assert len(text) <= tokens * 4
    assert handoff.tokens == -(-len(text) // 4)
    assert "Make the ferry leave on time." in text
    assert sum(section.left_out for section in handoff.sections) > 0
    assert handoff_document(handoff)["text"] == text


def test_secrets_are_redacted_before_text_is_truncated(make: Make) -> None:
    token = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    transcript = session(f"Deploy with {token} please. " + "x" * 1150 + f" {token}")
    transcript.run(tool_calls.bash(f"curl -H 'Authorization: Bearer {token}' https://ferry.example"))
    redactor = Redactor()
    text = "\n".join(handoff_lines(make(transcript, redactor=redactor)))
    assert token[:12] not in text
    assert redactor.found_secrets()


def test_escape_sequences_are_removed(make: Make) -> None:
    text = "\n".join(
        handoff_lines(make(session("red \x1b[31m alert\x07 \u202eevil").assistant("\x1b]0;x\x07 done")))
    )
    assert not set("\x1b\x07\u202e") & set(text)


@pytest.mark.parametrize(
    "word",
    [
        "git ",
        "```\n",
        *(
            pytest.param(word, marks=pytest.mark.soak)
            for word in ("nothing ", "not ", "a_", "**", "`", "Open: ", "rm x.py; ")
        ),
    ],
)
def test_a_message_of_a_megabyte_is_summarized(make: Make, word: str) -> None:
    text = word * (1_000_000 // len(word))
    transcript = (
        session(text)
        .run(tool_calls.bash(text, text))
        .assistant(text)
        .user(text)
        .assistant(f"{text}. Done at last.")
    )
    assert make(transcript, redactor=Redactor(), tokens=300).tokens <= 300


def test_a_session_without_text_has_no_points(make: Make) -> None:
    handoff = make(Transcript(ONE, cwd=CWD).meta("only injected"))
    assert all(not section.points for section in handoff.sections)


def test_prose_is_split_into_sentences_without_code() -> None:
    text = (
        "# Title\nOne (e.g. Two) stays. **Three** goes.\n```py\nx = 1. Y\n```\n- item one\n| a | b |\nThis:\n"
    )
    assert list(sentences(text)) == ["One (e.g. Two) stays.", "**Three** goes.", "item one"]
    assert list(plain_sentences(text)) == ["One (e.g. Two) stays.", "Three goes.", "item one"]


def test_a_sentence_keeps_its_closing_quotation_mark(make: Make) -> None:
    handoff = make(session().assistant('The sign says "No ferry today." It is still `open`.'))
    assert points(handoff, "last_state") == ['The sign says "No ferry today."']


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
def test_open_items_are_recognized(sentence: str, is_last: bool, expected: bool) -> None:
    assert is_open_item(sentence, is_last=is_last) is expected
