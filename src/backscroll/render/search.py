"""Search matches and recalled sessions as lines for terminals and pipes; recalled sessions also as JSON."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from backscroll.model.search import Excerpt, RecalledSession, RecallResult, SearchMatch, SearchResult
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.humanize import SUBAGENT_MARK, format_age, short_id
from backscroll.render.terminal_text import cell_width, suffix_length, truncate

_MAX_WIDTH = 300
_MIN_WIDTH = 12
_INDENT = " " * 6
_MARGIN = f"{_INDENT}│ "
_MAX_FIELD_CHARS = 100

_Spans = Sequence[tuple[int, int]]


def match_lines(
    result: SearchResult,
    *,
    is_colored: bool,
    width: int = _MAX_WIDTH,
    now: datetime | None = None,
    with_ranks: bool = False,
) -> Iterator[str]:
    """Yield each match: session, message, and the matching line with context, at most `width` cells wide."""
    now = now or datetime.now(UTC)
    width = max(min(width, _MAX_WIDTH) - len(_MARGIN), _MIN_WIDTH)
    heading_width = width + len(_MARGIN) - len(_INDENT)
    for number, match in enumerate(result.data):
        if number:
            yield ""
        index = f"{match.session_index:>4}" if match.session_index is not None else "    "
        mark = SUBAGENT_MARK if match.parent_ref is not None else ""
        title = mark + one_line(match.title or match.session_ref, 90)
        yield f"{index}  {truncate(title, heading_width)}"
        yield _INDENT + truncate(_details(match, now, heading_width), heading_width)
        if with_ranks:
            yield _INDENT + truncate(_score_line(match), heading_width)
        for line in _snippet_lines(match, width, is_colored=is_colored):
            yield (_MARGIN + line).rstrip()
        if match.also is not None:
            also = match.also
            yield f"{_INDENT}{also.role} #{also.message_index}"
            text, spans = _shorten(*_clean_line(also.match, also.highlights), width)
            yield (_MARGIN + (_highlight(text, spans) if is_colored else text)).rstrip()


def _details(match: SearchMatch, now: datetime, width: int) -> str:
    """Return age, source, workspace, message and session id. Source and workspace are dropped if too wide.

    A subagent is labeled with the id of its session.
    """
    details = [
        format_age(match.timestamp, now),
        match.source,
        one_line(match.workspace_name or "no workspace", 40),
        *([f"subagent of {short_id(match.parent_ref.partition(':')[2])}"] if match.parent_ref else []),
        match.place if match.is_note or match.is_title else f"{match.role} #{match.message_index}",
        short_id(match.session_id, match.parent_ref),
        *([pluralize(match.match_count, "match", "matches")] if match.match_count > 1 else []),
    ]
    for droppable in details[1:3]:
        if cell_width(line := " · ".join(details)) <= width:
            return line
        details.remove(droppable)
    return " · ".join(details)


def _score_line(match: SearchMatch) -> str:
    """Return the score, its parts, and the rank of the session in each ranking."""
    ranks = match.ranks
    if ranks is None:
        return f"score {match.score:.2f}"
    message_ranks = (("all words", ranks.all_words), ("some words", ranks.some_words))
    parts = (
        ("message", ranks.message_score, [f"{name} #{rank}" for name, rank in message_ranks if rank]),
        ("whole session", ranks.session_score, [f"#{ranks.session}"] if ranks.session else []),
    )
    return f"score {match.score:.2f}: " + ", ".join(
        f"{name} {score:.2f} ({', '.join(found)})" for name, score, found in parts if found
    )


def _snippet_lines(match: SearchMatch, width: int, *, is_colored: bool) -> Iterator[str]:
    """Yield the matching line and its context."""
    if not any(map(str.strip, match.context)):
        yield "(no text)"
        return
    text, spans = _shorten(*_clean_line(match.match, match.highlights), width)
    highlighted = _highlight(text, spans) if is_colored else text
    for line in match.context:
        yield highlighted if line == match.match else truncate(_clean_line(line, ())[0], width)


def _clean_line(text: str, spans: _Spans) -> tuple[str, _Spans]:
    """Sanitize a line, expand its tabs, and move the spans accordingly."""
    pieces: list[str] = []
    moved: list[tuple[int, int]] = []
    at = length = column = 0
    for begin, end in [*spans, (len(text), len(text))]:
        for piece in (text[at:begin], text[begin:end]):
            pieces.append(_expand_tabs(sanitize(piece).replace("\n", " "), column))
            column += cell_width(pieces[-1])
            length += len(pieces[-1])
        moved.append((length - len(pieces[-1]), length))
        at = end
    return "".join(pieces), moved[: len(spans)]


def _expand_tabs(text: str, column: int) -> str:
    """Replace tabs by spaces in a text that starts at a column. Tab stops are every 8 columns."""
    return (" " * (column % 8) + text).expandtabs(8)[column % 8 :] if "\t" in text else text


def _shorten(text: str, spans: _Spans, width: int) -> tuple[str, _Spans]:
    """Cut a long line to the part around the first match, and move the spans accordingly."""
    if cell_width(text) <= width:
        return text, spans
    first = spans[0][0] if spans else 0
    # A third of the width is for the text before the match, more if the line ends soon after it.
    start = first - suffix_length(text[:first], width // 3)
    start = min(start, len(text) - suffix_length(text, width))
    ellipsis = "…" if start else ""
    start += len(ellipsis)
    shown = truncate(text[start:], width - len(ellipsis))
    end = start + len(shown.removesuffix("…")) if shown != text[start:] else len(text)
    clipped = [(max(begin, start), min(stop, end)) for begin, stop in spans]
    offset = len(ellipsis) - start
    return ellipsis + shown, [(begin + offset, stop + offset) for begin, stop in clipped if begin < stop]


def _highlight(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with the spans in bold yellow."""
    out, at = [], 0
    for start, end in spans:
        out += [text[at:start], "\x1b[1;33m", text[start:end], "\x1b[0m"]
        at = end
    return "".join([*out, text[at:]])


def match_footer(result: SearchResult) -> str:
    """Return the range of the page and the duration, such as ``1 to 20 of 46, 4 ms``.

    If only some of the results have all words, their number follows: ``1 to 20 of 46 (3 with all words)``.
    """
    row_count = result.known_row_count
    with_all = f" ({result.total:,} with all words)" if result.total not in (None, row_count) else ""
    last = result.offset + len(result.data)
    total = known_total(row_count, last, is_counted=result.is_counted, has_more=result.has_more)
    return f"{result.offset + 1} to {last} of {total}{with_all}, {result.took_ms:.0f} ms"


def known_total(row_count: int, last: int, *, is_counted: bool, has_more: bool) -> str:
    """Return the number of results as far as it is known. ``last`` is the number of the last one shown."""
    if is_counted:
        return f"{row_count:,}"
    return f"more than {last:,}" if has_more and row_count <= last else f"at least {row_count:,}"


def recall_lines(result: RecallResult, *, user_label: str = "you") -> Iterator[str]:
    """Yield each session with its excerpts. A number in brackets is the position of a message."""
    for rank, session in enumerate(result.sessions, start=1):
        if rank > 1:
            yield ""
        yield f"{rank}. {_recall_heading(session)}"
        for excerpt in session.excerpts:
            yield from _excerpt_lines(excerpt, user_label)


def _recall_heading(session: RecalledSession) -> str:
    source = session.session_ref.partition(":")[0]
    fields = [
        one_line(session.title or "untitled", _MAX_FIELD_CHARS),
        one_line(session.workspace_name or "", _MAX_FIELD_CHARS),
        f"{session.updated_at:%Y-%m-%d}" if session.updated_at else "",
        f"{source}:{short_id(session.session_id)}",
    ]
    return " · ".join(field for field in fields if field)


def _excerpt_lines(excerpt: Excerpt, user_label: str) -> Iterator[str]:
    if excerpt.asked:
        yield from _labeled_lines("asked", excerpt.asked)
    position = f"[{excerpt.message_index}]"
    if excerpt.agent_ref:
        position = f"[{excerpt.message_index} of subagent {one_line(excerpt.agent_ref, _MAX_FIELD_CHARS)}]"
    role = user_label if excerpt.role == "user" else excerpt.role
    yield from _labeled_lines(f"{position} {role}", excerpt.text)
    if excerpt.outcome:
        yield from _labeled_lines("outcome", excerpt.outcome)


def _labeled_lines(label: str, text: str) -> Iterator[str]:
    first, *others = sanitize(text).splitlines() or [""]
    yield f"   {label}: {first}"
    yield from (f"     {line}" for line in others)
