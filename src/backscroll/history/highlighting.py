"""The query syntax for the terminal UI: the words of a query in any text, the names of filters."""

import re
from collections.abc import Callable

from msgspec.structs import replace

from backscroll.index.highlights import find_spans
from backscroll.index.query import FILTER_NAMES, parse
from backscroll.model.search import has_words


def highlighter(query: str) -> Callable[[str], list[tuple[int, int]]] | None:
    """Return a function that finds the words of a query in a text; None if the query has only filters.

    A query without words is found as exact text.
    """
    if query.strip() and not has_words(query):
        exact = re.compile(re.escape(query.strip()))
        return lambda text: [match.span() for match in exact.finditer(text)]
    parsed = parse(query)
    if not parsed.words:
        return None
    return lambda text: [(span.start, span.end) for span in find_spans(text, parsed, with_inflections=True)]


def all_words_check(query: str) -> Callable[[str], bool] | None:
    """Return a function that checks whether a text has all words of a query; None if there are less than two.

    Stop words do not count.
    """
    parsed = parse(query)
    single_words = [replace(parsed, clauses=(clause,)) for clause in parsed.content_words]
    if len(single_words) < 2:
        return None
    return lambda text: all(find_spans(text, word, with_inflections=True).terms for word in single_words)


def filter_names() -> tuple[str, ...]:
    """Return the names of all filters of the query syntax."""
    return FILTER_NAMES
