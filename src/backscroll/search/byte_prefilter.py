"""What tells, without unpacking a message, that a pattern is not in it.

A message's text is put together from what is packed: its own words and a tool's
name, arguments and answer as they are, arguments that are no text spelled as JSON.
So nearly every stretch of a pattern is found again in the packed bytes.
"""

import re
from functools import lru_cache

from backscroll.index import Pattern
from backscroll.index.pattern.regex_literals import required_literals

__all__ = ["required_bytes"]

_APART = re.compile(r"[\s\x00-\x1f\":,\[\]{}\\]+")  # what JSON and the lines of a text add or escape
_ESCAPE = re.compile(r"u[0-9a-fA-F]{0,4}|[0-9a-fA-F]{1,4}|[bfnrt]")  # what may be the rest of an escape
_NUMBER = re.compile(r"[0-9.eE+-]*")
_NAMED = ("true", "false", "null")
_LEAST = 2  # characters; a single one is in nearly every message


@lru_cache(maxsize=8)
def required_bytes(pattern: Pattern) -> tuple[bytes, ...]:
    """Stretches of bytes that every message with the pattern has as it is packed, the longest first."""
    if pattern.ignores_case or (pattern.is_regex and "(?" in pattern.text):
        return ()
    needs = required_literals(pattern.text) if pattern.is_regex else [(pattern.text,)]
    runs = {run for need in needs if len(need) == 1 for run in _runs(need[0]) if len(run) >= _LEAST}
    return tuple(
        run.encode("utf-8", "surrogatepass") for run in sorted(runs, key=lambda run: (-len(run), run))
    )


def _runs(literal: str) -> list[str]:
    """The stretches of a literal that stand in the packed bytes, wherever in a text it is found."""
    place, runs = 0, []
    for apart in [*_APART.finditer(literal), None]:
        run = literal[place : apart.start() if apart is not None else len(literal)]
        if place == 0 or literal[place - 1] == "\\":
            escape = _ESCAPE.match(run)
            run = run[escape.end() :] if escape is not None else run
        if not _NUMBER.fullmatch(run) and not any(run in name for name in _NAMED):
            runs.append(run)
        place = apart.end() if apart is not None else len(literal)
    return runs
