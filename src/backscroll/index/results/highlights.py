"""Where the words of a query stand in a text, without the index: to mark them."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from backscroll.index.query.parser import Filter, Phrase, Query, Word
from backscroll.index.text.inflections import inflections
from backscroll.index.text.small_letters import (
    COMBINING_MARKS,
    fold_characters,
    fold_in_place,
    non_ascii_chars,
)
from backscroll.index.text.tokenize import extract_cjk, to_nfc

__all__ = ["Span", "SpanStream", "find_spans"]

_MOST = 2000  # places of one word in one text that are looked at
_NEVER_COMBINE = "\u02ff"  # the last of the characters before all accents
_SHARP = frozenset("ßẞ")
_WORD = re.compile(r"[^\W_]+")
_BETWEEN = r"[\W_]+"


class Span(Struct, frozen=True, order=True, gc=False):
    """From one character to before another; ``term`` tells the words of a query apart."""

    start: int
    end: int
    term: int = 0


class SpanStream:
    """Places of several words from left to right, each looked for only when it is asked for."""

    def __init__(self, places: Iterable[Iterator[Span]]) -> None:
        self._heads = [
            (span, number, rest)
            for number, rest in enumerate(places)
            if (span := next(rest, None)) is not None
        ]
        self._heads.sort()
        self.terms = {span.term for span, _, _ in self._heads}  # that there are at all

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

    def ahead(self) -> dict[int, int]:
        """Where each word stands next of which there is another one, the nearest first."""
        places: dict[int, int] = {}
        for span, _, _ in self._heads:
            places.setdefault(span.term, span.start)
        return places

    def skip(self, place: int) -> None:
        """Pass over whatever begins before a place."""
        heads, self._heads = self._heads, []
        for head, number, rest in heads:
            span: Span | None = head
            if head.start < place and isinstance(rest, _Places):
                rest.skip(place)
            while span is not None and span.start < place:
                span = next(rest, None)
            if span is not None:
                self._heads.append((span, number, rest))
        self._heads.sort()


def find_spans(text: str, query: Query, *, with_inflections: bool = False) -> SpanStream:
    """Every place where a word of the query stands.

    When varied, what stands together is taken apart and words are found in their other forms, too.
    """
    odd = non_ascii_chars(text)
    small = fold_characters(text, odd)
    spelling = _Spelling(has_marks=not COMBINING_MARKS.isdisjoint(odd), has_sharp=not _SHARP.isdisjoint(odd))
    return SpanStream(
        _Places(text, small, piece, number)
        for number, pieces in enumerate(_looked_for(query, spelling, with_inflections))
        for piece in pieces
    )


class _Piece(Struct, frozen=True):
    pattern: str
    is_word: bool  # stands between other characters than letters
    is_prefix: bool

    @property
    def is_plain(self) -> bool:
        """Whether it is a word and no pattern: sooner found, and within one line."""
        return self.pattern.isalnum()

    @property
    def finder(self) -> Callable[[str, int], tuple[int, int] | None]:
        """What finds the next place from one on."""
        pattern, length = self.pattern, len(self.pattern)
        if self.is_plain:

            def find(text: str, place: int) -> tuple[int, int] | None:
                start = text.find(pattern, place)
                return (start, start + length) if start >= 0 else None

            return find
        search = re.compile(pattern).search
        return lambda text, place: found.span() if (found := search(text, place)) is not None else None


class _Spelling(NamedTuple):
    """What a text has that is found by other characters than it is written with."""

    has_marks: bool  # accents as characters of their own, after the letter
    has_sharp: bool  # ß, for which ss may be typed

    def pattern(self, word: str) -> str:
        """A word as it may be written there."""
        between = "[\u0300-\u036f]*" if self.has_marks else ""
        spelled = between.join(map(re.escape, word))
        if "ß" in word:
            spelled = spelled.replace("ß", "(?:ß|ss)")
        elif self.has_sharp:
            spelled = spelled.replace(f"s{between}s", "(?:ß|ss)")
        return spelled


@lru_cache(maxsize=8)
def _looked_for(query: Query, spelling: _Spelling, with_inflections: bool) -> list[list[_Piece]]:
    """What to look for in one text after the other, term by term."""
    return [list(_pieces(term, spelling, with_inflections=with_inflections)) for term in _terms(query)]


def _terms(query: Query) -> Iterable[Word | Phrase]:
    for clause in query.clauses:
        for term in clause.any_of if not clause.is_negated else ():
            if isinstance(term, Word | Phrase):
                yield term
            elif isinstance(term, Filter) and term.name == "file":
                yield Phrase(term.value.rstrip("*"), is_prefix=term.value.endswith("*"))


def _pieces(term: Word | Phrase, spelling: _Spelling, *, with_inflections: bool) -> Iterator[_Piece]:
    is_apart = with_inflections and isinstance(term, Word)
    plain, runs = extract_cjk(to_nfc(term.text))
    for run in (unicodedata.normalize("NFKC", each) for each in runs):
        pairs = [run[place : place + 2] for place in range(max(len(run) - 1, 1))]
        for part in pairs if is_apart else [run]:
            yield _Piece(re.escape(part), False, False)
    tokens = _WORD.findall(fold_in_place(plain))
    if not tokens:
        return
    if is_apart and not term.is_prefix:
        for token in tokens:
            longest_first = sorted(inflections(token), key=len, reverse=True)
            yield _Piece("|".join(map(spelling.pattern, longest_first)), True, False)
        return
    yield _Piece(_BETWEEN.join(map(spelling.pattern, tokens)), True, term.is_prefix)


class _Places(Iterator[Span]):
    """The places of one piece in a text, as many as are looked at."""

    def __init__(self, text: str, small: str, piece: _Piece, number: int) -> None:
        self._text = text
        self._small = small
        self._piece = piece
        self._number = number
        self._find = piece.finder
        self._from = 0
        self._left = _MOST

    def skip(self, place: int) -> None:
        """Go on from a place where a line begins, or well before what is looked for."""
        if self._piece.is_plain:
            self._from = max(self._from, place)

    def __next__(self) -> Span:
        text, piece = self._text, self._piece
        while self._left and (found := self._find(self._small, self._from)) is not None:
            start, end = found
            self._from = start + 1
            # That a word stands by itself, as most do, is seen without asking more closely.
            if piece.is_word and text[start - 1 : start].isalnum() and not _is_edge(text, start):
                continue
            if piece.is_prefix:
                end = _end_of_word(text, end)
            elif piece.is_word and text[end : end + 1].isalnum() and not _is_edge(text, end):
                continue
            while text[end : end + 1] > _NEVER_COMBINE and unicodedata.combining(text[end]):
                end += 1
            self._from = max(self._from, end)
            self._left -= 1
            return Span(start, end, self._number)
        raise StopIteration


def _end_of_word(text: str, place: int) -> int:
    while place < len(text) and text[place].isalnum():
        place += 1
    return place


def _is_edge(text: str, place: int) -> bool:
    """Whether a word begins or ends here, be it inside a compound identifier."""
    if not 0 < place < len(text):
        return True
    before, after = text[place - 1], text[place]
    if not before.isalnum() or not after.isalnum():
        return True
    if before.isdigit() is not after.isdigit():
        return True
    if after.isupper():
        return before.islower() or text[place + 1 : place + 2].islower()
    return bool(extract_cjk(before)[1]) is not bool(extract_cjk(after)[1])
