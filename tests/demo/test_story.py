"""What the demo tells hangs together: sessions, commits, and the questions asked of them."""

import json
import re
import subprocess
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backscroll.model import Message
from backscroll.testing.demo import Demo
from tests.oracle.fold import ParsedSession

QUESTIONS = json.loads((Path(__file__).parent / "questions.json").read_text(encoding="utf-8"))

Commit = dict[str, Any]


def _git(repository: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(repository), *arguments], check=True, capture_output=True, text=True
    ).stdout


def _said(reading: ParsedSession) -> str:
    """Everything a session holds that can be read."""
    parts = []
    for message in reading.messages:
        parts.append(message.content)
        if message.tool is not None:
            parts += [json.dumps(message.tool.params, ensure_ascii=False), message.tool.result or ""]
    return "\n".join(parts)


@pytest.fixture(scope="module")
def texts(sessions: dict[str, ParsedSession]) -> dict[str, str]:
    return {id: _said(reading) for id, reading in sessions.items()}


@pytest.mark.parametrize("asked", QUESTIONS["questions"], ids=lambda asked: asked["question"])
def test_a_question_is_answered_by_the_named_sessions_and_no_other(
    asked: dict[str, Any], texts: dict[str, str]
) -> None:
    assert {id for id, text in texts.items() if asked["evidence"] in text} == set(asked["sessions"])


@pytest.mark.parametrize("briefing", QUESTIONS["briefings"], ids=lambda briefing: briefing["goal"])
def test_a_briefing_asks_only_for_what_the_session_holds(
    briefing: dict[str, Any], sessions: dict[str, ParsedSession], texts: dict[str, str]
) -> None:
    text = texts[briefing["session"]]
    assert [fact for fact in briefing["must_name"] if fact not in text] == []
    assert [path for path in briefing["files"] if path not in text] == []
    calls = [message.tool for message in _tools(sessions[briefing["session"]]) if message.tool is not None]
    for edit in (edit for call in calls for edit in call.edits):
        assert any(edit.path.endswith(f"/{file}") for file in briefing["files"]), edit.path


def test_there_is_enough_to_ask() -> None:
    assert len(QUESTIONS["questions"]) >= 20
    assert len(QUESTIONS["briefings"]) >= 5


@pytest.mark.parametrize("commit", QUESTIONS["commits"], ids=lambda commit: commit["subject"])
def test_a_commit_holds_what_its_sessions_wrote(
    commit: Commit, home: Path, sessions: dict[str, ParsedSession]
) -> None:
    repository = home / "projects" / commit["repository"]
    sha, before, at = _log(repository, commit)
    added = _added(repository, sha)
    for id in commit["sessions"]:
        lines = _written(sessions, id, f"{repository}/", before, at)
        assert lines
        assert [line for line in lines if line not in added] == []


def test_every_commit_is_accounted_for(written: Demo, home: Path) -> None:
    found = {
        (repository.name, subject)
        for repository in (home / "projects").iterdir()
        if repository.is_dir() and "-" not in repository.name
        for subject in _git(repository, "log", "--format=%s", "main").splitlines()
    }
    told = {(one["repository"], one["subject"]) for one in QUESTIONS["commits"] if one["branch"] == "main"}
    assert found == told
    assert len(QUESTIONS["commits"]) == written.commits


def test_there_are_commits_of_many_one_and_no_session() -> None:
    assert {len(one["sessions"]) for one in QUESTIONS["commits"]} >= {0, 1, 2}


def test_some_sessions_led_to_no_commit(sessions: dict[str, ParsedSession]) -> None:
    led = {id for one in QUESTIONS["commits"] for id in one["sessions"]}
    assert len(sessions.keys() - led) >= 5


def test_a_session_that_commits_names_the_commit_git_made(home: Path, texts: dict[str, str]) -> None:
    named = {
        found
        for text in texts.values()
        for found in re.findall(r"\[(?:main|a11y)(?: \(root-commit\))? ([0-9a-f]{7})\] (.+)", text)
    }
    made = {
        tuple(line.split(" ", 1))
        for repository in ("tideline", "saltern", "lintel", "website")
        for line in _git(home / "projects" / repository, "log", "--all", "--format=%h %s").splitlines()
    }
    assert named
    assert named <= made


def test_nothing_happens_after_the_tenth_of_november(
    written: Demo, sessions: dict[str, ParsedSession]
) -> None:
    times = [
        m.timestamp for reading in sessions.values() for m in reading.messages if m.timestamp is not None
    ]
    assert f"{min(times):%Y-%m-%d}" == "2026-07-07"
    assert f"{max(times):%Y-%m-%d}" == "2026-11-10"


def test_it_shows_what_histories_are_made_of(sessions: dict[str, ParsedSession]) -> None:
    messages = [message for reading in sessions.values() for message in reading.messages]
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
    assert {reading.closing.completeness for reading in sessions.values()} >= {"complete", "lossy"}


def _tools(reading: ParsedSession) -> list[Message]:
    return [m for m in reading.messages if m.tool is not None and m.tool.status == "completed"]


def _written(
    sessions: dict[str, ParsedSession], id: str, folder: str, since: datetime, until: datetime
) -> list[str]:
    """The lines a session wrote into a folder between two times, without those it took out again."""
    lines: Counter[str] = Counter()
    for message in _tools(sessions[id]):
        if message.timestamp is None or not since < message.timestamp <= until or _is_copy(message, sessions):
            continue
        for edit in message.tool.edits if message.tool is not None else ():
            if edit.path.startswith(folder):
                lines.update(line for hunk in edit.hunks for line in hunk.added)
                lines.subtract(line for hunk in edit.hunks for line in hunk.removed)
    return [line for line, count in lines.items() if count > 0 and line.strip()]


def _is_copy(message: Message, sessions: dict[str, ParsedSession]) -> bool:
    """Whether an earlier session holds the same message: a resumed session begins with all of them."""
    assert message.timestamp is not None
    twins = (one for reading in sessions.values() for one in reading.messages if one.id == message.id)
    return any(one.timestamp is not None and one.timestamp < message.timestamp for one in twins)


def _log(repository: Path, commit: Commit) -> tuple[str, datetime, datetime]:
    """A commit by its subject: its id, when its parent was made, and when it was."""
    lines = _git(repository, "log", "--format=%H%x09%cI%x09%s", commit["branch"]).splitlines()
    rows = [line.split("\t") for line in lines]
    place = next(n for n, row in enumerate(rows) if row[2] == commit["subject"])
    times = [datetime.fromisoformat(row[1]) for row in rows] + [datetime.min.replace(tzinfo=UTC)]
    return rows[place][0], times[place + 1], times[place] + timedelta(seconds=1)


def _added(repository: Path, sha: str) -> set[str]:
    diff = _git(repository, "show", "--format=", "--unified=0", sha)
    return {line[1:] for line in diff.splitlines() if line.startswith("+") and line[:3] != "+++"}
