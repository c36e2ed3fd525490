"""Positions of the query words in a text, found without the index, and the line to show."""

import re
import unicodedata
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

from msgspec import Struct

from backscroll.index.analysis import (
    COMBINING_MARKS,
    extract_cjk,
    fold_characters,
    fold_in_place,
    non_ascii_chars,
    to_nfc,
)
from backscroll.index.languages import ENGLISH, inflections
from backscroll.index.query import MessageFilter, Phrase, Query, Word

_MAX_SPANS_PER_WORD = 2000
_LAST_NON_COMBINING = "\u02ff"  # the last character before all combining marks
_SHARP_S = frozenset("ßẞ")
_WORD = re.compile(r"[^\W_]+")
_SEPARATOR = r"[\W_]+"
MAX_LINE_CHARS = 300
_CHARS_BEFORE_MATCH = 80  # of a line longer than that
_LOOKBACK_CHARS = 3 * MAX_LINE_CHARS  # text before a position that can appear in the same snippet
_ZERO_WIDTH_JOINER = "\u200d"


class Span(Struct, frozen=True, order=True, gc=False):
    """A range of characters. ``term`` is the number of the query term that matches there."""

    start: int
    end: int
    term: int = 0


class SpanStream:
    """Merges the spans of several words from left to right. Each word is searched for lazily."""

    def __init__(self, words: Iterable[Iterator[Span]]) -> None:
        self._heads = [
            (span, number, rest)
            for number, rest in enumerate(words)
            if (span := next(rest, None)) is not None
        ]
        self._heads.sort()
        self.terms = {span.term for span, _, _ in self._heads}  # terms with at least one span

    def __iter__(self) -> Iterator[Span]:
        return self

    def __next__(self) -> Span:
        if not self._heads:
            raise StopIteration
        span, number, rest = self._heads[0]
        if (following := next(rest, None)) is not None:
            self._heads[0] = following, number, rest
            self._heads.sort()
        else:
            del self._heads[0]
        return span

    def next_positions(self) -> dict[int, int]:
        """Return the next position of each term that has one, sorted by position."""
        positions: dict[int, int] = {}
        for span, _, _ in self._heads:
            positions.setdefault(span.term, span.start)
        return positions

    def skip_to(self, position: int) -> None:
        """Skip all spans that start before a position."""
        heads, self._heads = self._heads, []
        for head, number, rest in heads:
            span: Span | None = head
            if head.start < position and isinstance(rest, _WordSpans):
                rest.skip_to(position)
            while span is not None and span.start < position:
                span = next(rest, None)
            if span is not None:
                self._heads.append((span, number, rest))
        self._heads.sort()


def find_spans(text: str, query: Query, *, with_inflections: bool = False) -> SpanStream:
    """Find the words of a query in a text.

    With inflections, words match in their other forms, and compound words match by their parts.
    """
    non_ascii = non_ascii_chars(text)
    folded = fold_characters(text, non_ascii)
    spelling = _Spelling(
        has_combining_marks=not COMBINING_MARKS.isdisjoint(non_ascii),
        has_sharp_s=not _SHARP_S.isdisjoint(non_ascii),
    )
    return SpanStream(
        _WordSpans(text, folded, word, term)
        for term, words in enumerate(_search_words(query, spelling, with_inflections))
        for word in words
    )


class _SearchWord(Struct, frozen=True):
    """A word or phrase to search for, as a regular expression."""

    pattern: str
    is_whole: bool  # no letters directly before and after
    is_prefix: bool

    @property
    def is_literal(self) -> bool:
        """Whether the pattern is a literal word: faster to find, and never across lines."""
        return self.pattern.isalnum()

    @property
    def finder(self) -> Callable[[str, int], tuple[int, int] | None]:
        """Function that returns the next match from a position on."""
        pattern, length = self.pattern, len(self.pattern)
        if self.is_literal:

            def find(text: str, position: int) -> tuple[int, int] | None:
                start = text.find(pattern, position)
                return (start, start + length) if start >= 0 else None

            return find
        search = re.compile(pattern).search
        return lambda text, position: match.span() if (match := search(text, position)) is not None else None


class _Spelling(Struct, frozen=True, gc=False):
    """Features of a text that require a pattern in place of a literal word."""

    has_combining_marks: bool  # accents as separate characters after the letter
    has_sharp_s: bool  # ß, which matches ss

    def pattern(self, word: str) -> str:
        """Return a pattern for a word in such a text."""
        between = "[\u0300-\u036f]*" if self.has_combining_marks else ""
        pattern = between.join(map(re.escape, word))
        if "ß" in word:
            pattern = pattern.replace("ß", "(?:ß|ss)")
        elif self.has_sharp_s:
            pattern = pattern.replace(f"s{between}s", "(?:ß|ss)")
        return pattern


@lru_cache(maxsize=8)
def _search_words(query: Query, spelling: _Spelling, with_inflections: bool) -> list[list[_SearchWord]]:
    """Return the words to search for, by term. Cached: one query is applied to many texts."""
    return [
        list(_term_words(term, spelling, query.language if with_inflections else None))
        for term in _text_terms(query)
    ]


def _text_terms(query: Query) -> Iterable[Word | Phrase]:
    """Yield what to find in a text. Stop words are left out: they occur everywhere."""
    content_words = query.content_words
    for clause in query.clauses:
        if clause.is_negated or not (clause.is_filter or clause in content_words):
            continue
        for term in clause.any_of:
            if isinstance(term, Word | Phrase):
                yield term
            elif isinstance(term, MessageFilter) and term.name == "file":
                yield Phrase(term.value.rstrip("*"), is_prefix=term.value.endswith("*"))


def _term_words(term: Word | Phrase, spelling: _Spelling, language: str | None) -> Iterator[_SearchWord]:
    """Yield the words of a term; with a language, in all their forms."""
    is_split = language is not None and isinstance(term, Word)
    text, runs = extract_cjk(to_nfc(term.text))
    for run in (unicodedata.normalize("NFKC", run) for run in runs):
        pairs = [run[start : start + 2] for start in range(max(len(run) - 1, 1))]
        for part in pairs if is_split else [run]:
            yield _SearchWord(re.escape(part), False, False)
    tokens = _WORD.findall(fold_in_place(text))
    if not tokens:
        return
    if is_split and not term.is_prefix:
        for token in tokens:
            longest_first = sorted(inflections(token, language or ENGLISH), key=len, reverse=True)
            yield _SearchWord("|".join(map(spelling.pattern, longest_first)), True, False)
        return
    yield _SearchWord(_SEPARATOR.join(map(spelling.pattern, tokens)), True, term.is_prefix)


class _WordSpans(Iterator[Span]):
    """The spans of one word in a text, up to a limit."""

    def __init__(self, text: str, folded: str, word: _SearchWord, term: int) -> None:
        self._text = text
        self._folded = folded
        self._word = word
        self._term = term
        self._find = word.finder
        self._position = 0
        self._remaining = _MAX_SPANS_PER_WORD

    def skip_to(self, position: int) -> None:
        """Continue from a line start, or from a position well before the next interesting one."""
        if self._word.is_literal:
            self._position = max(self._position, position)

    def __next__(self) -> Span:
        text, word = self._text, self._word
        while self._remaining and (match := self._find(self._folded, self._position)) is not None:
            start, end = match
            self._position = start + 1
            # The isalnum test is a shortcut: most words have a separator on both sides.
            if word.is_whole and text[start - 1 : start].isalnum() and not _is_boundary(text, start):
                continue
            if word.is_prefix:
                end = _word_end(text, end)
            elif word.is_whole and text[end : end + 1].isalnum() and not _is_boundary(text, end):
                continue
            while text[end : end + 1] > _LAST_NON_COMBINING and unicodedata.combining(text[end]):
                end += 1
            self._position = max(self._position, end)
            self._remaining -= 1
            return Span(start, end, self._term)
        raise StopIteration


def _word_end(text: str, position: int) -> int:
    while position < len(text) and text[position].isalnum():
        position += 1
    return position


def _is_boundary(text: str, position: int) -> bool:
    """Return whether a word starts or ends at a position, also inside a compound identifier."""
    if not 0 < position < len(text):
        return True
    before, after = text[position - 1], text[position]
    if not before.isalnum() or not after.isalnum():
        return True
    if before.isdigit() is not after.isdigit():
        return True
    if after.isupper():
        return before.islower() or text[position + 1 : position + 2].islower()
    if before.isascii() and after.isascii():
        return False
    return _is_cjk(before) is not _is_cjk(after)


@lru_cache(maxsize=1 << 12)
def _is_cjk(char: str) -> bool:
    return bool(extract_cjk(char)[1])


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
