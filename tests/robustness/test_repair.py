"""A damaged archive is repaired: what exists anywhere is there again, and the rest is named."""

import os
import random
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backscroll.cli.app import run as run_command
from backscroll.cli.messages import report_errors
from backscroll.errors import ArchiveError
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.robustness.archived_history import history_of, options, write

SEEDS = range(100 if "KILLS" in os.environ else 3)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("repair") / "tools")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tools: Path) -> Path:
    """A synced archive with a tag, and without its index."""
    home = tmp_path_factory.mktemp("whole") / "home"
    with history_of(tools, home) as history:
        history.sync()
        history.annotations.tag(history.list_sessions().data[0].ref, ["kept"])
    return home


@pytest.fixture
def home(tmp_path: Path, whole: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "home"))


def content(history: History) -> dict[str, Any]:
    """Return all sessions with their messages."""
    sessions = history.all_sessions(Filter(with_subagents=True))
    return {
        one.ref: (one.title, one.message_count, one.total_tokens, len(history.get_session(one.ref).messages))
        for one in sessions
    }


def run(*arguments: str) -> int:
    """Run the command in this process. Return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["backscroll", *arguments])
        try:
            with report_errors():
                run_command()
        except SystemExit as stop:
            return int(stop.code or 0)
    return 0


def damage(archive: Path, seed: int, pages: int = 1) -> None:
    """Overwrite some pages, but not the first one."""
    with archive.open("r+b") as file:
        chosen = random.Random(seed)
        size = archive.stat().st_size
        for _ in range(pages):
            page = chosen.randrange(1, size // 8192)
            file.seek(page * 8192)
            file.write(chosen.randbytes(8192))


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_while_the_tools_have_their_files(
    tools: Path, whole: Path, home: Path, seed: int
) -> None:
    with history_of(tools, whole) as history:
        before = content(history)
    damage(home / "archive.db", seed)
    with history_of(tools, home) as history:
        done = history.archive_admin.repair()
        assert content(history) == before
        assert history.archive_admin.verify() == []
        assert done.lost == ()
        assert len(history.search_sessions("ferry").data) > 1
    assert Path(done.damaged_file).stat().st_size > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_tools_have_deleted_is_kept_or_named(
    tools: Path, tmp_path: Path, whole: Path, home: Path, seed: int
) -> None:
    with history_of(tools, whole) as history:
        before = content(history)
    damage(home / "archive.db", seed)
    nothing = tmp_path / "nothing"
    with history_of(nothing, home) as history:
        done = history.archive_admin.repair()
        after = content(history)
        assert history.archive_admin.verify() == []
    if "conversations" in done.damaged_tables:
        return  # the names are lost, too
    named = {session.ref for session in done.lost}
    for ref, (_, message_count, *_) in before.items():
        if ref not in named and "/" not in ref:
            assert after[ref][1] == message_count, ref
    lost = {session.ref for session in done.lost if session.is_lost}
    assert not lost & after.keys()


@pytest.mark.parametrize("seed", SEEDS)
def test_verify_finds_every_damage_that_changes_what_is_shown(
    tools: Path, whole: Path, home: Path, seed: int
) -> None:
    with history_of(tools, whole) as history:
        before = content(history)
        assert history.archive_admin.verify() == []
    damage(home / "archive.db", seed + 1000)
    try:
        with history_of(tools, home) as history:
            assert history.archive_admin.verify() or content(history) == before
    except ArchiveError as error:
        assert "archive repair" in str(error)


def test_verify_compares_the_rows_of_sessions_with_their_messages(tools: Path, home: Path) -> None:
    with closing(sqlite3.connect(home / "archive.db")) as db, db:
        db.execute("update conversations set message_count = message_count + 1 where number = 1")
    with history_of(tools, home) as history:
        (problem,) = history.archive_admin.verify()
        assert "does not match its messages" in problem


def test_the_command_says_what_it_did(tools: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "archive.db").write_bytes(random.Random(1).randbytes(50_000))
    arguments = ["--home", str(home), *options(tools)]
    assert run(*arguments, "list") == 1
    assert "archive repair" in capsys.readouterr().err
    assert run(*arguments, "archive", "repair") == 2
    assert "--yes" in capsys.readouterr().err
    assert run(*arguments, "archive", "repair", "--yes") == 0
    assert "The damaged file is kept: " in capsys.readouterr().out
    assert run(*arguments, "list") == 0


@pytest.mark.parametrize("pages", [5, 40])
def test_many_damaged_pages_leave_an_archive_that_can_be_used(tools: Path, home: Path, pages: int) -> None:
    damage(home / "archive.db", 7, pages)
    with history_of(tools, home) as history:
        history.archive_admin.repair()
        assert history.archive_admin.verify() == []
        assert history.list_sessions().pagination.total > 30


def test_annotations_survive(tools: Path, home: Path) -> None:
    with closing(sqlite3.connect(home / "archive.db")) as db:
        root = db.execute("select rootpage from sqlite_schema where name = 'conversations'").fetchone()[0]
        size = db.execute("pragma page_size").fetchone()[0]
    with (home / "archive.db").open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(bytes(size))
    with history_of(tools, home) as history:
        history.archive_admin.repair()
        assert history.list_sessions(Filter(tags=("kept",))).pagination.total == 1


def test_a_repair_that_is_killed_before_the_end_leaves_an_archive(
    tools: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(home / "archive.db", 3)

    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, history_of(tools, home) as history, pytest.raises(Killed):
        patch.setattr("backscroll.ingest.repair._swap", kill)
        history.archive_admin.repair()
    assert (home / "archive.db").exists()
    with monkeypatch.context() as patch, history_of(tools, home) as history, pytest.raises(Killed):
        patch.setattr("backscroll.ingest.repair.sync", kill)
        history.archive_admin.repair()
    with history_of(tools, home) as history:
        history.sync()
        assert history.archive_admin.verify() == []
        assert history.list_sessions().pagination.total > 30


def test_a_session_of_which_only_a_subagent_is_left_stays(tmp_path: Path) -> None:
    session = Transcript(seed=7).user("look").delegate("at the quay", "wet")
    session.assistant("wet").write(tmp_path / "tools" / "claude-code")
    with history_of(tmp_path / "tools", tmp_path / "home") as history:
        history.sync()
        (before,) = history.all_sessions()
    with closing(sqlite3.connect(tmp_path / "home" / "archive.db")) as db, db:
        units = "select unit_id from fragment where not is_subagent"
        db.execute(f"delete from raw_segment where unit_id in ({units})")  # noqa: S608
        db.execute("delete from fragment where not is_subagent")
    with history_of(tmp_path / "nothing", tmp_path / "home") as history:
        history.archive_admin.repair()
        assert history.archive_admin.verify() == []
        agent = history.get_session(f"{before.ref}/{before.agent_ids[0]}")
        assert "wet" in [message.content for message in agent.messages]
        assert history.find(before.id).message_count == 0


def test_inlined_subagents_survive(tmp_path: Path) -> None:
    calls = [tool_calls.bash("tide", "low")]
    session = Transcript(seed=7).user("look").delegate("at the quay", "wet", calls=calls, layout="inline")
    session.assistant("wet").write(tmp_path / "tools" / "claude-code")
    with history_of(tmp_path / "tools", tmp_path / "home") as history:
        history.sync()
        before = content(history)
        assert any("inline-" in ref for ref in before)
        assert history.archive_admin.repair().lost == ()
        assert content(history) == before
        assert history.archive_admin.verify() == []
