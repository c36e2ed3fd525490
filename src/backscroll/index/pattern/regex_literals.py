"""What a text must contain for a regular expression to match it.

The expression is read just well enough for that: whatever is not a plain
character, a group or an alternative counts as "anything", which is always true.
The expression has been accepted by the engine before, so that nesting and
escapes are known to be in order.
"""

from msgspec import Struct

__all__ = ["Alternatives", "required_literals"]

_PLAIN_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_LONG_ESCAPES = {"p": 1, "P": 1, "x": 2}  # characters that follow, when not in braces
_MOST_CHOICES = 32

Alternatives = tuple[str, ...]  # at least one of these


class _Part(Struct):
    """A piece of an expression: what it needs, and the text it stands for when it can only be one."""

    needs: list[Alternatives]
    text: str | None = None


def required_literals(pattern: str) -> list[Alternatives]:
    """Lists of literals: every match contains one of each list. Empty when nothing can be said.

    White space in a literal stands for any white space, as much as there is.
    """
    return _all_needs(_Reader(pattern).alternatives())


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0

    def alternatives(self) -> _Part:
        branches = [self.sequence()]
        while self._peek() == "|":
            self.place += 1
            branches.append(self.sequence())
        if len(branches) == 1:
            return branches[0]
        best = [max(map(_strength, _all_needs(branch)), default=None) for branch in branches]
        if any(one is None for one in best):
            return _Part([])
        choices = tuple(dict.fromkeys(text for one in best if one is not None for text in one[1]))
        return _Part([choices] if len(choices) <= _MOST_CHOICES else [])

    def sequence(self) -> _Part:
        needs: list[Alternatives] = []
        texts: list[str] = []  # runs of plain text; a new one begins where something else stands between
        is_whole, is_run = True, False
        while (char := self._peek()) not in ("", "|", ")"):
            part = self._quantified(self._atom(char))
            needs += part.needs
            if part.text is None:
                is_whole = is_run = False
            elif is_run:
                texts[-1] += part.text
            else:
                texts.append(part.text)
                is_run = True
        if is_whole:
            return _Part(needs, "".join(texts))
        return _Part(needs + [(text,) for text in texts if text])

    def _peek(self) -> str:
        return self.pattern[self.place : self.place + 1]

    def _atom(self, char: str) -> _Part:
        self.place += 1
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
            # (?:…), (?P<name>…), (?<name>…), (?i:…), and (?i) for all that follows; case never matters here.
            ends = [self.pattern.find(mark, self.place) for mark in ":>)"]
            self.place = min(end for end in ends if end >= 0) + 1
            if self.pattern[self.place - 1] == ")":
                return _Part([], "")
        part = self.alternatives()
        self.place += 1
        return part

    def _set(self) -> _Part:
        if self._peek() == "^":
            self.place += 1
        is_first = True
        while (char := self._peek()) != "]" or is_first:
            is_first = False
            if char == "\\":
                self.place += 1
            elif self.pattern.startswith("[:", self.place):
                end = self.pattern.find(":]", self.place)
                self.place = end + 1 if end >= 0 else self.place
            self.place += 1
        self.place += 1
        return _Part([])

    def _escape(self) -> _Part:
        char = self._peek()
        self.place += 1
        if char == "Q":
            end = self.pattern.find("\\E", self.place)
            stop = end if end >= 0 else len(self.pattern)
            text, self.place = self.pattern[self.place : stop], min(stop + 2, len(self.pattern))
            return _Part([], text) if self._peek() not in ("*", "?", "{", "+") else _Part([])
        if char in _LONG_ESCAPES:
            is_braced = self._peek() == "{"
            self.place = (
                self.pattern.find("}", self.place) + 1 if is_braced else self.place + _LONG_ESCAPES[char]
            )
            return _Part([])
        if char in _PLAIN_ESCAPES:
            return _Part([], _PLAIN_ESCAPES[char])
        if char == "s":
            return _Part([], " ")
        if char in ("b", "B", "A", "z"):
            return _Part([], "")
        if char.isalnum():  # \d, \w, octal numbers and whatever else has a meaning
            while char.isdigit() and self._peek().isdigit():
                self.place += 1
            return _Part([])
        return _Part([], char)

    def _quantified(self, part: _Part) -> _Part:
        """A piece that may be missing needs nothing; one that may be repeated ends a run of plain text."""
        while (char := self._peek()) and char in "*+?{":
            end = self.pattern.find("}", self.place) if char == "{" else self.place
            bounds = self.pattern[self.place + 1 : end] if char == "{" else ""
            if char == "{" and (end < 0 or not bounds.replace(",", "").isdigit() or bounds.startswith(",")):
                return part  # a brace that is only a brace
            self.place = end + 1
            least = int(bounds.partition(",")[0]) if bounds else int(char == "+")
            if least and part.text is not None and part.text.isspace():
                continue
            part = _Part(_all_needs(part)) if least else _Part([])
        return part


def _all_needs(part: _Part) -> list[Alternatives]:
    return part.needs + ([(part.text,)] if part.text else [])


def _strength(need: Alternatives) -> tuple[int, Alternatives]:
    return min(map(len, need)), need
