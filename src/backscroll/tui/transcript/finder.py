"""Where in a text stands what somebody looks for."""

from collections.abc import Callable

__all__ = ["Find", "finder"]

Find = Callable[[str], list[tuple[int, int]]]


def finder(words: str) -> Find | None:
    """Finds the words of a query in a text; None when they are none that stand in a text."""
    if not words.strip():
        return None
    from backscroll.history.search import highlighter  # start-up: loads the index

    return highlighter(words)
