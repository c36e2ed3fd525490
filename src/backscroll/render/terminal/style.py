"""ANSI styles for terminals."""

__all__ = ["Style"]

_ANSI_CODES = {
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
    "accent": "36",
    "code": "36",
    "strong": "1",
    "star": "33",
}


class Style:
    """Applies ANSI codes by name. Without colors it returns the text unchanged."""

    def __init__(self, *, is_colored: bool) -> None:
        self.is_colored = is_colored

    def __call__(self, name: str, text: str) -> str:
        if not self.is_colored or not text:
            return text
        return f"\x1b[{_ANSI_CODES[name]}m{text}\x1b[0m"
