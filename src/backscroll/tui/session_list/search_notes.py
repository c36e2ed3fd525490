"""Notes about a search query that are shown below the input line."""

from collections.abc import Sequence

from backscroll.history import History
from backscroll.model import SearchResult
from backscroll.model.search import has_words

__all__ = ["describe_search", "find_invalid_filters"]

EXACT_TEXT_NOTE = "The query contains no words; searched for it as exact text."
EXACT_TEXT_HINT = "The query contains no words. Press Enter to search for it as exact text."
TIME_LIMIT_NOTE = "Time limit reached: results may be missing."
STARTS_OF_TERMS = ("-", '"', '-"')  # the user is about to type a word


def find_invalid_filters(history: History, query: str, result: SearchResult) -> tuple[str, ...]:
    """Return the parts of a query that look like filters and were searched for as text."""
    if not has_words(query):
        return ()
    return tuple(
        invalid.text
        for invalid in history.invalid_filters(query)
        # An unknown name may be a word with a colon: it is mentioned only if the query did not match.
        if invalid.similar_name is None or result.is_relaxed or not result.data
    )


def describe_search(
    query: str, result: SearchResult | None, invalid_filters: Sequence[str], *, is_typing: bool
) -> str:
    """Return the notes about a query; empty if there are none.

    While the user types, the last filter may be unfinished and is not mentioned.
    """
    query = query if is_typing else query.strip()
    if not query.strip():
        return ""
    if not has_words(query):
        if is_typing:
            return "" if query.strip() in STARTS_OF_TERMS else EXACT_TEXT_HINT
        if result is None:
            return ""
        return f"{EXACT_TEXT_NOTE} {TIME_LIMIT_NOTE}" if result.is_cut_short else EXACT_TEXT_NOTE
    return " ".join(
        f"{text!r} is not a valid filter; searched for it as text."
        for text in invalid_filters
        if not (is_typing and query.endswith(text))
    )
