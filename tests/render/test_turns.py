"""Messages are in order, subagents follow their calls, and cycles end."""

from collections.abc import Iterator

from msgspec.structs import replace

from backscroll.model.message import Message, ToolCall
from backscroll.model.session import SessionSummary
from backscroll.render.turns import (
    MessageItem,
    Subagent,
    SubagentEnd,
    SubagentStart,
    TranscriptItem,
    transcript_items,
)
from tests.render.sessions import SUMMARY, message

AGENT = replace(SUMMARY, id="agent", ref="claude-code:agent", parent_ref=SUMMARY.ref)
OTHER = replace(AGENT, id="other", ref="claude-code:other")


def call(id_: str) -> Message:
    return message("tool", tool=ToolCall(id=id_, name="Task"))


def describe(items: Iterator[TranscriptItem]) -> list[str]:
    def describe_item(item: TranscriptItem) -> str:
        match item:
            case MessageItem(position, turn, message):
                return f"{turn}.{position} {message.tool.id if message.tool else message.content}"
            case SubagentStart(summary, is_placed):
                return f"> {summary.id}{'' if is_placed else '?'}"
            case SubagentEnd(summary):
                return f"< {summary.id}"

    return [describe_item(item) for item in items]


def read_all(history: dict[str, list[Message]], *subagents: Subagent, everything: bool = False) -> list[str]:
    def read(summary: SessionSummary) -> Iterator[Message]:
        return iter(history[summary.id])

    return describe(transcript_items(SUMMARY, subagents, read, everything=everything))


def test_turns_are_counted_from_the_first_prompt() -> None:
    messages = [
        message("assistant", "a"),
        message("user", "b"),
        message("assistant", "c"),
        message("user", "d"),
    ]
    assert read_all({SUMMARY.id: messages}) == ["0.0 a", "1.1 b", "1.2 c", "2.3 d"]


def test_invisible_messages_are_left_out_and_positions_are_kept() -> None:
    messages = [
        message("system", "injected"),
        message("user", "a"),
        message("assistant", "gone", is_active=False),
        message("thinking", " "),
        message("assistant", "b"),
    ]
    assert read_all({SUMMARY.id: messages}) == ["1.1 a", "1.4 b"]
    assert len(read_all({SUMMARY.id: messages}, everything=True)) == 5


def test_subagents_follow_their_calls_and_unplaced_ones_are_last() -> None:
    history = {
        SUMMARY.id: [message("user", "a"), call("c1"), message("assistant", "b")],
        "agent": [message("user", "task")],
        "other": [message("user", "lost")],
    }
    assert read_all(history, Subagent(AGENT, "c1"), Subagent(OTHER, None)) == [
        "1.0 a", "1.1 c1", "> agent", "1.0 task", "< agent", "1.2 b", "> other?", "1.0 lost", "< other",
    ]  # fmt: skip


def test_a_subagent_in_its_parents_file_is_shown_once() -> None:
    inline = message("user", "task", agent_id="agent", is_sidechain=True)
    history = {SUMMARY.id: [call("c1"), inline, message("assistant", "b")], "agent": [inline]}
    assert read_all(history, Subagent(AGENT, "c1")) == ["0.0 c1", "> agent", "1.0 task", "< agent", "0.2 b"]


def test_subagents_that_start_each_other_are_shown_once() -> None:
    history = {SUMMARY.id: [call("c1")], "agent": [call("c2")], "other": [call("c1"), call("c2")]}
    assert read_all(history, Subagent(AGENT, "c1"), Subagent(OTHER, "c2")) == [
        "0.0 c1", "> agent", "0.0 c2", "> other", "0.0 c1", "0.1 c2", "< other", "< agent",
    ]  # fmt: skip
