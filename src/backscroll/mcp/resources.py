"""MCP resources: the session list, a session, a message."""

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote

import mcp_types as types

from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.mcp.call import Call
from backscroll.mcp.quoting import quote_history
from backscroll.mcp.tools.message_pages import page_lines, page_of
from backscroll.mcp.tools.sessions import title_line
from backscroll.model import SessionSummary
from backscroll.model.dates import iso
from backscroll.model.sanitize import one_line

__all__ = ["TEMPLATES", "list_resources", "read_resource", "uri_of"]

_LIST = "backscroll://sessions"
_SESSION = re.compile(r"backscroll://session/(?P<ref>[^/]+)(?:/message/(?P<number>\d{1,9}))?")
PAGE_SIZE = 100  # sessions per page of resources
LIST_SIZE = 50  # sessions in the list resource
MAX_SESSION_CHARS = 400_000
_ROLES = ("user", "assistant", "thinking", "tool", "error", "system")
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
        uri_template="backscroll://session/{ref}/message/{n}",
        description="One complete message of an earlier session. n is its position, from 0.",
        mime_type=_MARKDOWN,
    ),
]


def uri_of(summary: SessionSummary) -> str:
    """Return the URI of a session."""
    return f"backscroll://session/{quote(summary.ref, safe=':')}"


def list_resources(call: Call, cursor: str | None) -> tuple[Sequence[types.Resource], str | None]:
    """Return a page of resources and the cursor of the next page."""
    if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
        raise UsageError(f"{cursor!r} is not a valid cursor. Start without one")
    offset = int(cursor or 0)
    page = call.history.list_sessions(limit=PAGE_SIZE, offset=offset)
    found = [_resource(call.summary(one)) for one in page.data]
    if not offset:
        about = f"The newest {LIST_SIZE} sessions, one per line."
        found.insert(
            0,
            types.Resource(
                name="sessions", title="Sessions", uri=_LIST, description=about, mime_type=_MARKDOWN
            ),
        )
    return found, str(offset + len(page.data)) if page.pagination.has_more else None


def read_resource(call: Call, uri: str) -> str:
    """Return the content of a resource. Raise `SessionNotFoundError` for an unknown URI."""
    if uri == _LIST:
        page = call.history.list_sessions(limit=LIST_SIZE)
        return quote_history("\n".join(f"- {title_line(call.summary(one))}" for one in page.data))
    match = _SESSION.fullmatch(uri)
    if match is None:
        raise SessionNotFoundError(
            f"Unknown resource {uri}. Valid: {_LIST}, {', '.join(t.uri_template for t in TEMPLATES)}",
            uri,
        )
    ref = unquote(match["ref"])
    if match["number"] is None:
        return _session(call, ref)
    return _message(call, ref, match["number"])


def _session(call: Call, ref: str) -> str:
    pieces: list[str] = []
    own: list[str] = []
    size = 0
    for piece in call.history.export_session(ref, "md", redactor=call.redactor):
        call.step(size, MAX_SESSION_CHARS)
        if size + len(piece) > MAX_SESSION_CHARS:
            own.append("Cut here. Use get_session to read the rest.")
            break
        pieces.append(piece)
        size += len(piece)
    return quote_history("".join(pieces), *own)


def _message(call: Call, ref: str, number: str) -> str:
    summary = call.history.find(ref)
    position = call.history.transcript.find_message(summary, number)
    page = page_of(
        call,
        summary,
        start=position,
        count=1,
        max_chars=MAX_SESSION_CHARS,
        from_char=0,
        roles=_ROLES,
        everything=True,
    )
    return quote_history("\n".join([title_line(call.summary(summary)), *page_lines(page)]))


def _resource(summary: SessionSummary) -> types.Resource:
    return types.Resource(
        name=one_line(summary.ref, 300),
        title=one_line(summary.title or summary.first_message_preview or summary.ref, 100),
        uri=uri_of(summary),
        description=one_line(f"{summary.workspace_name or ''} {(iso(summary.updated_at) or '')[:10]}", 200),
        mime_type=_MARKDOWN,
        annotations=types.Annotations(last_modified=iso(summary.updated_at)),
    )
