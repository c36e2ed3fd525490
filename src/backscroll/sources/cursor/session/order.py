"""Order of the bubbles in a session, and which of them the editor shows."""

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
    """Bubble, and its header if it is listed."""

    id: str
    header: BubbleHeader | None = None


class BubbleOrder(NamedTuple):
    """Ordered bubbles of a session."""

    active: list[OrderedBubble]  # on the branch that the editor shows
    orphans: list[OrderedBubble]  # rewound or regenerated
    inline: dict[str, Bubble]  # content in the session's own record
    mapped: dict[str, Raw]  # the same, in the format of later builds
    is_inferred: bool = False  # from times
    faults: tuple[str, ...] = ()

    def inline_bubble(self, bubble_id: str) -> Bubble | None:
        """Return the content of a bubble from the session's own record; None if it is not there."""
        if found := self.inline.get(bubble_id):
            return found
        if bubble_id not in self.mapped:
            return None
        try:
            return decode(self.mapped[bubble_id], Bubble)
        except UndecodableError:
            return None


def order_bubbles(composer: Composer, rows: SessionRows, latest: datetime) -> BubbleOrder:
    """Order bubbles by the header list, else by the inline conversation, else by time."""
    headers, header_faults = decode_each(composer.full_conversation_headers_only, BubbleHeader)
    conversation, conversation_faults = decode_each(composer.conversation, Bubble)
    inline = _inline_by_id(conversation)
    mapped = decode_map(composer.conversation_map, Raw)
    faults = (*header_faults, *conversation_faults)
    active = _listed_bubbles(headers) or [OrderedBubble(bubble_id) for bubble_id in inline]
    known = {bubble.id for bubble in active}
    unlisted = [bubble_id for bubble_id in (*rows.bubble_rowids, *inline, *mapped) if bubble_id not in known]
    unlisted = list(dict.fromkeys(unlisted))
    order = BubbleOrder(active, [], inline, mapped, False, faults)
    if not unlisted:
        return order
    sorted_bubbles = [
        OrderedBubble(bubble_id) for bubble_id in _sort_by_time(unlisted, rows, order.inline_bubble, latest)
    ]
    if active:
        return order._replace(orphans=sorted_bubbles)
    return order._replace(active=sorted_bubbles, is_inferred=len(sorted_bubbles) > 1)


def _inline_by_id(conversation: list[Bubble]) -> dict[str, Bubble]:
    """Return bubbles by id. A different bubble with the same id gets its own id."""
    found: dict[str, Bubble] = {}
    for index, bubble in enumerate(conversation):
        bubble_id = as_text(bubble.bubble_id) or f"inline-{index}"
        if bubble_id in found and found[bubble_id] != bubble:
            bubble_id = f"{bubble_id}-{index}"
        found[bubble_id] = bubble
    return found


def _listed_bubbles(headers: list[BubbleHeader]) -> list[OrderedBubble]:
    """Return each bubble at its first position. An entry without an id gets an id made of its index."""
    found: dict[str, OrderedBubble] = {}
    for index, header in enumerate(headers):
        bubble_id = as_text(header.bubble_id) or f"header-{index}"
        found.setdefault(bubble_id, OrderedBubble(bubble_id, header))
    return list(found.values())


def _sort_by_time(
    bubble_ids: list[str], rows: SessionRows, inline_bubble: Callable[[str], Bubble | None], latest: datetime
) -> Iterator[str]:
    """Sort bubbles by their times, then by rowid. Contents are not kept in memory."""
    times: dict[str, datetime] = {}
    for bubble_id, value in rows.bubble_values(bubble_ids):
        times[bubble_id] = _bubble_time(_decode_bubble(value) or inline_bubble(bubble_id), latest)
    for bubble_id in bubble_ids:
        if bubble_id not in times:
            times[bubble_id] = _bubble_time(inline_bubble(bubble_id), latest)
    position = {bubble_id: index for index, bubble_id in enumerate(bubble_ids)}
    yield from sorted(
        bubble_ids,
        key=lambda bubble_id: (times[bubble_id], rows.bubble_rowids.get(bubble_id, 0), position[bubble_id]),
    )


def _decode_bubble(value: Value) -> Bubble | None:
    if not isinstance(value, bytes):
        return None
    try:
        return decode(value, Bubble)
    except UndecodableError:
        return None


def _bubble_time(bubble: Bubble | None, latest: datetime) -> datetime:
    if bubble is None:
        return _EARLIEST
    found = timestamps.bubble_timestamp(
        bubble.created_at, bubble.timestamp, bubble.timing_info, None, None, latest
    )
    return found.at if found else _EARLIEST
