"""``list``, ``stats``, ``archive status`` and ``doctor`` agree on the number of messages."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.testing import demo
from backscroll.testing.claude_code import Transcript, resume
from tests.cli.run_command import Shell
from tests.histories import HISTORIES
from tests.histories import History as SampleHistory
from tests.stats.histories import HISTORIES as HISTORY_PLANS
from tests.stats.histories import SessionPlan, write_history


def listed_counts(history: History) -> tuple[int, int, int, int]:
    """Return sessions and their messages, subagents and their messages."""
    everything = history.all_sessions(Filter(with_subagents=True))
    sessions = [summary.message_count for summary in everything if summary.parent_ref is None]
    subagents = [summary.message_count for summary in everything if summary.parent_ref is not None]
    return len(sessions), sum(sessions), len(subagents), sum(subagents)


def audited_counts(history: History) -> tuple[int, int, int, int]:
    roots = history.source_files.audit().places
    return (
        sum(root.sessions for root in roots),
        sum(root.session_messages for root in roots),
        sum(root.subagents for root in roots),
        sum(root.subagent_messages for root in roots),
    )


def status_counts(history: History) -> tuple[int, int, int, int]:
    status = history.archive_admin.status()
    return status.sessions, status.session_messages, status.subagents, status.subagent_messages


@pytest.mark.parametrize("sample", HISTORIES, ids=repr)
def test_all_counts_agree_for_every_history(sample: SampleHistory, tmp_path: Path) -> None:
    root = NamedRoot(sample.source_name, sample.write(tmp_path / "root"))
    with History(roots=[root], home=tmp_path / "home") as history:
        history.sync()
        counts = listed_counts(history)
        assert status_counts(history) == audited_counts(history) == counts
        report = history.statistics.report()
        assert (report.total.messages or 0) + (report.repeated_messages or 0) == counts[1]


def test_all_counts_agree_on_the_demo(tmp_path: Path) -> None:
    written = demo.write(tmp_path / "demo")
    roots = [NamedRoot(source, Path(path)) for source, path in written.roots.items()]
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        sessions, messages, subagents, subagent_messages = counts = listed_counts(history)
        assert status_counts(history) == audited_counts(history) == counts
        report = history.statistics.report()
        assert (report.total.sessions, report.total.subagent_messages) == (sessions, subagent_messages)
        assert report.repeated_messages
        assert (report.total.messages or 0) + report.repeated_messages == messages
        assert subagents == 10
        assert history.statistics.report(Filter(since=history.find("1").created_at)).repeated_messages is None


def test_all_counts_agree_if_only_subagents_of_a_session_are_left(tmp_path: Path) -> None:
    root = tmp_path / "claude"
    Transcript(seed=1).user("kept").write(root)
    session = Transcript(seed=2, version="2.1.230").user("go")
    session.delegate("count", "two").delegate("list", "both").write(root).unlink()
    with History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "home") as history:
        history.sync()
        counts = listed_counts(history)
        assert counts[::2] == (2, 2)
        assert status_counts(history) == audited_counts(history) == counts
        (place,) = history.source_files.audit().places
        assert place.completeness == Counter(one.completeness for one in history.all_sessions())


@given(plans=HISTORY_PLANS)
@settings(max_examples=20)
def test_stats_name_the_messages_of_subagents_that_are_copies(
    plans: list[SessionPlan], scratch: Path
) -> None:
    shutil.rmtree(scratch, ignore_errors=True)
    write_history(scratch / "claude", plans)
    with History(roots=[NamedRoot("claude-code", scratch / "claude")], home=scratch / "home") as history:
        history.sync()
        counts = listed_counts(history)
        assert status_counts(history) == audited_counts(history) == counts
        report = history.statistics.report()
    assert (report.repeated_subagent_messages or 0) >= 0
    counted = (report.total.subagent_messages or 0) + (report.repeated_subagent_messages or 0)
    assert counted == counts[3]


def test_stats_print_how_many_messages_of_subagents_are_copies(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    write_history(shell.root, [("2.1.288", [("run", 0), ("fork agent", 0)], "")])
    shell.run("sync")
    assert "1 message of subagents is a copy and not counted." in shell.run("stats").out
    assert shell.json("stats")["repeated_subagent_messages"] == 1


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A session with an inlined subagent, and one that repeats it and has a system message."""
    shell = Shell(tmp_path)
    first = Transcript(version="1.0.98").user("List the callers").delegate("Find all callers", "Two of them.")
    first.write(shell.root)
    resume(first).user("And the others?").assistant("None.").system("Compacted").write(shell.root)
    shell.run("sync")
    return shell


def test_every_place_prints_which_messages_it_counts(shell: Shell) -> None:
    first, second = (summary["message_count"] for summary in shell.json("list", "--reverse")["data"])
    status = shell.run("archive", "status").out.splitlines()
    assert status[1:3] == [f"  2 sessions, {first + second} messages", "  1 subagent, 2 messages"]
    assert status[3].endswith("in total, with system messages, abandoned branches and copies")
    doctor = shell.run("doctor").out.splitlines()
    assert f"  sessions   2, {first + second} messages" in doctor
    assert "  subagents  1, 2 messages" in doctor
    assert any(line.endswith("in total, with system messages and abandoned branches") for line in doctor)
    stats = shell.run("stats").out
    assert f"Messages      {second} (plus 2 by subagents)" in stats
    assert f"{first} messages in resumed or forked sessions are copies and not counted." in stats
    assert shell.json("stats")["repeated_messages"] == first
