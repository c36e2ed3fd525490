"""A session: its messages, facts, matches and prompts."""

from markupsafe import Markup
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from backscroll.errors import BackscrollError, UsageError
from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.model.export import FORMATS
from backscroll.model.text import one_line
from backscroll.render.session_header import header_fields
from backscroll.web.minimap import read_minimap
from backscroll.web.search_mode import MAX_QUERY_CHARS
from backscroll.web.serving.rendered_parts import RENDERED_PARTS
from backscroll.web.session_find import FindQuery, find_matches
from backscroll.web.templating import render, render_block
from backscroll.web.transcript_window import WINDOW_MESSAGES, Window, read_window
from backscroll.web.urls import decode_ref, session_url

__all__ = ["minimap_part", "prompts_page", "session_of", "session_page", "window_part"]

FIRST_WINDOW_MESSAGES = 30  # of a new page: about four screens; others are loaded while scrolling
MAX_INLINE_PROMPT_MESSAGES = 400  # the prompts of longer sessions are loaded after the page
_CONTEXT_MESSAGES = 4  # before a linked message
_MAX_PROMPT_CHARS = 110
_MAX_NUMBER_DIGITS = 9


def session_of(history: History, request: Request) -> SessionSummary:
    """Return the session that a request names."""
    return history.find(decode_ref(request.path_params["ref"]))


def session_page(history: History, request: Request) -> Response:
    """Return a session, from its start or around a message."""
    given = decode_ref(request.path_params["ref"])
    summary = history.find(given)
    if given not in (summary.ref, f"{summary.parent_ref}/{summary.id}"):
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(session_url(summary.ref) + query, 303)
    find = FindQuery.parse(request.query_params)
    at = position_in(request, "at")
    matches = find_matches(history, summary, find, at) if find.text else None
    if at is None and matches is not None and matches.positions:
        at = matches.positions[0]
        matches = replace(matches, current=0)
    start = position_in(request, "from")
    if start is None:
        start = max(0, at - _CONTEXT_MESSAGES) if at is not None else 0
    everything = request.query_params.get("all", "") not in ("", "0")
    parts = _Parts(history, summary)
    window = parts.window(start, FIRST_WINDOW_MESSAGES, everything=everything)
    minimap = parts.minimap(given, window, matches.positions if matches else [], everything=everything)
    parent = history.find(summary.parent_ref) if summary.parent_ref is not None else None
    return render(
        request,
        "session.html",
        summary=summary,
        parent=parent,
        url=session_url(given),
        here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        ref=given,
        fields=[field for field in header_fields(summary, zone=None) if field[0] not in _SHOWN_ELSEWHERE],
        window=window,
        minimap=minimap,
        everything=everything,
        matches=matches,
        max_query_chars=MAX_QUERY_CHARS,
        at=at,
        prompts=parts.prompts(given) if window.total <= MAX_INLINE_PROMPT_MESSAGES else None,
        subagents=history.transcript.subagents(summary),
        resume=_resume_line(history, summary),
        formats=FORMATS,
        reported_usd=history.transcript.reported_cost(summary),
        is_live=(summary.platform, summary.id) in history.live_sessions(),
        earlier=max(0, window.start - WINDOW_MESSAGES),
        query_text="",
    )


_SHOWN_ELSEWHERE = ("Note", "Subagent of")


def window_part(history: History, request: Request) -> Response:
    """Return messages without the rest of the page: those from a position on, or those before one."""
    summary = session_of(history, request)
    start, before = position_in(request, "from") or 0, position_in(request, "before")
    end = position_in(request, "to")
    everything = request.query_params.get("all", "") not in ("", "0")
    parts = _Parts(history, summary)
    if before is not None:
        first = max(0, before - WINDOW_MESSAGES)
        window = parts.window(first, before - first, everything=everything)
    else:
        count = min(max(end - start, 0), WINDOW_MESSAGES) if end is not None else WINDOW_MESSAGES
        window = parts.window(start, count, everything=everything)
    return HTMLResponse(render_block("window.html", window=window))


def minimap_part(history: History, request: Request) -> Response:
    """Return the minimap of a session without the rest of the page; empty if the session is short."""
    ref = decode_ref(request.path_params["ref"])
    everything = request.query_params.get("all", "") not in ("", "0")
    minimap = read_minimap(history, history.find(ref), ref, everything=everything)
    return HTMLResponse(render_block("minimap.html", minimap=minimap) if minimap is not None else "")


def prompts_page(history: History, request: Request) -> Response:
    """Return the list of prompts, as a page or as a part of the session's page."""
    summary = session_of(history, request)
    if "part" in request.query_params:
        return HTMLResponse(_Parts(history, summary).prompts(summary.ref))
    prompts = _read_prompts(history, summary)
    return render(request, "prompts_page.html", summary=summary, prompts=prompts, ref=summary.ref)


class _Parts:
    """The parts of a session's page that cost most. They are cached."""

    def __init__(self, history: History, summary: SessionSummary) -> None:
        self._history = history
        self._summary = summary
        self._cache = RENDERED_PARTS.of_session(history, summary)

    def window(self, start: int, count: int, *, everything: bool) -> Window:
        """Return a number of messages from a position on."""

        def render() -> Window:
            return read_window(self._history, self._summary, start, start + count, everything=everything)

        return self._cache.get(("window", start, count, everything), render)

    def minimap(self, ref: str, window: Window, matches: list[int], *, everything: bool) -> Markup | None:
        """Return the minimap with the shown messages and the matches; None if the session is short."""
        shown = window.start, window.end

        def render() -> Markup | None:
            minimap = read_minimap(
                self._history, self._summary, ref, shown=shown, matches=matches, everything=everything
            )
            return render_block("minimap.html", minimap=minimap) if minimap is not None else None

        if matches:
            return render()
        return self._cache.get(("minimap", ref, shown, everything), render)

    def prompts(self, ref: str) -> Markup:
        """Return the list of prompts."""

        def render() -> Markup:
            prompts = _read_prompts(self._history, self._summary)
            return render_block("prompts.html", prompts=prompts, ref=ref)

        return self._cache.get(("prompts", ref), render)


def _read_prompts(history: History, summary: SessionSummary) -> list[tuple[int, str]]:
    return [
        (position, one_line(message.content, _MAX_PROMPT_CHARS) or "(no text)")
        for position, message in history.transcript.prompts(summary)
    ]


def position_in(request: Request, name: str) -> int | None:
    """Return the position in a query, None without one. Raises `UsageError` if it is not a number."""
    value = request.query_params.get(name, "")
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= _MAX_NUMBER_DIGITS):
        raise UsageError(f"{value!r} is not the position of a message.")
    return int(value)


def _resume_line(history: History, summary: SessionSummary) -> tuple[str | None, str | None]:
    """Return the command that resumes a session, or the reason why there is none."""
    try:
        plan = history.resume.plan_of(summary)
    except BackscrollError as error:
        return None, error.reason
    return (plan.command.shell_line if plan.command is not None else None), plan.obstacle
