"""Tools that list and read sessions."""

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
from backscroll.mcp.tools.message_pages import Page, page_lines, page_notes, read_page
from backscroll.mcp.tools.results import ToolAnswer, more_hint, paginate
from backscroll.model import SessionSummary
from backscroll.model.dates import iso
from backscroll.model.text import one_line, pluralize
from backscroll.model.workspace import WorkspaceSummary
from backscroll.render.json import summary_document
from backscroll.render.terminal.humanize import short_id

__all__ = [
    "export_session",
    "get_agent_session",
    "get_session",
    "list_sessions",
    "list_workspaces",
    "title_line",
]

_DEFAULT_ROLES = ("user", "assistant", "tool", "error", "system")
MAX_TITLE_CHARS = 100


def list_sessions(call: Call, arguments: ListSessions) -> ToolAnswer:
    filter = call.filter(
        workspace=arguments.workspace, source=arguments.source, since=arguments.since, until=arguments.until
    )
    page = call.history.list_sessions(filter, limit=arguments.limit, offset=arguments.offset)
    summaries = [call.redact_summary(summary) for summary in page.data]
    lines = [title_line(summary) for summary in summaries]
    shown = f"{arguments.offset + 1} to {arguments.offset + len(lines)} of" if lines else "None of"
    more = more_hint(arguments.offset + len(lines), has_more=page.pagination.has_more)
    note = f"{shown} {pluralize(page.pagination.total, 'session')}{more}."
    document = {
        "data": [summary_document(summary) for summary in summaries],
        "pagination": msgspec.structs.asdict(page.pagination),
    }
    return ToolAnswer("\n".join(lines), document, (note,))


def _read_page(
    call: Call, summary: SessionSummary, arguments: GetSession | GetAgentSession, roles: Collection[str]
) -> Page:
    return read_page(
        call,
        summary,
        start=arguments.start,
        count=arguments.count,
        max_chars=arguments.max_chars,
        from_char=arguments.from_char,
        roles=roles,
    )


def get_session(call: Call, arguments: GetSession) -> ToolAnswer:
    summary = call.history.find(arguments.ref)
    page = _read_page(call, summary, arguments, arguments.roles or _DEFAULT_ROLES)
    redacted = call.redact_summary(summary)
    lines = [title_line(redacted), *page_lines(page)]
    notes = [f"Subagents: {one_line(', '.join(redacted.agent_ids), 2000)}"] if redacted.agent_ids else []
    document = {
        "session": summary_document(redacted),
        "messages": page.items,
        "next_from": page.next_from,
    }
    return ToolAnswer("\n".join(lines), document, (*page_notes(page), *notes))


def get_agent_session(call: Call, arguments: GetAgentSession) -> ToolAnswer:
    agent = call.history.get_agent_session(arguments.ref)
    summary = call.history.find(arguments.ref)
    page = _read_page(call, summary, arguments, _DEFAULT_ROLES)
    duration = f" · {agent.total_duration_ms / 1000:,.0f} s" if agent.total_duration_ms is not None else ""
    calls = pluralize(agent.total_tool_use_count, "tool call")
    header = f"{summary.ref}, a subagent of {summary.parent_ref} · {calls}{duration}"
    document: dict[str, Any] = {
        "agent_id": agent.agent_id,
        "parent_session_id": agent.parent_session_id,
        "prompt": call.redact_text(agent.prompt, summary.ref, 0)[: arguments.max_chars]
        if agent.prompt
        else None,
        "model": agent.model,
        "total_duration_ms": agent.total_duration_ms,
        "total_tokens": agent.total_tokens,
        "total_tool_use_count": agent.total_tool_use_count,
        "messages": page.items,
        "next_from": page.next_from,
    }
    return ToolAnswer("\n".join([header, *page_lines(page)]), document, page_notes(page))


def export_session(call: Call, arguments: ExportSession) -> ToolAnswer:
    summary = call.history.find(arguments.ref)
    chunks = call.history.export_session(arguments.ref, arguments.format, redactor=call.redactor)
    end = arguments.from_char + arguments.max_chars
    text, offset, has_more = "", 0, False
    for index, chunk in enumerate(chunks):
        call.report_progress(index, summary.message_count)
        if offset >= end:
            has_more = True
            break
        text += chunk[max(arguments.from_char - offset, 0) : end - offset]
        offset += len(chunk)
    next_char = end if has_more or offset > end else None
    note = f"Next part: from_char={next_char}" if next_char is not None else "End of the session."
    document = {"ref": summary.ref, "format": arguments.format, "text": text, "next_from_char": next_char}
    return ToolAnswer(text, document, (note,))


def list_workspaces(call: Call, arguments: ListWorkspaces) -> ToolAnswer:
    workspaces = call.history.list_workspaces()
    listed, pagination = paginate(workspaces, limit=arguments.limit, offset=arguments.offset)
    page = [_redact_workspace(call, workspace) for workspace in listed]
    lines = [
        f"{one_line(workspace.name or workspace.path, MAX_TITLE_CHARS)} · {one_line(workspace.path, 300)}"
        f"{f' on {one_line(workspace.host, MAX_TITLE_CHARS)}' if workspace.host else ''}"
        f" · {pluralize(workspace.session_count, 'session')}"
        f" · {(iso(workspace.updated_at) or '')[:10]}"
        for workspace in page
    ]
    more = more_hint(arguments.offset + len(page), has_more=pagination.has_more)
    note = f"{len(page):,} of {pluralize(len(workspaces), 'workspace')}{more}."
    document = {
        "data": [msgspec.structs.asdict(each) | {"updated_at": iso(each.updated_at)} for each in page],
        "pagination": msgspec.structs.asdict(pagination),
    }
    return ToolAnswer("\n".join(lines), document, (note,))


def _redact_workspace(call: Call, workspace: WorkspaceSummary) -> WorkspaceSummary:
    name = call.redact_text(workspace.name, "workspaces") if workspace.name else workspace.name
    path = call.redact_text(workspace.path, "workspaces")
    return msgspec.structs.replace(workspace, name=name, path=path)


def title_line(summary: SessionSummary) -> str:
    """Return a session as one line with its ref."""
    facts = [
        f"{summary.source}:{short_id(summary.id, summary.parent_ref)}",
        one_line(summary.title or summary.first_message_preview or "untitled", MAX_TITLE_CHARS),
        one_line(summary.workspace_name or "", 60),
        (iso(summary.updated_at) or "")[:10],
        pluralize(summary.message_count, "message"),
    ]
    return " · ".join(fact for fact in facts if fact)
