"""Where in a text stands what somebody looks for."""

from collections.abc import Callable

__all__ = ["Find", "finder"]

Find = Callable[[str], list[tuple[int, int]]]


def finder(words: str) -> Find | None:
    """Finds the words of a query in a text; None when they are none that stand in a text."""
    if not words.strip():
        return None
    from backscroll.index.query.parser import parse  # only those who look for something wait for it
    from backscroll.index.results.highlights import find_spans

    query = parse(words)
    if not query.words:
        return None
    return lambda text: [(span.start, span.end) for span in find_spans(text, query, with_inflections=True)]
