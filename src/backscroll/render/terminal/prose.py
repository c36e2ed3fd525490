"""What was said, as lines; Markdown is coloured a little, and no character of it is changed."""

import re
from collections.abc import Iterator

from backscroll.model.sanitize import sanitize
from backscroll.render.terminal.style import Style
from backscroll.render.terminal.width import wrap

__all__ = ["MAX_LINE_CHARS", "prose_lines", "truncate_line"]

MAX_LINE_CHARS = 2000  # characters of a line that are shown unasked
_MOST = 100  # columns that prose is read well in
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_INLINE = re.compile(r"(`[^`]+`)|(\*\*[^*]+\*\*)")


def truncate_line(line: str, *, is_full: bool) -> str:
    """A line without its end when it is longer than anybody reads; how much is missing is said."""
    if is_full or len(line) <= MAX_LINE_CHARS:
        return line
    return f"{line[:MAX_LINE_CHARS]}… {len(line) - MAX_LINE_CHARS:,} more characters; --full shows them"


def prose_lines(
    text: str,
    style: Style,
    *,
    width: int | None,
    is_full: bool,
    style_name: str = "",
    is_markdown: bool = False,
) -> Iterator[str]:
    """The lines of a text. With a width, lines of prose are broken to fit; code is left as it is."""
    fence = ""
    for raw in sanitize(text).rstrip("\n").split("\n"):
        line = truncate_line(raw, is_full=is_full)
        opened = _FENCE.match(line) if is_markdown else None
        if opened is not None and (not fence or _closes(line, opened[1], fence)):
            fence = "" if fence else opened[1]
            yield style("dim", line)
        elif fence:
            yield style("code", line)
        elif is_markdown and _HEADING.match(line):
            yield from (style("strong", part) for part in _fitted(line, width))
        elif is_markdown and style.is_coloured:
            yield from (
                _INLINE.sub(lambda found: _inline(found, style), part) for part in _fitted(line, width)
            )
        else:
            yield from (style(style_name, part) if style_name else part for part in _fitted(line, width))


def _closes(line: str, mark: str, fence: str) -> bool:
    return mark.startswith(fence) and not line.strip().strip(mark[0])


def _fitted(line: str, width: int | None) -> Iterator[str]:
    if width is None or line.lstrip().startswith("|"):  # a table has its own columns
        yield line
        return
    yield from wrap(line, min(width, _MOST))


def _inline(found: re.Match[str], style: Style) -> str:
    return style("code", found[1]) if found[1] else style("strong", found[2])
