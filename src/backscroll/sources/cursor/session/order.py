"""In which order the bubbles of a session were said, and which of them the editor still shows."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Raw

from backscroll.sources.cursor.database.decode import Undecodable, as_text, decode, decode_each, decode_map
from backscroll.sources.cursor.database.record_types import Bubble, Composer, Header
from backscroll.sources.cursor.database.session_rows import Shelf, Value
from backscroll.sources.cursor.session import timestamps

__all__ = ["Order", "Step", "arrange"]

_BEFORE_ALL = datetime(1, 1, 1, tzinfo=UTC)


class Step(NamedTuple):
    """One bubble in its place."""

    id: str
    header: Header | None = None


class Order(NamedTuple):
    """The bubbles of a session: those of the conversation, then those it no longer leads to."""

    steps: list[Step]
    orphans: list[Step]
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
        except Undecodable:
            return None


def arrange(composer: Composer, shelf: Shelf, latest: datetime) -> Order:
    """The list of headers decides; before there was one, the conversation; without either, the clock."""
    headers, header_faults = decode_each(composer.full_conversation_headers_only, Header)
    conversation, faults = decode_each(composer.conversation, Bubble)
    inline = _inline(conversation)
    mapped = decode_map(composer.conversation_map, Raw)
    trouble = (*header_faults, *faults)
    steps = _listed(headers) or [Step(name) for name in inline]
    known = {step.id for step in steps}
    rest = [name for name in (*shelf.bubbles, *inline, *mapped) if name not in known]
    rest = list(dict.fromkeys(rest))
    order = Order(steps, [], inline, mapped, False, trouble)
    if not rest:
        return order
    timely = [Step(name) for name in _by_time(rest, shelf, order.body, latest)]
    if steps:
        return order._replace(orphans=timely)
    return order._replace(steps=timely, is_inferred=len(timely) > 1)


def _inline(conversation: list[Bubble]) -> dict[str, Bubble]:
    """Bodies by id; one that shares an id with another, and says something else, gets one of its own."""
    found: dict[str, Bubble] = {}
    for number, body in enumerate(conversation):
        name = as_text(body.bubble_id) or f"inline-{number}"
        if name in found and found[name] != body:
            name = f"{name}-{number}"
        found[name] = body
    return found


def _listed(headers: list[Header]) -> list[Step]:
    """Each bubble at its first place; an entry that names none keeps its place under a name of its own."""
    found: dict[str, Step] = {}
    for number, header in enumerate(headers):
        name = as_text(header.bubble_id) or f"header-{number}"
        found.setdefault(name, Step(name, header))
    return list(found.values())


def _by_time(
    names: list[str], shelf: Shelf, body: Callable[[str], Bubble | None], latest: datetime
) -> Iterator[str]:
    """By the bubbles' own times, then by the order of writing. Bodies are looked at and let go again."""
    values: dict[str, datetime] = {}
    for name, value in shelf.bodies(names):
        values[name] = _time(_decoded(value) or body(name), latest)
    for name in names:
        if name not in values:
            values[name] = _time(body(name), latest)
    place = {name: number for number, name in enumerate(names)}
    yield from sorted(names, key=lambda name: (values[name], shelf.bubbles.get(name, 0), place[name]))


def _decoded(value: Value) -> Bubble | None:
    if not isinstance(value, bytes):
        return None
    try:
        return decode(value, Bubble)
    except Undecodable:
        return None


def _time(bubble: Bubble | None, latest: datetime) -> datetime:
    if bubble is None:
        return _BEFORE_ALL
    found = timestamps.of_bubble(bubble.created_at, bubble.timestamp, bubble.timing_info, None, None, latest)
    return found.at if found else _BEFORE_ALL
