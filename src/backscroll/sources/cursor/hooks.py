"""Hooks of Cursor: the settings file that registers them, and the events that they report."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from backscroll.config import Machine
from backscroll.model.hook import HookEvent, HookFile
from backscroll.model.message import Origin, TokenUsage
from backscroll.model.store import HOOK_USAGE
from backscroll.model.stream import Closing, Item, Opening, RecordCounts, UsageReport
from backscroll.model.workspace import Workspace
from backscroll.sources.cursor.locations import SOURCE
from backscroll.sources.cursor.session.bubble import AUTO_MODELS
from backscroll.sources.hook_events import EventStream, as_int, as_text

# Cursor also runs the hooks of Claude Code. The same event then arrives twice.
_REPEAT_SECONDS = timedelta(seconds=3)
_END_EVENTS = ("sessionEnd", "SessionEnd")

# All known to version 1.7, the first with hooks. The command line ignores the whole file if it contains an
# event that it does not know.
_EVENTS = ("beforeSubmitPrompt", "afterFileEdit", "stop")


def hook_file(machine: Machine, root: Path | None = None) -> HookFile:
    """Return the user's hooks file. The editor and the command line share it."""
    return HookFile(
        title="Cursor",
        path=machine.home / ".cursor" / "hooks.json",
        events=_EVENTS,
        entry={"timeout": 5},
        fields={"version": 1},  # without it, version 3 loads no hook
    )


def hook_session(payload: Mapping[str, Any]) -> str | None:
    """Return the conversation of an event, also if a hook of Claude Code recorded it."""
    if "cursor_version" not in payload and "conversation_id" not in payload:
        return None
    return as_text(payload.get("conversation_id")) or as_text(payload.get("session_id"))


def hook_workspace(payload: Mapping[str, Any]) -> Workspace | None:
    """Return the folders of the window in which an event happened."""
    roots = payload.get("workspace_roots")
    folders = [root for root in roots if isinstance(root, str) and root] if isinstance(roots, list) else []
    if not folders:
        return None
    return Workspace(folders[0], evidence="hook", folders=tuple(folders) if len(folders) > 1 else ())


def read_hook_events(session_id: str, events: Sequence[HookEvent]) -> Iterator[Item]:
    """Parse the events of a session: prompts, edits, calls, answers, errors and compactions."""
    stream = EventStream(SOURCE, session_id, events)
    finished = {_call_id(event) for event in events if _kind(event).startswith("posttooluse")}
    last_seen: dict[str, datetime] = {}
    for event in events:
        payload = event.payload
        stream.workspace = stream.workspace or hook_workspace(payload)
        stream.version = as_text(payload.get("cursor_version")) or stream.version
        stream.ended_at = event.at if event.name in _END_EVENTS else None
        window = as_text(payload.get("session_id"))
        if window is not None and window != session_id:
            stream.window = window
        identity = f"{_kind(event)} {payload.get('generation_id')} {_subject(event)}"
        before, last_seen[identity] = last_seen.get(identity), event.at
        if before is not None and event.at - before < _REPEAT_SECONDS:
            stream.count(event, "ignored")
        else:
            _read_event(stream, event, finished)
    yield from stream.items()


def hook_usage(session_id: str, events: Sequence[HookEvent]) -> Iterator[Item]:
    """Return the tokens of each generation. Cursor writes them to no file."""
    reports = [report for event in events if (report := _usage(session_id, event)) is not None]
    if not reports:
        return
    yield Opening(source=SOURCE, id=session_id, store=HOOK_USAGE.name)
    yield from reports
    yield Closing(
        workspace=next(filter(None, (hook_workspace(event.payload) for event in events)), None),
        created_at=events[0].at,
        created_at_source="stored",
        updated_at=events[-1].at,
        completeness="lossy",
        reasons=("only token counts are known",),
        visibility="ghost",
    )
    counts = RecordCounts()
    counts.count("stop", "parsed", len(reports))
    yield counts


def _usage(session_id: str, event: HookEvent) -> UsageReport | None:
    payload = event.payload
    usage = TokenUsage(
        as_int(payload.get("input_tokens")),
        as_int(payload.get("output_tokens")),
        as_int(payload.get("cache_write_tokens")),
        as_int(payload.get("cache_read_tokens")),
    )
    if _kind(event) != "stop" or not usage.total:  # all zero: not counted
        return None
    generation = as_text(payload.get("generation_id")) or event.id
    origin = Origin("hooks", f"event {event.id}")
    return UsageReport(f"hook {session_id} {generation}", usage, origin, _model(payload), event.at)


def _read_event(stream: EventStream, event: HookEvent, finished: set[str | None]) -> None:
    payload = event.payload
    model = _model(payload)
    match _kind(event):
        case "beforesubmitprompt" | "userpromptsubmit" if prompt := as_text(payload.get("prompt")):
            stream.add_message(event, "user", prompt)
        case "afterfileedit" if event.edits:
            path = as_text(payload.get("file_path"))
            stream.add_call(event, event.name, {"file_path": path} if path else {}, model=model)
        case "pretooluse" | "posttooluse" | "posttoolusefailure" if name := as_text(payload.get("tool_name")):
            kind = _kind(event)
            if kind == "pretooluse" and _call_id(event) in finished:
                stream.count(event, "ignored")
                return
            params = payload.get("tool_input")
            stream.add_call(
                event,
                name,
                params if isinstance(params, dict) else {},
                status={"pretooluse": "pending", "posttooluse": "completed"}.get(kind, "failed"),  # type: ignore[arg-type]
                result=as_text(payload.get("error_message")),
                model=model,
            )
        case "aftershellexecution" if command := as_text(payload.get("command")):
            stream.add_call(event, event.name, {"command": command}, model=model)
        case "afteragentresponse" if text := as_text(payload.get("text")):
            stream.add_message(event, "assistant", text, model=model)
        case "precompact":
            trigger = as_text(payload.get("trigger")) or "unknown"
            stream.add_message(event, "system", f"Compaction ({trigger})", kind="compact_boundary")
        case "sessionend" if error := as_text(payload.get("error_message")):
            stream.add_message(event, "error", error)
        case "stop" if payload.get("status") == "error":
            stream.add_message(event, "error", "The turn ended with an error.")
        case _:
            stream.count(event, "ignored")


def _kind(event: HookEvent) -> str:
    """Return the name of an event. Claude Code's names differ in the case of the first letter."""
    return event.name.lower()


def _subject(event: HookEvent) -> str:
    """Return what distinguishes two events of one generation."""
    names = ("tool_use_id", "prompt", "file_path", "command", "text")
    return str([*(event.payload.get(name) for name in names), event.edits])


def _call_id(event: HookEvent) -> str | None:
    return as_text(event.payload.get("tool_use_id"))


def _model(payload: Mapping[str, Any]) -> str | None:
    model = as_text(payload.get("model"))
    return None if model in AUTO_MODELS else model
