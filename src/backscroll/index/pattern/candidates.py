"""Candidates of a pattern: literals as queries on the term dictionary."""

import unicodedata
from collections.abc import Sequence

import tantivy
from msgspec import Struct

from backscroll.index.engine.schema import TEXT_FIELDS, schema, tag, tokenizer
from backscroll.index.pattern.regex_literals import Alternatives
from backscroll.index.query.compile import CompiledQuery
from backscroll.index.query.elements import adjacent, all_of, any_of, escape_regex
from backscroll.index.query.parser import Query
from backscroll.index.text.normalize import fold_accents
from backscroll.index.text.tokenize import bigrams, extract_cjk, to_nfc

__all__ = ["candidate_queries"]

_MIN_TOKEN_CHARS = 2  # shorter tokens match too many messages
_MIN_PARTIAL_TOKEN_CHARS = 3  # shorter partial tokens match too many terms


def candidate_queries(required: Sequence[Alternatives], query: Query) -> list[tantivy.Query]:
    """Return queries that each find every message with the required literals, and some others.

    The first query is the fastest. A second one, if any, is slower and more precise: it pays when many
    candidates of the first query turn out not to match.
    """
    compiled = CompiledQuery(query)
    filters = [] if compiled.is_empty else [compiled.strict()]
    lookups = [lookup for group in required if (lookup := _group_lookup(group)) is not None]
    if not lookups:
        return [compiled.strict()]
    fast = [lookup.unordered for lookup in lookups if lookup.is_fast] or [
        lookup.unordered for lookup in lookups
    ]
    precise = [lookup.phrase or lookup.unordered for lookup in lookups]
    variants = [fast, precise] if any(lookup.phrase for lookup in lookups) else [fast]
    irregular = tantivy.Query.term_query(schema(), "tags", tag("irregular"), "basic")
    return [all_of([any_of([all_of(variant), irregular]), *filters]) for variant in variants]


class _Lookup(Struct):
    """Queries for the messages that contain the tokens of a literal."""

    unordered: tantivy.Query
    is_fast: bool  # without a scan of the whole term dictionary
    phrase: tantivy.Query | None = None  # the tokens next to each other


def _group_lookup(group: Alternatives) -> _Lookup | None:
    lookups: list[_Lookup] = []
    for literal in group:
        lookup = _literal_lookup(literal)
        if lookup is None:
            return None
        lookups.append(lookup)
    return _Lookup(
        any_of([lookup.unordered for lookup in lookups]),
        all(lookup.is_fast for lookup in lookups),
        any_of([lookup.phrase or lookup.unordered for lookup in lookups])
        if any(lookup.phrase for lookup in lookups)
        else None,
    )


def _literal_lookup(literal: str) -> _Lookup | None:
    text, runs = extract_cjk(to_nfc(literal))
    text = fold_accents(text)
    fast = [
        adjacent("cjk_bigrams", bigrams(unicodedata.normalize("NFKC", run))[:-1])
        for run in runs
        if len(run) > 1
    ]
    # The first and the last token of the literal may be part of a longer one.
    tokens = [
        _Token(token.text, token.char_offset_from == 0, token.char_offset_to == len(text))
        for token in tokenizer().pre_tokenize(text).tokens
    ]
    selective = [token for token in tokens if len(token.text) >= _MIN_TOKEN_CHARS]
    # A token without a known start needs a scan of the whole dictionary.
    fast += [_in_any_field(token.pattern) for token in selective if not token.has_open_start]
    if fast:
        return _Lookup(all_of(fast), True, _phrase(tokens))
    return _Lookup(_in_any_field(selective[0].pattern), False) if selective else None


class _Token(Struct, frozen=True):
    text: str
    has_open_start: bool  # the indexed token may start earlier
    has_open_end: bool

    @property
    def pattern(self) -> str:
        start, end = ".*" if self.has_open_start else "", ".*" if self.has_open_end else ""
        return f"{start}{escape_regex(self.text)}{end}"


def _phrase(tokens: list[_Token]) -> tantivy.Query | None:
    if tokens and tokens[0].has_open_start and len(tokens[0].text) < _MIN_PARTIAL_TOKEN_CHARS:
        tokens = tokens[1:]
    if tokens and tokens[-1].has_open_end and len(tokens[-1].text) < _MIN_PARTIAL_TOKEN_CHARS:
        tokens = tokens[:-1]
    if len(tokens) < 2:
        return None
    patterns = [token.pattern for token in tokens]
    return any_of([tantivy.Query.regex_phrase_query(schema(), field, [*patterns]) for field in TEXT_FIELDS])


def _in_any_field(pattern: str) -> tantivy.Query:
    return any_of([tantivy.Query.regex_query(schema(), field, pattern) for field in TEXT_FIELDS])
