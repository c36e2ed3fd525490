"""The demo is consistent: its sessions, its commits, and the questions in questions.json."""

import json
import re
import subprocess
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backscroll.model.message import Message
from backscroll.testing.demo import Demo
from tests.oracle.fold import ParsedSession

QUESTIONS = json.loads((Path(__file__).parent / "questions.json").read_text(encoding="utf-8"))

Commit = dict[str, Any]


def _git(repository: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(repository), *arguments], check=True, capture_output=True, text=True
    ).stdout


def _session_text(session: ParsedSession) -> str:
    """Return the texts, tool arguments and tool results of a session."""
    parts = []
    for message in session.messages:
        parts.append(message.content)
        if message.tool is not None:
            parts += [json.dumps(message.tool.params, ensure_ascii=False), message.tool.result or ""]
    return "\n".join(parts)


@pytest.fixture(scope="module")
def texts(sessions: dict[str, ParsedSession]) -> dict[str, str]:
    return {id: _session_text(session) for id, session in sessions.items()}


@pytest.mark.parametrize("question", QUESTIONS["questions"], ids=lambda question: question["question"])
def test_only_the_listed_sessions_answer_a_question(question: dict[str, Any], texts: dict[str, str]) -> None:
    assert {id for id, text in texts.items() if question["evidence"] in text} == set(question["sessions"])


@pytest.mark.parametrize("briefing", QUESTIONS["briefings"], ids=lambda briefing: briefing["goal"])
def test_the_facts_of_a_briefing_are_in_the_session(
    briefing: dict[str, Any], sessions: dict[str, ParsedSession], texts: dict[str, str]
) -> None:
    text = texts[briefing["session"]]
    assert [fact for fact in briefing["must_name"] if fact not in text] == []
    assert [path for path in briefing["files"] if path not in text] == []
    calls = [
        message.tool
        for message in _completed_calls(sessions[briefing["session"]])
        if message.tool is not None
    ]
    for edit in (edit for call in calls for edit in call.edits):
        assert any(edit.path.endswith(f"/{file}") for file in briefing["files"]), edit.path


def test_there_are_enough_questions_and_briefings() -> None:
    assert len(QUESTIONS["questions"]) >= 20
    assert len(QUESTIONS["briefings"]) >= 5


@pytest.mark.parametrize("commit", QUESTIONS["commits"], ids=lambda commit: commit["subject"])
def test_a_commit_contains_the_lines_of_its_sessions(
    commit: Commit, home: Path, sessions: dict[str, ParsedSession]
) -> None:
    repository = home / "projects" / commit["repository"]
    sha, before, at = _find_commit(repository, commit)
    added = _added_by_commit(repository, sha)
    for id in commit["sessions"]:
        lines = _added_by_session(sessions, id, f"{repository}/", before, at)
        assert lines
        assert [line for line in lines if line not in added] == []


def test_every_commit_is_in_the_list_of_commits(written: Demo, home: Path) -> None:
    found = {
        (repository.name, subject)
        for repository in (home / "projects").iterdir()
        if repository.is_dir() and "-" not in repository.name
        for subject in _git(repository, "log", "--format=%s", "main").splitlines()
    }
    commits = [commit for commit in QUESTIONS["commits"] if commit["branch"] == "main"]
    assert found == {(commit["repository"], commit["subject"]) for commit in commits}
    assert len(QUESTIONS["commits"]) == written.commits


def test_there_are_commits_with_no_one_and_several_sessions() -> None:
    assert {len(commit["sessions"]) for commit in QUESTIONS["commits"]} >= {0, 1, 2}


def test_some_sessions_have_no_commit(sessions: dict[str, ParsedSession]) -> None:
    with_commit = {id for commit in QUESTIONS["commits"] for id in commit["sessions"]}
    assert len(sessions.keys() - with_commit) >= 5


def test_the_commit_ids_in_sessions_are_the_ids_of_git(home: Path, texts: dict[str, str]) -> None:
    in_sessions = {
        found
        for text in texts.values()
        for found in re.findall(r"\[(?:main|a11y)(?: \(root-commit\))? ([0-9a-f]{7})\] (.+)", text)
    }
    in_git = {
        tuple(line.split(" ", 1))
        for repository in ("tideline", "saltern", "lintel", "website")
        for line in _git(home / "projects" / repository, "log", "--all", "--format=%h %s").splitlines()
    }
    assert in_sessions
    assert in_sessions <= in_git


def test_all_messages_are_between_july_7_and_november_10(
    written: Demo, sessions: dict[str, ParsedSession]
) -> None:
    times = [
        m.timestamp for session in sessions.values() for m in session.messages if m.timestamp is not None
    ]
    assert f"{min(times):%Y-%m-%d}" == "2026-07-07"
    assert f"{max(times):%Y-%m-%d}" == "2026-11-10"


def test_the_demo_contains_messages_of_every_kind(sessions: dict[str, ParsedSession]) -> None:
    messages = [message for session in sessions.values() for message in session.messages]
    kinds = {message.kind for message in messages}
    assert kinds >= {"compaction", "command", "interruption", "queued"}
    assert {message.role for message in messages} >= {"user", "assistant", "thinking", "tool", "error"}
    assert {message.tool.status for message in messages if message.tool} >= {
        "completed",
        "failed",
        "cancelled",
    }
    assert {message.tool.decision for message in messages if message.tool} >= {"accepted", "rejected"}
    assert {attachment.kind for message in messages for attachment in message.attachments} >= {
        "image",
        "file",
    }
    assert len({message.model for message in messages}) >= 8
    assert {session.closing.completeness for session in sessions.values()} >= {"complete", "lossy"}


def _completed_calls(session: ParsedSession) -> list[Message]:
    return [m for m in session.messages if m.tool is not None and m.tool.status == "completed"]


def _added_by_session(
    sessions: dict[str, ParsedSession], id: str, folder: str, since: datetime, until: datetime
) -> list[str]:
    """Return the lines that a session added in a folder between two times and did not remove."""
    lines: Counter[str] = Counter()
    for message in _completed_calls(sessions[id]):
        if message.timestamp is None or not since < message.timestamp <= until or _is_copy(message, sessions):
            continue
        for edit in message.tool.edits if message.tool is not None else ():
            if edit.path.startswith(folder):
                lines.update(line for hunk in edit.hunks for line in hunk.added)
                lines.subtract(line for hunk in edit.hunks for line in hunk.removed)
    return [line for line, count in lines.items() if count > 0 and line.strip()]


def _is_copy(message: Message, sessions: dict[str, ParsedSession]) -> bool:
    """Return whether an earlier session has the same message. A resumed session starts with copies."""
    assert message.timestamp is not None
    copies = (other for session in sessions.values() for other in session.messages if other.id == message.id)
    return any(other.timestamp is not None and other.timestamp < message.timestamp for other in copies)


def _find_commit(repository: Path, commit: Commit) -> tuple[str, datetime, datetime]:
    """Return the id of a commit, the time of its parent and its own time."""
    lines = _git(repository, "log", "--format=%H%x09%cI%x09%s", commit["branch"]).splitlines()
    rows = [line.split("\t") for line in lines]
    index = next(n for n, row in enumerate(rows) if row[2] == commit["subject"])
    times = [datetime.fromisoformat(row[1]) for row in rows] + [datetime.min.replace(tzinfo=UTC)]
    return rows[index][0], times[index + 1], times[index] + timedelta(seconds=1)


def _added_by_commit(repository: Path, sha: str) -> set[str]:
    diff = _git(repository, "show", "--format=", "--unified=0", sha)
    return {line[1:] for line in diff.splitlines() if line.startswith("+") and line[:3] != "+++"}
