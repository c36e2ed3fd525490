"""Windows of a session contain every message once, whatever their size."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import Filter, SessionSummary
from backscroll.testing.claude_code import Transcript, tool_calls
from backscroll.web import transcript_window
from backscroll.web.transcript_window import Window, read_window
from tests.builders.claude_code import generations as claude_generations
from tests.web.conftest import OpenHistory

FORK = "claude-code:2a3e6f4d-2034-4ab1-8bfa-66d23942cd41"  # "Let cached stations expire"
POSITION = re.compile(r' id="m(\d+)"')


def windows(history: History, summary: SessionSummary, **options: bool) -> Iterator[Window]:
    """Yield all windows of a session, from the start on."""
    window = read_window(history, summary, 0, **options)
    yield window
    while window.has_later:
        window = read_window(history, summary, window.end, **options)
        yield window


def positions(history: History, summary: SessionSummary, **options: bool) -> list[int]:
    return [
        int(found)
        for window in windows(history, summary, **options)
        for found in POSITION.findall(window.html)
    ]


def subagent_count(history: History, summary: SessionSummary) -> int:
    return sum(window.html.count('<details class="agent">') for window in windows(history, summary))


@pytest.mark.parametrize(("messages", "size"), [(1, 10**9), (3, 10**9), (120, 1), (120, 3000), (120, 10**9)])
def test_every_message_of_the_demo_is_in_one_window(
    demo_history: OpenHistory, monkeypatch: pytest.MonkeyPatch, messages: int, size: int
) -> None:
    monkeypatch.setattr(transcript_window, "WINDOW_MESSAGES", messages)
    monkeypatch.setattr(transcript_window, "MAX_WINDOW_BYTES", size)
    with demo_history() as history:
        for summary in history.all_sessions(Filter(with_subagents=True)):
            total = history.transcript.count(summary)
            agents = {agent.id for agent in history.transcript.subagents(summary)} - {summary.id}
            shown = [
                position
                for position, message in enumerate(history.transcript.messages(summary))
                if message.agent_id not in agents
            ]
            assert positions(history, summary, everything=True) == shown, summary.ref
            assert total >= len(shown)


@pytest.mark.parametrize("name", sorted(claude_generations.GENERATIONS))
def test_windows_of_every_generation_are_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(transcript_window, "WINDOW_MESSAGES", 4)
    claude_generations.GENERATIONS[name](tmp_path / "claude", 0)
    with History(home=tmp_path / "home", roots=[NamedRoot("claude-code", tmp_path / "claude")]) as history:
        history.sync()
        for summary in history.all_sessions(Filter(with_subagents=True)):
            monkeypatch.setattr(transcript_window, "WINDOW_MESSAGES", 4)
            small, agents = positions(history, summary), subagent_count(history, summary)
            monkeypatch.setattr(transcript_window, "WINDOW_MESSAGES", 10**6)
            assert small == positions(history, summary)
            assert agents == subagent_count(history, summary)


def test_a_long_text_is_shortened_and_says_so(tmp_path: Path) -> None:
    session = Transcript(seed=9, cwd="/home/zoe/ferry").user("x" * 200_000)
    session.run(tool_calls.bash("cat log", "y" * 200_000)).assistant("Done.").write(tmp_path / "claude")
    with History(home=tmp_path / "home", roots=[NamedRoot("claude-code", tmp_path / "claude")]) as history:
        history.sync()
        window = read_window(history, history.find("1"), 0)
    assert len(window.html) < 200_000
    assert window.html.count("140,000 more characters") == 2


def test_copied_messages_are_marked_at_their_start_and_end(demo_history: OpenHistory) -> None:
    with demo_history() as history:
        html = read_window(history, history.find(FORK), 0).html
    assert html.count('class="copy-note"') == 2
    start, end = html.index("Copied from <a href="), html.index("End of the copied messages")
    assert "Cache station records in Redis</a>" in html[start:end]
    assert 0 < html[start:end].count(' id="m') < html.count(' id="m')
