"""Tools that list and read sessions; pages of messages."""

from collections.abc import Collection, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.documents import message_document, to_document
from backscroll.mcp.call import Call
from backscroll.mcp.tools.arguments import (
    MAX_MESSAGE_CHARS,
    MIN_MESSAGE_CHARS,
    ExportSession,
    GetAgentSession,
    GetSession,
    ListSessions,
    ListWorkspaces,
)
from backscroll.mcp.tools.results import (
    NAMES,
    MessageItem,
    ToolAnswer,
    indent,
    item_document,
    more_hint,
    paginate,
    rename,
)
from backscroll.model.dates import iso
from backscroll.model.message import Message
from backscroll.model.session import PaginatedResult, SessionSummary
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.model.workspace import WorkspaceSummary
from backscroll.render.humanize import short_id

MAX_PAGE_CHARS = 60_000
MAX_TITLE_CHARS = 100
MAX_REFS_CHARS = 2000
MAX_NOTE_CHARS = 1000
TOOL_CHARS_DIVISOR = 4  # tool calls get a quarter of the characters of text
_DEFAULT_ROLES = ("user", "assistant", "tool", "error", "system")
_DECISIONS = {"rejected": "rejected by the user", "modified": "changed by the user"}


def list_sessions(call: Call, arguments: ListSessions) -> ToolAnswer:
    page = call.history.list_sessions(call.filter(arguments), limit=arguments.limit, offset=arguments.offset)
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
    document = item_document(PaginatedResult(tuple(summaries), page.pagination))
    return ToolAnswer("\n".join(lines), document, (hint,))


def get_session(call: Call, arguments: GetSession) -> ToolAnswer:
    summary = call.history.find(arguments.ref)
    page = _requested_page(call, summary, arguments, arguments.roles or _DEFAULT_ROLES)
    redacted = call.redact_summary(summary)
    lines = [title_line(redacted), *_detail_lines(redacted), *page_lines(page)]
    hints = list(_page_hints(page))
    if redacted.agent_ids:
        refs = one_line(", ".join(redacted.agent_ids), MAX_REFS_CHARS)
        hints.append(f"Subagents, to read with get_agent_session: {refs}")
    document = {
        "session": item_document(redacted),
        "messages": page.items,
        "next_position": page.next_position,
    }
    return ToolAnswer("\n".join(lines), document, tuple(hints))


def get_agent_session(call: Call, arguments: GetAgentSession) -> ToolAnswer:
    agent = call.history.get_agent_session(arguments.ref)
    summary = call.history.find(arguments.ref)
    page = _requested_page(call, summary, arguments, _DEFAULT_ROLES)
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
    return ToolAnswer("\n".join([header, *page_lines(page)]), document, _page_hints(page))


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
    document = to_document(PaginatedResult(tuple(page), pagination))
    return ToolAnswer("\n".join(lines), document, (hint,))


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


class Page(Struct, frozen=True):
    """Messages as documents, and the start of the next page."""

    items: list[dict[str, Any]]
    next_position: int | None
    start: int
    message_count: int  # of all roles and branches of the session
    from_char: int = 0  # where each text begins
    max_chars: int = MAX_MESSAGE_CHARS  # of each text
    tool_chars: int = MAX_MESSAGE_CHARS  # of each text of a tool call


def _requested_page(
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


def read_page(
    call: Call,
    summary: SessionSummary,
    *,
    start: int,
    count: int,
    max_chars: int,
    from_char: int,
    roles: Collection[str],
    with_inactive: bool = False,
) -> Page:
    """Return up to `count` messages with these roles that fit on a page.

    Messages of abandoned branches are included only `with_inactive`.
    """
    call.learn_secrets(summary)
    items: list[dict[str, Any]] = []
    message_count = call.history.transcript.count(summary)
    remaining_chars = MAX_PAGE_CHARS
    tool_chars = max_chars if count == 1 else max_chars // TOOL_CHARS_DIVISOR
    positions = range(start, message_count)
    for position, message in _select(call, summary, positions, roles=roles, with_inactive=with_inactive):
        redacted = call.redact_message(message, summary.ref, position)
        item = page_item(redacted, position, max_chars=max_chars, tool_chars=tool_chars, from_char=from_char)
        size = len(msgspec.json.encode(item))
        if items and (size > remaining_chars or len(items) == count):
            return Page(items, position, start, message_count, from_char, max_chars, tool_chars)
        items.append(item)
        remaining_chars -= size
    return Page(items, None, start, message_count, from_char, max_chars, tool_chars)


def _select(
    call: Call, summary: SessionSummary, positions: range, *, roles: Collection[str], with_inactive: bool
) -> Iterator[tuple[int, Message]]:
    messages = call.history.transcript.messages(summary, positions.start) if positions else iter(())
    for position, message in zip(positions, messages, strict=False):
        call.report_progress(position - positions.start, len(positions))
        if message.role in roles and (message.is_active or with_inactive):
            yield position, message


def page_item(
    message: Message, position: int, *, max_chars: int, tool_chars: int, from_char: int
) -> dict[str, Any]:
    """Return a message as a document, with texts cut to `max_chars` or `tool_chars`."""
    item = rename(message_document(message, position), NAMES[MessageItem])
    params = msgspec.json.encode(item["tool_params"]).decode() if item["tool_params"] else ""
    cut_chars, full_chars = 0, len(params)
    if len(params) > tool_chars:
        item["tool_params"] = params[from_char : from_char + tool_chars]
        cut_chars += max(len(params) - from_char - tool_chars, 0)
    for name, limit in (("content", max_chars), ("tool_result", tool_chars)):
        text = item[name]
        if text is not None:
            item[name] = sanitize(text[from_char : from_char + limit])
            cut_chars += max(len(text) - from_char - limit, 0)
            full_chars = max(full_chars, len(text))
    item["content"] = item["content"] or None
    item["cut_chars"] = cut_chars or None
    item["full_chars"] = full_chars if cut_chars else None
    return item


def page_lines(page: Page) -> Iterator[str]:
    """Yield the page as lines for a model: position, role, text, and how to read the omitted rest."""
    for item in page.items:
        at = f" {item['timestamp'][:16].replace('T', ' ')}" if item["timestamp"] else ""
        kind = f" ({one_line(item['kind'], 60)})" if item["kind"] else ""
        if item["tool_name"]:
            yield f"[{item['position']}] {item['role']}{kind}{at}: {_tool_call_text(item)}"
            if item["tool_result"]:
                yield f"    → {indent(item['tool_result'])}"
        else:
            yield f"[{item['position']}] {item['role']}{kind}{at}: {indent(item['content'] or '')}"
        if item["attachments"]:
            yield f"    attached: {', '.join(map(_attachment_text, item['attachments']))}"
        if item["cut_chars"]:
            more = pluralize(item["cut_chars"], "more character")
            yield f"[{item['position']}] … {more}: {_arguments_for_rest(page, item)}"
        elif page.from_char and not (item["content"] or item["tool_result"]):
            yield f"[{item['position']}] has no text from character {page.from_char} on."


def _tool_call_text(item: dict[str, Any]) -> str:
    params = item["tool_params"]
    text = params if isinstance(params, str) else msgspec.json.encode(params).decode() if params else ""
    outcome = _DECISIONS.get(item["decision"] or "") or item["status"]
    status = "" if outcome in (None, "completed") else f" ({outcome})"
    return f"{one_line(item['tool_name'], 60)}{status} {indent(text)}".rstrip()


def _attachment_text(attachment: dict[str, Any]) -> str:
    name = attachment.get("path") or attachment.get("name") or attachment.get("media_type") or ""
    return one_line(f"{attachment['kind']} {name}".strip(), 300)


def _arguments_for_rest(page: Page, item: dict[str, Any]) -> str:
    """Return the arguments that show the rest of a message, or all of it if that is one call."""
    shown_until = page.from_char + (page.tool_chars if item["tool_name"] else page.max_chars)
    is_whole = not page.from_char and shown_until < MAX_MESSAGE_CHARS
    wanted = item["full_chars"] - (0 if is_whole else shown_until)
    max_chars = min(max(wanted, MIN_MESSAGE_CHARS), MAX_MESSAGE_CHARS)
    arguments = f"position={item['position']}, count=1, max_chars={max_chars}"
    return arguments if is_whole else f"{arguments}, from_char={shown_until}"


def _page_hints(page: Page) -> tuple[str, ...]:
    """Return how to get the next page, or why this page is empty."""
    last = f"The last position is {page.message_count - 1}."
    if page.next_position is not None:
        return (f"Next page: position={page.next_position}. {last}",)
    if page.items:
        return ("End of the session.",)
    if page.start >= page.message_count:
        return (f"There is no position {page.start}. {last}",)
    return (f"No message with these roles from position {page.start} on. {last}",)
