"""Names of models as people write them."""

import re

__all__ = ["display_name"]

_CLAUDE = re.compile(r"claude-(\d+(?:\.\d+)?)-([a-z]+)(?:-(?:low|medium|high))?(-thinking)?")
_GPT = re.compile(r"gpt-(\d+(?:\.\d+)?o?)((?:-[a-z]+)*)")
_GEMINI = re.compile(r"gemini-(\d+(?:\.\d+)?)((?:-[a-z]+)*)")


def display_name(model: str) -> str:
    """``claude-4.5-opus-high-thinking`` as ``Claude Opus 4.5 (Thinking)``; an id of another form as it is."""
    if found := _CLAUDE.fullmatch(model):
        return f"Claude {found[2].capitalize()} {found[1]}{' (Thinking)' if found[3] else ''}"
    if found := _GPT.fullmatch(model):
        return f"GPT-{found[1]}{_words(found[2])}"
    if found := _GEMINI.fullmatch(model):
        return f"Gemini {found[1]}{_words(found[2])}"
    return model


def _words(tail: str) -> str:
    return "".join(f" {word.capitalize()}" for word in tail.split("-") if word)
