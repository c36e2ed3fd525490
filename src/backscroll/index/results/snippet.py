"""The line of a message that shows why it matches."""

import unicodedata
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import takewhile

from msgspec import Struct

from backscroll.index.results.highlights import Span, SpanStream

__all__ = ["Snippet", "make_snippet"]

MAX_LINE_CHARS = 300
_CHARS_BEFORE_MATCH = 80  # of a line longer than that
_LOOKBACK_CHARS = 3 * MAX_LINE_CHARS  # text before a position that can appear in the same snippet
_ZERO_WIDTH_JOINER = "\u200d"


class Snippet(Struct, frozen=True):
    """A line of a message, or part of a long one, with highlights and context."""

    match: str
    highlights: list[tuple[int, int]]  # positions in `match`, sorted, not overlapping
    context: list[str]  # the surrounding lines, including the match
    line_number: int  # from 1


def make_snippet(
    text: str, spans: SpanStream | Iterable[Span | tuple[int, int]], *, context: int = 2
) -> Snippet:
    """Return the line with the most different words, or the first line if there are no spans."""
    rest = spans if isinstance(spans, SpanStream) else _to_stream(spans)
    seen: list[Span] = []
    best = _best_span(text, rest, seen)
    position = _visible_start(text, best) if best is not None else _first_line(text)
    line_start = text.rfind("\n", 0, position) + 1
    line_end = _line_end(text, position)
    start, stop = _visible_range(text, position, line_start, line_end)
    match = text[start:stop]
    seen += takewhile(lambda span: span.start < stop, rest)
    before = _lines_before(text, line_start, context)
    after = _lines_after(text, line_end, context)
    return Snippet(
        match, _highlights(seen, start, stop), [*before, match, *after], text.count("\n", 0, line_start) + 1
    )


def _to_stream(spans: Iterable[Span | tuple[int, int]]) -> SpanStream:
    by_term: defaultdict[int, list[Span]] = defaultdict(list)
    for span in sorted(span if isinstance(span, Span) else Span(*span) for span in spans):
        by_term[span.term].append(span)
    return SpanStream(map(iter, by_term.values()))


def _visible_start(text: str, span: Span) -> int:
    """Return the first visible position of a span. A leading line end belongs to the line before."""
    matched = text[span.start : span.end]
    blank = len(matched) - len(matched.lstrip())
    return span.start + blank if "\n" in matched[:blank] and blank < len(matched) else span.start


def _first_line(text: str) -> int:
    return len(text) - len(text.lstrip())


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return end if end >= 0 else len(text)


def _best_span(text: str, spans: SpanStream, seen: list[Span]) -> Span | None:
    """Return the first span of the line, or part of a long line, with the most different words.

    Spans that may be visible are appended to ``seen``. The search ends when nothing better can follow.
    """
    window: deque[Span] = deque()
    words: dict[int, int] = {}  # number of spans of each term in the window
    best, best_count = None, 0
    for span in spans:
        seen.append(span)
        window.append(span)
        words[span.term] = words.get(span.term, 0) + 1
        while _are_apart(text, window[0].start, span.start):
            removed = window.popleft()
            words[removed.term] -= 1
            if not words[removed.term]:
                del words[removed.term]
        if len(words) > best_count:
            best, best_count = window[0], len(words)
        if best_count == len(spans.terms):
            break
        upcoming = spans.next_positions()
        if len(words.keys() | upcoming) <= best_count:
            break
        positions = list(upcoming.values())
        if _are_apart(text, span.start, positions[0]):
            if len(positions) <= best_count:
                break
            # A better line has more than `best_count` words, so it ends at this position or later.
            earliest = max(0, positions[best_count] - _LOOKBACK_CHARS)
            spans.skip_to(max(text.rfind("\n", earliest, positions[best_count]) + 1, earliest))
    return best


def _are_apart(text: str, start: int, end: int) -> bool:
    """Return whether two positions are in different lines, or too far apart for one snippet."""
    return end - start > MAX_LINE_CHARS - _CHARS_BEFORE_MATCH or "\n" in text[start:end]


def _visible_range(text: str, position: int, line_start: int, line_end: int) -> tuple[int, int]:
    """Return the part of a line to show: all of it with its indentation, or the part around a position."""
    if line_end - line_start <= MAX_LINE_CHARS:
        return line_start, line_start + len(text[line_start:line_end].rstrip())
    start = _char_boundary(
        text, max(line_start, min(position - _CHARS_BEFORE_MATCH, line_end - MAX_LINE_CHARS))
    )
    return start, max(start, _char_boundary(text, min(line_end, start + MAX_LINE_CHARS)))


def _char_boundary(text: str, position: int) -> int:
    """Return the position, or the last one before it that does not separate a character from its marks."""
    while 0 < position < len(text) and (
        unicodedata.combining(text[position])
        or text[position] == _ZERO_WIDTH_JOINER
        or text[position - 1] == _ZERO_WIDTH_JOINER
    ):
        position -= 1
    return position


def _highlights(spans: Sequence[Span], start: int, stop: int) -> list[tuple[int, int]]:
    highlights: list[tuple[int, int]] = []
    for span in spans:
        begin, end = max(span.start, start) - start, min(span.end, stop) - start
        if begin >= end:
            continue
        if highlights and begin <= highlights[-1][1]:
            highlights[-1] = (highlights[-1][0], max(end, highlights[-1][1]))
        else:
            highlights.append((begin, end))
    return highlights


def _lines_before(text: str, start: int, count: int) -> list[str]:
    lines: list[str] = []
    while start > 0 and len(lines) < count:
        end = start - 1
        start = text.rfind("\n", 0, end) + 1
        lines.append(_truncate(text, start, end))
    return lines[::-1]


def _lines_after(text: str, end: int, count: int) -> list[str]:
    lines: list[str] = []
    while end < len(text) and len(lines) < count:
        start, end = end + 1, _line_end(text, end + 1)
        lines.append(_truncate(text, start, end))
    return lines


def _truncate(text: str, start: int, end: int) -> str:
    return text[start : _char_boundary(text, min(end, start + MAX_LINE_CHARS))].rstrip()
