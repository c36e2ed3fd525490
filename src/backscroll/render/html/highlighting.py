"""Highlight code. Lexers are found by the name of a language or by the name of a file."""

import re
from functools import lru_cache
from html import escape
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from backscroll.lru_cache import LRUCache

if TYPE_CHECKING:
    from pygments.lexer import Lexer


MAX_HIGHLIGHTED_CHARS = 20_000
MAX_CACHE_BYTES = 8 * 1024 * 1024  # of encoded spans
_CLASS_PREFIX = "k-"
# Classes that the style sheets color.
_STYLED_CLASSES = {
    "k", "kd", "kn", "kr", "kt", "kc", "kp", "ow", "nt", "s", "s1", "s2", "sa", "sb", "sc", "sd", "se",
    "sh", "si", "sr", "ss", "sx", "dl", "m", "mi", "mf", "mh", "mo", "mb", "il", "c", "c1", "cm", "ch",
    "cp", "cpf", "cs", "nf", "nc", "nb", "nd", "fm", "na", "nn", "gi", "gd", "gu", "gh",
}  # fmt: skip
_PLAIN_LANGUAGES = ("text", "txt", "plain", "console")
# File names and extensions that are not the name of a lexer.
_LANGUAGES = {
    "makefile": "make", "dockerfile": "docker", "cmakelists.txt": "cmake",
    "cc": "cpp", "cjs": "js", "conf": "ini", "cts": "ts", "cxx": "cpp", "gql": "graphql", "gradle": "groovy",
    "h": "c", "hpp": "cpp", "htm": "html", "ipynb": "json", "jsonl": "json", "kt": "kotlin", "kts": "kotlin",
    "mjs": "js", "ml": "ocaml", "mts": "ts", "patch": "diff", "svelte": "html", "svg": "xml", "yml": "yaml",
}  # fmt: skip

CodeSpan = tuple[str, str]  # CSS class, empty for plain text, and text without newlines

# A lexer takes 4 s per million characters. A server shows the same code again and again; encoded spans are a
# tenth of the size of the objects.
_cache = LRUCache[tuple[str, str], bytes](MAX_CACHE_BYTES, len)
_cache_lock = Lock()
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[list[CodeSpan]]).decode


def highlight_code(code: str, language: str) -> str:
    """Return highlighted code; empty if the language is unknown or the code is too long.

    An element never spans several lines.
    """
    lines = code_spans(code.split("\n"), language)
    return "\n".join(map(spans_to_html, lines)) if lines is not None else ""


def language_of_path(path: str) -> str:
    """Return the name of a language for `highlight_code`, from a file name; empty without an extension."""
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    if name in _LANGUAGES:
        return _LANGUAGES[name]
    extension = name.rpartition(".")[2] if "." in name else ""
    return _LANGUAGES.get(extension, extension)


def code_spans(lines: list[str], language: str) -> list[list[CodeSpan]] | None:
    """Return the spans of each line; None if the language is unknown or the code is too long."""
    lexer = _lexer(language.lower()) if can_highlight(lines, language) else None
    if lexer is None:
        return None
    code = "\n".join(lines)
    key = code, language.lower()
    with _cache_lock:
        known = _cache.get(key)
    if known is not None:
        return _decode(known) if known else None
    spans = _lex(lexer, code, lines)
    try:
        encoded = _encode(spans) if spans is not None else b""
    except UnicodeEncodeError:  # half of a character
        return spans
    with _cache_lock:
        _cache.put(key, encoded)
    return spans


def can_highlight(lines: list[str], language: str) -> bool:
    """Return whether the language is known and the code is not too long."""
    size = sum(map(len, lines)) + len(lines) - 1
    return 0 < size <= MAX_HIGHLIGHTED_CHARS and _lexer(language.lower()) is not None


def _lex(lexer: "Lexer", code: str, lines: list[str]) -> list[list[CodeSpan]] | None:
    """Return the spans of each line; None if the tokens of the lexer are not the same text."""
    found: list[list[CodeSpan]] = [[]]
    for token, text in lexer.get_tokens(code):
        css_class = _css_class(token)
        first, *others = text.split("\n")
        if first:
            line = found[-1]
            if line and line[-1][0] == css_class:
                line[-1] = css_class, line[-1][1] + first
            else:
                line.append((css_class, first))
        found += ([(css_class, part)] if part else [] for part in others)
    # A lexer may add a newline at the end. Anything else is not the same text.
    found = found[: len(lines)]
    is_same = ["".join(text for _, text in spans) for spans in found] == lines
    return found if is_same else None


class CodeHighlighter:
    """Highlights up to a number of characters in all, because highlighting takes about 4 s per million.

    With ``is_plain``, it returns spans without classes and counts them.
    """

    def __init__(self, max_chars: int, *, is_plain: bool = False) -> None:
        self._remaining_chars = max_chars
        self._is_plain = is_plain
        self.plain_count = 0  # of texts that could be highlighted

    def spans(self, lines: list[str], language: str) -> list[list[CodeSpan]] | None:
        """Return the spans of each line; None if they are not highlighted."""
        size = sum(map(len, lines))
        if size > self._remaining_chars:
            return None
        spans = self._plain_spans(lines, language) if self._is_plain else code_spans(lines, language)
        if spans is not None:
            self._remaining_chars -= size
        return spans

    def _plain_spans(self, lines: list[str], language: str) -> list[list[CodeSpan]] | None:
        if not can_highlight(lines, language):
            return None
        self.plain_count += 1
        return [[("", line)] if line else [] for line in lines]


def spans_to_html(spans: list[CodeSpan]) -> str:
    """Return spans as HTML."""
    return "".join(
        f'<span class="{css_class}">{escape(text)}</span>' if css_class else escape(text)
        for css_class, text in spans
    )


@lru_cache(maxsize=256)
def _css_class(token: Any) -> str:
    from pygments.token import STANDARD_TYPES

    while token not in STANDARD_TYPES:
        token = token.parent
    name = STANDARD_TYPES[token]
    return f"{_CLASS_PREFIX}{name}" if name in _STYLED_CLASSES else ""


@lru_cache(maxsize=64)
def _lexer(language: str) -> "Lexer | None":
    if not re.fullmatch(r"[\w+#.-]{1,30}", language) or language in _PLAIN_LANGUAGES:
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
