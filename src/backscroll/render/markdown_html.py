"""What an assistant wrote, as HTML: Markdown with nothing in it that could load, run or escape.

HTML in a text is shown as text, pictures are named instead of loaded, and only
links to the web and to mail addresses are links.
"""

import re
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from backscroll.model.sanitize import sanitize

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererProtocol
    from markdown_it.token import Token
    from pygments.lexer import Lexer

__all__ = ["highlight_code", "markdown_to_html", "preformatted_html"]

_LARGEST = 60_000  # characters of Markdown; longer ones are pasted files and logs
_LARGEST_CODE = 20_000  # characters that are coloured
_LINKED = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


def preformatted_html(text: str, name: str = "") -> str:
    """The text as it stands."""
    text = sanitize(text)
    kind = f' class="{name}"' if name else ""
    first = "\n" if text.startswith("\n") else ""  # a parser drops one line end after <pre>
    return f"<pre{kind}>{first}{escape(text)}</pre>\n"


def markdown_to_html(text: str) -> str:
    """The text as paragraphs, lists, tables and code."""
    text = sanitize(text)
    if len(text) > _LARGEST:
        return preformatted_html(text, "said")
    return str(_parser().render(text))


def highlight_code(code: str, language: str) -> str:
    """The code with its words marked by class; empty when the language is unknown or there is too much."""
    lexer = _lexer(language.lower()) if 0 < len(code) <= _LARGEST_CODE else None
    if lexer is None:
        return ""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter

    return str(highlight(code, lexer, HtmlFormatter(nowrap=True, classprefix="k-")))


@lru_cache(maxsize=64)
def _lexer(language: str) -> "Lexer | None":
    if not re.fullmatch(r"[\w+#.-]{1,30}", language) or language in ("text", "txt", "plain", "console"):
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    class Guarded(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802  the library's own name
            return _LINKED.match(url) is not None

    parser = Guarded("commonmark", {"html": False, "xhtmlOut": False})
    parser.enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_open", _link)
    parser.add_render_rule("fence", _fence)
    return parser


def _image(
    renderer: "RendererProtocol",
    tokens: "Sequence[Token]",
    place: int,
    options: Any,
    _: MutableMapping[str, Any],
) -> str:
    token = tokens[place]
    return f'<span class="picture">{escape(token.content)} {escape(str(token.attrs.get("src", "")))}</span>'


def _link(
    renderer: "RendererProtocol",
    tokens: "Sequence[Token]",
    place: int,
    options: Any,
    _: MutableMapping[str, Any],
) -> str:
    return f'<a href="{escape(str(tokens[place].attrs.get("href", "")))}" rel="noopener noreferrer">'


def _fence(
    renderer: "RendererProtocol",
    tokens: "Sequence[Token]",
    place: int,
    options: Any,
    _: MutableMapping[str, Any],
) -> str:
    token = tokens[place]
    language = token.info.strip().split(maxsplit=1)[0] if token.info.strip() else ""
    label = f'<span class="language">{escape(language)}</span>' if language else ""
    # Cursor writes the file after the language: ```ts:src/board.ts
    code = highlight_code(token.content, language.partition(":")[0]) or escape(token.content)
    return f'<div class="code">{label}<pre><code>{code}</code></pre></div>\n'
