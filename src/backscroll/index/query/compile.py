"""A query as the index's engine understands it."""

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence

import tantivy
from msgspec import Struct
from tantivy import Occur

from backscroll.index.engine.schema import METADATA_TAG, TEXT_FIELDS, path_tokens, schema, tag, tokens_of
from backscroll.index.query.parser import Clause, Filter, Phrase, Query, SessionIds, Term, Word
from backscroll.index.query.plain import Plain, plain_of, plain_tag, plain_word
from backscroll.index.text.inflections import inflections
from backscroll.index.text.tokenize import bigrams, extract_cjk, to_nfc
from backscroll.model import workspace_hash

__all__ = [
    "PARTS",
    "WEIGHTS",
    "CompiledQuery",
    "QueryPart",
    "adjacent",
    "all_of",
    "any_of",
    "escaped",
    "in_sessions",
]

PARTS = "parts"
WEIGHTS = {"said": 2.0, "done": 1.0, PARTS: 0.5}  # of the fields
_FORM_WEIGHT = 0.7
_FEW = 128  # sessions
# What means something in a pattern by itself. Other characters must stay bare: \< is where a word begins.
_SPECIAL = frozenset(r"\.+*?()|[]{}^$#&-~")


class QueryPart(Struct, frozen=True):
    """A part of a query that may be found by itself, and the terms that say how common it is."""

    query: tantivy.Query
    terms: tuple[tuple[str, str], ...]  # field and term


class CompiledQuery:
    """Everything the engine is asked for one query."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.conditions = [tantivy.Query.const_score_query(one, 0.0) for one in _conditions(query)]
        self._excluded = [_either(clause.any_of) for clause in query.clauses if clause.is_negated]
        self._plain = [clause for clause in query.words if not clause.is_stop_word] or list(query.words)
        self._required = [_either(clause.any_of) for clause in self._plain]
        self._welcome = [_welcome(clause.any_of) for clause in query.words if clause not in self._plain]
        self.is_empty = not (self._required or self.conditions or self._excluded)
        # A prefix weighs the same wherever it is found: the newest is then the best.
        self.is_ranked = any(_is_weighed(term) for clause in self._plain for term in clause.any_of)

    def strict(self, *, is_said: bool = True) -> tantivy.Query:
        """Every word, whatever else the question is made of counting in favour where it was said."""
        parts = [(Occur.Must, one) for one in (*self._required, *self.conditions)]
        if self._required and is_said:
            parts += [(Occur.Should, one) for one in self._welcome]
        return self._without_excluded(parts)

    def plain(self) -> Plain | None:
        """What is asked for, when it is single words in messages of some tags and times; else None."""
        filters = [clause for clause in self.query.clauses if clause.is_filter and not clause.is_negated]
        is_timed = self.query.since is not None or self.query.until is not None
        return plain_of(self._plain, filters, is_timed=is_timed)

    def only(self, wanted: tantivy.Query) -> tantivy.Query:
        """What another query for the same words and conditions finds, without what is excluded."""
        welcome = [(Occur.Should, one) for one in self._welcome]
        return self._without_excluded([(Occur.Must, wanted), *welcome])

    def varied(self) -> tantivy.Query | None:
        """Every word in whichever form; None when none has another."""
        varied = [
            _either(clause.any_of, with_inflections=True) for clause in self._plain if _has_forms(clause)
        ]
        if not varied:
            return None
        plain = [_either(clause.any_of) for clause in self._plain if not _has_forms(clause)]
        return self._without_excluded([(Occur.Must, one) for one in (*plain, *varied, *self.conditions)])

    def pieces(self) -> list[QueryPart]:
        """What is looked for when no message has all words: each by itself; none when there is but one."""
        found = [piece for clause in self._plain for piece in _pieces(clause)]
        return found if len(found) > 1 else []

    def any_of(self, pieces: Sequence[QueryPart]) -> tantivy.Query:
        """At least one of the pieces."""
        wanted = any_of([piece.query for piece in pieces])
        return self._without_excluded([(Occur.Must, one) for one in (wanted, *self.conditions)])

    def among(self, wanted: tantivy.Query, there: tantivy.Query) -> tantivy.Query:
        """What a query finds in some sessions; how well does not matter."""
        return all_of([there, wanted, *self.conditions])

    def _without_excluded(self, parts: list[tuple[Occur, tantivy.Query]]) -> tantivy.Query:
        if len(parts) == 1 and not self._excluded and self._required:
            return parts[0][1]
        excluded = list(self._excluded)
        if not self._required:
            excluded += [_term("tags", METADATA_TAG), _term("tags", tag("role", "note"))]
            parts = [*parts, (Occur.Must, tantivy.Query.const_score_query(tantivy.Query.all_query(), 0.0))]
        return tantivy.Query.boolean_query([*parts, *((Occur.MustNot, one) for one in excluded)])


def all_of(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    return (
        queries[0] if len(queries) == 1 else tantivy.Query.boolean_query([(Occur.Must, q) for q in queries])
    )


def any_of(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(Occur.Should, query) for query in queries])


def in_sessions(numbers: Collection[int]) -> tantivy.Query:
    """Every message of some sessions."""
    # Few are sooner looked up one by one: for a set the engine goes through all the numbers that there are.
    if 0 < len(numbers) <= _FEW:
        return any_of([tantivy.Query.term_query(schema(), "session", one, "basic") for one in numbers])
    return tantivy.Query.term_set_query(schema(), "session", [*numbers])


def _conditions(query: Query) -> Iterable[tantivy.Query]:
    for clause in query.clauses:
        if clause.is_filter and not clause.is_negated:
            yield _either(clause.any_of)
    if query.since is not None or query.until is not None:
        yield tantivy.Query.range_query(
            schema(),
            "at",
            tantivy.FieldType.Integer,
            lower_bound=query.since,
            upper_bound=query.until - 1 if query.until is not None else None,
        )


def _either(terms: Iterable[Term], *, with_inflections: bool = False) -> tantivy.Query:
    return any_of([_varied(term) if with_inflections else _query(term) for term in terms])


def _has_forms(clause: Clause) -> bool:
    return any(len(_forms(term)) > 1 for term in clause.any_of)


def _forms(term: Term) -> tuple[str, ...]:
    """The forms of a single plain word; of anything else there are none."""
    word = plain_word(term)
    return inflections(word) if word is not None else ()


def _varied(term: Term) -> tantivy.Query:
    """A word as it is typed, or for less in another form."""
    others = _forms(term)[1:]
    if not others:
        return _query(term)
    found = [tantivy.Query.boost_query(_term(f, other), WEIGHTS[f] * _FORM_WEIGHT)
             for f in TEXT_FIELDS for other in others]  # fmt: skip
    return tantivy.Query.disjunction_max_query([_query(term), *found])


def _pieces(clause: Clause) -> Iterator[QueryPart]:
    """A clause taken apart as far as it may be: what was quoted and what are alternatives stay together."""
    term = clause.any_of[0]
    if len(clause.any_of) > 1 or not isinstance(term, Word) or term.is_prefix:
        yield QueryPart(_either(clause.any_of), ())
        return
    plain, runs = extract_cjk(to_nfc(term.text))
    for run in runs:
        pairs = list(bigrams(unicodedata.normalize("NFKC", run)))
        for pair in pairs[:-1] or pairs:
            yield QueryPart(_run(pair), (("pairs", pair),))
    for token in tokens_of(plain):
        if len(token) > 1 or len(plain) == 1:
            known = tuple((field, form) for field in TEXT_FIELDS for form in inflections(token))
            yield QueryPart(_varied(Word(token)), known)


def _welcome(terms: Iterable[Term]) -> tantivy.Query:
    """Small words, only where people and assistants said them: elsewhere they tell nothing and cost much."""
    found = [
        _term("said", token) for term in terms if isinstance(term, Word) for token in tokens_of(term.text)
    ]
    return any_of(found)


def _is_weighed(term: Term) -> bool:
    return isinstance(term, Word | Phrase) and not (term.is_prefix and len(tokens_of(term.text)) == 1)


def _query(term: Term) -> tantivy.Query:
    """What a term finds; one that is not in any dictionary, a word of a thousand letters, finds nothing."""
    match term:
        case Filter():
            return _filter(term)
        case SessionIds(numbers, is_negated):
            those = in_sessions(numbers)
            if not is_negated:
                return those
            return tantivy.Query.boolean_query(
                [(Occur.Must, tantivy.Query.all_query()), (Occur.MustNot, those)]
            )
        case Word(text, is_prefix):
            found = _spelled(text, is_prefix=is_prefix, with_parts=True)
        case Phrase(text, is_prefix):
            found = _spelled(text, is_prefix=is_prefix)
    return all_of(found) if found else tantivy.Query.empty_query()


def _spelled(text: str, *, is_prefix: bool = False, with_parts: bool = False) -> list[tantivy.Query]:
    """What must all hold for a text to be in a message: its words side by side, its pairs of characters."""
    plain, runs = extract_cjk(to_nfc(text))
    queries = [_run(unicodedata.normalize("NFKC", run)) for run in runs]
    # Between two runs of characters lies a piece of its own: its words stand beside them, not each other.
    pieces = plain.split() if runs else [plain]
    for piece in pieces:
        tokens = tokens_of(piece)
        if tokens:
            is_last = is_prefix and piece is pieces[-1]
            queries.append(_side_by_side(tokens, is_prefix=is_last, with_parts=with_parts))
    return queries


def _side_by_side(tokens: list[str], *, is_prefix: bool, with_parts: bool) -> tantivy.Query:
    found: list[tantivy.Query] = []
    for field in TEXT_FIELDS:
        one = adjacent(field, tokens, is_prefix=is_prefix)
        weight = WEIGHTS[field]
        found.append(one if weight == 1.0 else tantivy.Query.boost_query(one, weight))
    if with_parts and len(tokens) == 1:
        part = _prefix(PARTS, tokens[0]) if is_prefix else _term(PARTS, tokens[0])
        found.append(tantivy.Query.boost_query(part, WEIGHTS[PARTS]))
    return any_of(found)


def adjacent(field: str, tokens: list[str], *, is_prefix: bool = False) -> tantivy.Query:
    """These words next to each other in one field."""
    if len(tokens) == 1:
        return _prefix(field, tokens[0]) if is_prefix else _term(field, tokens[0])
    if is_prefix:
        # Not the engine's phrase_prefix_query, which looks at fifty endings only.
        patterns = [*map(escaped, tokens[:-1]), f"{escaped(tokens[-1])}.*"]
        return tantivy.Query.regex_phrase_query(schema(), field, [*patterns])
    return tantivy.Query.phrase_query(schema(), field, [*tokens])


def _run(run: str) -> tantivy.Query:
    """Characters in a row; a single one is the beginning of some pair."""
    if len(run) == 1:
        return tantivy.Query.regex_query(schema(), "pairs", f"{escaped(run)}.?")
    pairs = list(bigrams(run))[:-1]
    return adjacent("pairs", pairs)


def _term(field: str, value: str) -> tantivy.Query:
    return tantivy.Query.term_query(schema(), field, value, "freq")


def _prefix(field: str, beginning: str) -> tantivy.Query:
    # As fast as a pattern to answer, and there at once; a pattern has to be made ready each time.
    return tantivy.Query.fuzzy_term_query(schema(), field, beginning, distance=0, prefix=True)


def _filter(one: Filter) -> tantivy.Query:
    if one.name == "file":
        part = one.value.rstrip("*")
        tokens = path_tokens(part, is_part=True)
        if not tokens:
            return tantivy.Query.empty_query()
        # A single character of those that go in pairs is the beginning of one.
        is_prefix = part != one.value or bool(extract_cjk(part[-1])[1])
        return adjacent("files", tokens, is_prefix=is_prefix)
    if (plain := plain_tag(one)) is not None:
        return _term("tags", plain)
    if one.name == "model" and "*" not in one.value:  # "opus" names a whole family
        return _tagged(one.name, f"*{one.value}*")
    if one.name == "workspace" and "/" in one.value:
        return any_of([_tagged(one.name, one.value), _tagged(one.name, workspace_hash(one.value))])
    return _tagged(one.name, one.value)


def _tagged(name: str, value: str) -> tantivy.Query:
    whole = tag(name, value)
    if "*" not in value:
        return _term("tags", whole)
    pattern = ".*".join(escaped(part) for part in whole.split("*"))
    return tantivy.Query.regex_query(schema(), "tags", pattern)


def escaped(text: str) -> str:
    """A text as a pattern of the engine's that means nothing but itself."""
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in text)
