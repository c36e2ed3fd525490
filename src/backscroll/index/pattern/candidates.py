"""Literals as lookups in the dictionary of words: which messages may contain them."""

import unicodedata
from collections.abc import Sequence

import tantivy
from msgspec import Struct

from backscroll.index.engine.schema import TEXT_FIELDS, schema, tag, tokenizer
from backscroll.index.pattern.regex_literals import Alternatives
from backscroll.index.query.compile import CompiledQuery, adjacent, all_of, any_of, escaped
from backscroll.index.query.parser import Query
from backscroll.index.text.normalize import fold_accents
from backscroll.index.text.tokenize import bigrams, extract_cjk, to_nfc

__all__ = ["candidate_queries"]

_TELLING = 2  # characters of a word below which it is hardly worth looking up
_LONG = 3  # characters of a piece of a word below which too many words have it


def candidate_queries(needs: Sequence[Alternatives], query: Query) -> list[tantivy.Query]:
    """Queries that each find every message which may hold one of each need, and some that do not.

    The first is answered soonest. If there is a second, it takes longer and finds less besides: to be asked
    when what the first finds turns out to be something else.
    """
    matching = CompiledQuery(query)
    filters = [] if matching.is_empty else [matching.strict()]
    found = [lookup for need in needs if (lookup := _alternatives(need)) is not None]
    if not found:
        return [matching.strict()]
    cheap = [lookup.near for lookup in found if lookup.is_cheap] or [lookup.near for lookup in found]
    narrow = [lookup.side_by_side or lookup.near for lookup in found]
    ways = [cheap, narrow] if any(lookup.side_by_side for lookup in found) else [cheap]
    odd = tantivy.Query.term_query(schema(), "tags", tag("odd"), "basic")
    return [all_of([any_of([all_of(way), odd]), *filters]) for way in ways]


class _Lookup(Struct):
    """Where a literal may be: messages that have its words, and those that have them side by side."""

    near: tantivy.Query
    is_cheap: bool  # without reading the whole dictionary
    side_by_side: tantivy.Query | None = None


def _alternatives(need: Alternatives) -> _Lookup | None:
    found: list[_Lookup] = []
    for literal in need:
        one = _literal(literal)
        if one is None:
            return None
        found.append(one)
    return _Lookup(
        any_of([one.near for one in found]),
        all(one.is_cheap for one in found),
        any_of([one.side_by_side or one.near for one in found])
        if any(one.side_by_side for one in found)
        else None,
    )


def _literal(literal: str) -> _Lookup | None:
    plain, runs = extract_cjk(to_nfc(literal))
    plain = fold_accents(plain)
    cheap = [
        adjacent("pairs", list(bigrams(unicodedata.normalize("NFKC", run)))[:-1])
        for run in runs
        if len(run) > 1
    ]
    # A word at an end of the literal may be a piece of a longer one.
    words = [
        _Piece(token.text, token.char_offset_from == 0, token.char_offset_to == len(plain))
        for token in tokenizer().pre_tokenize(plain).tokens
    ]
    telling = [word for word in words if len(word.text) >= _TELLING]
    # Words of which the beginning is not known are only found by reading the whole dictionary.
    cheap += [_anywhere(word.pattern) for word in telling if not word.is_end]
    if cheap:
        return _Lookup(all_of(cheap), True, _side_by_side(words))
    return _Lookup(_anywhere(telling[0].pattern), False) if telling else None


class _Piece(Struct, frozen=True):
    text: str
    is_end: bool  # of a word
    is_beginning: bool

    @property
    def pattern(self) -> str:
        return f"{'.*' if self.is_end else ''}{escaped(self.text)}{'.*' if self.is_beginning else ''}"


def _side_by_side(words: list[_Piece]) -> tantivy.Query | None:
    if words and words[0].is_end and len(words[0].text) < _LONG:
        words = words[1:]
    if words and words[-1].is_beginning and len(words[-1].text) < _LONG:
        words = words[:-1]
    if len(words) < 2:
        return None
    patterns = [word.pattern for word in words]
    return any_of([tantivy.Query.regex_phrase_query(schema(), field, [*patterns]) for field in TEXT_FIELDS])


def _anywhere(pattern: str) -> tantivy.Query:
    return any_of([tantivy.Query.regex_query(schema(), field, pattern) for field in TEXT_FIELDS])
