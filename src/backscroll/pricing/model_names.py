"""Normalize the model names of tools, clouds and gateways."""

import re

__all__ = ["plain_name", "qualifiers_of"]

_VENDOR = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|google|xai|x-ai|deepseek|moonshotai)\.")
_ENDINGS = (
    re.compile(r"\[[^\]]*\]$"),  # claude-sonnet-4-5[1m]
    re.compile(r"@.*$"),  # claude-sonnet-4@20250514
    re.compile(r"-v\d+(?::\d+)*$"),  # anthropic.claude-…-v1:0
    re.compile(r"[-_]20\d\d-?\d\d-?\d\d$"),
    re.compile(r"-(?:latest|preview(?:-\d\d-\d\d)?|exp(?:-\d\d-\d\d)?)$"),
)
_VERSION = re.compile(r"(?<=\d)\.(?=\d)")
# Cursor writes the version before the family, as Anthropic did until version 3.
_TURNED = re.compile(r"^(?:claude-)?(\d+(?:-\d+)?)-(opus|sonnet|haiku|fable|mythos)(?=-|$)")
_BARE = re.compile(r"^(opus|sonnet|haiku|fable|mythos)(?=-\d)")
# The reasoning effort does not change the price of a token; the speed may.
_QUALIFIERS = frozenset(
    ("thinking", "reasoning", "minimal", "low", "medium", "high", "xhigh", "max", "none", "fast", "priority")
)


def plain_name(model: str) -> str:
    """Return a name without vendor, region, date and interface version, such as claude-opus-4-5."""
    name = _VENDOR.sub("", model.strip().lower().rpartition("/")[2])
    for ending in _ENDINGS:
        name = ending.sub("", name)
    name = _VERSION.sub("-", name)
    name = _TURNED.sub(r"claude-\2-\1", name)
    return _BARE.sub(r"claude-\1", name)


def qualifiers_of(name: str) -> tuple[str, str | None]:
    """Split the last word off a plain name if it is a qualifier; otherwise return None for it."""
    shorter, dash, word = name.rpartition("-")
    return (shorter, word) if dash and word in _QUALIFIERS else (name, None)
