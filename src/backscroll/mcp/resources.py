"""Sessions as resources that a client can attach: the list, a session, a message."""

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote

import mcp_types as types

from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.mcp.call import Call
from backscroll.mcp.quoting import framed
from backscroll.mcp.tools.message_pages import page_lines, page_of
from backscroll.mcp.tools.sessions import title_line
from backscroll.model import SessionSummary
from backscroll.model.dates import iso
from backscroll.model.sanitize import one_line

__all__ = ["TEMPLATES", "listed", "read", "uri_of"]

_LIST = "backscroll://sessions"
_SESSION = re.compile(r"backscroll://session/(?P<ref>[^/]+)(?:/message/(?P<number>\d{1,9}))?")
_PAGE = 100  # sessions that are listed at once
_NEWEST = 50  # in the list that is a resource itself
_MOST = 400_000  # characters of a session
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
        description="One message of an earlier session, whole; n is its position, from 0.",
        mime_type=_MARKDOWN,
    ),
]


def uri_of(summary: SessionSummary) -> str:
    """What a session is called as a resource."""
    return f"backscroll://session/{quote(summary.ref, safe=':')}"


def listed(call: Call, cursor: str | None) -> tuple[Sequence[types.Resource], str | None]:
    """A page of resources, and the cursor of the next."""
    if cursor is not None and not (cursor.isascii() and cursor.isdigit()):
        raise UsageError(f"{cursor!r} is no cursor of this list; begin without one")
    offset = int(cursor or 0)
    page = call.history.list_sessions(limit=_PAGE, offset=offset)
    found = [_resource(call.summary(one)) for one in page.data]
    if not offset:
        about = f"The newest {_NEWEST} sessions, a line each."
        found.insert(
            0,
            types.Resource(
                name="sessions", title="Sessions", uri=_LIST, description=about, mime_type=_MARKDOWN
            ),
        )
    return found, str(offset + len(page.data)) if page.pagination.has_more else None


def read(call: Call, uri: str) -> str:
    """What a resource holds. Raises `SessionNotFoundError` when there is no such thing."""
    if uri == _LIST:
        page = call.history.list_sessions(limit=_NEWEST)
        return framed("\n".join(f"- {title_line(call.summary(one))}" for one in page.data))
    asked = _SESSION.fullmatch(uri)
    if asked is None:
        raise SessionNotFoundError(
            f"{uri} is no resource here; they are {_LIST} and {', '.join(t.uri_template for t in TEMPLATES)}",
            uri,
        )
    ref = unquote(asked["ref"])
    if asked["number"] is None:
        return _session(call, ref)
    return _message(call, ref, asked["number"])


def _session(call: Call, ref: str) -> str:
    pieces: list[str] = []
    own: list[str] = []
    size = 0
    for piece in call.history.export_session(ref, "md", redactor=call.redactor):
        call.step(size, _MOST)
        if size + len(piece) > _MOST:
            own.append("The rest is cut here; get_session reads on.")
            break
        pieces.append(piece)
        size += len(piece)
    return framed("".join(pieces), *own)


def _message(call: Call, ref: str, number: str) -> str:
    summary = call.history.find(ref)
    position = call.history.transcript.find_message(summary, number)
    page = page_of(
        call,
        summary,
        start=position,
        count=1,
        max_chars=_MOST,
        from_char=0,
        roles=_ROLES,
        everything=True,
    )
    return framed("\n".join([title_line(call.summary(summary)), *page_lines(page)]))


def _resource(summary: SessionSummary) -> types.Resource:
    return types.Resource(
        name=one_line(summary.ref, 300),
        title=one_line(summary.title or summary.first_message_preview or summary.ref, 100),
        uri=uri_of(summary),
        description=one_line(f"{summary.workspace_name or ''} {(iso(summary.updated_at) or '')[:10]}", 200),
        mime_type=_MARKDOWN,
        annotations=types.Annotations(last_modified=iso(summary.updated_at)),
    )
