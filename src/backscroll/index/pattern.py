"""Substrings and regular expressions, and the literals that every match contains.

The term dictionary of the index narrows the search: a message that contains ``foo_bar(baz`` has a token that
ends in foo, the token bar and a token that starts with baz. The caller verifies each candidate on its text
with `Pattern.spans`. Expressions are compiled by RE2, which takes linear time on any text.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from msgspec import Struct

from backscroll.errors import UsageError
from backscroll.index.analysis import has_cjk_pair

_CONTROL_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_ESCAPE_ARGUMENT_CHARS = {"p": 1, "P": 1, "x": 2}  # characters after the escape if it has no braces
_MAX_ALTERNATIVES = 32
Alternatives = tuple[str, ...]  # a match contains at least one of these literals
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

    def _compiled(self) -> "_Regex":
        return _compile_regex(self.text, is_literal=not self.is_regex, ignores_case=self.ignores_case)


def exact(text: str, *, ignores_case: bool = False) -> Pattern:
    """Return a pattern for a substring, punctuation and spaces included."""
    if not text:
        raise UsageError("The search text is empty.")
    return Pattern(text, False, ignores_case, ((text,),) if _is_selective(text) else ())


def regex(pattern: str, *, ignores_case: bool = False) -> Pattern:
    """Return a pattern for an RE2 regular expression."""
    if not pattern:
        raise UsageError("The search text is empty.")
    _compile_regex(pattern, ignores_case=ignores_case)
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


class _Regex:
    """A compiled expression. Positions are character indexes."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each match, from left to right."""
        text = _replace_surrogates(text)
        for match in self._compiled.finditer(text):
            yield match.span()

    def is_in(self, text: str) -> bool:
        """Return whether the expression matches anywhere in the text."""
        return self._compiled.search(_replace_surrogates(text)) is not None


@lru_cache(maxsize=32)
def _compile_regex(pattern: str, *, is_literal: bool = False, ignores_case: bool = False) -> _Regex:
    """Compile an expression in which ``^`` and ``$`` match at line ends.

    Raises `UsageError` if the expression is invalid.
    """
    import re2  # type: ignore[import-untyped]  # no type stubs; loaded on first use to keep start-up fast

    options = re2.Options()
    options.log_errors = False
    options.literal = is_literal
    options.case_sensitive = not ignores_case
    try:
        compiled = re2.compile(_replace_surrogates(pattern), options)
        # The (?m) is added second, so that an error message quotes the expression as the user wrote it.
        return _Regex(compiled if is_literal else re2.compile(f"(?m){_replace_surrogates(pattern)}", options))
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise UsageError(f"{pattern!r} is not a valid regular expression: {reason}") from error


def _replace_surrogates(text: str) -> str:
    """Replace each lone surrogate by one character, which keeps all positions."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def required_literals(pattern: str) -> list[Alternatives]:
    """Return groups of literals: every match contains one literal of each group. Empty if nothing is known.

    White space in a literal matches any amount of any white space. RE2 has accepted the expression before, so
    nesting and escapes are known to be valid.
    """
    return _all_required(_Parser(pattern).alternatives())


class _Part(Struct):
    """A part of an expression: its required literals, and its text if it matches only one text."""

    required: list[Alternatives]
    text: str | None = None


class _Parser:
    """Recursive-descent parser of RE2 syntax.

    It understands characters, groups and alternatives. Everything else counts as "any text" and requires
    nothing.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0

    def alternatives(self) -> _Part:
        branches = [self.sequence()]
        while self._peek() == "|":
            self.position += 1
            branches.append(self.sequence())
        if len(branches) == 1:
            return branches[0]
        best = [max(map(_selectivity, _all_required(branch)), default=None) for branch in branches]
        if any(group is None for group in best):
            return _Part([])
        literals = tuple(dict.fromkeys(text for group in best if group is not None for text in group[1]))
        return _Part([literals] if len(literals) <= _MAX_ALTERNATIVES else [])

    def sequence(self) -> _Part:
        required: list[Alternatives] = []
        texts: list[str] = []  # literal runs; any other part starts a new run
        is_literal, is_in_run = True, False
        while (char := self._peek()) not in ("", "|", ")"):
            part = self._quantified(self._atom(char))
            required += part.required
            if part.text is None:
                is_literal = is_in_run = False
            elif is_in_run:
                texts[-1] += part.text
            else:
                texts.append(part.text)
                is_in_run = True
        if is_literal:
            return _Part(required, "".join(texts))
        return _Part(required + [(text,) for text in texts if text])

    def _peek(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _atom(self, char: str) -> _Part:
        self.position += 1
        match char:
            case "(":
                return self._group()
            case "[":
                return self._set()
            case "\\":
                return self._escape()
            case "^" | "$":
                return _Part([], "")
            case ".":
                return _Part([])
        return _Part([], char)

    def _group(self) -> _Part:
        if self._peek() == "?":
            # (?:…), (?P<name>…), (?<name>…), (?i:…), and (?i) for the rest. Case is irrelevant here.
            ends = [self.pattern.find(mark, self.position) for mark in ":>)"]
            self.position = min(end for end in ends if end >= 0) + 1
            if self.pattern[self.position - 1] == ")":
                return _Part([], "")
        part = self.alternatives()
        self.position += 1
        return part

    def _set(self) -> _Part:
        if self._peek() == "^":
            self.position += 1
        is_first = True
        while (char := self._peek()) != "]" or is_first:
            is_first = False
            if char == "\\":
                self.position += 1
            elif self.pattern.startswith("[:", self.position):
                end = self.pattern.find(":]", self.position)
                self.position = end + 1 if end >= 0 else self.position
            self.position += 1
        self.position += 1
        return _Part([])

    def _escape(self) -> _Part:
        char = self._peek()
        self.position += 1
        if char == "Q":
            end = self.pattern.find("\\E", self.position)
            stop = end if end >= 0 else len(self.pattern)
            text, self.position = self.pattern[self.position : stop], min(stop + 2, len(self.pattern))
            return _Part([], text) if self._peek() not in ("*", "?", "{", "+") else _Part([])
        if char in _ESCAPE_ARGUMENT_CHARS:
            is_braced = self._peek() == "{"
            self.position = (
                self.pattern.find("}", self.position) + 1
                if is_braced
                else self.position + _ESCAPE_ARGUMENT_CHARS[char]
            )
            return _Part([])
        if char in _CONTROL_ESCAPES:
            return _Part([], _CONTROL_ESCAPES[char])
        if char == "s":
            return _Part([], " ")
        if char in ("b", "B", "A", "z"):
            return _Part([], "")
        if char.isalnum():  # \d, \w, octal numbers and other classes
            while char.isdigit() and self._peek().isdigit():
                self.position += 1
            return _Part([])
        return _Part([], char)

    def _quantified(self, part: _Part) -> _Part:
        """Apply quantifiers: an optional part requires nothing, a repeated one ends a literal run."""
        while (char := self._peek()) and char in "*+?{":
            end = self.pattern.find("}", self.position) if char == "{" else self.position
            bounds = self.pattern[self.position + 1 : end] if char == "{" else ""
            if char == "{" and (end < 0 or not bounds.replace(",", "").isdigit() or bounds.startswith(",")):
                return part  # a literal brace
            self.position = end + 1
            min_count = int(bounds.partition(",")[0]) if bounds else int(char == "+")
            if min_count and part.text is not None and part.text.isspace():
                continue
            part = _Part(_all_required(part)) if min_count else _Part([])
        return part


def _all_required(part: _Part) -> list[Alternatives]:
    return part.required + ([(part.text,)] if part.text else [])


def _selectivity(group: Alternatives) -> tuple[int, Alternatives]:
    return min(map(len, group)), group
