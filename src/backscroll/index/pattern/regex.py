"""RE2 regular expressions, which take linear time on any text."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from backscroll.errors import UsageError

__all__ = ["Regex", "compile_regex"]


class Regex:
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
def compile_regex(pattern: str, *, is_literal: bool = False, ignores_case: bool = False) -> Regex:
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
        return Regex(compiled if is_literal else re2.compile(f"(?m){_replace_surrogates(pattern)}", options))
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
