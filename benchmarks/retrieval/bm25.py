"""BM25 with k1 1.5 and b 0.8: the baseline for the ranking of sessions."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from math import log

_K1 = 1.5
_B = 0.8
_WORD = re.compile(r"\w+")
_CJK_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")


class Bm25:
    """Index of documents by key."""

    def __init__(self, text_by_key: Mapping[str, str]) -> None:
        self._postings: dict[str, list[tuple[str, float]]] = defaultdict(list)
        counts = {key: Counter(tokenize(text)) for key, text in text_by_key.items()}
        lengths = {key: count.total() for key, count in counts.items()}
        self._document_count = len(counts)
        average_length = sum(lengths.values()) / max(len(counts), 1)
        for key, count in counts.items():
            norm = _K1 * (1 - _B + _B * lengths[key] / average_length)
            for word, frequency in count.items():
                self._postings[word].append((key, frequency * (_K1 + 1) / (frequency + norm)))

    def rank(self, query: str) -> list[str]:
        """Return the keys of the matching documents, best first."""
        scores: dict[str, float] = defaultdict(float)
        for word in set(tokenize(query)):
            postings = self._postings.get(word, [])
            idf = log(1 + (self._document_count - len(postings) + 0.5) / (len(postings) + 0.5))
            for key, weight in postings:
                scores[key] += idf * weight
        return sorted(scores, key=lambda key: (-scores[key], key))


def tokenize(text: str) -> list[str]:
    """Return lower-case words. Chinese and Japanese runs become overlapping pairs of characters."""
    tokens: list[str] = []
    for word in _WORD.findall(text.lower()):
        runs = _CJK_RUN.findall(word)
        if not runs:
            tokens.append(word)
            continue
        tokens += [part for part in _CJK_RUN.split(word) if part]
        for run in runs:
            tokens += [run[at : at + 2] for at in range(max(len(run) - 1, 1))]
    return tokens
