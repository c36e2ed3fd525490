"""MCP resources: the session list, a session, a message."""

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote

import mcp_types as types

from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.mcp.call import Call
from backscroll.mcp.tools.results import quote_history
from backscroll.mcp.tools.sessions import page_lines, read_page, title_line
from backscroll.model.dates import iso
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line

_LIST_URI = "backscroll://sessions"
_SESSION_URI = re.compile(r"backscroll://session/(?P<ref>[^/]+)(?:/message/(?P<position>\d{1,9}))?")
PAGE_SIZE = 100  # sessions per page of resources
LIST_SIZE = 50  # sessions in the list resource
MAX_SESSION_CHARS = 400_000
_ALL_ROLES = ("user", "assistant", "thinking", "tool", "error", "system")
_MARKDOWN = "text/markdown"

TEMPLATES = [
    types.ResourceTemplate(
        name="session",
        title="A session",
        uri_template="backscroll://session/{ref}",
        description="An earlier session as Markdown.",
        mime_type=_MARKDOWN,
    ),
    types.ResourceTemplate(
        name="message",
        title="A message of a session",
        uri_template="backscroll://session/{ref}/message/{position}",
        description="One complete message of an earlier session, by its position from 0.",
        mime_type=_MARKDOWN,
    ),
]


def session_uri(summary: SessionSummary) -> str:
    return f"backscroll://session/{quote(summary.ref, safe=':')}"


def list_resources(call: Call, cursor: str | None) -> tuple[Sequence[types.Resource], str | None]:
    """Return a page of resources and the cursor of the next page."""
    if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
        raise UsageError(f"{cursor!r} is not a valid cursor. Start without one")
    offset = int(cursor or 0)
    page = call.history.list_sessions(limit=PAGE_SIZE, offset=offset)
    resources = [_session_resource(call.redact_summary(summary)) for summary in page.data]
    if not offset:
        description = f"The newest {LIST_SIZE} sessions, one per line."
        resources.insert(
            0,
            types.Resource(
                name="sessions",
                title="Sessions",
                uri=_LIST_URI,
                description=description,
                mime_type=_MARKDOWN,
            ),
        )
    return resources, str(offset + len(page.data)) if page.pagination.has_more else None


def read_resource(call: Call, uri: str) -> str:
    """Return the content of a resource. Raise `SessionNotFoundError` for an unknown URI."""
    if uri == _LIST_URI:
        page = call.history.list_sessions(limit=LIST_SIZE)
        lines = [f"- {title_line(call.redact_summary(summary))}" for summary in page.data]
        return quote_history("\n".join(lines))
    match = _SESSION_URI.fullmatch(uri)
    if match is None:
        raise SessionNotFoundError(
            f"Unknown resource {uri}. Valid: {_LIST_URI}, {', '.join(t.uri_template for t in TEMPLATES)}",
            uri,
        )
    ref = unquote(match["ref"])
    if match["position"] is None:
        return _read_session(call, ref)
    return _read_message(call, ref, match["position"])


def _read_session(call: Call, ref: str) -> str:
    chunks: list[str] = []
    notes: list[str] = []
    char_count = 0
    for chunk in call.history.export_session(ref, "md", redactor=call.redactor):
        call.report_progress(char_count, MAX_SESSION_CHARS)
        if char_count + len(chunk) > MAX_SESSION_CHARS:
            notes.append("Cut here. Use get_session to read the rest.")
            break
        chunks.append(chunk)
        char_count += len(chunk)
    return quote_history("".join(chunks), *notes)


def _read_message(call: Call, ref: str, message_ref: str) -> str:
    summary = call.history.find(ref)
    position = call.history.transcript.find_message(summary, message_ref)
    page = read_page(
        call,
        summary,
        start=position,
        count=1,
        max_chars=MAX_SESSION_CHARS,
        from_char=0,
        roles=_ALL_ROLES,
        with_inactive=True,
    )
    return quote_history("\n".join([title_line(call.redact_summary(summary)), *page_lines(page)]))


def _session_resource(summary: SessionSummary) -> types.Resource:
    title = one_line(summary.title or summary.first_message_preview or summary.ref, 100)
    facts = (title, one_line(summary.workspace_name or "", 60), (iso(summary.updated_at) or "")[:10])
    return types.Resource(
        name=title,
        title=title,
        uri=session_uri(summary),
        # Claude Code shows and searches only the URI and the description.
        description=" · ".join(fact for fact in facts if fact),
        mime_type=_MARKDOWN,
        annotations=types.Annotations(last_modified=iso(summary.updated_at)),
    )
