"""Convert Markdown to HTML that cannot load resources, run scripts or leave its element.

HTML in the text is shown as text, images are named and not loaded, and only http, https and mailto links
are links.
"""

import re
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from backscroll.model.text import sanitize
from backscroll.render.html.highlighting import highlight_code

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererProtocol
    from markdown_it.token import Token

__all__ = ["markdown_to_html", "preformatted_html"]

_MAX_MARKDOWN_CHARS = 60_000  # longer texts are pasted files and logs
_ALLOWED_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


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
    return str(_parser().render(text))


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


def _image(
    renderer: "RendererProtocol",
    tokens: "Sequence[Token]",
    index: int,
    options: Any,
    _: MutableMapping[str, Any],
) -> str:
    token = tokens[index]
    return f'<span class="image">{escape(token.content)} {escape(str(token.attrs.get("src", "")))}</span>'


def _link(
    renderer: "RendererProtocol",
    tokens: "Sequence[Token]",
    index: int,
    options: Any,
    _: MutableMapping[str, Any],
) -> str:
    return f'<a href="{escape(str(tokens[index].attrs.get("href", "")))}" rel="noopener noreferrer">'


def _cell(
    renderer: "RendererProtocol",
    tokens: "Sequence[Token]",
    index: int,
    options: Any,
    _: MutableMapping[str, Any],
) -> str:
    """Return the start of a table cell. Its alignment is a class: content policies forbid a style."""
    token = tokens[index]
    alignment = str(token.attrs.get("style", "")).removeprefix("text-align:")
    return f'<{token.tag} class="{alignment}">' if alignment in ("center", "right") else f"<{token.tag}>"


def _fence(
    renderer: "RendererProtocol",
    tokens: "Sequence[Token]",
    index: int,
    options: Any,
    _: MutableMapping[str, Any],
) -> str:
    token = tokens[index]
    language = token.info.strip().split(maxsplit=1)[0] if token.info.strip() else ""
    label = f'<span class="language">{escape(language)}</span>' if language else ""
    # Cursor appends the file to the language: ```ts:src/board.ts
    code = highlight_code(token.content, language.partition(":")[0]) or escape(token.content)
    return f'<div class="code">{label}<pre><code>{code}</code></pre></div>\n'
