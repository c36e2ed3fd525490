"""Deleted, overwritten and restored sessions in ``sync``, ``doctor`` and ``archive status``."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backscroll.model.sync import EventLog, SessionEvent
from backscroll.render.sync import events_line
from backscroll.testing import cursor
from backscroll.testing.claude_code import Prompt, Transcript
from backscroll.testing.claude_code.side_files import write_prompts, write_settings
from tests.cli.run_command import Shell, backscroll

TUESDAY = datetime(2026, 11, 10, 9, tzinfo=UTC)


class EventShell(Shell):
    """Three sessions of Claude Code, synced once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        write_settings(self.root, cleanup_days=36500)
        self.files = [
            Transcript(seed=n, cwd="/home/zoe/quay")
            .user(f"one {n}")
            .assistant("two")
            .user("three")
            .write(self.root)
            for n in range(3)
        ]
        self.run("sync")

    def ledger(self) -> dict[str, Any]:
        """Return the events that sync and doctor both report, without their time."""
        documents = [json.loads(self.run(command, "--json").out)["ledger"] for command in ("sync", "doctor")]
        for document in documents:
            assert document.pop("since")
        assert documents[0] == documents[1]
        return documents[0]

    def counts(self) -> tuple[int, int, int]:
        counts = self.ledger()
        return counts["vanished"], counts["overwritten"], counts["came_back"]


@pytest.fixture
def shell(tmp_path: Path) -> EventShell:
    return EventShell(tmp_path)


def test_without_events_none_are_reported(shell: EventShell) -> None:
    assert shell.counts() == (0, 0, 0)
    assert shell.run("sync").out == "Up to date.\n"
    assert "kept in the archive" not in shell.run("archive", "status").out


def test_a_deleted_session_is_reported_by_sync_doctor_and_status(shell: EventShell) -> None:
    shell.files[0].unlink()
    shell.files[1].unlink()
    shell.run("list")
    assert shell.counts() == (2, 0, 0)
    for command in (["sync"], ["doctor"]):
        assert "2 sessions deleted by the tool today, kept in the archive." in shell.run(*command).out
    assert "2 sessions deleted by the tool, kept in the archive" in shell.run("archive", "status").out
    events = shell.ledger()["sessions"]
    assert {(event["what"], event["session_id"]) for event in events} == {
        ("vanished", shell.files[0].stem),
        ("vanished", shell.files[1].stem),
    }


def test_sessions_are_counted_rather_than_files(shell: EventShell) -> None:
    session = Transcript(seed=9).user("go")
    session.delegate("look", "done")
    path = session.write(shell.root)
    shell.run("sync")
    agents = list(path.with_suffix("").rglob("*.jsonl")) or list(path.parent.glob("agent-*.jsonl"))
    assert agents
    agents[0].unlink()
    assert shell.counts() == (0, 0, 0), "the file of the session still exists"
    path.unlink()
    assert shell.counts() == (1, 0, 0)


@pytest.mark.parametrize("how", ["cut", "rewritten"])
def test_a_file_that_lost_messages_is_reported_as_overwritten_and_both_states_are_kept(
    shell: EventShell, how: str
) -> None:
    lines = shell.files[0].read_bytes().splitlines(keepends=True)
    shell.files[0].write_bytes(b"".join(lines[:1] if how == "cut" else lines[1:]))
    assert "1 session overwritten with an older version today, both versions kept." in shell.run("sync").out
    assert shell.counts() == (0, 1, 0)
    shown = json.loads(shell.run("show", shell.files[0].stem, "--json").out)
    assert {message["content"] for message in shown["messages"]} == {"one 0", "two", "three"}


def test_an_appended_or_identically_rewritten_file_is_no_event(shell: EventShell) -> None:
    data = shell.files[0].read_bytes()
    shell.files[0].unlink()
    shell.files[0].write_bytes(data)
    more = Transcript(seed=1, cwd="/home/zoe/quay").user("one 1").assistant("two").user("three")
    assert more.assistant("four").write(shell.root) == shell.files[1]
    assert shell.counts() == (0, 0, 0)


def test_a_deleted_session_that_reappears_is_reported(shell: EventShell) -> None:
    data = shell.files[0].read_bytes()
    shell.files[0].unlink()
    shell.run("sync")
    shell.files[0].write_bytes(data)
    assert "1 session came back today." in shell.run("sync").out
    assert shell.counts() == (0, 0, 1)


def test_a_truncated_prompt_log_is_no_event_for_sessions_it_still_contains(shell: EventShell) -> None:
    prompts = [Prompt(f"word {n}", session_id=f"{n}0000000-0000-4000-8000-000000000000") for n in range(4)]
    path = write_prompts(shell.root, prompts)
    shell.run("sync")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    assert shell.counts()[1] == 1


def test_events_older_than_a_week_are_only_in_the_totals(shell: EventShell) -> None:
    shell.files[0].unlink()
    shell.run("sync")
    with closing(sqlite3.connect(shell.home / "archive.db")) as db, db:
        db.execute("update source_event set at = at - 8 * 24 * 60 * 60 * 1000")
    assert shell.counts() == (0, 0, 0)
    assert json.loads(shell.run("archive", "status", "--json").out)["ledger"]["vanished"] == 1


def test_a_session_emptied_by_the_editor_is_reported(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "cursor")
    first = home.composer([cursor.user("hello"), cursor.assistant("hi")])
    home.write()
    options = ["--home", tmp_path / "home", "--root", f"cursor={tmp_path / 'cursor'}"]
    backscroll(*options, "sync")
    database = tmp_path / "cursor/User/globalStorage/state.vscdb"
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("delete from cursorDiskKV where key like 'bubbleId:%' and value like '%hi%'")
    events = json.loads(backscroll(*options, "sync", "--json").out)["ledger"]
    assert events["overwritten"] == 1, (first, events)


def test_doctor_does_not_create_an_archive(tmp_path: Path) -> None:
    result = backscroll("--home", tmp_path / "home", "doctor", "--json", HOME=str(tmp_path))
    document = json.loads(result.out)
    assert (document["ledger"], document["archive_trouble"]) == (None, None)
    assert not (tmp_path / "home").exists()


def event(what: Any, at: datetime) -> SessionEvent:
    return SessionEvent("claude-code:a", "a", what, at)


def test_the_sentence_names_the_day_of_the_first_event() -> None:
    events = (*(event("vanished", TUESDAY) for _ in range(12)), event("overwritten", TUESDAY))
    friday = TUESDAY + timedelta(days=3)
    line = events_line(EventLog(TUESDAY, events), friday, zone=UTC)
    assert line == (
        "12 sessions deleted by the tool since Tuesday, kept in the archive; "
        "1 overwritten with an older version, both versions kept"
    )
    assert events_line(EventLog(None, (event("came_back", TUESDAY),)), friday) == "1 session came back"
    log = EventLog(TUESDAY, (event("vanished", TUESDAY),))
    assert events_line(log, TUESDAY + timedelta(days=1), zone=UTC) == (
        "1 session deleted by the tool since yesterday, kept in the archive"
    )
