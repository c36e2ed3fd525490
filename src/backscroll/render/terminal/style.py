"""Colours of a terminal, or none."""

__all__ = ["Style"]

_CODES = {
    "title": "1",
    "user": "1;36",
    "assistant": "1;32",
    "thinking": "2;3",
    "tool": "1",
    "error": "31",
    "system": "2",
    "agent": "35",
    "dim": "2",
    "added": "32",
    "removed": "31",
    "place": "36",
    "code": "36",
    "strong": "1",
    "star": "33",
}


class Style:
    """Paints text by what it is; without colours it gives the text back."""

    def __init__(self, *, is_coloured: bool) -> None:
        self.is_coloured = is_coloured

    def __call__(self, what: str, text: str) -> str:
        if not self.is_coloured or not text:
            return text
        return f"\x1b[{_CODES[what]}m{text}\x1b[0m"
