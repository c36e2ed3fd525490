"""Search: the index says where, the archive says what stands there."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.archive.query.message_lookup import MessageInSession, MessageKey
from backscroll.index import Index, Pattern, Query
from backscroll.model import Filter, SearchMatch, SearchResult, SessionSummary
from backscroll.model.searchable_text import ANNOTATIONS_POSITION
from backscroll.search.byte_prefilter import required_bytes
from backscroll.search.hit_text import load_hit_texts
from backscroll.search.title_hits import TitleMatcher, title_of

if TYPE_CHECKING:
    from backscroll.index.query.ranking import Hit
    from backscroll.index.results.highlights import Span, SpanStream

__all__ = [
    "By",
    "LearnSecrets",
    "Progress",
    "RedactText",
    "find_positions",
    "resolve_filters",
    "search_pattern",
    "search_words",
]

By = Literal["session", "message"]
Progress = Callable[[int, int], None]  # messages looked at, and how many there are
RedactText = Callable[[str, str, int], str]  # a text, the ref of its session, its position there
LearnSecrets = Callable[[set[int]], None]  # the numbers of sessions that something will be cleaned of

_OF_SESSIONS = {
    ("is", "gone"): Filter(is_gone=True, with_unlisted=True),
    ("is", "starred"): Filter(is_starred=True, with_unlisted=True),
    ("has", "edits"): Filter(has_edits=True, with_unlisted=True),
}
_TIME_LIMIT = 10.0  # seconds that looking for a pattern may take
_COUNTING = 0.2  # seconds that counting the rest of what was found may take
_FIRST_BATCH = 64  # messages that are looked at together: few at first, for most patterns are found soon
_LARGEST_BATCH = 1024
_TOGETHER = 64  # texts of which it is asked at once whether a pattern is in one of them
_PLACES = 1000  # in one session that are asked for at once
_MOST_PLACES = 10_000


def resolve_filters(archive: Archive, query: Query) -> Query:
    """A query with what only the archive knows put in: the workspaces that are meant, the sessions gone."""
    from backscroll.index.query.parser import Filter as Asked
    from backscroll.index.query.parser import SessionIds, Term, replace_filters

    def look_up(asked: Asked) -> Sequence[Term] | None:
        if asked.name == "workspace":
            found = archive.sessions.workspace_hashes(asked.value, is_strict=False)
            return [Asked("workspace", one) for one in found] or None
        wanted = _OF_SESSIONS.get((asked.name, asked.value))
        if asked.name == "tag":
            wanted = Filter(tags=(asked.value.lstrip("#").lower(),), with_unlisted=True)
        if wanted is None:
            return None
        passing, others = archive.sessions.matching_ids(wanted)
        # The engine is asked for the fewer of the two.
        is_negated = len(others) < len(passing)
        return [SessionIds(frozenset(others if is_negated else passing), is_negated)]

    return replace_filters(query, look_up)


def search_words(
    archive: Archive,
    index: Index,
    query: Query,
    *,
    limit: int,
    offset: int,
    by: By,
    context: int,
    redact: RedactText | None = None,
    learn_secrets: LearnSecrets | None = None,
) -> SearchResult:
    """The best messages for some words, or the best of each session. Texts are cleaned, then cut."""
    from backscroll.index.results.highlights import find_spans

    start = time.perf_counter()
    search = index.start_search(query, limit=limit, offset=offset, by=by)
    told = load_hit_texts(archive, ((hit.session, hit.position) for hit in search.hits))
    if learn_secrets is not None:
        learn_secrets({hit.session for hit in search.hits})
    finds = []
    look = partial(find_spans, query=query, with_inflections=search.with_inflections)
    for hit in search.hits:
        if (hit.session, hit.position) in told:
            passage, text = told[hit.session, hit.position]
            text, spans = _marked(hit, passage, text, redact, look)
            finds.append(_Find(hit, passage, text, spans))
    matches = list(_matches(archive, finds, context))
    found = index.finish_search(search)
    counts = {(hit.session, hit.position): hit.match_count for hit in found.hits}
    met = offset + len(found.hits) if found.hits else 0
    return SearchResult(
        data=tuple(
            replace(match, match_count=counts[find.hit.session, find.hit.position])
            for match, find in zip(matches, finds, strict=True)
        ),
        total=found.total,
        total_at_least=None if found.total is not None else met,
        limit=limit,
        offset=offset,
        has_more=0 < met < found.total if found.total is not None else len(found.hits) == limit,
        took_ms=round((time.perf_counter() - start) * 1000, 3),
        is_relaxed=found.is_relaxed,
    )


def _marked(
    hit: "Hit",
    passage: MessageInSession,
    text: str,
    redact: RedactText | None,
    look: Callable[[str], "SpanStream"],
) -> tuple[str, "SpanStream"]:
    """The text that shows why a message was found: its own or, with no word in that, its session's title."""

    def shown(one: str) -> str:
        return redact(one, passage.summary.ref, hit.position) if redact is not None else one

    own = shown(text)
    spans = look(own)
    if spans.terms or hit.position == ANNOTATIONS_POSITION:
        return own, spans
    title = shown(title_of(passage.summary))
    named = look(title)
    return (title, named) if named.terms else (own, spans)


def find_positions(
    archive: Archive, index: Index, query: Query, summary: SessionSummary
) -> list[tuple[str, int]]:
    """The refs and positions of the messages of a session and its subagents that have some words."""
    from backscroll.index.query.parser import Clause, SessionIds

    refs = archive.sessions.ids_with_subagents(summary)
    there = replace(query, clauses=(*query.clauses, Clause((SessionIds(frozenset(refs)),))))
    found: list[tuple[str, int]] = []
    while len(found) % _PLACES == 0 and len(found) < _MOST_PLACES:
        page = index.start_search(there, limit=_PLACES, offset=len(found), by="message", with_counts=False)
        if not page.hits:
            break
        found += [(refs[hit.session], hit.position) for hit in page.hits]
    return sorted((ref, position) for ref, position in found if position != ANNOTATIONS_POSITION)


def search_pattern(
    archive: Archive,
    index: Index,
    pattern: Pattern,
    query: Query,
    *,
    limit: int,
    offset: int,
    by: By,
    context: int,
    redact: RedactText | None = None,
    learn_secrets: LearnSecrets | None = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Messages that hold a pattern, newest first, each looked at in the archive."""
    start = time.perf_counter()
    deadline = start + _TIME_LIMIT
    total = index.count_candidates(pattern, query) if progress is not None else 0
    titles = TitleMatcher(archive, pattern)
    seen: set[int] = set()
    finds: list[_Find] = []
    looked_at = met = 0
    is_cut_short = False
    for batch in _batches(index.candidates(pattern, query)):
        wanted = [hit for hit in batch if by == "message" or hit.session not in seen]
        for find in _verified(archive, wanted, pattern, titles):
            if by == "session" and find.hit.session in seen:
                continue
            seen.add(find.hit.session)
            met += 1
            if offset < met <= offset + limit:
                if learn_secrets is not None:
                    learn_secrets({find.hit.session})
                finds.append(find if redact is None else find.redacted(redact, pattern))
        if met > offset + limit:
            break
        looked_at += len(batch)
        if progress is not None:
            progress(looked_at, total)
        if time.perf_counter() > deadline:
            is_cut_short = True
            break
    counts = _counted(archive, index, pattern, query, finds, titles) if by == "session" else {}
    return SearchResult(
        data=tuple(
            replace(match, match_count=counts.get(find.hit.session, 1))
            for match, find in zip(_matches(archive, finds, context), finds, strict=True)
        ),
        total=None,
        total_at_least=met,
        limit=limit,
        offset=offset,
        has_more=met > offset + limit or is_cut_short,
        took_ms=round((time.perf_counter() - start) * 1000, 3),
        is_cut_short=is_cut_short,
    )


class _Find:
    """A message that was found, with its text and the places in it."""

    def __init__(
        self, hit: "Hit", passage: MessageInSession, text: str, spans: Iterable["Span | tuple[int, int]"]
    ) -> None:
        self.hit = hit
        self.passage = passage
        self.text = text
        self.spans = spans

    def redacted(self, redact: RedactText, pattern: Pattern) -> "_Find":
        """The same with its text cleaned; where the pattern was in what is gone, nothing is marked."""
        text = redact(self.text, self.passage.summary.ref, self.hit.position)
        return self if text == self.text else _Find(self.hit, self.passage, text, pattern.spans(text))


def _batches(hits: Iterable["Hit"]) -> Iterator[list["Hit"]]:
    rest, size = iter(hits), _FIRST_BATCH
    while batch := list(islice(rest, size)):
        yield batch
        size = min(size * 2, _LARGEST_BATCH)


def _verified(archive: Archive, hits: list["Hit"], pattern: Pattern, titles: TitleMatcher) -> list[_Find]:
    """Those of the hits whose text or session's title holds the pattern, in their order."""
    told = load_hit_texts(archive, ((hit.session, hit.position) for hit in hits), required_bytes(pattern))
    found: dict[MessageKey, _Find] = {}
    rest = iter([hit for hit in hits if (hit.session, hit.position) in told])
    while some := list(islice(rest, _TOGETHER)):
        if not pattern.may_be_in_any([told[hit.session, hit.position][1] for hit in some]):
            continue
        for hit in some:
            passage, text = told[hit.session, hit.position]
            if spans := pattern.spans(text):
                found[hit.session, hit.position] = _Find(hit, passage, text, spans)
    named = titles.at(place for hit in hits if (place := (hit.session, hit.position)) not in found)
    for hit in hits if named else ():
        if (place := (hit.session, hit.position)) in named:
            passage, title = named[place]
            found[place] = _Find(hit, passage, title, pattern.spans(title))
    return [found[place] for hit in hits if (place := (hit.session, hit.position)) in found]


def _counted(
    archive: Archive, index: Index, pattern: Pattern, query: Query, finds: list[_Find], titles: TitleMatcher
) -> dict[int, int]:
    """How many messages of each session hold a pattern; not all of them when there are very many."""
    from backscroll.index.query.parser import Clause, SessionIds

    deadline = time.perf_counter() + _COUNTING
    counts: Counter[int] = Counter()
    there = Clause((SessionIds(frozenset(find.hit.session for find in finds)),))
    narrowed = replace(query, clauses=(*query.clauses, there))
    for batch in _batches(index.candidates(pattern, narrowed, refine=False) if finds else ()):
        counts.update(find.hit.session for find in _verified(archive, batch, pattern, titles))
        if time.perf_counter() > deadline:
            break
    return counts


def _matches(archive: Archive, finds: list[_Find], context: int) -> Iterator[SearchMatch]:
    from backscroll.index.results.snippet import make_snippet

    indexes = archive.sessions.list_indexes({find.hit.session for find in finds})
    for find in finds:
        summary, message = find.passage.summary, find.passage.message
        is_note = find.hit.position == ANNOTATIONS_POSITION
        shown = make_snippet(find.text, find.spans, context=context)
        yield SearchMatch(
            session_ref=summary.ref,
            session_id=summary.id,
            session_index=indexes.get(find.hit.session),
            source=summary.source,
            title=summary.title,
            workspace_name=summary.workspace_name,
            message_id=message.id,
            message_index=0 if is_note else find.hit.position,
            role=message.role,
            timestamp=message.timestamp,
            match=shown.match,
            highlights=tuple(shown.highlights),
            context=tuple(shown.context),
            line_number=shown.line_number,
            score=find.hit.score,
            match_count=find.hit.match_count,
            is_note=is_note,
        )
