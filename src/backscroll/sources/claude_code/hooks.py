"""Hooks of Claude Code: the settings file that registers them, and the events that they report."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from backscroll.config import Machine
from backscroll.model.hook import HookEvent, HookFile
from backscroll.model.message import Status
from backscroll.model.stream import Agent, Item
from backscroll.model.workspace import Workspace
from backscroll.sources.claude_code.locations import NAME, roots
from backscroll.sources.hook_events import EventStream, as_text

# All known to version 1.0.69. Versions before 2.1 ignore the whole settings file, permissions included, if it
# contains an event that they do not know. PreToolUse is not registered: the transcript contains every call.
_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PostToolUse",
    "Notification",
    "Stop",
    "SubagentStop",
    "PreCompact",
)
_STATUSES: dict[str, Status] = {
    "PreToolUse": "pending",
    "PostToolUse": "completed",
    "PostToolUseFailure": "failed",
}


def hook_file(machine: Machine, root: Path | None = None) -> HookFile:
    """Return the user's settings file, below the first root unless another one is given."""
    return HookFile(
        title="Claude Code",
        path=(root or roots(machine)[0]) / "settings.json",
        events=_EVENTS,
        entry={"type": "command", "timeout": 5},  # seconds; another type than a number voids the file
        is_grouped=True,
    )


def hook_session(payload: Mapping[str, Any]) -> str | None:
    """Return the session of an event. Cursor also runs these hooks; its events name its version."""
    if "cursor_version" in payload or "conversation_id" in payload:
        return None
    return as_text(payload.get("session_id"))


def hook_workspace(payload: Mapping[str, Any]) -> Workspace | None:
    """Return the folder of an event."""
    cwd = as_text(payload.get("cwd"))
    return Workspace(cwd, evidence="hook") if cwd is not None else None


def read_hook_events(session_id: str, events: Sequence[HookEvent]) -> Iterator[Item]:
    """Parse the events of a session: prompts, calls, answers without a transcript, errors, compactions."""
    stream = EventStream(NAME, session_id, events)
    finished = {_call_id(event) for event in events if event.name.startswith("PostToolUse")}
    for event in events:
        stream.workspace = stream.workspace or hook_workspace(event.payload)
        stream.ended_at = event.at if event.name == "SessionEnd" else None
        _read_event(stream, event, finished)
    yield from stream.items()


def hook_usage(session_id: str, events: Sequence[HookEvent]) -> Iterator[Item]:
    """Return nothing: transcripts contain all token counts that hooks see."""
    del session_id, events
    return iter(())


def _read_event(stream: EventStream, event: HookEvent, finished: set[str | None]) -> None:
    payload = event.payload
    match event.name:
        case "UserPromptSubmit" if prompt := as_text(payload.get("prompt")):
            is_notification = prompt.lstrip().startswith("<task-notification>")
            kind = "notification" if is_notification else None
            stream.add_message(event, "system" if is_notification else "user", prompt, kind=kind)
        case "PostToolUse" | "PostToolUseFailure" | "PreToolUse" if name := as_text(payload.get("tool_name")):
            if event.name == "PreToolUse" and _call_id(event) in finished:
                stream.count(event, "ignored")
                return
            _add_agent(stream, event)
            stream.add_call(
                event,
                name,
                _params(payload),
                status=_STATUSES[event.name],
                result=as_text(payload.get("error")),
                decision="modified" if _response(payload).get("userModified") is True else None,
            )
        case "Stop" if answer := as_text(payload.get("last_assistant_message")):
            stream.add_message(event, "assistant", answer)
        case "StopFailure":
            text = as_text(payload.get("last_assistant_message")) or as_text(payload.get("error"))
            stream.add_message(event, "error", text or "The turn failed.")
        case "PreCompact":
            trigger = as_text(payload.get("trigger")) or "unknown"
            stream.add_message(event, "system", f"Compaction ({trigger})", kind="compact_boundary")
        case "SubagentStart" | "SubagentStop":
            _add_agent(stream, event)
            stream.count(event, "ignored")
        case _:
            stream.count(event, "ignored")


def _add_agent(stream: EventStream, event: HookEvent) -> None:
    agent_id, kind = (as_text(event.payload.get(name)) for name in ("agent_id", "agent_type"))
    if agent_id is not None and agent_id not in stream.agents:
        stream.agents[agent_id] = Agent(
            agent_id=agent_id, parent_session_id=stream.opening.id, kind=kind, started_at=event.at
        )


def _call_id(event: HookEvent) -> str | None:
    return as_text(event.payload.get("tool_use_id"))


def _params(payload: Mapping[str, Any]) -> dict[str, Any]:
    params = payload.get("tool_input")
    return params if isinstance(params, dict) else {}


def _response(payload: Mapping[str, Any]) -> dict[str, Any]:
    response = payload.get("tool_response")
    return response if isinstance(response, dict) else {}
