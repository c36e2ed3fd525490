"""In which fields the words of a query can stand, and what that spares the engine.

A message has all its words in one of the text fields, and the parts of its compound identifiers in a field of
their own. So it has several words in one of a few ways: all of them in one text field, or some of them as
parts. The engine goes through the lists of single words faster than through lists that it first has to put
together from all fields.

What was said weighs most. Where enough of it is better than anything that was done can be, what was done need
not be weighed at all. The same messages are the best, with the same scores.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

import tantivy
from msgspec import Struct
from tantivy import Occur

from backscroll.index.engine.schema import TEXT_FIELDS, schema
from backscroll.index.query.compile import PARTS, WEIGHTS, all_of, any_of
from backscroll.index.query.plain import Plain

__all__ = ["Best", "Ways", "highest", "ways_of"]

_MOST = 16  # ways that are worth being asked for one by one
_RARE = 32  # parts are rare when for one of them there are so many words
_SATURATED = 2.2  # how often a word stands in a message counts up to so many times its weight
_ROUNDED = 1.001  # the engine reckons with fewer digits
_MANY = 100_000  # in how many messages words are, all added up, for it to take long to weigh them
_SAID = 1 / 3  # of all messages
_TIMED = 1 / 4  # of them, when a certain time is asked for
_ENOUGH = 4  # times as many messages as are asked for, so that the last of these is a good one
_PROMISING = 0.75  # of what the best can have; less than that is hardly reached by enough messages

_Way = tuple[str, ...]  # for each of the words the field that it is in


class Best(Struct, frozen=True):
    """What to weigh first: whatever it does not find has no higher score than the bound.

    The queries find some messages both. Then the higher score is the right one.
    """

    queries: list[tantivy.Query]
    bound: float


class Ways:
    """All ways in which messages of an index have some words."""

    def __init__(
        self,
        words: Counter[str],
        known: dict[tuple[str, str], int],
        ways: Sequence[_Way],
        *,
        share: float,
        is_timed: bool,
    ) -> None:
        self._words = words  # how often each is asked for
        self._known = known  # in how many messages a word is, by field
        self._ways = ways
        self._share = share  # of all messages that the conditions may let through
        self._is_timed = is_timed  # then each message is looked at twice where lists are put together

    @property
    def most(self) -> int:
        """There are no more messages than that."""
        return sum(
            min(self._known[place] for place in zip(way, self._words, strict=True)) for way in self._ways
        )

    @property
    def are_said(self) -> bool:
        """Whether there may be messages among them that somebody said; else all were done."""
        return all(("said", word) in self._known or (PARTS, word) in self._known for word in self._words)

    @property
    def is_faster(self) -> bool:
        """Whether going through the ways is less work than putting together the lists of all words."""
        if self._is_timed:
            return True
        return 2 * self.most <= sum(there * self._words[word] for (_, word), there in self._known.items())

    def every(self, conditions: Sequence[tantivy.Query]) -> tantivy.Query:
        """Every message that has the words; how well does not matter."""
        return any_of([self._by(way, conditions) for way in self._ways])

    def best(self, conditions: Sequence[tantivy.Query], *, number: int, documents: int) -> Best | None:
        """What to weigh first to find the best messages, so many of them; None when that will hardly help.

        ``documents`` is how many the engine reckons with.
        """
        together = sum(self._known.values())
        said = documents * _SAID
        by_chance = said * math.prod(self._known.get(("said", word), 0) / said for word in self._words)
        if together < _MANY or by_chance * self._share < number * _ENOUGH:
            return None

        def most(field: str, word: str) -> float:
            weight = WEIGHTS[field] * self._words[word]
            return highest(self._known.get((field, word), 0), documents=documents, weight=weight)

        rare = {word for word in self._words if self._known.get((PARTS, word), 0) * _RARE <= together}
        parts = sum(most(PARTS, word) for word in self._words if word not in rare)
        bound = sum(most("done", word) for word in self._words) + parts
        if bound > _PROMISING * sum(most("said", word) for word in self._words):
            return None
        words = [
            any_of([self._weighed(field, word) for field in (("said",) if word in rare else ("said", PARTS))])
            for word in self._words
        ]
        return Best([all_of([*words, *conditions]), *self._with_parts(rare, conditions)], bound)

    def _with_parts(self, rare: set[str], conditions: Sequence[tantivy.Query]) -> Iterator[tantivy.Query]:
        """Whatever has a rare part, weighed by all that it has of the words."""
        ways = [
            way
            for way in self._ways
            if any(field == PARTS and word in rare for field, word in zip(way, self._words, strict=True))
        ]
        if not ways:
            return
        found = tantivy.Query.const_score_query(any_of([self._by(way, conditions) for way in ways]), 0.0)
        # One after the other: several at once would be put together first, for all messages.
        for place in self._known:
            found = tantivy.Query.boolean_query([(Occur.Must, found), (Occur.Should, self._weighed(*place))])
        yield found

    def _by(self, way: _Way, conditions: Sequence[tantivy.Query]) -> tantivy.Query:
        return all_of([*map(_term, way, self._words), *conditions])

    def _weighed(self, field: str, word: str) -> tantivy.Query:
        return tantivy.Query.boost_query(_term(field, word), WEIGHTS[field] * self._words[word])


def ways_of(searcher: tantivy.Searcher, asked: Plain) -> Ways | None:
    """The ways in which messages have all words that are asked for; None when there are too many."""
    words = Counter(asked.words)
    known = {
        (field, word): there
        for word in words
        for field in (*TEXT_FIELDS, PARTS)
        if (there := searcher.doc_freq(field, word))
    }
    choices = [
        [[field for field in (text, PARTS) if (field, word) in known] for word in words]
        for text in TEXT_FIELDS
    ]
    if sum(math.prod(map(len, choice)) for choice in choices) > _MOST:
        return None
    ways = dict.fromkeys(way for choice in choices for way in product(*choice))
    share = _TIMED if asked.is_timed else 1.0
    for tags in asked.tags:
        share *= sum(searcher.doc_freq("tags", one) for one in tags) / max(searcher.num_docs, 1)
    return Ways(words, known, [*ways], share=share, is_timed=asked.is_timed)


def highest(there: int, *, documents: int, weight: float) -> float:
    """A score that no message reaches by a word which is in so many of so many documents."""
    idf = math.log1p((documents - there + 0.5) / (there + 0.5)) if there else 0.0
    return _SATURATED * idf * weight * _ROUNDED


def _term(field: str, word: str) -> tantivy.Query:
    return tantivy.Query.term_query(schema(), field, word, "freq")
