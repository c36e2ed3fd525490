"""In which order the bubbles of a session were said, and which of them the editor still shows."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Raw

from backscroll.sources.cursor.database.decode import (
    UndecodableError,
    as_text,
    decode,
    decode_each,
    decode_map,
)
from backscroll.sources.cursor.database.record_types import Bubble, BubbleHeader, Composer
from backscroll.sources.cursor.database.session_rows import SessionRows, Value
from backscroll.sources.cursor.session import timestamps

__all__ = ["BubbleOrder", "OrderedBubble", "order_bubbles"]

_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)


class OrderedBubble(NamedTuple):
    """One bubble in its place."""

    id: str
    header: BubbleHeader | None = None


class BubbleOrder(NamedTuple):
    """The bubbles of a session: those of the conversation, then those it no longer leads to."""

    steps: list[OrderedBubble]
    orphans: list[OrderedBubble]
    inline: dict[str, Bubble]  # bodies kept in the session's own record
    mapped: dict[str, Raw]  # bodies kept there too, by later builds
    is_inferred: bool = False
    faults: tuple[str, ...] = ()

    def body(self, bubble_id: str) -> Bubble | None:
        """A body from the session's own record, for a bubble without a row."""
        if found := self.inline.get(bubble_id):
            return found
        if bubble_id not in self.mapped:
            return None
        try:
            return decode(self.mapped[bubble_id], Bubble)
        except UndecodableError:
            return None


def order_bubbles(composer: Composer, rows: SessionRows, latest: datetime) -> BubbleOrder:
    """The list of headers decides; before there was one, the conversation; without either, the clock."""
    headers, header_faults = decode_each(composer.full_conversation_headers_only, BubbleHeader)
    conversation, conversation_faults = decode_each(composer.conversation, Bubble)
    inline = _inline(conversation)
    mapped = decode_map(composer.conversation_map, Raw)
    faults = (*header_faults, *conversation_faults)
    steps = _listed(headers) or [OrderedBubble(name) for name in inline]
    known = {step.id for step in steps}
    unlisted = [name for name in (*rows.bubbles, *inline, *mapped) if name not in known]
    unlisted = list(dict.fromkeys(unlisted))
    order = BubbleOrder(steps, [], inline, mapped, False, faults)
    if not unlisted:
        return order
    by_time = [OrderedBubble(name) for name in _by_time(unlisted, rows, order.body, latest)]
    if steps:
        return order._replace(orphans=by_time)
    return order._replace(steps=by_time, is_inferred=len(by_time) > 1)


def _inline(conversation: list[Bubble]) -> dict[str, Bubble]:
    """Bodies by id; one that shares an id with another, and says something else, gets one of its own."""
    found: dict[str, Bubble] = {}
    for index, body in enumerate(conversation):
        name = as_text(body.bubble_id) or f"inline-{index}"
        if name in found and found[name] != body:
            name = f"{name}-{index}"
        found[name] = body
    return found


def _listed(headers: list[BubbleHeader]) -> list[OrderedBubble]:
    """Each bubble at its first place; an entry that names none keeps its place under a name of its own."""
    found: dict[str, OrderedBubble] = {}
    for index, header in enumerate(headers):
        name = as_text(header.bubble_id) or f"header-{index}"
        found.setdefault(name, OrderedBubble(name, header))
    return list(found.values())


def _by_time(
    names: list[str], rows: SessionRows, body: Callable[[str], Bubble | None], latest: datetime
) -> Iterator[str]:
    """By the bubbles' own times, then by the order of writing. Bodies are looked at and let go again."""
    values: dict[str, datetime] = {}
    for name, value in rows.bodies(names):
        values[name] = _time(_decoded(value) or body(name), latest)
    for name in names:
        if name not in values:
            values[name] = _time(body(name), latest)
    position = {name: index for index, name in enumerate(names)}
    yield from sorted(names, key=lambda name: (values[name], rows.bubbles.get(name, 0), position[name]))


def _decoded(value: Value) -> Bubble | None:
    if not isinstance(value, bytes):
        return None
    try:
        return decode(value, Bubble)
    except UndecodableError:
        return None


def _time(bubble: Bubble | None, latest: datetime) -> datetime:
    if bubble is None:
        return _EARLIEST
    found = timestamps.bubble_timestamp(
        bubble.created_at, bubble.timestamp, bubble.timing_info, None, None, latest
    )
    return found.at if found else _EARLIEST
