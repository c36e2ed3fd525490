"""Suggestions of the command palette: sessions by title, workspaces, and messages."""

import re
from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.model.search import SearchMatch
from backscroll.model.session import Filter
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.session_header import session_title
from backscroll.web.urls import SessionQuery, message_url, session_url

MAX_SESSIONS = 7
MAX_WORKSPACES = 4
MAX_MATCHES = 4
_MAX_QUERY_CHARS = 200
_MAX_LABEL_CHARS = 120
_MAX_BEFORE_CHARS = 24  # before the first highlight
_WHITE_SPACE = re.compile(r"\s")

Suggestion = dict[str, Any]  # group, label, its parts of which every second one is highlighted, detail, url


def palette_suggestions(history: History, request: Request) -> Response:
    """Return suggestions for a text; for none, the last sessions and workspaces."""
    text = request.query_params.get("q", "")[:_MAX_QUERY_CHARS].strip()
    suggestions = [*_sessions(history, text), *_workspaces(history, text)]
    if text:
        known = {suggestion["url"] for suggestion in suggestions}
        suggestions += _matches(history, text, known)
    return JSONResponse({"data": suggestions})


def _sessions(history: History, text: str) -> Iterator[Suggestion]:
    for summary in history.list_sessions(Filter(title=text or None), limit=MAX_SESSIONS).data:
        detail = f"{summary.workspace_name or ''} {summary.source}"
        yield _suggestion("Sessions", session_title(summary), detail, session_url(summary.ref))


def _workspaces(history: History, text: str) -> Iterator[Suggestion]:
    words = text.casefold().split()
    found = 0
    for workspace in history.list_workspaces():
        path = f"{workspace.host}:{workspace.path}" if workspace.host else workspace.path
        if found < MAX_WORKSPACES and all(word in path.casefold() for word in words):
            found += 1
            detail = f"{pluralize(workspace.session_count, 'session')} in {path}"
            yield _suggestion(
                "Workspaces", workspace.name or path, detail, SessionQuery().url(workspace=path)
            )


def _matches(history: History, text: str, known: set[str]) -> Iterator[Suggestion]:
    """Return messages of sessions that are not suggested by their title."""
    completed = f"{text}*" if text[-1].isalnum() else text
    try:
        result = history.search_sessions(completed, limit=MAX_MATCHES)
    except UsageError:  # only punctuation
        return
    for match in result.data:
        if session_url(match.session_ref) in known:
            continue
        url = (
            session_url(match.session_ref)
            if match.is_note
            else message_url(match.session_ref, match.message_index)
        )
        yield _suggestion("Messages", _excerpt(match), match.title or match.session_ref, url)


def _excerpt(match: SearchMatch) -> list[str]:
    """Return the part of a match around its first highlight, in one line; every second part is marked."""
    start = max(0, match.highlights[0][0] - _MAX_BEFORE_CHARS) if match.highlights else 0
    end = start + _MAX_LABEL_CHARS
    parts: list[str] = []
    at = start
    for first, last in match.highlights:
        if at <= first < last <= end:
            parts += [_line(match.match[at:first]), _line(match.match[first:last])]
            at = last
    parts.append(_line(match.match[at:end]))
    return [f"{'… ' if start else ''}{parts[0]}", *parts[1:]]


def _line(text: str) -> str:
    """Return a text with spaces instead of line breaks, without invisible characters."""
    return _WHITE_SPACE.sub(" ", sanitize(text))


def _suggestion(group: str, label: str | list[str], detail: str, url: str) -> Suggestion:
    parts = label if isinstance(label, list) else [one_line(label, _MAX_LABEL_CHARS)]
    return {
        "group": group,
        "label": "".join(parts),
        "parts": parts,
        "detail": one_line(detail, _MAX_LABEL_CHARS),
        "url": url,
    }
