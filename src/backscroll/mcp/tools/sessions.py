"""Tools that list and read sessions."""

from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from backscroll.mcp.call import Call
from backscroll.mcp.quoting import indent
from backscroll.mcp.tools.arguments import (
    ExportSession,
    GetAgentSession,
    GetSession,
    ListSessions,
    ListWorkspaces,
)
from backscroll.mcp.tools.message_pages import Page, page_hints, page_lines, read_page
from backscroll.mcp.tools.results import ToolAnswer, more_hint, paginate, rename
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
MAX_REFS_CHARS = 2000
MAX_NOTE_CHARS = 1000


def list_sessions(call: Call, arguments: ListSessions) -> ToolAnswer:
    filter = call.filter(
        workspace=arguments.workspace, source=arguments.source, since=arguments.since, until=arguments.until
    )
    page = call.history.list_sessions(filter, limit=arguments.limit, offset=arguments.offset)
    summaries = [call.redact_summary(summary) for summary in page.data]
    lines = [title_line(summary) for summary in summaries]
    total = pluralize(page.pagination.total, "session")
    if lines:
        more = more_hint(arguments.offset + len(lines), has_more=page.pagination.has_more)
        hint = f"{arguments.offset + 1} to {arguments.offset + len(lines)} of {total}{more}."
    elif page.pagination.total:
        hint = f"No sessions from offset={arguments.offset} on; {total} in total."
    else:
        hint = "No session matches."
    document = {
        "data": [_session_item(summary) for summary in summaries],
        "pagination": msgspec.structs.asdict(page.pagination),
    }
    return ToolAnswer("\n".join(lines), document, (hint,))


def _read_page(
    call: Call, summary: SessionSummary, arguments: GetSession | GetAgentSession, roles: Collection[str]
) -> Page:
    return read_page(
        call,
        summary,
        start=arguments.position,
        count=arguments.count,
        max_chars=arguments.max_chars,
        from_char=arguments.from_char,
        roles=roles,
    )


def get_session(call: Call, arguments: GetSession) -> ToolAnswer:
    summary = call.history.find(arguments.ref)
    page = _read_page(call, summary, arguments, arguments.roles or _DEFAULT_ROLES)
    redacted = call.redact_summary(summary)
    lines = [title_line(redacted), *_detail_lines(redacted), *page_lines(page)]
    hints = list(page_hints(page))
    if redacted.agent_ids:
        refs = one_line(", ".join(redacted.agent_ids), MAX_REFS_CHARS)
        hints.append(f"Subagents, to read with get_agent_session: {refs}")
    document = {
        "session": _session_item(redacted),
        "messages": page.items,
        "next_position": page.next_position,
    }
    return ToolAnswer("\n".join(lines), document, tuple(hints))


def get_agent_session(call: Call, arguments: GetAgentSession) -> ToolAnswer:
    agent = call.history.get_agent_session(arguments.ref)
    summary = call.history.find(arguments.ref)
    page = _read_page(call, summary, arguments, _DEFAULT_ROLES)
    duration = f" · {agent.total_duration_ms / 1000:,.0f} s" if agent.total_duration_ms is not None else ""
    calls = pluralize(agent.total_tool_use_count, "tool call")
    model = f" · {one_line(agent.model, MAX_TITLE_CHARS)}" if agent.model else ""
    tokens = f" · {pluralize(agent.total_tokens, 'token')}" if agent.total_tokens is not None else ""
    header = f"{summary.ref}, a subagent of {summary.parent_ref} · {calls}{duration}{model}{tokens}"
    document: dict[str, Any] = {
        "ref": summary.ref,
        "parent_ref": summary.parent_ref,
        "prompt": call.redact_text(agent.prompt, summary.ref, 0)[: arguments.max_chars]
        if agent.prompt
        else None,
        "model": agent.model,
        "total_duration_ms": agent.total_duration_ms,
        "total_tokens": agent.total_tokens,
        "total_tool_use_count": agent.total_tool_use_count,
        "messages": page.items,
        "next_position": page.next_position,
    }
    return ToolAnswer("\n".join([header, *page_lines(page)]), document, page_hints(page))


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
    hint = f"Next part: from_char={next_char}" if next_char is not None else "End of the session."
    document = {"ref": summary.ref, "format": arguments.format, "text": text, "next_from_char": next_char}
    return ToolAnswer(text, document, (hint,))


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
    hint = f"{len(page):,} of {pluralize(len(workspaces), 'workspace')}{more}."
    document = {
        "data": [msgspec.structs.asdict(each) | {"updated_at": iso(each.updated_at)} for each in page],
        "pagination": msgspec.structs.asdict(pagination),
    }
    return ToolAnswer("\n".join(lines), document, (hint,))


def _redact_workspace(call: Call, workspace: WorkspaceSummary) -> WorkspaceSummary:
    name = call.redact_text(workspace.name, "workspaces") if workspace.name else workspace.name
    path = call.redact_text(workspace.path, "workspaces")
    return msgspec.structs.replace(workspace, name=name, path=path)


def _session_item(summary: SessionSummary) -> dict[str, Any]:
    return rename(summary_document(summary), {"id": None, "agent_ids": "agent_refs"})


def _detail_lines(summary: SessionSummary) -> Iterator[str]:
    """Yield the properties of a session that its title line does not contain, and the user's notes."""
    times = (iso(summary.created_at) or "", iso(summary.updated_at) or "")
    started, updated = (time[:16].replace("T", " ") for time in times)
    facts = [
        one_line(summary.workspace_path or "", 300),
        f"branch {one_line(summary.git_branch, MAX_TITLE_CHARS)}" if summary.git_branch else "",
        one_line(", ".join(summary.models), MAX_TITLE_CHARS),
        f"{started} to {updated} UTC" if started and updated else "",
        pluralize(summary.total_tokens, "token") if summary.total_tokens is not None else "",
        one_line(f"tags {', '.join(summary.tags)}", MAX_TITLE_CHARS) if summary.tags else "",
        "starred" if summary.is_starred else "",
        "deleted by the tool" if summary.is_gone else "",
        f"history {summary.completeness}" if summary.completeness != "complete" else "",
    ]
    yield " · ".join(fact for fact in facts if fact)
    for note in summary.notes:
        yield f"note of the user: {indent(note.text[:MAX_NOTE_CHARS])}"


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
