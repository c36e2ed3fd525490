"""The piece of a message that shows why it was found."""

import unicodedata
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import takewhile

from msgspec import Struct

from backscroll.index.results.highlights import Span, SpanStream

__all__ = ["Snippet", "make_snippet"]

_WIDTH = 300  # characters of a line that are shown
_BEFORE = 80  # of them, those before what was found
_NEAR = 3 * _WIDTH  # characters before a place of which some may be shown with it
_JOINER = "\u200d"


class Snippet(Struct, frozen=True):
    """A line of a message, or the part of a long one that matters, with what was found marked in it."""

    match: str
    highlights: list[tuple[int, int]]  # in the match, apart from each other, from left to right
    context: list[str]  # the lines around, the match in its place among them
    line_number: int  # from 1


def make_snippet(
    text: str, spans: SpanStream | Iterable[Span | tuple[int, int]], *, context: int = 2
) -> Snippet:
    """The place where most of what was looked for stands together; the beginning when there is none."""
    rest = spans if isinstance(spans, SpanStream) else _in_order(spans)
    seen: list[Span] = []
    best = _best(text, rest, seen)
    at = _visible(text, best) if best is not None else _first_line(text)
    begin = text.rfind("\n", 0, at) + 1
    end = _line_end(text, at)
    start, stop = _window(text, at, begin, end)
    match = text[start:stop]
    seen += takewhile(lambda span: span.start < stop, rest)
    before = _lines_before(text, begin, context)
    after = _lines_after(text, end, context)
    return Snippet(
        match, _marked(seen, start, stop), [*before, match, *after], text.count("\n", 0, begin) + 1
    )


def _in_order(spans: Iterable[Span | tuple[int, int]]) -> SpanStream:
    by_term: defaultdict[int, list[Span]] = defaultdict(list)
    for span in sorted(one if isinstance(one, Span) else Span(*one) for one in spans):
        by_term[span.term].append(span)
    return SpanStream(map(iter, by_term.values()))


def _visible(text: str, span: Span) -> int:
    """Where something of a place is to be seen: what begins with the end of a line is in the next one."""
    found = text[span.start : span.end]
    blank = len(found) - len(found.lstrip())
    return span.start + blank if "\n" in found[:blank] and blank < len(found) else span.start


def _first_line(text: str) -> int:
    return len(text) - len(text.lstrip())


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return end if end >= 0 else len(text)


def _best(text: str, spans: SpanStream, seen: list[Span]) -> Span | None:
    """Where a line, or a stretch of a long one, begins that has the most different words in it.

    What was looked at on the way and may be shown is added to ``seen``. It ends where nothing better follows.
    """
    window: deque[Span] = deque()
    words: dict[int, int] = {}  # how often each stands in the window
    best, most = None, 0
    for span in spans:
        seen.append(span)
        window.append(span)
        words[span.term] = words.get(span.term, 0) + 1
        while _are_apart(text, window[0].start, span.start):
            gone = window.popleft()
            words[gone.term] -= 1
            if not words[gone.term]:
                del words[gone.term]
        if len(words) > most:
            best, most = window[0], len(words)
        if most == len(spans.terms):
            break
        ahead = spans.ahead()
        if len(words.keys() | ahead) <= most:
            break
        places = list(ahead.values())
        if _are_apart(text, span.start, places[0]):
            if len(places) <= most:
                break
            # What is better than the best has so many words, and ends at the last of them or later.
            near = max(0, places[most] - _NEAR)
            spans.skip(max(text.rfind("\n", near, places[most]) + 1, near))
    return best


def _are_apart(text: str, one: int, other: int) -> bool:
    """Whether two places are in different lines, or too far from each other to be shown together."""
    return other - one > _WIDTH - _BEFORE or "\n" in text[one:other]


def _window(text: str, at: int, begin: int, end: int) -> tuple[int, int]:
    """What to show of a line: all of it, as it is indented, or the part around a place."""
    if end - begin <= _WIDTH:
        return begin, begin + len(text[begin:end].rstrip())
    start = _whole(text, max(begin, min(at - _BEFORE, end - _WIDTH)))
    return start, max(start, _whole(text, min(end, start + _WIDTH)))


def _whole(text: str, place: int) -> int:
    """The place, or one before it at which no character is torn from its accents."""
    while 0 < place < len(text) and (
        unicodedata.combining(text[place]) or text[place] == _JOINER or text[place - 1] == _JOINER
    ):
        place -= 1
    return place


def _marked(spans: Sequence[Span], start: int, stop: int) -> list[tuple[int, int]]:
    marked: list[tuple[int, int]] = []
    for span in spans:
        begin, end = max(span.start, start) - start, min(span.end, stop) - start
        if begin >= end:
            continue
        if marked and begin <= marked[-1][1]:
            marked[-1] = (marked[-1][0], max(end, marked[-1][1]))
        else:
            marked.append((begin, end))
    return marked


def _lines_before(text: str, begin: int, number: int) -> list[str]:
    lines: list[str] = []
    while begin > 0 and len(lines) < number:
        end = begin - 1
        begin = text.rfind("\n", 0, end) + 1
        lines.append(_cut(text, begin, end))
    return lines[::-1]


def _lines_after(text: str, end: int, number: int) -> list[str]:
    lines: list[str] = []
    while end < len(text) and len(lines) < number:
        begin, end = end + 1, _line_end(text, end + 1)
        lines.append(_cut(text, begin, end))
    return lines


def _cut(text: str, begin: int, end: int) -> str:
    return text[begin : _whole(text, min(end, begin + _WIDTH))].rstrip()
