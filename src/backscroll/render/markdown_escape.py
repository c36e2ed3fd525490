"""Escape text from a history for use inside a Markdown page.

Markdown text can affect the page around it: open a fence without closing it, contain HTML, load images,
define links for the rest of the page. A text is used as Markdown only if all of this has been escaped *and* a
parser confirms that none is left. Otherwise it is shown in a code fence.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from backscroll.model.text import sanitize

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["blockquote", "code_fence", "code_span", "escape_markdown", "safe_markdown"]

_SPECIAL = re.compile(r"[\\`*_\[\]<>#&|~$!]")
_MAX_MARKDOWN_CHARS = 60_000  # longer texts are pasted files and logs
_SUSPECT = re.compile(r"[<`~\[\]\\]|^ {0,3}#|^[ \t>]*[=-]+[ \t]*$", re.MULTILINE)
_CODE_SPAN = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_CLOSED_FENCE = re.compile(r"^```[\w+#:./-]*\n(?:(?!.*```).*\n)*```[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^( {0,3})(#{1,6})(?=[ \t]|$)")
_DEFINITION = re.compile(r"^([ \t>]*(?:[-*+]|\d+[.)])?[ \t>]*)\[")
_OPENERS = re.compile(r"\\.|(`+)|<|!\[", re.DOTALL)
_ALLOWED_LINK = re.compile(r"(?:https?://|mailto:|#|[^:]*$)", re.IGNORECASE)
_END_MARKER = "backscrollend"
_HEADING_SHIFT = 3  # headings of a text are below those of the page


def escape_markdown(text: str) -> str:
    """Return the text in one line with all Markdown characters escaped."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", sanitize(text).replace("\n", " "))


def code_span(text: str) -> str:
    """Return the text in one line as inline code."""
    text = sanitize(text).replace("\n", " ")
    ticks = "`" * (_longest_run(text, "`") + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}" if text.strip() else ""


def code_fence(text: str, language: str = "") -> str:
    """Return the text in a code fence that nothing in it can close."""
    text = sanitize(text)
    fence = "`" * max(3, _longest_run(text, "`") + 1)
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}\n"


def _longest_run(text: str, character: str) -> int:
    return max(map(len, re.findall(f"{character}+", text)), default=0)


def safe_markdown(text: str) -> str:
    """Return the text as Markdown that cannot affect the page around it, or in a code fence."""
    lines = _safe_lines(sanitize(text))
    return "\n".join(lines) + "\n" if lines is not None else code_fence(text)


def blockquote(text: str) -> str:
    """Return the same as a block quote that keeps the line breaks."""
    text = sanitize(text).expandtabs(4)  # after > a tab has a different width
    lines = _safe_lines(text)
    is_plain = _is_plain(text)
    if lines is not None:
        has_code = not is_plain or "    " in text or "```" in text
        code = _code_lines(_parser().parse("\n".join(lines))) if has_code else set()
        quoted = "".join(
            f"> {line.rstrip()}  \n"
            if index not in code and line.strip() and after.strip()
            else f"> {line}".rstrip() + "\n"
            for index, (line, after) in enumerate(zip(lines, [*lines[1:], ""], strict=True))
        )
        if is_plain or _is_safe(quoted):
            return quoted
    return "".join(f"> {line}\n" for line in code_fence(text).removesuffix("\n").split("\n"))


def _safe_lines(text: str) -> list[str] | None:
    """Return lines without side effects on the page; None if the text needs a code fence."""
    text = text.strip("\n")
    if len(text) > _MAX_MARKDOWN_CHARS:
        return None
    if _is_plain(text):
        return text.split("\n")
    tokens = _parser().parse(text)
    lines = text.split("\n")
    code = _code_lines(tokens)
    done: set[int] = set()
    for token in tokens:
        if token.type != "inline" or token.map is None or token.map[0] in done:
            continue
        first, end = token.map
        done.update(range(first, end))
        lines[first:end] = _escape_inline("\n".join(lines[first:end])).split("\n")
    for index, line in enumerate(lines):
        if index in code:
            continue
        line = _HEADING.sub(lambda found: found[1] + "#" * min(6, len(found[2]) + _HEADING_SHIFT), line)
        lines[index] = _DEFINITION.sub(r"\1\[", line) if "]:" in line else line
    last = tokens[-1] if tokens else None
    if last is not None and last.type == "fence" and last.level == 0 and not _is_closed(lines, last):
        lines.append(last.markup)
    return lines if _is_safe("\n".join(lines)) else None


def _is_plain(text: str) -> bool:
    """Return whether a text has no side effects, without parsing it: 10 times as fast.

    Closed fences are ignored, and code spans within a line. A table could divide such a span, and longer
    runs of backticks can enclose lines.
    """
    if len(text) > _MAX_MARKDOWN_CHARS:
        return False
    if "```" in text:
        text = _CLOSED_FENCE.sub("", text)
    if "`" in text and "``" not in text and "|" not in text:
        text = _CODE_SPAN.sub("x", text)
    return not _SUSPECT.search(text)


def _escape_inline(source: str) -> str:
    """Escape HTML and images in a paragraph. Inline code stays unchanged."""
    out, at = [], 0
    while found := _OPENERS.search(source, at):
        out.append(source[at : found.start()])
        at = found.end()
        if ticks := found[1]:
            close = re.compile(f"(?<!`){ticks}(?!`)").search(source, at)
            stop = close.end() if close else at
            out.append(source[found.start() : stop])
            at = stop
        else:
            out.append(found[0] if found[0].startswith("\\") else f"\\{found[0]}")
    return "".join([*out, source[at:]])


def _is_closed(lines: list[str], fence: "Token") -> bool:
    assert fence.map is not None
    last = lines[-1].strip()
    return (
        fence.map[1] - fence.map[0] > 1
        and len(last) >= len(fence.markup)
        and set(last) == {fence.markup[0]}
        and not lines[-1].startswith("    ")
    )


def _code_lines(tokens: "list[Token]") -> set[int]:
    blocks = (
        token.map for token in tokens if token.type in ("fence", "code_block") and token.map is not None
    )
    return {index for first, end in blocks for index in range(first, end)}


def _is_safe(text: str) -> bool:
    """Return whether a permissive parser finds no HTML, image, unusual link or unclosed block."""
    env: dict[str, object] = {}
    tokens = _permissive_parser().parse(f"{text}\n\n{_END_MARKER}\n", env)
    if env.get("references") or len(tokens) < 3 or tokens[-2].content != _END_MARKER or tokens[-2].level != 1:
        return False
    for token in tokens:
        for part in (token, *(token.children or ())):
            if part.type in ("html_block", "html_inline", "image"):
                return False
            if part.type == "link_open" and not _ALLOWED_LINK.match(str(part.attrs.get("href", ""))):
                return False
    return True


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@lru_cache(maxsize=1)
def _permissive_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    class PermissiveMarkdownIt(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802  overrides a method of the library
            return True

    return PermissiveMarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
