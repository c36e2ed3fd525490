"""When each message of a conversation was said.

The messages themselves carry no time. Turns do in some versions, tool calls and
the text told to the model in others; what lies between is spread evenly and
marked as such.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from itertools import pairwise

from msgspec import Struct

from backscroll.model import TimeSource
from backscroll.readers import timestamps
from backscroll.sources.cursor_graph.state import TurnTiming
from backscroll.sources.cursor_graph.turns import Turn

__all__ = ["MessageOutline", "MessageTime", "TurnAlignment", "align_turns", "assign_times"]


class MessageOutline(Struct):
    """What is remembered of a message between looking through the conversation and telling it."""

    role: str
    prompt: str | None = None  # what a person typed; None when nobody did
    calls: tuple[str, ...] = ()
    at: datetime | None = None  # told in the text
    context: str = ""  # how the text begins of a user's message that nobody typed
    texts: tuple[int, ...] = ()  # hashes of what the assistant said and thought


class MessageTime(Struct, frozen=True):
    """A time and where it was taken from."""

    at: datetime
    source: TimeSource


class TurnAlignment(Struct):
    """Which turn each prompt opens, by its place in the conversation, and which turns it does not hold."""

    turns: dict[int, int]
    untold: list[int]


def align_turns(seen: Sequence[MessageOutline], turns: Sequence[Turn]) -> TurnAlignment:
    """Lay the turns beside the prompts: by what was typed, and by order where that leaves no doubt."""
    prompts = [(place, _squeezed(each.prompt)) for place, each in enumerate(seen) if each.prompt is not None]
    texts = [_squeezed(turn.text) for turn in turns]
    matcher = SequenceMatcher(None, [text for _, text in prompts], texts, autojunk=False)
    found: dict[int, int] = {}
    blocks = matcher.get_matching_blocks()
    for block in blocks:
        for step in range(block.size):
            found[prompts[block.a + step][0]] = block.b + step
    ends = [(0, 0), *((block.a + block.size, block.b + block.size) for block in blocks)]
    contexts = {place: _squeezed(each.context) for place, each in enumerate(seen) if each.context}
    untold: list[int] = []
    for (from_a, from_b), block in zip(ends, blocks, strict=False):
        loose_prompts, loose_turns = prompts[from_a : block.a], range(from_b, block.b)
        if len(loose_prompts) == len(loose_turns):
            found.update({place: turn for (place, _), turn in zip(loose_prompts, loose_turns, strict=True)})
            continue
        for turn in loose_turns:
            told = [text for _, text in loose_prompts if text]
            if not texts[turn] or any(texts[turn] in text or text in texts[turn] for text in told):
                continue
            # What the tool says in the person's place stands among the messages as context.
            place = next((place for place, context in contexts.items() if texts[turn] in context), None)
            if place is None:
                untold.append(turn)
            else:
                found[place] = turn
                del contexts[place]
    return TurnAlignment(found, untold)


def _squeezed(text: str | None) -> str:
    return " ".join((text or "").split())


def assign_times(
    seen: Sequence[MessageOutline],
    turns: Sequence[Turn],
    timings: Sequence[TurnTiming],
    *,
    alignment: TurnAlignment,
    call_times: dict[str, int],
    started_at: datetime | None,
    ended_at: datetime | None,
) -> list[MessageTime | None]:
    """A time for every message, as far as anything is known."""
    spots: list[MessageTime | None] = [None] * len(seen)
    openings = sorted(
        {place for place, each in enumerate(seen) if each.prompt is not None} | {*alignment.turns}
    )
    for place, each in enumerate(seen):
        if each.at is not None:
            spots[place] = MessageTime(each.at, "stored")
        started = [at for id in each.calls if (at := timestamps.from_value(call_times.get(id))) is not None]
        if started:
            spots[place] = MessageTime(min(started), "stored")
    for place, after in pairwise([*openings, len(seen)]):
        turn = alignment.turns.get(place)
        timing = timings[turn] if turn is not None and turn < len(timings) else None
        ended = _open_turn(spots, place, turns[turn] if turn is not None else None, timing)
        _fill_turn(spots, place, after, ended)
    _fill_rest(spots, started_at, ended_at)
    return spots


def _open_turn(
    spots: list[MessageTime | None], place: int, turn: Turn | None, timing: TurnTiming | None
) -> datetime | None:
    """Set the time of the prompt that opens a turn, and tell when the turn ended."""
    stored = timestamps.from_value(turn.timestamp_ms) if turn else None
    timed = timestamps.from_value(timing.timestamp_ms) if timing else None
    if stored is not None:
        spots[place] = MessageTime(stored, "stored")
    elif timed is not None and spots[place] is None:
        spots[place] = MessageTime(timed, "turn")
    if timing is None or not timing.duration_ms or timed is None:
        return None
    try:
        return timed + timedelta(milliseconds=timing.duration_ms)
    except OverflowError:
        return None


def _fill_turn(spots: list[MessageTime | None], first: int, after: int, ended: datetime | None) -> None:
    """Within a turn: between known times evenly, beyond the last one the turn's own."""
    if spots[first] is None:
        return
    last = after - 1
    if ended is not None and last > first and spots[last] is None:
        known = [spot.at for spot in spots[first:after] if spot is not None]
        spots[last] = MessageTime(max(ended, *known), "turn")
    known_places = [place for place in range(first, after) if spots[place] is not None]
    for left, right in pairwise(known_places):
        _spread(spots, left, right)
    anchor = spots[known_places[-1]]
    if anchor is not None:
        spots[known_places[-1] + 1 : after] = [MessageTime(anchor.at, "turn")] * (last - known_places[-1])


def _spread(spots: list[MessageTime | None], left: int, right: int) -> None:
    start, end = spots[left], spots[right]
    if start is None or end is None or right - left < 2:
        return
    gap = max(end.at - start.at, timedelta(0)) / (right - left)
    for place in range(left + 1, right):
        spots[place] = MessageTime(start.at + gap * (place - left), "interpolated")


def _fill_rest(
    spots: list[MessageTime | None], started_at: datetime | None, ended_at: datetime | None
) -> None:
    """Where turns told nothing: between the nearest known times, the session's own ends among them."""
    around: list[MessageTime | None] = [
        MessageTime(started_at, "session") if started_at else None,
        *spots,
        MessageTime(ended_at, "session") if ended_at else None,
    ]
    known = [place for place, spot in enumerate(around) if spot is not None]
    for left, right in pairwise(known):
        _spread(around, left, right)
    if known:
        first, last = around[known[0]], around[known[-1]]
        for place, spot in enumerate(around):
            if spot is None and first is not None and last is not None:
                is_before = place < known[0]
                near = first if is_before else last
                around[place] = MessageTime(near.at, "session" if near.source == "session" else "neighbour")
    spots[:] = around[1:-1]
