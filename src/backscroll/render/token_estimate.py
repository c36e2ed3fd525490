"""Estimate how many tokens a text takes, without a tokenizer.

Four ASCII characters count as one token, every other character as one token each. For English and code the
estimate is within 10 to 20 %; for other text it is on the high side.
"""

CHARS_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Return the estimated number of tokens, rounded up."""
    others = 0 if text.isascii() else sum(not char.isascii() for char in text)
    return others - (others - len(text)) // CHARS_PER_TOKEN


def truncate_to_tokens(text: str, tokens: int) -> str:
    """Return the text, or as much of it as fits into `tokens`, ended after a word with ``…``."""
    if estimate_tokens(text) <= tokens:
        return text
    chars_left = (tokens - 1) * CHARS_PER_TOKEN  # the ellipsis takes one token
    end = 0
    for end, char in enumerate(text):  # noqa: B007
        chars_left -= 1 if char.isascii() else CHARS_PER_TOKEN
        if chars_left < 0:
            break
    kept = text[:end]
    word_end = max(kept.rfind(" "), kept.rfind("\n"))
    return (kept[:word_end] if word_end > end // 2 else kept).rstrip() + "…"
