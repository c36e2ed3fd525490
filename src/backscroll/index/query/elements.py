"""Elements of Tantivy queries: terms, phrases and combinations."""

from collections.abc import Collection, Sequence

import tantivy
from tantivy import Occur

from backscroll.index.engine.schema import METADATA_TAG, SESSION_TAG, schema
from backscroll.index.text.tokenize import bigrams

__all__ = [
    "adjacent",
    "all_except",
    "all_of",
    "any_of",
    "cjk_run",
    "escape_regex",
    "everything",
    "in_sessions",
    "other_documents",
    "prefix_query",
    "token_query",
]

_MAX_SESSION_TERMS = 128
# Characters with a meaning in Tantivy's regex syntax. Others must not be escaped: \< matches a word start.
_REGEX_SPECIAL = frozenset(r"\.+*?()|[]{}^$#&-~")


def all_of(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    """Match messages that match every query."""
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(Occur.Must, query) for query in queries])


def any_of(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    """Match messages that match at least one query."""
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(Occur.Should, query) for query in queries])


def other_documents() -> list[tantivy.Query]:
    """Return queries for the documents that are not messages."""
    return [token_query("tags", METADATA_TAG), token_query("tags", SESSION_TAG)]


def everything() -> tantivy.Query:
    """Match every document, with the score 0."""
    return tantivy.Query.const_score_query(tantivy.Query.all_query(), 0.0)


def all_except(query: tantivy.Query) -> tantivy.Query:
    """Match every message that does not match a query."""
    excluded = [query, *other_documents()]
    return tantivy.Query.boolean_query(
        [(Occur.Must, everything()), *((Occur.MustNot, one) for one in excluded)]
    )


def in_sessions(ids: Collection[int]) -> tantivy.Query:
    """Match every message of some sessions."""
    # Separate terms are faster for a few sessions: a term set makes Tantivy iterate over all session ids.
    if 0 < len(ids) <= _MAX_SESSION_TERMS:
        return any_of([tantivy.Query.term_query(schema(), "session", id, "basic") for id in ids])
    return tantivy.Query.term_set_query(schema(), "session", [*ids])


def adjacent(field: str, tokens: list[str], *, is_prefix: bool = False) -> tantivy.Query:
    """Match tokens next to each other in one field."""
    if len(tokens) == 1:
        return prefix_query(field, tokens[0]) if is_prefix else token_query(field, tokens[0])
    if is_prefix:
        # Not phrase_prefix_query, which considers only fifty completions.
        patterns = [*map(escape_regex, tokens[:-1]), f"{escape_regex(tokens[-1])}.*"]
        return tantivy.Query.regex_phrase_query(schema(), field, [*patterns])
    return tantivy.Query.phrase_query(schema(), field, [*tokens])


def cjk_run(run: str) -> tantivy.Query:
    """Match adjacent CJK characters. A single one matches as the start of a bigram."""
    if len(run) == 1:
        return tantivy.Query.regex_query(schema(), "cjk_bigrams", f"{escape_regex(run)}.?")
    pairs = bigrams(run)[:-1]
    return adjacent("cjk_bigrams", pairs)


def token_query(field: str, value: str) -> tantivy.Query:
    """Match a token of a field."""
    return tantivy.Query.term_query(schema(), field, value, "freq")


def prefix_query(field: str, prefix: str) -> tantivy.Query:
    """Match tokens of a field that start with a prefix."""
    # As fast to run as a regex query, and without the time to compile one.
    return tantivy.Query.fuzzy_term_query(schema(), field, prefix, distance=0, prefix=True)


def escape_regex(text: str) -> str:
    """Escape a text for Tantivy's regex syntax."""
    return "".join(f"\\{char}" if char in _REGEX_SPECIAL else char for char in text)
