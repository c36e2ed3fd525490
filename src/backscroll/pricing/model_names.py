"""Names of models as tools, clouds and gateways spell them, brought to one spelling."""

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
# How hard a model thinks does not change what a token of it costs; how fast it answers may.
_QUALIFIERS = frozenset(
    ("thinking", "reasoning", "minimal", "low", "medium", "high", "xhigh", "max", "none", "fast", "priority")
)


def plain_name(model: str) -> str:
    """A model's name without vendor, region, date and interface version, for example claude-opus-4-5."""
    name = _VENDOR.sub("", model.strip().lower().rpartition("/")[2])
    for ending in _ENDINGS:
        name = ending.sub("", name)
    name = _VERSION.sub("-", name)
    name = _TURNED.sub(r"claude-\2-\1", name)
    return _BARE.sub(r"claude-\1", name)


def qualifiers_of(name: str) -> tuple[str, str | None]:
    """A plain name without its last word, and that word; None when it is part of the name."""
    shorter, dash, word = name.rpartition("-")
    return (shorter, word) if dash and word in _QUALIFIERS else (name, None)
