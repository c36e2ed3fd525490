"""Text to print: safe text from a history, and counts with their nouns.

`sanitize` removes terminal escape sequences, control characters, and invisible characters that hide or
reorder text. Everything else stays unchanged.
"""

import re

# Strings, compiled on first use: most text is plain and needs no regular expression.
_UNSAFE_CHARACTER = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
# Sequences come first, so that no part of one remains.
_UNSAFE_PATTERN = (
    rf"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|{_UNSAFE_CHARACTER}"
)
# The same characters as UTF-8. JSON can escape them, so nothing is lost there.
_UNSAFE_JSON_PATTERN = (
    rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\x8b\x8e\x8f\xa8-\xae]|\xe2\x81[\xa0-\xa9]|\xef\xbb\xbf"
    rb"|\xf3\xa0[\x80\x81][\x80-\xbf]"
)
_BLOCK_BYTES = 512
_ASCII_CONTROLS = bytes(code for code in (*range(32), 127) if code not in b"\t\n")


def sanitize(text: str) -> str:
    """Return the text without escape sequences, control characters and invisible formatting characters."""
    if text.isascii() and len(text.encode().translate(None, _ASCII_CONTROLS)) == len(text):
        return text  # the common case, 20 times faster
    if re.search(_UNSAFE_CHARACTER, text) is None:
        return text
    return re.sub(_UNSAFE_PATTERN, "", text.replace("\r\n", "\n"))


def one_line(text: str, width: int) -> str:
    """Return the sanitized text as one line of at most `width` characters."""
    line = " ".join(sanitize(text[: width * 20]).split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def escape_json(document: bytes) -> bytes:
    """Return equivalent JSON in which every unsafe character is written as ``\\u…``."""
    has_delete = b"\x7f" in document
    if document.isascii() and not has_delete:
        return document
    replace = re.compile(_UNSAFE_JSON_PATTERN).sub
    parts: list[bytes] = []
    start, size = 0, len(document)
    while start < size:  # blocks of lines: most are ASCII, which is checked 50 times as fast
        end = document.find(b"\n", start + _BLOCK_BYTES) + 1 or size
        part = document[start:end]
        parts.append(part if part.isascii() and not has_delete else replace(_escape_character, part))
        start = end
    return b"".join(parts)


def _escape_character(match: re.Match[bytes]) -> bytes:
    units = match[0].decode().encode("utf-16-be")
    return b"".join(b"\\u%02x%02x" % (units[at], units[at + 1]) for at in range(0, len(units), 2))


def pluralize(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: ``1 session``, ``1,200 messages``, ``2 matches``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
