"""Compilation of parsed queries, and of the literals of patterns, to Tantivy queries."""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache

import tantivy
from msgspec import Struct
from msgspec.structs import replace
from tantivy import Occur

from backscroll.index.analysis import bigrams, extract_cjk, fold_accents, to_nfc
from backscroll.index.languages import (
    ENGLISH,
    LATIN_LANGUAGES,
    forms_with_stem,
    inflections,
    is_stop_word,
    weighted_pairs,
)
from backscroll.index.pattern import Alternatives
from backscroll.index.query import (
    Clause,
    MessageFilter,
    Not,
    Phrase,
    Query,
    SessionIds,
    Term,
    Word,
    is_common_word,
)
from backscroll.index.ranking import (
    COMMON_WORD_WEIGHT,
    FIELD_WEIGHTS,
    INFLECTION_WEIGHT,
    LANGUAGE_SCORE,
    SESSION_FIELD_WEIGHTS,
    SESSION_TIE_BREAKER,
    SYNONYM_WEIGHT,
)
from backscroll.index.schema import (
    LONG_TAG,
    METADATA_TAG,
    SESSION_TAG,
    TEXT_FIELDS,
    path_tokens,
    schema,
    tag,
    tokenizer,
    tokens_of,
)
from backscroll.model.workspace import workspace_hash

_MAX_SESSION_TERMS = 128
# Characters with a meaning in Tantivy's regex syntax. Others must not be escaped: \< matches a word start.
_REGEX_SPECIAL = frozenset(r"\.+*?()|[]{}^$#&-~")
_KINDS_WITHOUT_TEXT = ("signed", "redacted", "empty")  # of thinking
Synonyms = Callable[[str], Sequence[str]]  # of a word in lower case
_MIN_TOKEN_CHARS = 2  # shorter tokens match too many messages
_MIN_PARTIAL_TOKEN_CHARS = 3  # shorter partial tokens match too many terms
_MIN_UNKNOWN_LETTERS = 4
_MAX_UNKNOWN_WORDS = 8  # each costs about 1 ms


class QueryPart(Struct, frozen=True):
    """A part of a query that can match on its own, and the terms that determine how rare it is."""

    query: tantivy.Query
    terms: tuple[tuple[str, str], ...]  # field and term
    in_session: tantivy.Query | None = None  # matches session documents
    in_title: tantivy.Query | None = None  # matches session documents by title and workspace
    weight: float = 1.0  # less for words that say little

    @property
    def anywhere(self) -> tantivy.Query:
        """Match messages, and session documents by their title."""
        return self.query if self.in_title is None else any_of([self.query, self.in_title])


class CompiledQuery:
    """The Tantivy queries of one parsed query, from strict to relaxed.

    Other forms of a word and its synonyms are used only if ``is_indexed`` is true for them: most of the
    generated forms are not words, and each one makes the query slower.
    """

    def __init__(
        self,
        query: Query,
        synonyms: Synonyms = lambda _: (),
        is_indexed: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self.query = query
        self.synonyms = synonyms
        self._is_indexed = is_indexed
        self._filters = [tantivy.Query.const_score_query(filter, 0.0) for filter in _filters(query)]
        self._excluded = [_any_term(clause.any_of) for clause in query.clauses if clause.is_negated]
        self._clauses = query.content_words
        self._required = [_any_term(clause.any_of) for clause in self._clauses]
        self._optional = [_stop_words(clause.any_of) for clause in query.words if clause not in self._clauses]
        self.has_no_filters = not (self._filters or self._excluded)
        self.is_empty = not (self._required or self._filters or self._excluded)
        # A prefix has the same score everywhere, so prefix searches are sorted by time instead.
        self.is_ranked = any(_has_score(term) for clause in self._clauses for term in clause.any_of)

    def strict(self) -> tantivy.Query:
        """Match messages with every word. Stop words are optional and raise the score."""
        parts = [(Occur.Must, query) for query in (*self._required, *self._filters)]
        if self._required:
            parts += [(Occur.Should, query) for query in self._optional]
        return self._without_excluded(parts)

    def with_inflections(self) -> tantivy.Query | None:
        """Match messages with every word in any of its forms; None if no word has other forms."""
        inflected = [
            any_of([self._inflected(term) for term in clause.any_of])
            for clause in self._clauses
            if self._has_inflections(clause)
        ]
        if not inflected:
            return None
        others = [_any_term(clause.any_of) for clause in self._clauses if not self._has_inflections(clause)]
        parts = [(Occur.Must, query) for query in (*others, *inflected, *self._filters)]
        return self._without_excluded(parts)

    def parts(self) -> list[QueryPart]:
        """Return the parts to search for if no message has all words; empty if there is only one."""
        parts = [part for clause in self._clauses for part in self._split(clause)]
        return parts if len(parts) > 1 else []

    def any_part(self, parts: Sequence[QueryPart]) -> tantivy.Query:
        """Match messages with at least one of the parts."""
        any_query = any_of([part.query for part in parts])
        return self._without_excluded([(Occur.Must, query) for query in (any_query, *self._filters)])

    @staticmethod
    def without_noise(query: tantivy.Query) -> tantivy.Query:
        """Exclude system messages and very long messages: they contain many words by chance."""
        noise = [_token_query("tags", tag("role", "system")), _token_query("tags", LONG_TAG)]
        return tantivy.Query.boolean_query([(Occur.Must, query), *((Occur.MustNot, one) for one in noise)])

    def in_session_text(self, parts: Sequence[QueryPart]) -> tantivy.Query | None:
        """Match session documents with at least one of the parts; None if no part is a word.

        The stop words of a language other than English show which sessions are in that language.
        Such sessions get a small constant score.
        """
        words = [part.in_session for part in parts if part.in_session is not None]
        if words and self.query.language != ENGLISH and (stop_words := self._stop_word_tokens()):
            in_language = any_of([_token_query("session_text", token) for token in stop_words])
            words.append(tantivy.Query.const_score_query(in_language, LANGUAGE_SCORE))
        return any_of(words) if words else None

    def _stop_word_tokens(self) -> list[str]:
        """Return the stop words of the query that are not English."""
        clauses = [clause for clause in self.query.words if clause not in self._clauses]
        terms = [term for clause in clauses for term in clause.any_of if isinstance(term, Word)]
        return [token for term in terms for token in tokens_of(term.text) if not is_stop_word(token)]

    def in_title(self, *, with_inflections: bool) -> tantivy.Query | None:
        """Match session documents whose title or workspace has the only word; None for any other query."""
        terms = [term for clause in self._clauses for term in clause.any_of]
        if len(terms) != 1 or not isinstance(terms[0], Word) or terms[0].is_prefix:
            return None
        tokens = tokens_of(terms[0].text)
        if len(tokens) != 1 or extract_cjk(terms[0].text)[1]:
            return None
        forms = self._forms(tokens[0]) if with_inflections else tokens
        return any_of([_token_query("session_title", form) for form in forms])

    def _forms(self, word: str) -> Sequence[str]:
        """Return a word as typed, then its other forms in the index."""
        typed, *others = inflections(word, self.query.language)
        return [typed, *filter(self._is_indexed, others)]

    def _has_inflections(self, clause: Clause) -> bool:
        return any(len(self._inflections(term)) > 1 for term in clause.any_of)

    def _inflections(self, term: Term) -> Sequence[str]:
        """Return the forms of a term that is a single word; empty for any other term."""
        if not isinstance(term, Word) or term.is_prefix or extract_cjk(term.text)[1]:
            return ()
        tokens = tokens_of(term.text)
        return self._forms(tokens[0]) if len(tokens) == 1 else ()

    def _inflected(self, term: Term) -> tantivy.Query:
        """Match a word as typed, or with a lower weight in another form."""
        others = self._inflections(term)[1:]
        if not others:
            return _compile_term(term)
        queries = [
            tantivy.Query.boost_query(_token_query(field, other), FIELD_WEIGHTS[field] * INFLECTION_WEIGHT)
            for field in TEXT_FIELDS
            for other in others
        ]
        return tantivy.Query.disjunction_max_query([_compile_term(term), *queries])

    def _split(self, clause: Clause) -> Iterator[QueryPart]:
        """Split a clause into its words. Phrases and alternatives stay whole."""
        term = clause.any_of[0]
        if len(clause.any_of) > 1 or not isinstance(term, Word) or term.is_prefix:
            yield QueryPart(_any_term(clause.any_of), ())
            return
        text, runs = extract_cjk(to_nfc(term.text))
        for run in runs:
            for pair, weight in weighted_pairs(unicodedata.normalize("NFKC", run)):
                query = tantivy.Query.boost_query(_cjk_run(pair), weight)
                yield _word_part(query, ["cjk_bigrams"], [pair], weight=weight)
        language, tokens = self.query.language, tokens_of(text)
        for token in tokens:
            is_elided = language != ENGLISH and len(tokens) > 1 and is_stop_word(token, language)
            if (len(token) > 1 or len(text) == 1) and not is_elided:
                synonyms = list(filter(self._is_indexed, self.synonyms(token)))
                weight = COMMON_WORD_WEIGHT if is_common_word(token) else 1.0
                query = self._inflected(Word(token))
                yield _word_part(query, TEXT_FIELDS, self._forms(token), synonyms, weight=weight)

    def within(self, query: tantivy.Query, sessions: tantivy.Query) -> tantivy.Query:
        """Restrict another query to some sessions and to the filters. Scores are not meaningful."""
        return all_of([sessions, query, *self._filters])

    @staticmethod
    def within_scored(query: tantivy.Query, ids: Collection[int]) -> tantivy.Query:
        """Restrict a query to some sessions. The scores stay."""
        return all_of([query, tantivy.Query.const_score_query(in_sessions(ids), 0.0)])

    def _without_excluded(self, parts: list[tuple[Occur, tantivy.Query]]) -> tantivy.Query:
        if len(parts) == 1 and not self._excluded and self._required:
            return parts[0][1]
        excluded = list(self._excluded)
        if not self._required:
            excluded += [*_other_documents(), _token_query("tags", tag("role", "note"))]
            parts = [*parts, (Occur.Must, _everything())]
        return tantivy.Query.boolean_query([*parts, *((Occur.MustNot, query) for query in excluded)])


def _filters(query: Query) -> Iterable[tantivy.Query]:
    for clause in query.clauses:
        if clause.is_filter and not clause.is_negated:
            yield _any_term(clause.any_of)
    if query.since is not None or query.until is not None:
        yield tantivy.Query.range_query(
            schema(),
            "at",
            tantivy.FieldType.Integer,
            lower_bound=query.since,
            upper_bound=query.until - 1 if query.until is not None else None,
        )


def _any_term(terms: Iterable[Term]) -> tantivy.Query:
    return any_of([_compile_term(term) for term in terms])


def _word_part(
    query: tantivy.Query,
    fields: Sequence[str],
    forms: Sequence[str],
    synonyms: Sequence[str] = (),
    *,
    weight: float = 1.0,
) -> QueryPart:
    return QueryPart(
        query,
        tuple((field, form) for field in fields for form in forms),
        tantivy.Query.boost_query(_in_session_text(forms, synonyms), weight),
        any_of([_token_query("session_title", form) for form in forms]),
        weight,
    )


def _in_session_text(forms: Sequence[str], synonyms: Sequence[str] = ()) -> tantivy.Query:
    """Match session documents with a word in one of its forms, the first as typed, or with a synonym."""
    weights = dict.fromkeys(forms, INFLECTION_WEIGHT) | {forms[0]: 1.0}
    weights |= {synonym: SYNONYM_WEIGHT for synonym in synonyms if synonym not in weights}
    queries = [
        tantivy.Query.boost_query(_token_query(field, word), field_weight * weight)
        for field, field_weight in SESSION_FIELD_WEIGHTS.items()
        for word, weight in weights.items()
    ]
    return tantivy.Query.disjunction_max_query(queries, SESSION_TIE_BREAKER)


def _stop_words(terms: Iterable[Term]) -> tantivy.Query:
    """Match stop words in prose only: in tool text they mean nothing and are expensive."""
    queries = [
        _token_query("prose", token)
        for term in terms
        if isinstance(term, Word)
        for token in tokens_of(term.text)
    ]
    return any_of(queries)


def _has_score(term: Term) -> bool:
    return isinstance(term, Word | Phrase) and not (term.is_prefix and len(tokens_of(term.text)) == 1)


def _compile_term(term: Term) -> tantivy.Query:
    """Compile one term. A term without indexable tokens, like a word of 1,000 letters, matches nothing."""
    match term:
        case MessageFilter():
            return compile_filter(term)
        case SessionIds(ids, is_negated):
            return _all_except(in_sessions(ids)) if is_negated else in_sessions(ids)
        case Not(terms):
            return _all_except(_any_term(terms))
        case Word(text, is_prefix):
            queries = _compile_text(text, is_prefix=is_prefix, with_subwords=True)
        case Phrase(text, is_prefix):
            queries = _compile_text(text, is_prefix=is_prefix)
    return all_of(queries) if queries else tantivy.Query.empty_query()


def _compile_text(text: str, *, is_prefix: bool = False, with_subwords: bool = False) -> list[tantivy.Query]:
    """Return queries that must all match: adjacent tokens, and CJK runs."""
    text, runs = extract_cjk(to_nfc(text))
    queries = [_cjk_run(unicodedata.normalize("NFKC", run)) for run in runs]
    # Text between two CJK runs is a separate piece: its tokens are not adjacent to those of other pieces.
    pieces = text.split() if runs else [text]
    for piece in pieces:
        tokens = tokens_of(piece)
        if tokens:
            is_last = is_prefix and piece is pieces[-1]
            queries.append(_in_text_fields(tokens, is_prefix=is_last, with_subwords=with_subwords))
    return queries


def _in_text_fields(tokens: list[str], *, is_prefix: bool, with_subwords: bool) -> tantivy.Query:
    queries: list[tantivy.Query] = []
    for field in TEXT_FIELDS:
        query = _adjacent(field, tokens, is_prefix=is_prefix)
        weight = FIELD_WEIGHTS[field]
        queries.append(query if weight == 1.0 else tantivy.Query.boost_query(query, weight))
    if with_subwords and len(tokens) == 1:
        subword = _prefix_query("subwords", tokens[0]) if is_prefix else _token_query("subwords", tokens[0])
        queries.append(tantivy.Query.boost_query(subword, FIELD_WEIGHTS["subwords"]))
    return any_of(queries)


def compile_filter(filter: MessageFilter) -> tantivy.Query:
    """Match messages with an attribute."""
    name, value = filter.name, filter.value
    if name == "file":
        part = value.rstrip("*")
        tokens = path_tokens(part, is_part=True)
        if not tokens:
            return tantivy.Query.empty_query()
        # A single CJK character is the start of a bigram.
        is_prefix = part != value or bool(extract_cjk(part[-1])[1])
        return _adjacent("files", tokens, is_prefix=is_prefix)
    if (name, value) == ("has", "thinking"):
        return _thinking_with_text()
    if name == "model" and "*" not in value:  # "opus" means the whole family
        return _tag_query(name, f"*{value}*")
    if name == "workspace" and "/" in value:
        return any_of([_tag_query(name, value), _tag_query(name, workspace_hash(value))])
    return _tag_query(name, value)


def _thinking_with_text() -> tantivy.Query:
    without_text = [_token_query("tags", tag("kind", kind)) for kind in _KINDS_WITHOUT_TEXT]
    return tantivy.Query.boolean_query(
        [
            (Occur.Must, _token_query("tags", tag("role", "thinking"))),
            *((Occur.MustNot, kind) for kind in without_text),
        ]
    )


def _tag_query(name: str, value: str) -> tantivy.Query:
    term = tag(name, value)
    if "*" not in value:
        return _token_query("tags", term)
    return _tag_pattern_query(".*".join(_escape_regex(part) for part in term.split("*")))


@lru_cache(maxsize=16)
def _tag_pattern_query(pattern: str) -> tantivy.Query:
    """Match tags with a pattern. Its automaton takes 4 ms to build and 300 KB of memory."""
    return tantivy.Query.regex_query(schema(), "tags", pattern)


def candidate_queries(required: Sequence[Alternatives], query: Query) -> list[tantivy.Query]:
    """Return queries that each find every message with the required literals, and some others.

    The first query is the fastest. A second one, if any, is slower and more precise: it pays when many
    candidates of the first query turn out not to match.
    """
    compiled = CompiledQuery(query)
    filters = [] if compiled.is_empty else [compiled.strict()]
    lookups = [lookup for group in required if (lookup := _group_lookup(group)) is not None]
    if not lookups:
        return [compiled.strict()]
    fast = [lookup.unordered for lookup in lookups if lookup.is_fast] or [
        lookup.unordered for lookup in lookups
    ]
    precise = [lookup.phrase or lookup.unordered for lookup in lookups]
    variants = [fast, precise] if any(lookup.phrase for lookup in lookups) else [fast]
    irregular = tantivy.Query.term_query(schema(), "tags", tag("irregular"), "basic")
    return [all_of([any_of([all_of(variant), irregular]), *filters]) for variant in variants]


class _Lookup(Struct):
    """Queries for the messages that contain the tokens of a literal."""

    unordered: tantivy.Query
    is_fast: bool  # without a scan of the whole term dictionary
    phrase: tantivy.Query | None = None  # the tokens next to each other


def _group_lookup(group: Alternatives) -> _Lookup | None:
    lookups: list[_Lookup] = []
    for literal in group:
        lookup = _literal_lookup(literal)
        if lookup is None:
            return None
        lookups.append(lookup)
    return _Lookup(
        any_of([lookup.unordered for lookup in lookups]),
        all(lookup.is_fast for lookup in lookups),
        any_of([lookup.phrase or lookup.unordered for lookup in lookups])
        if any(lookup.phrase for lookup in lookups)
        else None,
    )


def _literal_lookup(literal: str) -> _Lookup | None:
    text, runs = extract_cjk(to_nfc(literal))
    text = fold_accents(text)
    fast = [
        _adjacent("cjk_bigrams", bigrams(unicodedata.normalize("NFKC", run))[:-1])
        for run in runs
        if len(run) > 1
    ]
    # The first and the last token of the literal may be part of a longer one.
    tokens = [
        _Token(token.text, token.char_offset_from == 0, token.char_offset_to == len(text))
        for token in tokenizer().pre_tokenize(text).tokens
    ]
    selective = [token for token in tokens if len(token.text) >= _MIN_TOKEN_CHARS]
    # A token without a known start needs a scan of the whole dictionary.
    fast += [_in_any_field(token.pattern) for token in selective if not token.has_open_start]
    if fast:
        return _Lookup(all_of(fast), True, _phrase(tokens))
    return _Lookup(_in_any_field(selective[0].pattern), False) if selective else None


class _Token(Struct, frozen=True):
    text: str
    has_open_start: bool  # the indexed token may start earlier
    has_open_end: bool

    @property
    def pattern(self) -> str:
        start, end = ".*" if self.has_open_start else "", ".*" if self.has_open_end else ""
        return f"{start}{_escape_regex(self.text)}{end}"


def _phrase(tokens: list[_Token]) -> tantivy.Query | None:
    if tokens and tokens[0].has_open_start and len(tokens[0].text) < _MIN_PARTIAL_TOKEN_CHARS:
        tokens = tokens[1:]
    if tokens and tokens[-1].has_open_end and len(tokens[-1].text) < _MIN_PARTIAL_TOKEN_CHARS:
        tokens = tokens[:-1]
    if len(tokens) < 2:
        return None
    patterns = [token.pattern for token in tokens]
    return any_of([tantivy.Query.regex_phrase_query(schema(), field, [*patterns]) for field in TEXT_FIELDS])


def _in_any_field(pattern: str) -> tantivy.Query:
    return any_of([tantivy.Query.regex_query(schema(), field, pattern) for field in TEXT_FIELDS])


def with_language(query: Query, is_indexed: Callable[[str], bool]) -> Query:
    """Return the query in the language in which most of its unknown words have other forms in the index.

    Two or three words contain no stop words that show their language. But if the index contains no English
    form of a word and has a form of it in another language, the query is in that language.
    """
    has_stop_words = len(query.content_words) < len(query.words)  # they show the language
    if query.language != ENGLISH or has_stop_words:
        return query
    unknown = [word for word in _plain_words(query) if not any(map(is_indexed, inflections(word)))][
        :_MAX_UNKNOWN_WORDS
    ]
    if not unknown:
        return query

    def known_count(language: str) -> int:
        return sum(any(map(is_indexed, forms_with_stem(word, language))) for word in unknown)

    counts = {language: known_count(language) for language in LATIN_LANGUAGES}
    best = max(LATIN_LANGUAGES, key=lambda language: counts[language])
    return replace(query, language=best) if counts[best] else query


def _plain_words(query: Query) -> list[str]:
    terms = [term for clause in query.content_words for term in clause.any_of]
    words = [term.text for term in terms if isinstance(term, Word) and not term.is_prefix]
    tokens = [token for word in words for token in tokens_of(word)]
    return [
        token
        for token in tokens
        if token.isascii() and token.isalpha() and len(token) >= _MIN_UNKNOWN_LETTERS
    ]


def all_of(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    """Match messages that match every query."""
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(Occur.Must, query) for query in queries])


def any_of(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    """Match messages that match at least one query."""
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(Occur.Should, query) for query in queries])


def _other_documents() -> list[tantivy.Query]:
    """Return queries for the documents that are not messages."""
    return [_token_query("tags", METADATA_TAG), _token_query("tags", SESSION_TAG)]


def _everything() -> tantivy.Query:
    """Match every document, with the score 0."""
    return tantivy.Query.const_score_query(tantivy.Query.all_query(), 0.0)


def _all_except(query: tantivy.Query) -> tantivy.Query:
    """Match every message that does not match a query."""
    excluded = [query, *_other_documents()]
    return tantivy.Query.boolean_query(
        [(Occur.Must, _everything()), *((Occur.MustNot, one) for one in excluded)]
    )


def in_sessions(ids: Collection[int]) -> tantivy.Query:
    """Match every message of some sessions."""
    # Separate terms are faster for a few sessions: a term set makes Tantivy iterate over all session ids.
    if 0 < len(ids) <= _MAX_SESSION_TERMS:
        return any_of([tantivy.Query.term_query(schema(), "session", id, "basic") for id in ids])
    return tantivy.Query.term_set_query(schema(), "session", [*ids])


def _adjacent(field: str, tokens: list[str], *, is_prefix: bool = False) -> tantivy.Query:
    """Match tokens next to each other in one field."""
    if len(tokens) == 1:
        return _prefix_query(field, tokens[0]) if is_prefix else _token_query(field, tokens[0])
    if is_prefix:
        # Not phrase_prefix_query, which considers only fifty completions.
        patterns = [*map(_escape_regex, tokens[:-1]), f"{_escape_regex(tokens[-1])}.*"]
        return tantivy.Query.regex_phrase_query(schema(), field, [*patterns])
    return tantivy.Query.phrase_query(schema(), field, [*tokens])


def _cjk_run(run: str) -> tantivy.Query:
    """Match adjacent CJK characters. A single one matches as the start of a bigram."""
    if len(run) == 1:
        return tantivy.Query.regex_query(schema(), "cjk_bigrams", f"{_escape_regex(run)}.?")
    pairs = bigrams(run)[:-1]
    return _adjacent("cjk_bigrams", pairs)


def _token_query(field: str, value: str) -> tantivy.Query:
    """Match a token of a field."""
    return tantivy.Query.term_query(schema(), field, value, "freq")


def _prefix_query(field: str, prefix: str) -> tantivy.Query:
    """Match tokens of a field that start with a prefix."""
    # As fast to run as a regex query, and without the time to compile one.
    return tantivy.Query.fuzzy_term_query(schema(), field, prefix, distance=0, prefix=True)


def _escape_regex(text: str) -> str:
    """Escape a text for Tantivy's regex syntax."""
    return "".join(f"\\{char}" if char in _REGEX_SPECIAL else char for char in text)
