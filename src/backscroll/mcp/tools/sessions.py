"""Tools that list sessions and read them."""

from collections.abc import Collection
from typing import Any

import msgspec

from backscroll.mcp.call import Call
from backscroll.mcp.tools.arguments import (
    ExportSession,
    GetAgentSession,
    GetSession,
    ListSessions,
    ListWorkspaces,
)
from backscroll.mcp.tools.message_pages import Page, page_lines, page_notes, page_of
from backscroll.mcp.tools.results import Answer, more_from, portion
from backscroll.model import SessionSummary
from backscroll.model.dates import iso
from backscroll.model.sanitize import one_line
from backscroll.model.workspace import WorkspaceSummary
from backscroll.render.json import summary_document
from backscroll.render.terminal.humanize import pluralize
from backscroll.render.terminal.session_table import short_id

__all__ = [
    "export_session",
    "get_agent_session",
    "get_session",
    "list_sessions",
    "list_workspaces",
    "title_line",
]

_TALK = ("user", "assistant", "tool", "error", "system")
_WIDTH = 100


def list_sessions(call: Call, asked: ListSessions) -> Answer:
    wanted = call.filter(workspace=asked.workspace, source=asked.source, since=asked.since, until=asked.until)
    page = call.history.list_sessions(wanted, limit=asked.limit, offset=asked.offset)
    summaries = [call.summary(one) for one in page.data]
    lines = [title_line(one) for one in summaries]
    shown = f"{asked.offset + 1} to {asked.offset + len(lines)} of" if lines else "None of"
    more = more_from(asked.offset + len(lines), has_more=page.pagination.has_more)
    own = f"{shown} {pluralize(page.pagination.total, 'session')}{more}."
    document = {
        "data": [summary_document(one) for one in summaries],
        "pagination": msgspec.structs.asdict(page.pagination),
    }
    return Answer("\n".join(lines), document, (own,))


def _page(
    call: Call, summary: SessionSummary, asked: GetSession | GetAgentSession, roles: Collection[str]
) -> Page:
    return page_of(
        call,
        summary,
        start=asked.start,
        count=asked.count,
        max_chars=asked.max_chars,
        from_char=asked.from_char,
        roles=roles,
    )


def get_session(call: Call, asked: GetSession) -> Answer:
    summary = call.history.find(asked.ref)
    page = _page(call, summary, asked, asked.roles or _TALK)
    clean = call.summary(summary)
    lines = [title_line(clean), *page_lines(page)]
    own = [f"Subagents: {one_line(', '.join(clean.agent_ids), 2000)}"] if clean.agent_ids else []
    document = {
        "session": summary_document(clean),
        "messages": page.items,
        "next_from": page.next_from,
    }
    return Answer("\n".join(lines), document, (*page_notes(page), *own))


def get_agent_session(call: Call, asked: GetAgentSession) -> Answer:
    agent = call.history.get_agent_session(asked.ref)
    summary = call.history.find(asked.ref)
    page = _page(call, summary, asked, _TALK)
    took = f" · {agent.total_duration_ms / 1000:,.0f} s" if agent.total_duration_ms is not None else ""
    calls = pluralize(agent.total_tool_use_count, "tool call")
    head = f"{summary.ref}, a subagent of {summary.parent_ref} · {calls}{took}"
    document: dict[str, Any] = {
        "agent_id": agent.agent_id,
        "parent_session_id": agent.parent_session_id,
        "prompt": call.text(agent.prompt, summary.ref, 0)[: asked.max_chars] if agent.prompt else None,
        "model": agent.model,
        "total_duration_ms": agent.total_duration_ms,
        "total_tokens": agent.total_tokens,
        "total_tool_use_count": agent.total_tool_use_count,
        "messages": page.items,
        "next_from": page.next_from,
    }
    return Answer("\n".join([head, *page_lines(page)]), document, page_notes(page))


def export_session(call: Call, asked: ExportSession) -> Answer:
    summary = call.history.find(asked.ref)
    pieces = call.history.export_session(asked.ref, asked.format, redactor=call.redactor)
    end = asked.from_char + asked.max_chars
    text, met, is_more = "", 0, False
    for number, piece in enumerate(pieces):
        call.step(number, summary.message_count)
        if met >= end:
            is_more = True
            break
        text += piece[max(asked.from_char - met, 0) : end - met]
        met += len(piece)
    rest = end if is_more or met > end else None
    own = f"More of it: from_char={rest}" if rest is not None else "That is the end of it."
    document = {"ref": summary.ref, "format": asked.format, "text": text, "next_from_char": rest}
    return Answer(text, document, (own,))


def list_workspaces(call: Call, asked: ListWorkspaces) -> Answer:
    every = call.history.list_workspaces()
    listed, page = portion(every, limit=asked.limit, offset=asked.offset)
    some = [_clean(call, one) for one in listed]
    lines = [
        f"{one_line(one.name or one.path, _WIDTH)} · {one_line(one.path, 300)}"
        f"{f' on {one_line(one.host, _WIDTH)}' if one.host else ''}"
        f" · {pluralize(one.session_count, 'session')}"
        f" · {(iso(one.updated_at) or '')[:10]}"
        for one in some
    ]
    more = more_from(asked.offset + len(some), has_more=page.has_more)
    own = f"{len(some):,} of {pluralize(len(every), 'workspace')}{more}."
    document = {
        "data": [msgspec.structs.asdict(one) | {"updated_at": iso(one.updated_at)} for one in some],
        "pagination": msgspec.structs.asdict(page),
    }
    return Answer("\n".join(lines), document, (own,))


def _clean(call: Call, one: WorkspaceSummary) -> WorkspaceSummary:
    name = call.text(one.name, "workspaces") if one.name else one.name
    return msgspec.structs.replace(one, name=name, path=call.text(one.path, "workspaces"))


def title_line(summary: SessionSummary) -> str:
    """A session in one line, with the ref to ask for it by."""
    facts = [
        f"{summary.source}:{short_id(summary.id)}",
        one_line(summary.title or summary.first_message_preview or "untitled", _WIDTH),
        one_line(summary.workspace_name or "", 60),
        (iso(summary.updated_at) or "")[:10],
        pluralize(summary.message_count, "message"),
    ]
    return " · ".join(fact for fact in facts if fact)
