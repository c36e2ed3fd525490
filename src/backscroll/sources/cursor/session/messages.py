"""The messages of one session in their order, each row accounted for."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from backscroll.model import Fault, Message, Origin
from backscroll.sources.cursor.database.decode import (
    UndecodableError,
    as_int,
    as_map,
    as_text,
    decode,
    decode_each,
    decode_map,
    unwrap,
)
from backscroll.sources.cursor.database.record_types import (
    NEWEST_BUBBLE_VERSION,
    Bubble,
    BubbleHeader,
    Composer,
)
from backscroll.sources.cursor.database.session_rows import DamagedValue, SessionRows
from backscroll.sources.cursor.session import bubble, session_facts, timestamps
from backscroll.sources.cursor.session.agent_record import AgentRecord
from backscroll.sources.cursor.session.order import BubbleOrder, OrderedBubble
from backscroll.sources.cursor.session.unit_report import UnitReport

__all__ = ["MessageBuilder", "fill_timestamps"]

_TOOL_CAPABILITY = 15


class MessageBuilder:
    """What was said, and what is left of what was said."""

    def __init__(
        self,
        session: str,
        order: BubbleOrder,
        rows: SessionRows,
        parser: bubble.BubbleParser,
        agent_record: AgentRecord,
        report: UnitReport,
        latest: datetime,
    ) -> None:
        self._session = session
        self._agent_record = agent_record
        self._order = order
        self._rows = rows
        self._parser = parser
        self._report = report
        self._latest = latest
        self.missing = 0
        self.emptied = 0
        self.orphans = 0

    def conversation(self, composer: Composer) -> Iterator[Message]:
        """The conversation; where it was shortened, the summary follows the last message it stands for."""
        steps = self._order.steps
        records = _tool_records(composer.capabilities)
        text, last = session_facts.compaction(composer)
        place = next((number for number, step in enumerate(steps, 1) if step.id == last), len(steps))
        spoken = False
        for message in self._said(steps[:place], records):
            spoken = True
            yield message
        if text and spoken:
            yield Message(
                id=f"{self._session}.summary",
                role="system",
                content=text,
                origin=Origin(self._report.path, self._report.record),
                kind="compaction",
            )
        yield from self._said(steps[place:], records)

    def abandoned(self, composer: Composer) -> Iterator[Message]:
        """What no longer belongs to the conversation: rewound, regenerated, or known only as a tool call."""
        records = _tool_records(composer.capabilities)
        known = {step.id for step in (*self._order.steps, *self._order.orphans)}
        for message in self._said(self._order.orphans, records, is_orphan=True):
            self.orphans += 1
            yield message
        for name, record in records.items():
            if name not in known:
                place = f"{self._report.record} {name}"
                body = Bubble(type=2)
                yield from self._parser.parse(
                    body, name, place, record=record, is_active=False, kind="orphan"
                )

    def _said(
        self, steps: list[OrderedBubble], records: Mapping[str, Any], *, is_orphan: bool = False
    ) -> Iterator[Message]:
        rows = self._rows.bubbles
        bodies = self._rows.bodies(step.id for step in steps)
        for step in steps:
            has_row = step.id in rows
            value = next(bodies)[1] if has_row else None
            place = f"bubbleId:{self._session}:{step.id}"
            row = self._row(place, value) if value is not None else None
            spoken = self._spoken(row, step, place, records, is_orphan) if row is not None else []
            if has_row and (row is not None or value is None):
                self._report.counts.count("bubbleId", "parsed" if spoken else "ignored")
            if not spoken and (copy := self._order.body(step.id)) is not None:
                spoken = self._spoken(copy, step, f"{self._report.record} {step.id}", records, is_orphan)
            elif row is None and step.header is not None:
                spoken = [self._placeholder(step.id, step.header)]
            elif row is None:
                self.emptied += 1
            yield from spoken

    def _spoken(
        self, body: Bubble, step: OrderedBubble, place: str, records: Mapping[str, Any], is_orphan: bool
    ) -> list[Message]:
        """The messages of one body, which is a row of its own or lies in the session's record."""
        return self._parser.parse(
            body,
            step.id,
            place,
            header=step.header,
            record=records.get(step.id) if records else None,
            is_active=not is_orphan,
            kind="orphan" if is_orphan else None,
        )

    def _row(self, place: str, value: bytes | DamagedValue) -> Bubble | None:
        """A bubble's row; None when it is a problem."""
        if isinstance(value, DamagedValue):
            fault = Fault("damaged-database", value.reason)
        else:
            try:
                found = decode(value, Bubble)
            except UndecodableError as error:
                fault = Fault("not-json", f"not readable as JSON: {error}")
            else:
                version = as_int(found.v)
                if version is not None and version > NEWEST_BUBBLE_VERSION:
                    self._report.counts.add_unknown(f"bubbleId _v {version}")
                return found
        self._report.counts.count("bubbleId", "problems")
        self._report.add_problem(place, *fault)
        return None

    def _placeholder(self, name: str, header: BubbleHeader) -> Message:
        """A message that is listed and gone, from the agent's memory where that has it.

        Otherwise it keeps its place, and what the list still tells of it.
        """
        grouping = decode_map(header.grouping, object)
        role = bubble.role_of(None, header)[0]
        call = self._agent_record.calls.get(as_text(grouping.get("toolCallId")))
        text = self._agent_record.prompts.get(name, "") if role == "user" else ""
        self.missing += not (call or text)
        when = timestamps.bubble_timestamp(None, None, None, header, None, self._latest)
        return Message(
            id=name,
            role="tool" if call else role,
            content="" if call else text or as_text(grouping.get("textPreview")),
            origin=Origin(self._report.path, self._report.record),
            kind="recovered" if call or text else "missing",
            tool=call,
            timestamp=when.at if when else None,
            timestamp_source=when.source if when else None,
            is_active=not grouping or grouping.get("isRenderable") is True,
        )


def _tool_records(capabilities: Raw) -> dict[str, Any]:
    """Tool calls that builds of early 2025 kept in the session's record, by bubble."""
    if b"bubbleDataMap" not in bytes(capabilities):
        return {}
    found: dict[str, Any] = {}
    for capability in map(as_map, decode_each(capabilities, object)[0]):
        if capability.get("type") == _TOOL_CAPABILITY:
            found.update(as_map(unwrap(as_map(capability.get("data")).get("bubbleDataMap"))))
    return found


def fill_timestamps(messages: Iterable[Message], started_at: datetime | None) -> Iterator[Message]:
    """Messages without a time get that of the next that has its own, else of the last, else the session's."""
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
    for each in waiting:
        if last is not None:
            yield replace(each, timestamp=last, timestamp_source="neighbour")
        elif started_at is not None:
            yield replace(each, timestamp=started_at, timestamp_source="session")
        else:
            yield each
