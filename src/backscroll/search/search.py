"""Word search over index and archive, counts by property, and all matches in one session.

Filters that only the archive can evaluate are replaced first (`resolve_filters`). Excluded words are
replaced by the sessions that contain them (`exclude_sessions`). The stages are those of `pattern_search`:

    hits              the index returns hits (words) or candidates (pattern)
    load_hit_texts    the archive returns the text of each hit
    locate / verify   find the words in the text, or drop candidates that do not match
    build matches     cut snippets with highlights and context

Texts are redacted before they are cut, because half a secret is not recognizable.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, get_args

from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.query.messages import MessageInSession, MessageKey
from backscroll.archive.query.sessions import SessionProperties
from backscroll.archive.query.workspaces import find_workspaces
from backscroll.errors import UsageError
from backscroll.filters import make_filter
from backscroll.index.highlights import SpanStream, find_spans, make_snippet
from backscroll.index.pattern import Pattern
from backscroll.index.query import (
    FILTER_NAMES,
    SESSION_FILTERS,
    Clause,
    MessageFilter,
    Not,
    PlainTerm,
    Query,
    SessionIds,
    Term,
    filter_items,
    invalid_filters,
    parse,
    replace_filters,
)
from backscroll.index.ranking import Hit
from backscroll.index.searcher import FacetCounter
from backscroll.index.store import Index
from backscroll.model.dates import midnight
from backscroll.model.message import ANNOTATIONS_POSITION, Role
from backscroll.model.search import (
    SearchBy,
    SearchFacets,
    SearchKind,
    SearchRequest,
    SearchResult,
    SecondMatch,
    SessionMatches,
    has_words,
)
from backscroll.model.session import FacetValue, SessionSummary
from backscroll.model.sync import Progress
from backscroll.search.matches import (
    FoundMessage,
    Redaction,
    RedactText,
    build_matches,
    load_hit_texts,
    text_with_paths,
    title_of,
)
from backscroll.search.pattern_search import (
    PATTERN_TIMEOUT_SECONDS,
    PatternCounter,
    TitleMatcher,
    batches,
    compile_pattern,
    search_pattern,
    verify,
)
from backscroll.stores.lookup import check_choice, check_page
from backscroll.stores.stores import Stores

if TYPE_CHECKING:
    from backscroll.redact import Redactor

MAX_MODELS = 12  # each is one more query
MAX_WORKSPACES = 50
MAX_DATES = 40
_KINDS = ("edit", "error")
_Counter = FacetCounter | PatternCounter
_WILDCARD = re.compile(r"[*/\\]")  # in a name, it means something else
_PERIODS: tuple[tuple[str, Callable[[date], date]], ...] = (  # format, and the start of the next period
    ("%Y-%m-%d", lambda day: day + timedelta(days=1)),
    ("%Y-%m", lambda day: (day.replace(day=1) + timedelta(days=32)).replace(day=1)),
    ("%Y", lambda day: date(day.year + 1, 1, 1)),
)
_MAX_SCANNED_MESSAGES = 1000  # scanned for secrets if there is no index
_MAX_SECOND_HITS = 200
_MAX_SECOND_CANDIDATES = 3  # per session
MAX_MATCHES = 100_000


class Search:
    """Word and pattern search over index and archive."""

    filter_items = staticmethod(filter_items)
    invalid_filters = staticmethod(invalid_filters)

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def sessions(
        self, request: SearchRequest, *, progress: Progress | None = None, redactor: Redactor | None = None
    ) -> SearchResult:
        """Return one page of matches."""
        check_page(request.limit, request.offset)
        check_choice("kind of search", request.pattern, SearchKind)
        check_choice("unit of results", request.by, SearchBy)
        for name in request.filters:
            check_choice("filter", name, FILTER_NAMES)
        if request.context < 0:
            raise UsageError(f"The number of context lines must not be negative: {request.context}.")
        archive = self._stores.archive
        workspace = request.filters.get("workspace", "*")
        if isinstance(workspace, str) and "*" not in workspace:
            archive.sessions.workspace_hashes(workspace)  # raises WorkspaceNotFoundError if it is ambiguous
        query = _parse(request.query, request.pattern, request.filter_query)
        conditions = [
            MessageFilter(name, value)
            for name, values in request.filters.items()
            for value in ([values] if isinstance(values, str) else values)
        ]
        query = query.with_filters(*conditions, since=request.since, until=request.until)
        query = resolve_filters(archive, query)
        if request.pattern == "words":
            _check_words(request.query, query)

        def run(index: Index) -> SearchResult:
            redaction = Redaction(archive, index, redactor) if redactor is not None else None
            if request.pattern == "words":
                return _search_words(archive, index, query, request, redaction)
            pattern = compile_pattern(request.query, request.pattern, ignore_case=request.ignore_case)
            shown_progress = None if pattern.is_narrow else progress
            return search_pattern(archive, index, pattern, query, request, redaction, shown_progress)

        return self._stores.index.query(run)

    def facets(
        self, query: str, *, pattern: SearchKind, ignore_case: bool, filter_query: str
    ) -> SearchFacets:
        """Return how many messages that match each value of each filter would find."""
        check_choice("kind of search", pattern, SearchKind)
        archive = self._stores.archive
        parsed = resolve_filters(archive, _parse(query, pattern, filter_query))
        if pattern == "words":
            _check_words(query, parsed)

        def run(index: Index) -> SearchFacets:
            if pattern == "words":
                words = exclude_sessions(archive, index, index.with_language(parsed))
                with index.facet_counter() as counter:
                    return _count_facets(archive, counter, words)
            compiled = compile_pattern(query, pattern, ignore_case=ignore_case)
            verifying = PatternCounter(archive, index, compiled)
            facets = _count_facets(archive, verifying, parsed)
            return replace(facets, is_partial=verifying.is_partial)

        return self._stores.index.query(run)

    def in_session(
        self,
        summary: SessionSummary,
        query: str,
        *,
        pattern: SearchKind = "words",
        filter_query: str = "",
        requires_all: bool = False,
    ) -> SessionMatches:
        """Return the messages of a session and its subagents that match a query.

        If no message has all words, those with some of them match, unless ``requires_all``.
        """
        if pattern == "words" and not has_words(query):
            pattern = "exact"  # the index contains no punctuation
        archive, index = self._stores.archive, self._stores.index.index
        if not index.is_usable() or not query.strip():
            return SessionMatches(())
        parsed = resolve_filters(archive, _parse(query, pattern, filter_query))
        if pattern == "words":
            refs = archive.sessions.ids_with_subagents(summary)
            hits = index.find_messages(parsed.within(refs), limit=MAX_MATCHES, requires_all=requires_all)
            return SessionMatches(_locations(hits, refs), is_complete=len(hits) < MAX_MATCHES)
        compiled = compile_pattern(query, pattern, ignore_case=True)
        return _find_pattern(archive, index, compiled, parsed, summary)

    def learn_secrets(self, redactor: Redactor, summary: SessionSummary) -> None:
        """Scan a session for named secrets, so that the redactor also replaces them without a name."""
        index = self._stores.index.index
        if not index.is_usable():
            redactor.scan(islice(self._stores.archive.messages.of_session(summary), _MAX_SCANNED_MESSAGES))
            return
        # A secret that the session names can occur without its name in a subagent.
        sessions = self._stores.archive.sessions.ids_with_subagents(summary, with_parent=True)
        Redaction(self._stores.archive, index, redactor).learn(sessions)


def _parse(query: str, pattern: SearchKind, filter_query: str) -> Query:
    """Return the query with its filters; for a pattern, only the filters. Raises `UsageError` for words."""
    if pattern == "words":
        # The filters come first: an operator at the end of the query would apply to them.
        return parse(f"{filter_query} {query}" if filter_query else query)
    filters = parse(filter_query)
    if not all(clause.is_filter for clause in filters.clauses):
        raise UsageError(
            f"{filter_query[:100]!r} contains words. Use only filters, such as 'role:user since:7d'."
        )
    return filters


def _check_words(query: str, parsed: Query) -> None:
    if parsed.is_empty:
        reason = "contains no words" if query.strip() else "is empty"
        raise UsageError(f"The query {reason}. Example: 'flaky test since:2026-10'.")


def resolve_filters(archive: Archive, query: Query) -> Query:
    """Replace filters that only the archive can evaluate, like ``workspace:``, ``tag:`` and ``is:gone``."""

    def look_up(filter: MessageFilter) -> Sequence[PlainTerm] | None:
        if filter.name == "workspace":
            hashes = archive.sessions.workspace_hashes(filter.value, is_strict=False)
            return [MessageFilter("workspace", workspace_hash) for workspace_hash in hashes] or None
        by_archive = SESSION_FILTERS.get(f"{filter.name}:{filter.value}") or SESSION_FILTERS.get(filter.name)
        if by_archive is None:
            return None
        session_filter = replace(make_filter({by_archive.name: filter.value}), with_unlisted=True)
        matching, others = archive.sessions.matching_ids(session_filter)
        is_negated = len(others) < len(matching)  # the smaller set is faster
        return [SessionIds(frozenset(others if is_negated else matching), is_negated)]

    return replace_filters(query, look_up)


def exclude_sessions(archive: Archive, index: Index, query: Query) -> Query:
    """Return the query with excluded words replaced by the sessions that contain them anywhere."""

    def sessions_with(terms: Sequence[Term]) -> frozenset[int]:
        return _sessions_with(archive, index, Query((Clause(tuple(terms)),)))

    def alternative(term: Term) -> Term:
        if not isinstance(term, Not) or term.is_filter:
            return term
        return SessionIds(sessions_with(term.any_of), is_negated=True)

    excluded = [clause for clause in query.clauses if clause.is_negated and not clause.is_filter]
    clauses = [
        clause if clause.is_negated else Clause(tuple(map(alternative, clause.any_of)))
        for clause in query.clauses
        if clause not in excluded
    ]
    if excluded:
        sessions = SessionIds(sessions_with([term for clause in excluded for term in clause.any_of]))
        clauses.append(Clause((sessions,), is_negated=True))
    return replace(query, clauses=tuple(clauses))


def _sessions_with(archive: Archive, index: Index, query: Query) -> frozenset[int]:
    """Return the ids of the sessions with a match in any message, also in copies of other sessions."""
    found = set(index.count_by_session(query))
    checked: set[int] = set()
    copied_from = archive.sessions.with_copied_messages() if found else {}
    # Repeated, because a session can be a copy of a copy.
    while candidates := {id_ for id_, firsts in copied_from.items() if firsts & found} - found - checked:
        checked |= candidates
        summaries = archive.sessions.by_ids(candidates)
        found |= {id_ for id_, summary in summaries.items() if _copies_match(archive, summary, query)}
    return frozenset(found)


def _copies_match(archive: Archive, summary: SessionSummary, query: Query) -> bool:
    """Return whether a copied message matches. The index has these only in their first session."""
    return any(
        message.copied_from is not None and find_spans(text_with_paths(message), query).terms
        for message in archive.messages.without_usage(summary)
    )


def _search_words(
    archive: Archive, index: Index, query: Query, request: SearchRequest, redaction: Redaction | None
) -> SearchResult:
    """Return the best messages for a query, or the best message of each session."""
    start = time.perf_counter()
    by, limit, offset = request.by, request.limit, request.offset
    redact = redaction.redact if redaction is not None else _without_redaction
    # Without words to find, excluded words match every message of the other sessions: nothing to count.
    is_exclusion = any(clause.is_negated and not clause.is_filter for clause in query.clauses)
    with_counts = bool(query.words) or not is_exclusion
    query = index.with_language(query)
    if by == "session":
        query = exclude_sessions(archive, index, query)
    page = index.search(query, limit=limit, offset=offset, by=by, find_parents=archive.sessions.parents_of)
    texts = load_hit_texts(archive, (hit.key for hit in page.hits))
    if redaction is not None:
        redaction.learn({hit.session for hit in page.hits})
    locate = partial(find_spans, query=query, with_inflections=page.with_inflections)
    locate_forms = partial(find_spans, query=query, with_inflections=True)
    found = [
        _locate_words(
            hit, *texts[hit.key], redact, locate if hit.is_strict or hit.ranks is None else locate_forms
        )
        for hit in page.hits
        if hit.key in texts
    ]
    spread = {
        each.hit.session: (each.hit.position, set(each.spans.terms))
        for each in found
        if each.hit.ranks is not None and not each.hit.is_strict and isinstance(each.spans, SpanStream)
    }
    second = _find_second_matches(archive, index, query, spread, locate_forms, redact)
    matches = list(build_matches(archive, found, request.context))
    seen = offset + len(page.hits) if page.hits else 0
    return SearchResult(
        data=tuple(
            replace(
                match,
                match_count=each.hit.match_count if with_counts else 1,
                matches_all=each.hit.matches_all,
                also=second.get(each.hit.session),
            )
            for match, each in zip(matches, found, strict=True)
        ),
        total=page.total,
        total_at_least=None if page.total is not None else seen,
        limit=limit,
        offset=offset,
        row_count=page.row_count,
        has_more=0 < seen < page.row_count if page.row_count is not None else len(page.hits) == limit,
        took_ms=round((time.perf_counter() - start) * 1000, 3),
        is_relaxed=page.is_relaxed,
    )


def _without_redaction(text: str, _ref: str, _position: int) -> str:
    return text


def _locate_words(
    hit: Hit, message: MessageInSession, text: str, redact: RedactText, locate: Callable[[str], SpanStream]
) -> FoundMessage:
    """Find the words in the text of a hit or, if it contains none, in the title of the session."""
    text = redact(text, message.summary.ref, hit.position)
    spans = locate(text)
    if not spans.terms and hit.position != ANNOTATIONS_POSITION:
        title = redact(title_of(message.summary), message.summary.ref, hit.position)
        title_spans = locate(title)
        if title_spans.terms:
            return FoundMessage(hit, message, title, title_spans, is_title=True)
    return FoundMessage(hit, message, text, spans)


def _find_second_matches(
    archive: Archive,
    index: Index,
    query: Query,
    found: Mapping[int, tuple[int, set[int]]],
    locate: Callable[[str], SpanStream],
    redact: RedactText,
) -> dict[int, SecondMatch]:
    """Return another message for each session, if one contains words that the first does not.

    ``found`` is the position of the first message of each session, and the words that it contains.
    """
    if not found:
        return {}
    within = query.within(found)
    hits = index.search(within, limit=_MAX_SECOND_HITS, by="message", match_any=True, with_counts=False).hits
    candidates: defaultdict[int, list[Hit]] = defaultdict(list)
    for hit in hits:
        if hit.position != found[hit.session][0] and len(candidates[hit.session]) < _MAX_SECOND_CANDIDATES:
            candidates[hit.session].append(hit)
    texts = load_hit_texts(archive, (hit.key for chosen in candidates.values() for hit in chosen))
    second: dict[int, SecondMatch] = {}
    for session, chosen in candidates.items():
        known = found[session][1]
        matches = (_second_match(hit, texts, known, locate, redact) for hit in chosen if hit.key in texts)
        if (match := next(filter(None, matches), None)) is not None:
            second[session] = match
    return second


def _second_match(
    hit: Hit,
    texts: Mapping[MessageKey, tuple[MessageInSession, str]],
    known: set[int],
    locate: Callable[[str], SpanStream],
    redact: RedactText,
) -> SecondMatch | None:
    message, text = texts[hit.key]
    text = redact(text, message.summary.ref, hit.position)
    spans = locate(text)
    if spans.terms <= known:
        return None
    snippet = make_snippet(text, spans, context=0)
    return SecondMatch(
        message_id=message.message.id,
        message_index=hit.position,
        role=message.message.role,
        timestamp=message.message.timestamp,
        match=snippet.match,
        highlights=tuple(snippet.highlights),
        line_number=snippet.line_number,
    )


def _find_pattern(
    archive: Archive, index: Index, pattern: Pattern, filters: Query, summary: SessionSummary
) -> SessionMatches:
    """Return the messages of a session and its subagents that match a pattern and pass the filters."""
    deadline = time.perf_counter() + PATTERN_TIMEOUT_SECONDS
    refs = archive.sessions.ids_with_subagents(summary)
    titles = TitleMatcher(archive, pattern)
    found: list[Hit] = []
    for batch in batches(index.candidates(pattern, filters.within(refs), refine=False)):
        if len(found) >= MAX_MATCHES or time.perf_counter() > deadline:
            return SessionMatches(_locations(found, refs), is_complete=False)
        found += [each.hit for each in verify(archive, batch, pattern, titles, is_counting=True)]
    return SessionMatches(_locations(found, refs))


def _locations(hits: Iterable[Hit], refs: Mapping[int, str]) -> tuple[tuple[str, int], ...]:
    own = (hit for hit in hits if hit.position != ANNOTATIONS_POSITION)
    return tuple(sorted((refs[hit.session], hit.position) for hit in own))


def _count_facets(archive: Archive, counter: _Counter, query: Query) -> SearchFacets:
    sessions = counter.by_session(query)
    sums = _Sums(archive, sessions)

    def without(name: str) -> _Sums:
        others = _without_filter(query, name)
        return sums if others == query else _Sums(archive, counter.by_session(others))

    models = [name for name, _ in without("model").models.most_common(MAX_MODELS)]
    return SearchFacets(
        total=sum(sessions.values()),
        sources=_ranked((source, source, count) for source, count in without("source").sources.items()),
        workspaces=_workspaces(archive, without("workspace").workspaces),
        roles=_filtered(counter, _without_filter(query, "role"), "role", get_args(Role)),
        kinds=_filtered(counter, query, "is", _KINDS),
        models=_filtered(counter, _without_filter(query, "model"), "model", models),
        dates=tuple(_dates(counter, replace(query, since=None, until=None))),
    )


class _Sums:
    """Messages by the properties of their sessions."""

    def __init__(self, archive: Archive, sessions: Mapping[int, int]) -> None:
        self.sources: Counter[str] = Counter()
        self.workspaces: Counter[str] = Counter()  # by workspace hash
        self.models: Counter[str] = Counter()  # a session can have several
        by_properties: Counter[SessionProperties] = Counter()
        known = archive.facets.properties(sessions)
        for id_, count in sessions.items():
            if (properties := known.get(id_)) is not None:
                by_properties[properties] += count
        for properties, count in by_properties.items():
            self.sources[properties.source] += count
            self.workspaces[properties.workspace_hash or ""] += count
            self.models.update(dict.fromkeys(properties.models, count))


def _without_filter(query: Query, name: str) -> Query:
    """Return the query without the filters of one name. Excluded values stay excluded."""

    def is_other(clause: Clause) -> bool:
        return clause.is_negated or not all(
            isinstance(term, MessageFilter) and term.name == name for term in clause.any_of
        )

    return replace(query, clauses=tuple(filter(is_other, query.clauses)))


def _filtered(counter: _Counter, query: Query, name: str, values: Iterable[str]) -> tuple[FacetValue, ...]:
    return _ranked((value, value, counter.with_filter(query, MessageFilter(name, value))) for value in values)


def _workspaces(archive: Archive, counts: Counter[str]) -> tuple[FacetValue, ...]:
    """Return the most frequent workspaces, each with the shortest value of a filter that means it."""
    known = archive.sessions.known_workspaces()
    by_hash = {workspace.hash: workspace for workspace in known}
    names = Counter(workspace.name.casefold() for workspace in known)
    found: dict[str, tuple[str, str, int]] = {}
    for hash_, count in counts.most_common(MAX_WORKSPACES):
        workspace = by_hash.get(hash_)
        if workspace is None:
            continue
        value = label = workspace.name
        if not value or names[value.casefold()] > 1 or _WILDCARD.search(value):
            value = workspace.label
            place = workspace.host or workspace.path.removesuffix(workspace.name).rstrip("/\\")
            label = f"{workspace.name} ({place})" if workspace.name and place else workspace.label
            hashes = find_workspaces(known, value, is_strict=False)
            count = sum(counts[one] for one in hashes)  # a path can be on several hosts
        found[value] = (value, label, count)
    return _ranked(found.values())


def _ranked(values: Iterable[tuple[str, str, int]]) -> tuple[FacetValue, ...]:
    """Return the values with messages, the most frequent first."""
    known = [FacetValue(*value) for value in values if value[2]]
    return tuple(sorted(known, key=lambda value: (-value.count, value.value)))


def _dates(counter: _Counter, query: Query) -> Iterator[FacetValue]:
    """Yield days, months or years from the first message to the last one: the shortest of at most 40."""
    times = counter.time_range(query)
    if times is None:
        return
    first, last = (datetime.fromtimestamp(at / 1000, UTC).astimezone().date() for at in times)
    for pattern, next_start in _PERIODS:
        starts = [date.fromisoformat(f"{first.strftime(pattern)}-01-01"[:10])]
        while starts[-1] <= last and len(starts) <= MAX_DATES:
            starts.append(next_start(starts[-1]))
        if starts[-1] > last:
            break
    counts = counter.by_time(query, [int(midnight(start).timestamp() * 1000) for start in starts])
    for start, count in zip(starts, counts, strict=False):
        name = start.strftime(pattern)
        yield FacetValue(name, name, count)
