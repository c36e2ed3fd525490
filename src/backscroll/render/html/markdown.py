"""Convert Markdown to HTML that cannot load resources, run scripts or leave its element.

HTML in the text is shown as text, images are named and not loaded, and only http, https and mailto links
are links.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING

from backscroll.model.text import sanitize
from backscroll.render.html.highlighting import highlight_code

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


_MAX_MARKDOWN_CHARS = 60_000  # longer texts are pasted files and logs
_ALLOWED_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_CODE = r"`[^`\s](?:[^`\n]*[^`\s])?`(?!`)"
_CHAR = r"[^\s\\`*_<>&\[\]~|]"
_BOLD = rf"(?<![^\s])\*\*[A-Za-z0-9](?:(?:{_CHAR}| )*[A-Za-z0-9])?\*\*(?![^\s.,:;])"
_PLAIN = rf"{_CHAR}|(?<=[A-Za-z0-9])_(?=[A-Za-z0-9])|{_BOLD}|{_CODE}"
_LINE = rf"(?:[^\W\d_]|{_BOLD}|{_CODE})(?: *(?:{_PLAIN}))*"
_SIMPLE_LINES = re.compile(rf"{_LINE}(?:\n{_LINE})*")  # no list, heading, link or line break
_BOLD_SPAN = re.compile(r"`[^`]+`|\*\*([^*]+)\*\*")
_CODE_SPAN = re.compile("`([^`]+)`")
_CLOSED_FENCE = re.compile(r"^```([\w+#:./-]*)\n((?:(?!.*```).*\n)*)```$", re.MULTILINE)


def preformatted_html(text: str, css_class: str = "") -> str:
    """Return the text as a preformatted block."""
    text = sanitize(text)
    attribute = f' class="{css_class}"' if css_class else ""
    newline = "\n" if text.startswith("\n") else ""  # browsers drop one newline after <pre>
    return f"<pre{attribute}>{newline}{escape(text)}</pre>\n"


def markdown_to_html(text: str) -> str:
    """Return the text as paragraphs, lists, tables and code."""
    text = sanitize(text)
    if len(text) > _MAX_MARKDOWN_CHARS:
        return preformatted_html(text, "text")
    return _simple_html(text) or str(_parser().render(text))


def _simple_html(text: str) -> str:
    """Return simple paragraphs and closed fences as HTML, 10 times as fast as the parser.

    Empty if there is anything else.
    """
    html = []
    parts = iter(_CLOSED_FENCE.split(text))
    for between in parts:
        if lines := between.strip("\n"):
            html.append(_simple_paragraphs(lines))
            if not html[-1]:
                return ""
        if (language := next(parts, None)) is not None:
            html.append(_code_block(language, next(parts)))
    return "".join(html)


def _simple_paragraphs(text: str) -> str:
    """Return lines of plain text, bold text and inline code as paragraphs; empty if there is more."""
    paragraphs = text.split("\n\n")
    if not all(map(_SIMPLE_LINES.fullmatch, paragraphs)):
        return ""
    escaped = (escape(paragraph, quote=False).replace('"', "&quot;") for paragraph in paragraphs)
    return "".join(f"<p>{_with_spans(paragraph)}</p>\n" for paragraph in escaped)


def _with_spans(paragraph: str) -> str:
    if "**" in paragraph:
        paragraph = _BOLD_SPAN.sub(
            lambda span: f"<strong>{span[1]}</strong>" if span[1] else span[0], paragraph
        )
    return _CODE_SPAN.sub(r"<code>\1</code>", paragraph)


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    class SafeMarkdownIt(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802  overrides a method of the library
            return _ALLOWED_LINK.match(url) is not None

    parser = SafeMarkdownIt("commonmark", {"html": False, "xhtmlOut": False})
    parser.enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_open", _link)
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("th_open", _cell)
    parser.add_render_rule("td_open", _cell)
    return parser


def _image(_: object, tokens: "Sequence[Token]", index: int, *_rest: object) -> str:
    token = tokens[index]
    return f'<span class="image">{escape(token.content)} {escape(str(token.attrs.get("src", "")))}</span>'


def _link(_: object, tokens: "Sequence[Token]", index: int, *_rest: object) -> str:
    return f'<a href="{escape(str(tokens[index].attrs.get("href", "")))}" rel="noopener noreferrer">'


def _cell(_: object, tokens: "Sequence[Token]", index: int, *_rest: object) -> str:
    """Return the start of a table cell. Its alignment is a class: content policies forbid a style."""
    token = tokens[index]
    alignment = str(token.attrs.get("style", "")).removeprefix("text-align:")
    return f'<{token.tag} class="{alignment}">' if alignment in ("center", "right") else f"<{token.tag}>"


def _fence(_: object, tokens: "Sequence[Token]", index: int, *_rest: object) -> str:
    token = tokens[index]
    return _code_block(token.info.strip().split(maxsplit=1)[0] if token.info.strip() else "", token.content)


def _code_block(language: str, text: str) -> str:
    label = f'<span class="language">{escape(language)}</span>' if language else ""
    # Cursor appends the file to the language: ```ts:src/board.ts
    code = highlight_code(text, language.partition(":")[0]) or escape(text)
    return f'<div class="code">{label}<pre><code>{code}</code></pre></div>\n'
