"""Topics of sessions: words that occur in many titles and first prompts."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from itertools import pairwise

__all__ = ["topics_of"]

_WORD = re.compile(r"[^\W\d_][\w'-]*[^\W_]")
MIN_SESSIONS = 2  # with the same word


def topics_of(texts: Iterable[str], limit: int) -> list[tuple[str, int]]:
    """Return the most frequent words and word pairs, each counted once per text.

    A word that occurs almost only in a returned pair is left out.
    """
    words: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    stop_words = _stop_words()
    for text in texts:
        # A stop word separates the words around it: they are not a pair.
        tokens = [
            word if len(word) > 2 and word not in stop_words else "" for word in _WORD.findall(text.lower())
        ]
        words.update({word for word in tokens if word})
        pairs.update({f"{one} {other}" for one, other in pairwise(tokens) if one and other and one != other})
    ranked = sorted((words + pairs).items(), key=lambda item: (-item[1], " " not in item[0], item[0]))
    topics: list[tuple[str, int]] = []
    within: Counter[str] = Counter()
    for topic, count in ranked:
        if len(topics) == limit or count < MIN_SESSIONS:
            break
        parts = topic.split()
        if len(parts) == 1 and within[topic] * 5 >= count * 4:
            continue
        if len(parts) == 2 and any(part in dict(topics) and count * 2 < words[part] for part in parts):
            continue
        topics.append((topic, count))
        for part in parts if len(parts) == 2 else ():
            within[part] = max(within[part], count)
    return topics


@cache
def _stop_words() -> frozenset[str]:
    """Return the stop words: function words, and words of every request."""
    return frozenset(files("backscroll.stats").joinpath("stop_words.txt").read_text("utf-8").split())
