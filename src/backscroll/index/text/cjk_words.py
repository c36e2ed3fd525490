"""Weights of the character pairs of a query in Chinese, Japanese or Korean.

A question in these languages is one run of characters without spaces. Pairs of function words
say little about its subject, but are rare in a history that is mostly English.
"""

import re
from itertools import pairwise

__all__ = ["weighted_pairs"]

_FUNCTION_WEIGHT = 0.2  # both characters belong to function words
_MIXED_WEIGHT = 0.6

# Strings, compiled on first use: most queries contain no such text.
_HIRAGANA = "[\u3041-\u309f]"  # Japanese inflections and particles; names and nouns rarely use it
_CHINESE_PARTICLES = frozenset(
    "的了吗呢吧啊是在把被和与就也都还又很更最要会能让给用从到对向为以于跟着过得地之其这那"
)
_CHINESE_WORDS = (
    "为什么|怎么样|怎么|什么|如何|哪些|哪个|哪里|多少|我们|你们|他们|大家|当时|上次|之前|之后|后来|最后|这个|那个|这些|那些"
    "|是不是|有没有|可以|因为|所以|如果|但是|时候|一下|一个|一些|没有|已经|还是|以及|问题|办法|解决"
)
_KOREAN_WORDS = (
    "왜|어떻게|어떤|무엇|무슨|어디|언제|우리|저희|이유|문제|때문|해결|에서|에게|으로|까지|부터|하고|했던|하는|되는|했나|되었|이었|였던"
    "|나요|가요|까요|습니까|습니다|했지|였지|었지|[은는이가을를의에도로와과]$"
)


def weighted_pairs(run: str) -> list[tuple[str, float]]:
    """Return every two adjacent characters of a run, and how much each pair says about the subject."""
    if len(run) == 1:
        return [(run, 1.0)]
    is_function = _function_characters(run)
    weights = (1.0, _MIXED_WEIGHT, _FUNCTION_WEIGHT)
    pairs = map("".join, pairwise(run))
    return [(pair, weights[sum(both)]) for pair, both in zip(pairs, pairwise(is_function), strict=True)]


def _function_characters(run: str) -> list[bool]:
    """Return for each character whether it belongs to a function word."""
    if re.search(_HIRAGANA, run):
        return [re.match(_HIRAGANA, char) is not None for char in run]
    is_function = [char in _CHINESE_PARTICLES for char in run]
    for pattern in (_CHINESE_WORDS, _KOREAN_WORDS):
        for match in re.finditer(pattern, run):
            is_function[match.start() : match.end()] = [True] * len(match[0])
    return is_function
