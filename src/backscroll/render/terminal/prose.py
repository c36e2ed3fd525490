"""Message text as lines. Markdown is styled lightly; no character of it is changed."""

import re
from collections.abc import Iterator

from backscroll.model.text import pluralize, sanitize
from backscroll.render.terminal.style import Style
from backscroll.render.terminal.width import wrap

__all__ = ["MAX_LINE_CHARS", "prose_lines", "truncate_line"]

MAX_LINE_CHARS = 2000  # shown of a line unless everything is shown
_MAX_PROSE_WIDTH = 100  # cells; longer lines are hard to read
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_INLINE = re.compile(r"(`[^`]+`)|(\*\*[^*]+\*\*)")


def truncate_line(line: str, *, is_full: bool) -> str:
    """Return the start of a very long line and the number of characters left out."""
    if is_full or len(line) <= MAX_LINE_CHARS:
        return line
    hidden = pluralize(len(line) - MAX_LINE_CHARS, "more character")
    return f"{line[:MAX_LINE_CHARS]}… {hidden} (--full shows all)"


def prose_lines(
    text: str,
    style: Style,
    *,
    width: int | None,
    is_full: bool,
    style_name: str = "",
    is_markdown: bool = False,
) -> Iterator[str]:
    """Yield the lines of a text. With a width, prose is wrapped; code and tables are not."""
    fence = ""
    for raw in sanitize(text).rstrip("\n").split("\n"):
        line = truncate_line(raw, is_full=is_full)
        marker = _FENCE.match(line) if is_markdown else None
        if marker is not None and (not fence or _closes(line, marker[1], fence)):
            fence = "" if fence else marker[1]
            yield style("dim", line)
        elif fence:
            yield style("code", line)
        elif is_markdown and _HEADING.match(line):
            yield from (style("strong", part) for part in _wrap_prose(line, width))
        elif is_markdown and style.is_colored:
            for part in _wrap_prose(line, width):
                yield _INLINE.sub(lambda match: _style_inline(match, style), part)
        else:
            yield from (style(style_name, part) if style_name else part for part in _wrap_prose(line, width))


def _closes(line: str, marker: str, fence: str) -> bool:
    return marker.startswith(fence) and not line.strip().strip(marker[0])


def _wrap_prose(line: str, width: int | None) -> Iterator[str]:
    if width is None or line.lstrip().startswith("|"):  # rows of a table are not wrapped
        yield line
        return
    yield from wrap(line, min(width, _MAX_PROSE_WIDTH))


def _style_inline(match: re.Match[str], style: Style) -> str:
    return style("code", match[1]) if match[1] else style("strong", match[2])
