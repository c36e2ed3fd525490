"""Kinds of search in the addresses of pages: words, exact text, regular expression."""

from typing import Literal

from backscroll.errors import UsageError

__all__ = ["MAX_QUERY_CHARS", "MODE_LABELS", "Mode", "length_problem", "parse_mode"]

Mode = Literal["words", "exact", "regex"]
MODE_LABELS: dict[Mode, str] = {"words": "Words", "exact": "Exact text", "regex": "Regular expression"}
MAX_QUERY_CHARS = 1000


def parse_mode(text: str) -> Mode:
    """Return the kind of search with this name, words for an empty one. Raises `UsageError` for another."""
    for mode in MODE_LABELS:
        if mode == (text or "words"):
            return mode
    raise UsageError(f"{text!r} is not a kind of search. Use one of: {', '.join(MODE_LABELS)}.")


def length_problem(*texts: str) -> str:
    """Return why a query is too long, empty if it is not."""
    if all(len(text) <= MAX_QUERY_CHARS for text in texts):
        return ""
    return f"The query has more than {MAX_QUERY_CHARS:,} characters. Search for a part of it."
