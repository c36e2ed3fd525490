"""Display names of models."""

import re

__all__ = ["display_name"]

_EFFORT = r"(?:-(?:low|medium|high|xhigh|max))?"
_CLAUDE = re.compile(rf"claude-(\d+(?:\.\d+)?)-([a-z]+){_EFFORT}(-thinking)?")
_NEWER_CLAUDE = re.compile(rf"claude-([a-z]+)-(\d+)(?:-(\d{{1,2}}))?(-thinking)?{_EFFORT}")
_GPT = re.compile(r"gpt-(\d+(?:\.\d+)?o?)((?:-[a-z]+)*)")
_OTHER = re.compile(r"(gemini|composer|grok)((?:-(?:[a-z]+|\d+(?:\.\d+)?))+)")


def display_name(model: str) -> str:
    """Return ``Claude Opus 4.5 (Thinking)`` for ``claude-4.5-opus-high-thinking``; unknown ids unchanged."""
    if found := _CLAUDE.fullmatch(model):
        return f"Claude {found[2].capitalize()} {found[1]}{' (Thinking)' if found[3] else ''}"
    if found := _NEWER_CLAUDE.fullmatch(model):
        version = f"{found[2]}.{found[3]}" if found[3] else found[2]
        return f"Claude {found[1].capitalize()} {version}{' (Thinking)' if found[4] else ''}"
    if found := _GPT.fullmatch(model):
        return f"GPT-{found[1]}{_capitalized_words(found[2])}"
    if found := _OTHER.fullmatch(model):
        return f"{found[1].capitalize()}{_capitalized_words(found[2])}"
    return model


def _capitalized_words(tail: str) -> str:
    return "".join(f" {word.capitalize()}" for word in tail.split("-") if word)
