"""Somebody's text inside a Markdown page: it reads as it was meant, and stays in its place.

Markdown lets a text do much to the page around it: open a fence and never close
it, write HTML, load pictures, define links for all that follows. A text is taken
over as Markdown when all of this has been taken out of it *and* a parser agrees
that nothing is left; otherwise it is shown as it stands, in a fence.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from backscroll.model.sanitize import sanitize

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["blockquote", "code_fence", "code_span", "escape_markdown", "safe_markdown"]

_SPECIAL = re.compile(r"[\\`*_\[\]<>#&|~$!]")
_LARGEST = 60_000  # characters; longer ones are pasted files and logs
_SUSPECT = re.compile(r"[<`~\[\]\\]|^ {0,3}#|^[ \t>]*[=-]+[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^( {0,3})(#{1,6})(?=[ \t]|$)")
_DEFINITION = re.compile(r"^([ \t>]*(?:[-*+]|\d+[.)])?[ \t>]*)\[")
_OPENERS = re.compile(r"\\.|(`+)|<|!\[", re.DOTALL)
_DESTINATION = re.compile(r"(?:https?://|mailto:|#|[^:]*$)", re.IGNORECASE)
_END = "backscrollend"
_DEMOTED = 3  # a text's own headings stand below those of the page


def escape_markdown(text: str) -> str:
    """The text in one line, every character of it taken as it is."""
    return _SPECIAL.sub(lambda mark: f"\\{mark[0]}", sanitize(text).replace("\n", " "))


def code_span(text: str) -> str:
    """The text in one line, as code."""
    text = sanitize(text).replace("\n", " ")
    ticks = "`" * (_longest_run(text, "`") + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}" if text.strip() else ""


def code_fence(text: str, language: str = "") -> str:
    """The text as it stands, between fences that nothing in it can close."""
    text = sanitize(text)
    fence = "`" * max(3, _longest_run(text, "`") + 1)
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}\n"


def _longest_run(text: str, mark: str) -> int:
    return max(map(len, re.findall(f"{mark}+", text)), default=0)


def safe_markdown(text: str) -> str:
    """The text as Markdown that cannot reach beyond itself, or fenced where that is not to be had."""
    lines = _neutral(sanitize(text))
    return "\n".join(lines) + "\n" if lines is not None else code_fence(text)


def blockquote(text: str) -> str:
    """The same in a quotation, with its line ends kept."""
    text = sanitize(text).expandtabs(4)  # behind a quotation mark a tab is of another width
    lines = _neutral(text)
    if lines is not None:
        code = _code_lines(_parser().parse("\n".join(lines)))
        told = "".join(
            f"> {line.rstrip()}  \n"
            if place not in code and line.strip() and after.strip()
            else f"> {line}".rstrip() + "\n"
            for place, (line, after) in enumerate(zip(lines, [*lines[1:], ""], strict=True))
        )
        if _is_harmless(told):
            return told
    return "".join(f"> {line}\n" for line in code_fence(text).removesuffix("\n").split("\n"))


def _neutral(text: str) -> list[str] | None:
    """Lines that do nothing but say what they say; None when there is no way but to fence them."""
    text = text.strip("\n")
    if len(text) > _LARGEST:
        return None
    if not _SUSPECT.search(text):
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
        lines[first:end] = _disarmed("\n".join(lines[first:end])).split("\n")
    for place, line in enumerate(lines):
        if place in code:
            continue
        line = _HEADING.sub(lambda found: found[1] + "#" * min(6, len(found[2]) + _DEMOTED), line)
        lines[place] = _DEFINITION.sub(r"\1\[", line) if "]:" in line else line
    last = tokens[-1] if tokens else None
    if last is not None and last.type == "fence" and last.level == 0 and not _is_closed(lines, last):
        lines.append(last.markup)
    return lines if _is_harmless("\n".join(lines)) else None


def _disarmed(source: str) -> str:
    """A paragraph without HTML and pictures; what is in code stays."""
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
    return {place for first, end in blocks for place in range(first, end)}


def _is_harmless(text: str) -> bool:
    """Whether a parser that allows everything finds no HTML, picture, strange link or open end."""
    found: dict[str, object] = {}
    tokens = _trusting().parse(f"{text}\n\n{_END}\n", found)
    if found.get("references") or len(tokens) < 3 or tokens[-2].content != _END or tokens[-2].level != 1:
        return False
    for token in tokens:
        for part in (token, *(token.children or ())):
            if part.type in ("html_block", "html_inline", "image"):
                return False
            if part.type == "link_open" and not _DESTINATION.match(str(part.attrs.get("href", ""))):
                return False
    return True


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@lru_cache(maxsize=1)
def _trusting() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    class Trusting(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802  the library's own name
            return True

    return Trusting("commonmark", {"html": True}).enable(["table", "strikethrough"])
