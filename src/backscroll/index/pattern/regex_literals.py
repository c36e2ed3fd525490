"""Literals that every match of a regular expression contains.

The parser understands characters, groups and alternatives. Everything else counts as
"any text" and requires nothing. RE2 has accepted the expression before, so nesting
and escapes are known to be valid.
"""

from msgspec import Struct

__all__ = ["Alternatives", "required_literals"]

_CONTROL_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_ESCAPE_ARGUMENT_CHARS = {"p": 1, "P": 1, "x": 2}  # characters after the escape if it has no braces
_MAX_ALTERNATIVES = 32

Alternatives = tuple[str, ...]  # a match contains at least one of these literals


class _Part(Struct):
    """A part of an expression: its required literals, and its text if it matches only one text."""

    required: list[Alternatives]
    text: str | None = None


def required_literals(pattern: str) -> list[Alternatives]:
    """Return groups of literals: every match contains one literal of each group. Empty if nothing is known.

    White space in a literal matches any amount of any white space.
    """
    return _all_required(_Parser(pattern).alternatives())


class _Parser:
    """Recursive-descent parser of RE2 syntax."""

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
