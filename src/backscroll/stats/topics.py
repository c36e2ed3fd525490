"""What sessions were about: the words that many of their titles and first prompts share."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from itertools import pairwise

__all__ = ["topics_of"]

_WORD = re.compile(r"[^\W\d_][\w'-]*[^\W_]")
_AT_LEAST = 2  # sessions that must share a word to make it a topic


def topics_of(texts: Iterable[str], limit: int) -> list[tuple[str, int]]:
    """The words and pairs of words that most texts share, each counted once in a text.

    A word is left out when it is nearly always said within a pair that is told.
    """
    words: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    empty = _empty_words()
    for text in texts:
        # What says nothing still keeps the words around it from being a pair.
        said = [word if len(word) > 2 and word not in empty else "" for word in _WORD.findall(text.lower())]
        words.update({word for word in said if word})
        pairs.update({f"{one} {other}" for one, other in pairwise(said) if one and other and one != other})
    ranked = sorted((words + pairs).items(), key=lambda item: (-item[1], " " not in item[0], item[0]))
    told: list[tuple[str, int]] = []
    within: Counter[str] = Counter()
    for topic, count in ranked:
        if len(told) == limit or count < _AT_LEAST:
            break
        parts = topic.split()
        if len(parts) == 1 and within[topic] * 5 >= count * 4:
            continue
        if len(parts) == 2 and any(part in dict(told) and count * 2 < words[part] for part in parts):
            continue
        told.append((topic, count))
        for part in parts if len(parts) == 2 else ():
            within[part] = max(within[part], count)
    return told


@cache
def _empty_words() -> frozenset[str]:
    """Words that say nothing by themselves: those of the language, and those of every request."""
    return frozenset(files("backscroll.stats").joinpath("empty_words.txt").read_text("utf-8").split())
