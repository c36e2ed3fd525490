"""Text that nobody's history can use against whoever reads it.

Escapes that a terminal obeys, control characters, and marks that hide or reorder
what is shown are taken out; everything else stays as it was written.
"""

import re

__all__ = ["escape_json", "one_line", "sanitize"]

# Put together when they are first needed: most of what is shown is plain.
_HOSTILE = (
    # Sequences first, so that nothing of them is left behind; then every control character by itself.
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    "|[\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
# The same marks as UTF-8, in JSON: there they can be spelled out, and nothing is lost.
_UNESCAPED = (
    rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\x8b\x8e\x8f\xa8-\xae]|\xe2\x81[\xa0-\xa9]|\xef\xbb\xbf"
    rb"|\xf3\xa0[\x80\x81][\x80-\xbf]"
)


_CONTROLS = bytes(code for code in (*range(32), 127) if code not in b"\t\n")


def sanitize(text: str) -> str:
    """The text without escapes, control characters and marks that change how it is shown."""
    if text.isascii() and len(text.encode().translate(None, _CONTROLS)) == len(text):
        return text  # nearly all there is, and twenty times as fast
    return re.sub(_HOSTILE, "", text.replace("\r\n", "\n"))


def one_line(text: str, width: int) -> str:
    """The text in one line of at most so many characters."""
    line = " ".join(sanitize(text[: width * 20]).split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def escape_json(document: bytes) -> bytes:
    """JSON that says the same with every mark that a terminal or a reader could obey spelled as ``\\u…``."""
    return (
        document if document.isascii() and b"\x7f" not in document else re.sub(_UNESCAPED, _spelled, document)
    )


def _spelled(mark: re.Match[bytes]) -> bytes:
    units = mark[0].decode().encode("utf-16-be")
    return b"".join(b"\\u%02x%02x" % (units[at], units[at + 1]) for at in range(0, len(units), 2))
