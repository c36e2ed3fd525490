"""Parse events of hooks: what the events of all tools have in common."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from backscroll.model.dates import iso
from backscroll.model.hook import HookEvent
from backscroll.model.message import Decision, Edit, Message, Origin, Role, Status, ToolCall
from backscroll.model.store import HOOK_EVENTS
from backscroll.model.stream import Agent, Closing, Opening, RecordCounts
from backscroll.model.workspace import Workspace

_REASON = "only hooks recorded it"


def as_text(value: object) -> str | None:
    """Return a text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def as_int(value: object) -> int | None:
    """Return a count; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


class EventStream:
    """Collects the messages and facts in the events of one session."""

    def __init__(self, source: str, session_id: str, events: Sequence[HookEvent]) -> None:
        self.opening = Opening(source=source, id=session_id, store=HOOK_EVENTS.name)
        self.workspace: Workspace | None = None
        self.version: str | None = None
        self.created_at: datetime | None = None
        self.ended_at: datetime | None = None  # if the last event is the end of the session
        self.window: str | None = None
        self.agents: dict[str, Agent] = {}
        self._messages: list[Message] = []
        self._counts = RecordCounts()
        self._events = events

    def count(self, event: HookEvent, verdict: Literal["parsed", "ignored"]) -> None:
        """Count an event."""
        self._counts.count(event.name, verdict)

    def add_message(
        self, event: HookEvent, role: Role, content: str, *, kind: str | None = None, model: str | None = None
    ) -> None:
        """Add a message with the time of its event."""
        self._add(event, role, content, kind=kind, model=model)

    def add_call(
        self,
        event: HookEvent,
        name: str,
        params: Mapping[str, Any],
        *,
        status: Status = "completed",
        result: str | None = None,
        decision: Decision | None = None,
        model: str | None = None,
    ) -> None:
        """Add a tool call. It has no id: with one, calls in transcripts of subagents would be its copies."""
        tool = ToolCall(
            id=None,
            name=name,
            params=dict(params),
            result=result,
            status=status,
            decision=decision,
            edits=tuple(edit for one in event.edits if (edit := _edit(one)) is not None),
        )
        self._add(event, "tool", "", tool=tool, model=model)

    def _add(
        self,
        event: HookEvent,
        role: Role,
        content: str,
        *,
        kind: str | None = None,
        model: str | None = None,
        tool: ToolCall | None = None,
    ) -> None:
        self._messages.append(
            Message(
                id=event.id,
                role=role,
                content=content,
                kind=kind,
                origin=Origin("hooks", f"event {event.id}"),
                timestamp=event.at,
                timestamp_source="stored",
                model=model,
                agent_id=as_text(event.payload.get("agent_id")),
                cwd=as_text(event.payload.get("cwd")),
                tool=tool,
            )
        )
        self.count(event, "parsed")

    def items(self) -> Iterator[Opening | Message | Closing | RecordCounts]:
        """Return the stream of the unit. A session without messages is not listed."""
        yield self.opening
        yield from self._messages
        first, last = self._events[0].at, self._events[-1].at
        metadata: dict[str, Any] = {}
        if self.ended_at is not None:
            metadata["hook_ended_at"] = iso(self.ended_at)
        if self.window is not None:
            metadata |= {"window": self.window, "window_started_at": iso(first)}
        yield Closing(
            workspace=self.workspace,
            created_at=self.created_at or first,
            created_at_source="stored",
            updated_at=last,
            version=self.version,
            completeness="lossy",
            reasons=(_REASON,),
            visibility="listed" if self._messages else "placeholder",
            agents=tuple(self.agents.values()),
            metadata=metadata,
        )
        yield self._counts


def _edit(counted: Mapping[str, Any]) -> Edit | None:
    path, kind = as_text(counted.get("path")), counted.get("kind")
    added, removed = as_int(counted.get("added")), as_int(counted.get("removed"))
    if path is None or added is None or removed is None:
        return None
    return Edit(
        path, kind="create" if kind == "create" else "update", lines_added=added, lines_removed=removed
    )
