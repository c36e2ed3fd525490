"""Match turns with the messages of a conversation, and assign times to the messages.

Messages have no times. Depending on the version, the times of turns, tool calls or prompts are known. The
others are interpolated and marked as such.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from msgspec import Struct

from backscroll.model.message import TimeSource
from backscroll.readers import timestamps
from backscroll.sources.cursor_graph.message_parts import (
    call_ids,
    is_summary,
    message_text,
    part_texts,
    user_prompt,
)
from backscroll.sources.cursor_graph.state import TurnTiming
from backscroll.sources.cursor_graph.turns import Step, Turn

_MAX_CONTEXT_CHARS = 4_000  # compared with the text of turns
_MIN_TEXT_CHARS = 24  # shorter answers often repeat, so they do not identify a step


class MessageOutline(Struct):
    """The properties of a message that are needed to match turns and assign times."""

    role: str
    prompt: str | None = None  # text that the user typed; None if the message is not a prompt
    call_ids: tuple[str, ...] = ()
    at: datetime | None = None  # from the context
    context: str = ""  # start of the text of a user message without a prompt
    text_hashes: tuple[int, ...] = ()  # of the assistant's texts and thinking


class MessageTime(Struct, frozen=True):
    """A time and its source."""

    at: datetime
    source: TimeSource


class TurnAlignment(Struct):
    """Match between the turns and the messages of a conversation."""

    turns: dict[int, int]  # index of a turn by the index of its prompt
    missing: list[int]  # indexes of the turns without messages


def outline_message(message: dict[str, Any] | bytes | None, *, is_summary_of_archive: bool) -> MessageOutline:
    """Return the outline of a message; an empty one for the summary of a compaction."""
    if not isinstance(message, dict) or is_summary_of_archive or is_summary(message):
        return MessageOutline("")
    role = str(message.get("role"))
    if role != "user":
        hashes = tuple(hash(text) for text in part_texts(message) if len(text) >= _MIN_TEXT_CHARS)
        return MessageOutline(role, call_ids=call_ids(message), text_hashes=hashes)
    prompt = user_prompt(message)
    if prompt.is_context:
        return MessageOutline(role, at=prompt.at, context=message_text(message)[:_MAX_CONTEXT_CHARS])
    return MessageOutline(role, prompt.text, at=prompt.at)


class KnownSteps:
    """Set of the steps that the messages contain too."""

    def __init__(self, outlines: Iterable[MessageOutline]) -> None:
        self._call_ids: set[str] = set()
        self._text_hashes: set[int] = set()
        for outline in outlines:
            self._call_ids.update(outline.call_ids)
            self._text_hashes.update(outline.text_hashes)

    def __contains__(self, step: Step) -> bool:
        if step.call is not None:
            return step.call.id in self._call_ids
        text = (step.text or step.thinking or "").strip()
        return len(text) >= _MIN_TEXT_CHARS and hash(text) in self._text_hashes


def align_turns(outlines: Sequence[MessageOutline], turns: Sequence[Turn]) -> TurnAlignment:
    """Match turns with prompts by their text, and by order if the match is unambiguous."""
    prompts = [
        (index, _collapse_whitespace(outline.prompt))
        for index, outline in enumerate(outlines)
        if outline.prompt is not None
    ]
    turn_texts = [_collapse_whitespace(turn.text) for turn in turns]
    matcher = SequenceMatcher(None, [text for _, text in prompts], turn_texts, autojunk=False)
    matched: dict[int, int] = {}
    blocks = matcher.get_matching_blocks()
    for block in blocks:
        for step in range(block.size):
            matched[prompts[block.a + step][0]] = block.b + step
    block_ends = [(0, 0), *((block.a + block.size, block.b + block.size) for block in blocks)]
    contexts = {
        index: _collapse_whitespace(outline.context)
        for index, outline in enumerate(outlines)
        if outline.context
    }
    missing: list[int] = []
    for (from_prompt, from_turn), block in zip(block_ends, blocks, strict=False):
        unmatched_prompts, unmatched_turns = prompts[from_prompt : block.a], range(from_turn, block.b)
        if len(unmatched_prompts) == len(unmatched_turns):
            matched.update(
                {index: turn for (index, _), turn in zip(unmatched_prompts, unmatched_turns, strict=True)}
            )
            continue
        for turn in unmatched_turns:
            turn_text = turn_texts[turn]
            prompt_texts = [text for _, text in unmatched_prompts if text]
            if not turn_text or any(turn_text in text or text in turn_text for text in prompt_texts):
                continue
            # A prompt that the tool wrote itself is part of the context.
            context_index = next((index for index, text in contexts.items() if turn_text in text), None)
            if context_index is None:
                missing.append(turn)
            else:
                matched[context_index] = turn
                del contexts[context_index]
    return TurnAlignment(matched, missing)


def _collapse_whitespace(text: str | None) -> str:
    return " ".join((text or "").split())


def assign_times(
    outlines: Sequence[MessageOutline],
    turns: Sequence[Turn],
    timings: Sequence[TurnTiming],
    *,
    alignment: TurnAlignment,
    call_times: dict[str, int],
    started_at: datetime | None,
    ended_at: datetime | None,
) -> list[MessageTime | None]:
    """Return the time of each message; None if nothing is known. ``call_times`` is in milliseconds."""
    times: list[MessageTime | None] = [None] * len(outlines)
    turn_starts = sorted(
        {index for index, outline in enumerate(outlines) if outline.prompt is not None} | {*alignment.turns}
    )
    for index, outline in enumerate(outlines):
        if outline.at is not None:
            times[index] = MessageTime(outline.at, "stored")
        started = [
            at for id in outline.call_ids if (at := timestamps.from_value(call_times.get(id))) is not None
        ]
        if started:
            times[index] = MessageTime(min(started), "stored")
    for start, end in pairwise([*turn_starts, len(outlines)]):
        turn = alignment.turns.get(start)
        timing = timings[turn] if turn is not None and turn < len(timings) else None
        turn_ended_at = _set_prompt_time(times, start, turns[turn] if turn is not None else None, timing)
        _fill_turn(times, start, end, turn_ended_at)
    _fill_remaining(times, started_at, ended_at)
    return times


def _set_prompt_time(
    times: list[MessageTime | None], index: int, turn: Turn | None, timing: TurnTiming | None
) -> datetime | None:
    """Set the time of the prompt of a turn. Return the end of the turn, if known."""
    stored = timestamps.from_value(turn.timestamp_ms) if turn else None
    timed = timestamps.from_value(timing.timestamp_ms) if timing else None
    if stored is not None:
        times[index] = MessageTime(stored, "stored")
    elif timed is not None and times[index] is None:
        times[index] = MessageTime(timed, "turn")
    if timing is None or not timing.duration_ms or timed is None:
        return None
    try:
        return timed + timedelta(milliseconds=timing.duration_ms)
    except OverflowError:
        return None


def _fill_turn(times: list[MessageTime | None], start: int, end: int, turn_ended_at: datetime | None) -> None:
    """Interpolate within a turn. Messages after the last known time get that time."""
    if times[start] is None:
        return
    last = end - 1
    if turn_ended_at is not None and last > start and times[last] is None:
        known_times = [time.at for time in times[start:end] if time is not None]
        times[last] = MessageTime(max(turn_ended_at, *known_times), "turn")
    known = [index for index in range(start, end) if times[index] is not None]
    for left, right in pairwise(known):
        _interpolate(times, left, right)
    last_known = times[known[-1]]
    if last_known is not None:
        times[known[-1] + 1 : end] = [MessageTime(last_known.at, "turn")] * (last - known[-1])


def _interpolate(times: list[MessageTime | None], left: int, right: int) -> None:
    """Set evenly spaced times between two known times."""
    start, end = times[left], times[right]
    if start is None or end is None or right - left < 2:
        return
    interval = max(end.at - start.at, timedelta(0)) / (right - left)
    for index in range(left + 1, right):
        times[index] = MessageTime(start.at + interval * (index - left), "interpolated")


def _fill_remaining(
    times: list[MessageTime | None], started_at: datetime | None, ended_at: datetime | None
) -> None:
    """Set missing times: interpolated between the nearest known ones, including the session's bounds."""
    bounded: list[MessageTime | None] = [
        MessageTime(started_at, "session") if started_at else None,
        *times,
        MessageTime(ended_at, "session") if ended_at else None,
    ]
    known = [index for index, time in enumerate(bounded) if time is not None]
    for left, right in pairwise(known):
        _interpolate(bounded, left, right)
    if known:
        first, last = bounded[known[0]], bounded[known[-1]]
        for index, time in enumerate(bounded):
            if time is None and first is not None and last is not None:
                nearest = first if index < known[0] else last
                source: TimeSource = "session" if nearest.source == "session" else "neighbour"
                bounded[index] = MessageTime(nearest.at, source)
    times[:] = bounded[1:-1]
