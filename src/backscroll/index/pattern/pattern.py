"""Substrings and regular expressions.

The term dictionary of the index narrows the search: a message that contains
``foo_bar(baz`` has a token that ends in foo, the token bar and a token that starts
with baz. The caller verifies each candidate on its text with `Pattern.spans`.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import Struct

from backscroll.errors import UsageError
from backscroll.index.pattern.regex import Regex, compile_regex
from backscroll.index.pattern.regex_literals import Alternatives, required_literals
from backscroll.index.text.tokenize import has_cjk_pair

__all__ = ["Pattern", "exact", "regex"]

_MIN_LITERAL_CHARS = 3
_TWO_WORD_CHARS = re.compile(r"[^\W_]{2}")
_TEXT_ANCHOR = re.compile(r"\\[Az]|\(\?[a-zA-Z]*-[a-zA-Z]*m")  # anchors at text ends, not line ends


class Pattern(Struct, frozen=True):
    """A substring or regular expression, and the literals that a matching text contains."""

    text: str
    is_regex: bool
    ignores_case: bool
    required: tuple[Alternatives, ...]  # a match contains one literal of each

    @property
    def is_narrow(self) -> bool:
        """Whether the index can narrow the search. It needs a literal of three characters."""
        return bool(self.required)

    def spans(self, text: str, *, limit: int = 100) -> list[tuple[int, int]]:
        """Return the matches in a text as character positions, without empty matches."""
        if not self.is_regex and not self.ignores_case:
            return list(islice(_occurrences(self.text, text), limit))
        if not self._has_required(text):
            return []
        return list(islice((span for span in self._compiled().spans(text) if span[0] < span[1]), limit))

    def _has_required(self, text: str) -> bool:
        """Return whether the text contains all required literals: much faster than the expression."""
        if self.ignores_case or "(?" in self.text:  # the expression may set its own flags
            return True
        return all(
            any(all(part in text for part in literal.split()) for literal in group) for group in self.required
        )

    def may_be_in_any(self, texts: Iterable[str]) -> bool:
        """Return False if no text matches. One test of the joined texts is faster than one per text."""
        if not self.is_regex and not self.ignores_case:
            return True
        if self.is_regex and _TEXT_ANCHOR.search(self.text):
            return True
        return self._compiled().is_in("\n".join(texts))

    def is_in(self, text: str) -> bool:
        """Return whether the text matches."""
        if not self.is_regex and not self.ignores_case:
            return self.text in text
        return self._compiled().is_in(text)

    def _compiled(self) -> Regex:
        return compile_regex(self.text, is_literal=not self.is_regex, ignores_case=self.ignores_case)


def exact(text: str, *, ignores_case: bool = False) -> Pattern:
    """Return a pattern for a substring, punctuation and spaces included."""
    if not text:
        raise UsageError("The search text is empty.")
    return Pattern(text, False, ignores_case, ((text,),) if _is_selective(text) else ())


def regex(pattern: str, *, ignores_case: bool = False) -> Pattern:
    """Return a pattern for an RE2 regular expression."""
    if not pattern:
        raise UsageError("The search text is empty.")
    compile_regex(pattern, ignores_case=ignores_case)
    required = (group for group in required_literals(pattern) if all(map(_is_selective, group)))
    return Pattern(pattern, True, ignores_case, tuple(required))


def _is_selective(literal: str) -> bool:
    """Return whether the term dictionary helps to find a literal. It has no spaces and no punctuation."""
    has_word = len(literal) >= _MIN_LITERAL_CHARS and _TWO_WORD_CHARS.search(literal) is not None
    return has_word or has_cjk_pair(literal)


def _occurrences(needle: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(needle)
    while start >= 0:
        yield start, start + len(needle)
        start = text.find(needle, start + len(needle))
