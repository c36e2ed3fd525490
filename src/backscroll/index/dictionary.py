"""Literals as lookups in the dictionary of words: which messages may contain them."""

import unicodedata
from collections.abc import Iterator, Sequence

import tantivy
from msgspec import Struct
from tantivy import Occur

from backscroll.index.fields import TEXT_FIELDS, schema, tag, word_analyser
from backscroll.index.folding import fold_accents
from backscroll.index.literals import Need
from backscroll.index.matching import Matching, adjacent, all_of, any_of, escaped
from backscroll.index.query import Query
from backscroll.index.words import bigrams, clean, cut_cjk

__all__ = ["lookups"]

_TELLING = 2  # characters of a word below which it is hardly worth looking up


def lookups(needs: Sequence[Need], query: Query) -> Iterator[tantivy.Query]:
    """Queries whose finds together are every message that may hold one of each need; none is found twice.

    A literal may begin in the middle of a word, and to find all such words the whole dictionary is read.
    Those that begin with it are known at once and come first.
    """
    matching = Matching(query)
    filters = [] if matching.is_empty else [matching.strict()]
    found = [lookup for need in needs if (lookup := _alternatives(need)) is not None]
    if not found:
        yield matching.strict()
        return
    cheap = [lookup for lookup in found if lookup.is_cheap]
    every = all_of([lookup.whole for lookup in cheap or found])
    odd = tantivy.Query.term_query(schema(), "tags", tag("odd"), "basic")
    whole = all_of([any_of([every, odd]), *filters])
    if cheap:
        yield whole
        return
    first = all_of([*(lookup.quick for lookup in found), *filters])
    yield first
    yield tantivy.Query.boolean_query([(Occur.Must, whole), (Occur.MustNot, first)])


class _Lookup(Struct):
    """Where a literal may be: everywhere, and where it can be known without reading the whole dictionary."""

    whole: tantivy.Query
    quick: tantivy.Query
    is_cheap: bool  # both are the same


def _alternatives(need: Need) -> _Lookup | None:
    found: list[_Lookup] = []
    for literal in need:
        one = _literal(literal)
        if one is None:
            return None
        found.append(one)
    return _Lookup(
        any_of([one.whole for one in found]),
        any_of([one.quick for one in found]),
        all(one.is_cheap for one in found),
    )


def _literal(literal: str) -> _Lookup | None:
    plain, runs = cut_cjk(clean(literal))
    plain = fold_accents(plain)
    cheap = [
        adjacent("pairs", list(bigrams(unicodedata.normalize("NFKC", run)))[:-1])
        for run in runs
        if len(run) > 1
    ]
    costly: list[tuple[str, bool]] = []
    for token in word_analyser().pre_tokenize(plain).tokens:
        if len(token.text) < _TELLING:
            continue
        is_open = token.char_offset_to == len(plain)
        if token.char_offset_from == 0:
            costly.append((token.text, is_open))
        else:
            cheap.append(_anywhere(escaped(token.text) + ".*") if is_open else _word(token.text))
    if cheap:
        return _Lookup(all_of(cheap), all_of(cheap), True)
    for text, is_open in costly:
        ending = escaped(text) + (".*" if is_open else "")
        return _Lookup(_anywhere(f".*{ending}"), _anywhere(ending), False)
    return None


def _word(text: str) -> tantivy.Query:
    return any_of([adjacent(field, [text]) for field in TEXT_FIELDS])


def _anywhere(pattern: str) -> tantivy.Query:
    return any_of([tantivy.Query.regex_query(schema(), field, pattern) for field in TEXT_FIELDS])
