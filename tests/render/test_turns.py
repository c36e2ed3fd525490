"""A session is told in order, with subagents in their places, and never without end."""

from collections.abc import Iterator

from msgspec.structs import replace

from backscroll.model import Message, SessionSummary, ToolCall
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


def spelled(events: Iterator[TranscriptItem]) -> list[str]:
    def one(event: TranscriptItem) -> str:
        match event:
            case MessageItem(position, turn, said):
                return f"{turn}.{position} {said.tool.id if said.tool else said.content}"
            case SubagentStart(summary, is_placed):
                return f"> {summary.id}{'' if is_placed else '?'}"
            case SubagentEnd(summary):
                return f"< {summary.id}"

    return [one(event) for event in events]


def tell(history: dict[str, list[Message]], *started: Subagent, everything: bool = False) -> list[str]:
    def read(summary: SessionSummary) -> Iterator[Message]:
        return iter(history[summary.id])

    return spelled(transcript_items(SUMMARY, started, read, everything=everything))


def test_turns_are_counted_from_the_first_prompt() -> None:
    said = [message("assistant", "a"), message("user", "b"), message("assistant", "c"), message("user", "d")]
    assert tell({SUMMARY.id: said}) == ["0.0 a", "1.1 b", "1.2 c", "2.3 d"]


def test_what_nobody_saw_is_left_out_and_positions_stay() -> None:
    said = [
        message("system", "injected"),
        message("user", "a"),
        message("assistant", "gone", is_active=False),
        message("thinking", " "),
        message("assistant", "b"),
    ]
    assert tell({SUMMARY.id: said}) == ["1.1 a", "1.4 b"]
    assert len(tell({SUMMARY.id: said}, everything=True)) == 5


def test_subagents_stand_after_their_calls_and_the_unplaced_at_the_end() -> None:
    history = {
        SUMMARY.id: [message("user", "a"), call("c1"), message("assistant", "b")],
        "agent": [message("user", "task")],
        "other": [message("user", "lost")],
    }
    assert tell(history, Subagent(AGENT, "c1"), Subagent(OTHER, None)) == [
        "1.0 a", "1.1 c1", "> agent", "1.0 task", "< agent", "1.2 b", "> other?", "1.0 lost", "< other",
    ]  # fmt: skip


def test_a_subagent_written_into_its_parents_file_is_told_once() -> None:
    inline = message("user", "task", agent_id="agent", is_sidechain=True)
    history = {SUMMARY.id: [call("c1"), inline, message("assistant", "b")], "agent": [inline]}
    assert tell(history, Subagent(AGENT, "c1")) == ["0.0 c1", "> agent", "1.0 task", "< agent", "0.2 b"]


def test_subagents_that_start_each_other_come_to_an_end() -> None:
    history = {SUMMARY.id: [call("c1")], "agent": [call("c2")], "other": [call("c1"), call("c2")]}
    assert tell(history, Subagent(AGENT, "c1"), Subagent(OTHER, "c2")) == [
        "0.0 c1", "> agent", "0.0 c2", "> other", "0.0 c1", "0.1 c2", "< other", "< agent",
    ]  # fmt: skip
