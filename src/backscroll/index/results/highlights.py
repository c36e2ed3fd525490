"""Positions of the query words in a text, found without the index."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from backscroll.index.query.parser import Filter, Phrase, Query, Word
from backscroll.index.text.inflections import inflections
from backscroll.index.text.languages import ENGLISH
from backscroll.index.text.normalize import (
    COMBINING_MARKS,
    fold_characters,
    fold_in_place,
    non_ascii_chars,
)
from backscroll.index.text.tokenize import extract_cjk, to_nfc

__all__ = ["Span", "SpanStream", "find_spans"]

_MAX_SPANS_PER_WORD = 2000
_LAST_NON_COMBINING = "\u02ff"  # the last character before all combining marks
_SHARP_S = frozenset("ßẞ")
_WORD = re.compile(r"[^\W_]+")
_SEPARATOR = r"[\W_]+"


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
            elif isinstance(term, Filter) and term.name == "file":
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
