"""Any substring and any regular expression, narrowed through the index's word dictionary.

A message that contains ``foo_bar(baz`` has a word that ends in foo, the word bar
and a word that begins with baz. Whether they stand together as asked is for the
caller to see on the text itself, with `Pattern.spans`.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import Struct

from backscroll.errors import UsageError
from backscroll.index.pattern.regex import compile_regex
from backscroll.index.pattern.regex_literals import Alternatives, required_literals
from backscroll.index.text.tokenize import has_cjk_pair

__all__ = ["Pattern", "exact", "regex"]

_LEAST = 3
_WORD = re.compile(r"[^\W_]{2}")
_ENDS = re.compile(r"\\[Az]|\(\?[a-zA-Z]*-[a-zA-Z]*m")  # asks for the ends of a text, not of a line


class Pattern(Struct, frozen=True):
    """What is looked for, and what a text must contain to hold it."""

    text: str
    is_regex: bool
    ignores_case: bool
    needs: tuple[Alternatives, ...]  # one of each

    @property
    def is_narrow(self) -> bool:
        """Whether the index can tell where to look. Without three characters in a row it cannot."""
        return bool(self.needs)

    def spans(self, text: str, *, limit: int = 100) -> list[tuple[int, int]]:
        """Where it is found in a text, as indexes of characters; empty finds are left out."""
        if not self.is_regex and not self.ignores_case:
            return list(islice(_occurrences(self.text, text), limit))
        if not self._may_be_in(text):
            return []
        found = compile_regex(self.text, is_literal=not self.is_regex, ignores_case=self.ignores_case).spans(
            text
        )
        return list(islice((span for span in found if span[0] < span[1]), limit))

    def _may_be_in(self, text: str) -> bool:
        """Whether the text has what every match has: much sooner known than whether there is one."""
        if self.ignores_case or "(?" in self.text:  # the expression itself may say that case does not matter
            return True
        return all(
            any(all(part in text for part in literal.split()) for literal in need) for need in self.needs
        )

    def may_be_in_one_of(self, texts: Iterable[str]) -> bool:
        """False when none of the texts holds it, which is sooner known of all together than of each."""
        if not self.is_regex or _ENDS.search(self.text):
            return True
        return compile_regex(self.text, ignores_case=self.ignores_case).is_in("\n".join(texts))

    def is_in(self, text: str) -> bool:
        if not self.is_regex and not self.ignores_case:
            return self.text in text
        return compile_regex(self.text, is_literal=not self.is_regex, ignores_case=self.ignores_case).is_in(
            text
        )


def exact(text: str, *, ignores_case: bool = False) -> Pattern:
    """A substring, punctuation and spaces included."""
    if not text:
        raise UsageError("there is nothing to look for")
    return Pattern(text, False, ignores_case, ((text,),) if _is_telling(text) else ())


def regex(pattern: str, *, ignores_case: bool = False) -> Pattern:
    """A regular expression of RE2, which takes linear time on any text."""
    if not pattern:
        raise UsageError("there is nothing to look for")
    compile_regex(pattern, ignores_case=ignores_case)
    needs = (need for need in required_literals(pattern) if all(map(_is_telling, need)))
    return Pattern(pattern, True, ignores_case, tuple(needs))


def _is_telling(literal: str) -> bool:
    """Whether the dictionary can be asked for a literal; spaces and punctuation are not in it."""
    return (len(literal) >= _LEAST and _WORD.search(literal) is not None) or has_cjk_pair(literal)


def _occurrences(needle: str, text: str) -> Iterator[tuple[int, int]]:
    place = text.find(needle)
    while place >= 0:
        yield place, place + len(needle)
        place = text.find(needle, place + len(needle))
