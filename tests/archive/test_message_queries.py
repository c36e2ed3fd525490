"""Reading a session from any position returns the same messages, for every format of every tool."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.connection import from_ms, to_ms
from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import Filter, SessionSummary
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.histories import HISTORIES
from tests.histories import History as Written


@pytest.fixture(scope="module", params=HISTORIES, ids=repr)
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    written: Written = request.param
    folder = tmp_path_factory.mktemp("messages")
    root = written.write(folder / "root")
    with History(roots=[NamedRoot(written.source_name, root)], home=folder / "home") as history:
        history.sync()
        yield history


def sessions(history: History) -> list[SessionSummary]:
    return history.all_sessions(Filter(with_subagents=True, with_unlisted=True))


def archive_of(history: History) -> Archive:
    return history._stores.archive


def test_messages_are_the_same_from_every_start_position(history: History) -> None:
    archive = archive_of(history)
    for summary in sessions(history):
        whole = [replace(message, usage=None) for message in archive.messages.of_session(summary)]
        for start in {0, 1, len(whole) // 2, max(len(whole) - 1, 0)}:
            messages = archive.messages.without_usage(summary, start)
            assert [replace(message, usage=None) for message in messages] == whole[start:]


def test_turn_starts_are_the_positions_of_the_turns_that_are_shown(history: History) -> None:
    for summary in sessions(history):
        agents = {agent.id for agent, _ in archive_of(history).sessions.subagents(summary)}
        prompts = archive_of(history).messages.turn_starts(summary, agents)
        depth, counted = 0, {}
        for event in history.transcript.read(summary, everything=True):
            match event:
                case SubagentStart():
                    depth += 1
                case SubagentEnd():
                    depth -= 1
                case MessageItem() if not depth and event.message.role == "user" and event.message.is_active:
                    counted[event.turn] = event.position
        assert counted == dict(enumerate(prompts, start=1))


@pytest.mark.parametrize("max_count", [1, 7, 10_000])
def test_stretches_count_every_message_once(history: History, max_count: int) -> None:
    for summary in sessions(history):
        messages = list(archive_of(history).messages.without_usage(summary))
        stretches = archive_of(history).messages.stretches(summary, max_count)
        assert len(stretches) == min(max_count, len(messages))
        bounds = [bound for one in stretches for bound in (one.start, one.end)]
        assert bounds[:1] + bounds[-1:] == ([0, len(messages)] if messages else [])
        assert bounds[1:-1:2] == bounds[2::2]
        for one in stretches:
            part = messages[one.start : one.end]
            tools = [message.tool for message in part if message.tool is not None]
            edits = [edit for tool in tools for edit in tool.edits]
            times = [message.timestamp for message in part if message.timestamp is not None]
            assert part
            assert one.call_count == sum(message.role == "tool" for message in part)
            assert one.error_count == sum(message.role == "error" for message in part) + sum(
                tool.status in ("failed", "cancelled") for tool in tools
            )
            assert one.lines_added == sum(edit.added for edit in edits)
            assert one.lines_removed == sum(edit.removed for edit in edits)
            assert one.has_compaction == any(message.kind == "compaction" for message in part)
            assert one.at == (from_ms(to_ms(min(times))) if times else None)
            assert one.prompts == tuple(
                one.start + index
                for index, message in enumerate(part)
                if message.role == "user" and message.is_active
            )


def test_reading_one_turn_returns_the_same_messages_as_reading_all(history: History) -> None:
    for summary in sessions(history):
        whole = list(history.transcript.read(summary, with_agents=False))
        turns = {event.turn for event in whole if isinstance(event, MessageItem)}
        for turn in turns - {0}:
            alone = history.transcript.read(summary, with_agents=False, turns=(turn, turn))
            messages = [event for event in alone if isinstance(event, MessageItem)]
            assert messages == [
                event for event in whole if isinstance(event, MessageItem) and event.turn == turn
            ]


def test_every_message_is_found_by_its_id(history: History) -> None:
    for summary in sessions(history):
        known: dict[str, int] = {}
        for position, message in enumerate(archive_of(history).messages.of_session(summary)):
            known.setdefault(message.id, position)
        for id_, position in known.items():
            assert archive_of(history).messages.find_positions(summary, id_) == [(position, id_)]


def test_a_message_has_the_record_that_it_was_parsed_from(history: History) -> None:
    for summary in sessions(history):
        records = history.transcript.records(summary)
        for message in history.transcript.messages(summary):
            record = records.of(message)
            location = message.origin.place
            if location.startswith("line ") and Path(message.origin.path).is_file():
                lines = Path(message.origin.path).read_bytes().split(b"\n")
                assert record == lines[int(location.removeprefix("line ")) - 1]
            assert record is not None or not location.startswith(("bubbleId:", "composerData:"))


def test_an_inlined_subagent_is_counted_and_shown_at_its_call(tmp_path: Path) -> None:
    session = Transcript("5e551011-0000-4000-8000-0000000000ee", seed=2, version="1.0.90")
    session.user("Go.").delegate(
        "Where is it?", "In the shed.", calls=[tool_calls.bash("ls", "shed")], layout="inline"
    )
    session.assistant("Found.").write(tmp_path / "root")
    with History(roots=[NamedRoot("claude-code", tmp_path / "root")], home=tmp_path / "home") as history:
        history.sync()
        [agent] = [summary for summary in sessions(history) if summary.parent_ref is not None]
        assert agent.message_count == len(list(history.transcript.messages(agent))) > 0
        events = list(history.transcript.read(history.find("1")))
        start = next(index for index, event in enumerate(events) if isinstance(event, SubagentStart))
        assert isinstance(events[start - 1], MessageItem)
        assert [event.message.content for event in events if isinstance(event, MessageItem)][-1] == "Found."
