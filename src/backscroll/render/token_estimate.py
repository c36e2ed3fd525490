"""How many tokens a text costs a model, by a rule that needs no tokeniser.

Four ASCII characters are taken for one token, and every other character for one
of its own: right for English and code within a tenth or two, and on the safe side
for everything else.
"""

__all__ = ["estimate_tokens", "truncate_to_tokens"]

_CHARACTERS = 4


def estimate_tokens(text: str) -> int:
    """The estimate, rounded up."""
    others = 0 if text.isascii() else sum(not char.isascii() for char in text)
    return others - (others - len(text)) // _CHARACTERS


def truncate_to_tokens(text: str, tokens: int) -> str:
    """The text, or as much of it as so many tokens pay for, ended at a word with ``…``."""
    if estimate_tokens(text) <= tokens:
        return text
    room = (tokens - 1) * _CHARACTERS  # the mark is a token of its own
    end = 0
    for end, char in enumerate(text):  # noqa: B007
        room -= 1 if char.isascii() else _CHARACTERS
        if room < 0:
            break
    kept = text[:end]
    word = max(kept.rfind(" "), kept.rfind("\n"))
    return (kept[:word] if word > end // 2 else kept).rstrip() + "…"
