"""Bytes that every stored message with a pattern contains.

A stored message contains its text, the tool name and the result as they are, and
arguments that are not text as JSON. So nearly every part of a pattern occurs unchanged
in the stored bytes, and a message without these bytes need not be decoded.
"""

import re
from functools import lru_cache

from backscroll.index import Pattern
from backscroll.index.pattern.regex_literals import required_literals

__all__ = ["required_bytes"]

_SEPARATORS = re.compile(r"[\s\x00-\x1f\":,\[\]{}\\]+")  # added or escaped by JSON or between lines
_ESCAPE_REST = re.compile(r"u[0-9a-fA-F]{0,4}|[0-9a-fA-F]{1,4}|[bfnrt]")  # possible end of a JSON escape
_NUMBER = re.compile(r"[0-9.eE+-]*")
_JSON_NAMES = ("true", "false", "null")
_MIN_RUN_CHARS = 2  # nearly every message contains any single character


@lru_cache(maxsize=8)
def required_bytes(pattern: Pattern) -> tuple[bytes, ...]:
    """Return byte strings that every stored message with the pattern contains, longest first."""
    if pattern.ignores_case or (pattern.is_regex and "(?" in pattern.text):
        return ()
    literals = required_literals(pattern.text) if pattern.is_regex else [(pattern.text,)]
    runs = {
        run
        for group in literals
        if len(group) == 1
        for run in _stored_runs(group[0])
        if len(run) >= _MIN_RUN_CHARS
    }
    return tuple(
        run.encode("utf-8", "surrogatepass") for run in sorted(runs, key=lambda run: (-len(run), run))
    )


def _stored_runs(literal: str) -> list[str]:
    """Return the parts of a literal that are stored unchanged, wherever in a message it occurs."""
    start, runs = 0, []
    for separator in [*_SEPARATORS.finditer(literal), None]:
        run = literal[start : separator.start() if separator is not None else len(literal)]
        if start == 0 or literal[start - 1] == "\\":
            escape = _ESCAPE_REST.match(run)
            run = run[escape.end() :] if escape is not None else run
        if not _NUMBER.fullmatch(run) and not any(run in name for name in _JSON_NAMES):
            runs.append(run)
        start = separator.end() if separator is not None else len(literal)
    return runs
