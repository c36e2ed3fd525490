"""A session, all addresses below ``/sessions/{ref}``.

Its page with messages, facts, prompts, minimap and matches; the forms that change annotations; the original
record and the images of a message; the export as a file.
"""

import json
from bisect import bisect_left
from collections.abc import AsyncIterator, Generator, Iterable, Mapping, Sequence
from math import sqrt
from urllib.parse import quote

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from backscroll.errors import BackscrollError, DataNotFoundError, UsageError
from backscroll.history.history import History
from backscroll.model.export import FORMATS, Format
from backscroll.model.search import SessionMatches, has_words
from backscroll.model.session import SessionSummary, Stretch
from backscroll.model.text import escape_json, one_line, pluralize
from backscroll.render.html.highlighting import highlight_code
from backscroll.render.session_header import file_name, format_time, header_fields
from backscroll.web.served_history import served_history
from backscroll.web.templating import render, render_block
from backscroll.web.transcript_window import WINDOW_MESSAGES, read_highlighted, read_window
from backscroll.web.urls import (
    MAX_QUERY_CHARS,
    MODE_LABELS,
    Mode,
    decode_ref,
    length_problem,
    parse_mode,
    session_url,
)
from backscroll.workers import WorkerPool

FIRST_WINDOW_MESSAGES = 30  # of a new page: about four screens; others are loaded while scrolling
MAX_INLINE_PROMPT_MESSAGES = 400  # the prompts of longer sessions are loaded after the page
MAX_RECORD_CHARS = 2_000_000
EXPORT_CHUNK_BYTES = 64 * 1024
_CONTEXT_MESSAGES = 4  # before a linked message
_MAX_PROMPT_CHARS = 110
_MAX_NUMBER_DIGITS = 9
_SHOWN_ELSEWHERE = ("Note", "Subagent of")


def session_page(history: History, request: Request) -> Response:
    """Return a session, from its start or around a message."""
    given = decode_ref(request.path_params["ref"])
    summary = history.find(given)
    if given not in (summary.ref, f"{summary.parent_ref}/{summary.id}"):
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(session_url(summary.ref) + query, 303)
    find = _FindQuery.parse(request.query_params)
    at = _position_in(request, "at")
    matches = _find_matches(history, summary, find, at) if find.text else None
    if at is None and matches is not None and matches.positions:
        at = matches.positions[0]
        matches = replace(matches, current=0)
    start = _position_in(request, "from")
    if start is None:
        start = max(0, at - _CONTEXT_MESSAGES) if at is not None else 0
    everything = request.query_params.get("all", "") not in ("", "0")
    window = read_window(history, summary, start, start + FIRST_WINDOW_MESSAGES, everything=everything)
    positions = matches.positions if matches is not None else ()
    shown = window.start, window.end
    minimap = _render_minimap(history, summary, given, shown=shown, matches=positions, everything=everything)
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
        prompts=_render_prompts(history, summary, given)
        if window.total <= MAX_INLINE_PROMPT_MESSAGES
        else None,
        subagents=history.transcript.subagents(summary),
        resume=_resume_line(history, summary),
        formats=FORMATS,
        reported_usd=history.transcript.reported_cost(summary),
        is_live=(summary.platform, summary.id) in history.live_sessions(),
        earlier=max(0, window.start - WINDOW_MESSAGES),
    )


def window_part(history: History, request: Request) -> Response:
    """Return messages without the rest of the page: those from a position on, or those before one."""
    summary = _session_of(history, request)
    start, before = _position_in(request, "from") or 0, _position_in(request, "before")
    end = _position_in(request, "to")
    everything = request.query_params.get("all", "") not in ("", "0")
    if before is not None:
        start, end = max(0, before - WINDOW_MESSAGES), before
    elif end is not None:
        end = max(start, end)
    window = read_window(history, summary, start, end, everything=everything)
    return HTMLResponse(render_block("window.html", window=window))


def minimap_part(history: History, request: Request) -> Response:
    """Return the minimap of a session without the rest of the page; empty if the session is short."""
    ref = decode_ref(request.path_params["ref"])
    everything = request.query_params.get("all", "") not in ("", "0")
    return HTMLResponse(_render_minimap(history, history.find(ref), ref, everything=everything) or "")


def prompts_page(history: History, request: Request) -> Response:
    """Return the list of prompts, as a page or as a part of the session's page."""
    summary = _session_of(history, request)
    if "part" in request.query_params:
        return HTMLResponse(_render_prompts(history, summary, summary.ref))
    prompts = _read_prompts(history, summary)
    return render(request, "prompts_page.html", summary=summary, prompts=prompts, ref=summary.ref)


def _session_of(history: History, request: Request) -> SessionSummary:
    """Return the session that a request names."""
    return history.find(decode_ref(request.path_params["ref"]))


def _position_in(request: Request, name: str) -> int | None:
    """Return the position in a query, None without one. Raises `UsageError` if it is not a number."""
    value = request.query_params.get(name, "")
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= _MAX_NUMBER_DIGITS):
        raise UsageError(f"{value!r} is not the position of a message.")
    return int(value)


def _read_prompts(history: History, summary: SessionSummary) -> list[tuple[int, str]]:
    return [
        (position, one_line(message.content, _MAX_PROMPT_CHARS) or "(no text)")
        for position, message in history.transcript.prompts(summary)
    ]


def _resume_line(history: History, summary: SessionSummary) -> tuple[str | None, str | None]:
    """Return the command that resumes a session, or the reason why there is none."""
    try:
        plan = history.resume.plan_of(summary)
    except BackscrollError as error:
        return None, error.reason
    return (plan.command.shell_line if plan.command is not None else None), plan.obstacle


def _render_minimap(
    history: History,
    summary: SessionSummary,
    ref: str,
    *,
    shown: tuple[int, int] = (0, 0),
    matches: Sequence[int] = (),
    everything: bool,
) -> Markup | None:
    """Return the minimap with the shown messages and the matches; None if the session is short."""
    minimap = read_minimap(history, summary, ref, shown=shown, matches=matches, everything=everything)
    return render_block("minimap.html", minimap=minimap) if minimap is not None else None


def _render_prompts(history: History, summary: SessionSummary, ref: str) -> Markup:
    """Return the list of prompts."""
    return render_block("prompts.html", prompts=_read_prompts(history, summary), ref=ref)


class _FindQuery(Struct, frozen=True, kw_only=True):
    """The query of a session's page, as in its URL. Words have their filters in the query."""

    text: str
    mode: Mode = "words"
    filter_query: str = ""

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> "_FindQuery":
        """Read the query of a URL. Raises `UsageError` for an unknown kind of search."""
        mode = parse_mode(values.get("mode", ""))
        filter_query = values.get("filter", "").strip() if mode != "words" else ""
        return cls(text=values.get("find", "").strip(), mode=mode, filter_query=filter_query)

    @property
    def shown_mode(self) -> Mode:
        """The kind of search that finds the matches. Punctuation alone is exact text."""
        return "exact" if self.mode == "words" and not has_words(self.text) else self.mode

    @property
    def modes(self) -> list[tuple[Mode, str]]:
        """All kinds of search with their labels, if this is not a search for words."""
        return list(MODE_LABELS.items()) if self.mode != "words" else []

    def url(self, ref: str, position: int) -> str:
        """Return the address of a match."""
        mode = "" if self.mode == "words" else self.mode
        url = session_url(ref, find=self.text, mode=mode, filter=self.filter_query, at=position)
        return f"{url}#m{position}"


class _Matches(Struct, frozen=True, kw_only=True):
    """Messages of a session that match a query."""

    query: _FindQuery
    positions: list[int] = []
    in_subagents: list[tuple[str, int]] = []  # ref and position
    current: int | None = None  # index in the positions
    is_complete: bool = True
    problem: str = ""  # why nothing can be found

    def neighbour(self, step: int) -> int | None:
        """Return the position of the next match, or of the previous one with the step -1.

        After the last match comes the first one. None if there is no other match.
        """
        if not self.positions or (self.current is not None and len(self.positions) == 1):
            return None
        index = self.current + step if self.current is not None else 0
        return self.positions[index % len(self.positions)]


def _find_matches(history: History, summary: SessionSummary, query: _FindQuery, at: int | None) -> _Matches:
    """Return the matches of a query. The one at the position ``at`` is the current one."""
    problem = length_problem(query.text, query.filter_query)
    found = SessionMatches(())
    try:
        if not problem:
            found = history.transcript.find_matches(
                summary, query.text, pattern=query.mode, filter_query=query.filter_query
            )
    except UsageError as error:
        problem = error.reason
    positions = [position for ref, position in found.positions if ref == summary.ref and position >= 0]
    return _Matches(
        query=query,
        positions=positions,
        in_subagents=[(ref, position) for ref, position in found.positions if ref != summary.ref],
        current=positions.index(at) if at in positions else None,
        is_complete=found.is_complete,
        problem=problem,
    )


MIN_MINIMAP_MESSAGES = 50  # shorter sessions have no minimap


MAX_MINIMAP_ROWS = 160


MINIMAP_HEIGHT = 1000.0


_CALL_WIDTH = 13.0


_EDIT_WIDTH = 6.0


_MIN_BAR_WIDTH = 2.5


class MinimapRow(Struct, frozen=True, kw_only=True):
    """A link to a stretch of a session, with the lengths of its bars."""

    y: float
    height: float
    stretch: Stretch
    position: int  # of the message that the link leads to
    url: str
    label: str
    call_width: float
    edit_width: float
    has_match: bool


class Minimap(Struct, frozen=True):
    """The rows of a minimap, and the range of the messages that the page shows."""

    total: int
    rows: tuple[MinimapRow, ...]
    start: int
    end: int

    @property
    def view(self) -> tuple[float, float]:
        """Top and height of the shown range."""
        return self.start / self.total * MINIMAP_HEIGHT, (self.end - self.start) / self.total * MINIMAP_HEIGHT

    def is_current(self, row: MinimapRow) -> bool:
        """Return whether the shown range starts in this row."""
        return row.stretch.start <= min(self.start, self.total - 1) < row.stretch.end


def read_minimap(
    history: History,
    summary: SessionSummary,
    ref: str,
    *,
    shown: tuple[int, int] = (0, 0),
    matches: Sequence[int] = (),
    everything: bool = False,
) -> Minimap | None:
    """Return the minimap of a session, a narrow column of links; None if the session is short.

    It is read from counts, without the messages: its cost hardly depends on the length of the session.
    ``shown`` is the range of the loaded messages. ``matches`` are the sorted positions of a search.
    """
    stretches = history.transcript.overview(summary, MAX_MINIMAP_ROWS)
    total = stretches[-1].end if stretches else 0
    if total < MIN_MINIMAP_MESSAGES:
        return None
    max_calls = max(one.call_count for one in stretches)
    max_lines = max(one.lines_added + one.lines_removed for one in stretches)
    rows = []
    for one in stretches:
        first_match = bisect_left(matches, one.start)
        has_match = first_match < len(matches) and matches[first_match] < one.end
        position = matches[first_match] if has_match else one.prompts[0] if one.prompts else one.start
        rows.append(
            MinimapRow(
                y=one.start / total * MINIMAP_HEIGHT,
                height=(one.end - one.start) / total * MINIMAP_HEIGHT,
                stretch=one,
                position=position,
                url=f"{session_url(ref, at=position, all=everything and 1)}#m{position}",
                label=_stretch_label(one),
                call_width=_bar_width(one.call_count, max_calls, _CALL_WIDTH),
                edit_width=_bar_width(one.lines_added + one.lines_removed, max_lines, _EDIT_WIDTH),
                has_match=has_match,
            )
        )
    return Minimap(total, tuple(rows), *shown)


def _bar_width(value: int, max_value: int, width: float) -> float:
    """Return the length of a bar. The square root keeps small values visible."""
    return max(_MIN_BAR_WIDTH, width * sqrt(value / max_value)) if value else 0.0


def _stretch_label(one: Stretch) -> str:
    """Return a stretch in words."""
    last = one.end - 1
    place = f"Message {one.start}" if one.start == last else f"Messages {one.start:,} to {last:,}"
    counts = [
        pluralize(count, noun)
        for count, noun in (
            (len(one.prompts), "prompt"),
            (one.call_count, "tool call"),
            (one.error_count, "error"),
        )
        if count
    ]
    if one.lines_added or one.lines_removed:
        counts.append(f"+{one.lines_added:,} −{one.lines_removed:,} lines")
    if one.has_compaction:
        counts.append("compaction")
    facts = [place, format_time(one.at, zone=None), ", ".join(counts)]
    return " · ".join(fact for fact in facts if fact)


def annotate(history: History, request: Request, form: dict[str, str]) -> Response:
    """Change an annotation and return to the session, or to the page that the form names."""
    ref = decode_ref(request.path_params["ref"])
    annotations = history.annotations
    match form.get("action", ""):
        case "star":
            annotations.star(ref, True)
        case "unstar":
            annotations.star(ref, False)
        case "tag":
            annotations.tag(ref, form.get("text", "").replace(",", " ").split())
        case "untag":
            annotations.tag(ref, remove=[form.get("text", "")])
        case "add-note":
            annotations.add_note(ref, form.get("text", ""))
        case "edit-note":
            annotations.edit_note(ref, _note_number(form), form.get("text", ""))
        case "delete-note":
            annotations.edit_note(ref, _note_number(form), None)
        case "rename":
            annotations.rename(ref, form.get("text", "").strip() or None)
        case action:
            raise UsageError(f"{action!r} is not an action.")
    return RedirectResponse(_return_url(form.get("next", "")) or session_url(ref), 303)


def _note_number(form: dict[str, str]) -> int:
    number = form.get("number", "")
    if not (number.isascii() and number.isdigit() and len(number) <= _MAX_NUMBER_DIGITS):
        raise UsageError(f"{number!r} is not the number of a note.")
    return int(number)


def _return_url(path: str) -> str:
    """Return a path on this server; empty if it leads elsewhere."""
    is_own = path.startswith("/sessions") and "\\" not in path and path.isprintable()
    return path if is_own else ""


# Records, images and exports


def record_page(history: History, request: Request) -> Response:
    """Return the line or row that a message was parsed from, and where it was read."""
    summary = _session_of(history, request)
    position = history.transcript.find_message(summary, request.path_params["message"])
    message = history.transcript.message_at(summary, position)
    if message is None:
        raise DataNotFoundError(f"{summary.ref} has no message {position}.", summary.ref)
    records = history.transcript.records(summary)
    found = [("Record", message.origin, records.of(message))]
    if (result := records.result_of(message)) is not None:
        found.append(("Result", result[1], result[0]))
    return render(
        request,
        "record.html",
        summary=summary,
        position=position,
        message=message,
        records=[(label, origin, *_formatted(record)) for label, origin, record in found],
        total=history.transcript.count(summary),
    )


def highlighted_message(history: History, request: Request) -> Response:
    """Return a message with highlighted code. The page of a session loads it when a call is opened."""
    summary = _session_of(history, request)
    position = history.transcript.find_message(summary, request.path_params["message"])
    return HTMLResponse(read_highlighted(history, summary, position))


def _formatted(record: bytes | None) -> tuple[str | None, str, int]:
    """Return a record as text, as highlighted HTML if it is short JSON, and its size in bytes."""
    if record is None:
        return None, "", 0
    text = record.decode("utf-8", "replace")
    try:
        document = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        text = escape_json(document.encode("utf-8", "backslashreplace")).decode()
    except ValueError:
        return text[:MAX_RECORD_CHARS], "", len(record)
    return text[:MAX_RECORD_CHARS], highlight_code(text, "json"), len(record)


def image_file(history: History, request: Request) -> Response:
    """Return an image of a message."""
    summary = _session_of(history, request)
    position = history.transcript.find_message(summary, request.path_params["message"])
    images = history.transcript.images(summary, position)
    number = request.path_params["number"]
    image = images[number] if number < len(images) else None
    if image is None:
        raise DataNotFoundError(
            f"Image {number} of message {position} of {summary.ref} is not available.", summary.ref
        )
    media_type, content = image
    headers = {"Cache-Control": "private, max-age=86400", "Content-Security-Policy": "sandbox"}
    return Response(content, media_type=media_type, headers=headers)


async def export_file(request: Request) -> Response:
    """Return a session as a file to download, which starts at once.

    A thread of its own writes it, one chunk at a time, so that a slow client does not block pages.
    """
    worker = WorkerPool(served_history(request).open_history)
    try:
        summary, format_, chunks = await worker.run(lambda history: _export(history, request))
        first = await worker.run(lambda _: next(chunks, b""))  # an error before it becomes a page
    except BaseException:
        worker.close()
        raise

    async def content() -> AsyncIterator[bytes]:
        chunk = first
        try:
            while chunk:
                yield chunk
                chunk = await worker.run(lambda _: next(chunks, b""))
        finally:
            worker.submit(lambda _: chunks.close())
            worker.close()

    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file_name(summary, format_))}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return StreamingResponse(content(), media_type=FORMATS[format_].media_type, headers=headers)


def _export(history: History, request: Request) -> tuple[SessionSummary, Format, Generator[bytes]]:
    """Return the session, the format, and the text in chunks. Raises `UsageError` for another format."""
    given = request.path_params["format"]
    format_ = next((one for one in FORMATS if one == given), None)
    if format_ is None:
        raise UsageError(f"{given!r} is not a format. Use one of: {', '.join(FORMATS)}.")
    summary = _session_of(history, request)
    return summary, format_, _chunks(history.exports.stream(summary, format_))


def _chunks(texts: Iterable[str]) -> Generator[bytes]:
    """Yield the first text as it is, so that the download starts at once, then larger chunks."""
    pending = bytearray()
    size = 1
    for text in texts:
        pending += text.encode("utf-8", "replace")
        if len(pending) >= size:
            yield bytes(pending)
            pending.clear()
            size = EXPORT_CHUNK_BYTES
    if pending:
        yield bytes(pending)
