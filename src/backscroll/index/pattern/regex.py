"""Regular expressions that take linear time on any text: RE2, behind two functions."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from backscroll.errors import UsageError

__all__ = ["Regex", "compile_regex"]


class Regex:
    """A compiled expression; places are indexes of characters."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it matches, from left to right."""
        text = _encodable(text)
        for match in self._engine.finditer(text):
            yield match.span()

    def is_in(self, text: str) -> bool:
        return self._engine.search(_encodable(text)) is not None


@lru_cache(maxsize=32)
def compile_regex(pattern: str, *, is_literal: bool = False, ignores_case: bool = False) -> Regex:
    """The expression, ready for use; one that cannot be understood is a wrong call.

    ``^`` and ``$`` are the ends of a line.
    """
    import re2  # type: ignore[import-untyped]  # it has no types

    options = re2.Options()
    options.log_errors = False
    options.literal = is_literal
    options.case_sensitive = not ignores_case
    try:
        engine = re2.compile(_encodable(pattern), options)
        # Only then asked for by lines, so that what is said of a wrong one is said of it as it is written.
        return Regex(engine if is_literal else re2.compile(f"(?m){_encodable(pattern)}", options))
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise UsageError(f"{pattern!r} is not a regular expression: {reason}") from error


def _encodable(text: str) -> str:
    """The text with half characters replaced, each by one."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
