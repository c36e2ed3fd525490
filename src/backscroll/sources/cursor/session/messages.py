"""Build the messages of one session in order, and count each row."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from backscroll.model.message import Message, Origin
from backscroll.model.problem import Fault
from backscroll.sources.cursor.database.decode import (
    UndecodableError,
    UnitReport,
    as_int,
    as_map,
    as_text,
    decode,
    decode_each,
    decode_map,
    decode_record,
    unwrap,
)
from backscroll.sources.cursor.database.records import (
    NEWEST_BUBBLE_VERSION,
    Bubble,
    BubbleHeader,
    Composer,
)
from backscroll.sources.cursor.database.session_rows import DamagedValue, SessionRows, Value
from backscroll.sources.cursor.session import session_facts
from backscroll.sources.cursor.session.agent_record import AgentRecord
from backscroll.sources.cursor.session.bubble import BubbleParser, bubble_timestamp, role_of

_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
_TOOL_CAPABILITY = 15


# Order of the bubbles, and which of them the editor shows


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
    found = bubble_timestamp(bubble.created_at, bubble.timestamp, bubble.timing_info, None, None, latest)
    return found.at if found else _EARLIEST


# Messages


class MessageBuilder:
    """Builds messages from bubbles, and placeholders for lost bubbles."""

    def __init__(
        self,
        session_id: str,
        order: BubbleOrder,
        rows: SessionRows,
        parser: BubbleParser,
        agent_record: AgentRecord,
        report: UnitReport,
        latest: datetime,
    ) -> None:
        self._session_id = session_id
        self._agent_record = agent_record
        self._order = order
        self._rows = rows
        self._parser = parser
        self._report = report
        self._latest = latest
        self.missing_count = 0
        self.emptied_count = 0
        self.orphan_count = 0
        self.shortened_count = 0

    def active_messages(self, composer: Composer) -> Iterator[Message]:
        """Return the active messages. A compaction summary follows the last message that it replaces."""
        bubbles = self._order.active
        records = _tool_records(composer.capabilities)
        summary, last_bubble_id = session_facts.compaction(composer)
        split = next(
            (position for position, each in enumerate(bubbles, 1) if each.id == last_bubble_id), len(bubbles)
        )
        has_messages = False
        for message in self._build(bubbles[:split], records):
            has_messages = True
            yield message
        if summary and has_messages:
            yield Message(
                id=f"{self._session_id}.summary",
                role="system",
                content=summary,
                origin=Origin(self._report.path, self._report.record),
                kind="compaction",
            )
        yield from self._build(bubbles[split:], records)

    def inactive_messages(self, composer: Composer) -> Iterator[Message]:
        """Return the inactive messages: rewound, regenerated, or known only from a tool call."""
        records = _tool_records(composer.capabilities)
        known_ids = {each.id for each in (*self._order.active, *self._order.orphans)}
        for message in self._build(self._order.orphans, records, is_orphan=True):
            self.orphan_count += 1
            yield message
        for bubble_id, record in records.items():
            if bubble_id not in known_ids:
                location = f"{self._report.record} {bubble_id}"
                content = Bubble(type=2)
                yield from self._parser.parse(
                    content, bubble_id, location, record=record, is_active=False, kind="orphan"
                )

    def _build(
        self, bubbles: list[OrderedBubble], records: Mapping[str, Any], *, is_orphan: bool = False
    ) -> Iterator[Message]:
        rowids = self._rows.bubble_rowids
        values = self._rows.bubble_values(ordered.id for ordered in bubbles)
        for ordered in bubbles:
            has_row = ordered.id in rowids
            value = next(values)[1] if has_row else None
            location = f"bubbleId:{self._session_id}:{ordered.id}"
            content, is_counted = self._decode_row(location, value) if value is not None else (None, False)
            messages = (
                self._parse_bubble(content, ordered, location, records, is_orphan)
                if content is not None
                else []
            )
            if has_row and not is_counted:
                self._report.counts.count("bubbleId", "parsed" if messages else "ignored")
            if not messages and (inline := self._order.inline_bubble(ordered.id)) is not None:
                messages = self._parse_bubble(
                    inline, ordered, f"{self._report.record} {ordered.id}", records, is_orphan
                )
            elif content is None and ordered.header is not None:
                messages = [self._placeholder(ordered.id, ordered.header)]
            elif content is None:
                self.emptied_count += 1
            yield from messages

    def _parse_bubble(
        self,
        content: Bubble,
        ordered: OrderedBubble,
        location: str,
        records: Mapping[str, Any],
        is_orphan: bool,
    ) -> list[Message]:
        """Return the messages of a bubble, which comes from its row or from the session's record."""
        return self._parser.parse(
            content,
            ordered.id,
            location,
            header=ordered.header,
            record=records.get(ordered.id) if records else None,
            is_active=not is_orphan,
            kind="orphan" if is_orphan else None,
        )

    def _decode_row(self, location: str, value: bytes | DamagedValue) -> tuple[Bubble | None, bool]:
        """Decode the row of a bubble: None if it cannot be read. Return whether it counts as a problem."""
        content: Bubble | None = None
        fault: Fault | None
        if isinstance(value, DamagedValue):
            fault = Fault("damaged-database", value.reason)
        else:
            subject = "the record of the message"
            try:
                content, fault = decode_record(value, Bubble, subject)
            except UndecodableError as error:
                fault = error.fault(subject)
        version = as_int(content.v) if content is not None else None
        if version is not None and version > NEWEST_BUBBLE_VERSION:
            self._report.counts.add_unknown(f"bubbleId _v {version}")
        if fault is not None:
            self.shortened_count += content is not None
            self._report.counts.count("bubbleId", "problems")
            self._report.add_problem(location, *fault)
        return content, fault is not None

    def _placeholder(self, bubble_id: str, header: BubbleHeader) -> Message:
        """Return the message of a listed bubble that is lost.

        Its content comes from the agent's record, else from the preview in the list.
        """
        grouping = decode_map(header.grouping, object)
        role = role_of(None, header)[0]
        call = self._agent_record.calls.get(as_text(grouping.get("toolCallId")))
        text = self._agent_record.prompts.get(bubble_id, "") if role == "user" else ""
        self.missing_count += not (call or text)
        time = bubble_timestamp(None, None, None, header, None, self._latest)
        return Message(
            id=bubble_id,
            role="tool" if call else role,
            content="" if call else text or as_text(grouping.get("textPreview")),
            origin=Origin(self._report.path, self._report.record),
            kind="recovered" if call or text else "missing",
            tool=call,
            timestamp=time.at if time else None,
            timestamp_source=time.source if time else None,
            is_active=not grouping or grouping.get("isRenderable") is True,
        )


def _tool_records(capabilities: Raw) -> dict[str, Any]:
    """Return tool calls by bubble id, which builds of early 2025 stored in the session's record."""
    if b"bubbleDataMap" not in bytes(capabilities):
        return {}
    found: dict[str, Any] = {}
    for capability in map(as_map, decode_each(capabilities, object)[0]):
        if capability.get("type") == _TOOL_CAPABILITY:
            found.update(as_map(unwrap(as_map(capability.get("data")).get("bubbleDataMap"))))
    return found


def fill_timestamps(
    messages: Iterable[Message], started_at: datetime | None, ended_at: datetime | None
) -> Iterator[Message]:
    """Give messages without a time that of the next message, else of the last one.

    If no message has a time, the first and the last one get the start and the end of the session, and those
    between are interpolated.
    """
    waiting: list[Message] = []
    last: datetime | None = None
    for message in messages:
        if message.timestamp is None:
            waiting.append(message)
            continue
        last = message.timestamp
        for each in waiting:
            yield replace(each, timestamp=last, timestamp_source="neighbour")
        waiting.clear()
        yield message
    if last is None:
        yield from _interpolate(waiting, started_at, ended_at)
        return
    for each in waiting:
        yield replace(each, timestamp=last, timestamp_source="neighbour")


def _interpolate(
    messages: list[Message], started_at: datetime | None, ended_at: datetime | None
) -> Iterator[Message]:
    start, end = started_at or ended_at, ended_at or started_at
    if start is None or end is None:
        yield from messages
        return
    span = max(end - start, timedelta(0))
    last_index = len(messages) - 1
    for index, message in enumerate(messages):
        is_between = span and 0 < index < last_index
        yield replace(
            message,
            timestamp=start + span * index // max(1, last_index),
            timestamp_source="interpolated" if is_between else "session",
        )
