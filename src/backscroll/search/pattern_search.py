"""Search for a substring or a regular expression, and counts of the messages that match one."""

import re
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count, islice, takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.query.messages import MessageInSession, MessageKey
from backscroll.archive.storage.codec import to_milliseconds
from backscroll.index.pattern import Pattern, exact, regex, required_literals
from backscroll.index.query import MessageFilter, Query
from backscroll.index.ranking import Hit
from backscroll.index.store import Index
from backscroll.model.message import ANNOTATIONS_POSITION
from backscroll.model.search import SearchRequest, SearchResult, annotations_time
from backscroll.model.session import SessionSummary
from backscroll.model.sync import Progress
from backscroll.search.matches import (
    FoundMessage,
    Redaction,
    RedactText,
    build_matches,
    load_hit_texts,
    title_of,
)

PATTERN_TIMEOUT_SECONDS = 10.0
COUNT_TIMEOUT_SECONDS = 0.2  # of the matches in the sessions of one page
_FIRST_BATCH_SIZE = 64  # small: most patterns match within a few candidates
_MAX_BATCH_SIZE = 1024
_JOINED_TEXTS = 64  # texts that are tested together
FACET_TIMEOUT_SECONDS = 1.0  # of all counts of a `PatternCounter`
_SEPARATORS = re.compile(r"[\s\x00-\x1f\":,\[\]{}\\]+")  # added or escaped by JSON or between lines
_ESCAPE_REST = re.compile(r"u[0-9a-fA-F]{0,4}|[0-9a-fA-F]{1,4}|[bfnrt]")  # possible end of a JSON escape
_NUMBER = re.compile(r"[0-9.eE+-]*")
_JSON_NAMES = ("true", "false", "null")
_MIN_RUN_CHARS = 2  # nearly every message contains any single character


def compile_pattern(text: str, kind: Literal["exact", "regex"], *, ignore_case: bool) -> Pattern:
    """Compile a substring or a regular expression. Raises `UsageError` if it is invalid."""
    return (exact if kind == "exact" else regex)(text, ignores_case=ignore_case)


def search_pattern(
    archive: Archive,
    index: Index,
    pattern: Pattern,
    query: Query,
    request: SearchRequest,
    redaction: Redaction | None,
    progress: Progress | None,
) -> SearchResult:
    """Return the messages that match a pattern, newest first. Every candidate is verified in the archive."""
    start = time.perf_counter()
    by, limit, offset = request.by, request.limit, request.offset
    deadline = start + PATTERN_TIMEOUT_SECONDS
    total = index.count_candidates(pattern, query) if progress is not None else 0
    titles = TitleMatcher(archive, pattern)
    sessions: set[int] = set()
    found: list[FoundMessage] = []
    processed = matched = 0
    is_cut_short = False
    for batch in batches(index.candidates(pattern, query)):
        candidates = [hit for hit in batch if by == "message" or hit.session not in sessions]
        for message in verify(archive, candidates, pattern, titles):
            if by == "session" and message.hit.session in sessions:
                continue
            sessions.add(message.hit.session)
            matched += 1
            if offset < matched <= offset + limit:
                if redaction is not None:
                    redaction.learn({message.hit.session})
                    message = _redact_match(message, redaction.redact, pattern)
                found.append(message)
        if matched > offset + limit:
            break
        processed += len(batch)
        if progress is not None:
            progress(processed, total)
        if time.perf_counter() > deadline:
            is_cut_short = True
            break
    counts = _count_matches(archive, index, pattern, query, found, titles) if by == "session" else {}
    return SearchResult(
        data=tuple(
            replace(match, match_count=counts.get(each.hit.session, 1))
            for match, each in zip(build_matches(archive, found, request.context), found, strict=True)
        ),
        total=None,
        total_at_least=matched,
        limit=limit,
        offset=offset,
        has_more=matched > offset + limit or is_cut_short,
        took_ms=round((time.perf_counter() - start) * 1000, 3),
        is_cut_short=is_cut_short,
    )


class TitleMatcher:
    """Matches the titles of sessions. A title is a hit at the first message of its own session."""

    def __init__(self, archive: Archive, pattern: Pattern) -> None:
        self._archive = archive
        self._pattern = pattern
        self._checked: set[int] = set()
        self._matching: set[int] = set()
        self._copy_counts: dict[int, int] = {}  # by session id

    def match(self, keys: Iterable[MessageKey]) -> dict[MessageKey, tuple[MessageInSession, str]]:
        """Return the messages at these keys that carry a matching title, with the title."""
        candidates = [key for key in keys if key[1] != ANNOTATIONS_POSITION]
        self._check({session for session, _ in candidates} - self._checked)
        matching = [key for key in candidates if key[0] in self._matching and self._is_first(*key)]
        messages = self._archive.messages.lookup(matching) if matching else {}
        return {key: (message, title_of(message.summary)) for key, message in messages.items()}

    def _check(self, sessions: set[int]) -> None:
        if sessions:
            titles = self._archive.sessions.titles(sessions)
            self._matching |= {session for session, title in titles if self._pattern.spans(title, limit=1)}
            self._checked |= sessions

    def _is_first(self, session: int, position: int) -> bool:
        """Return whether all earlier messages are copies from another session."""
        if position == 0:
            return True
        if session not in self._copy_counts:
            summary = self._archive.sessions.by_ids([session]).get(session)
            self._copy_counts[session] = self._leading_copies(summary) if summary is not None else 0
        return position <= self._copy_counts[session]

    def _leading_copies(self, summary: SessionSummary) -> int:
        """Return the number of messages before the first one that is not a copy."""
        if fragment := self._archive.messages.single_fragment(summary):
            _, copies = fragment
            return next(position for position in count() if position not in copies)
        messages = self._archive.messages.of_session(summary)
        return sum(1 for _ in takewhile(lambda message: message.copied_from is not None, messages))


def batches(hits: Iterable[Hit]) -> Iterator[list[Hit]]:
    """Split hits into batches of growing size."""
    rest, size = iter(hits), _FIRST_BATCH_SIZE
    while batch := list(islice(rest, size)):
        yield batch
        size = min(size * 2, _MAX_BATCH_SIZE)


def verify(
    archive: Archive,
    candidates: list[Hit],
    pattern: Pattern,
    titles: TitleMatcher,
    *,
    is_counting: bool = False,
) -> list[FoundMessage]:
    """Return the candidates that match in their text or in the title of their session, in order.

    To count messages, only the first match of each is located: 5 times as fast for a single letter.
    """
    texts = load_hit_texts(archive, (hit.key for hit in candidates), required_bytes(pattern))
    found: dict[MessageKey, FoundMessage] = {}
    rest = iter([hit for hit in candidates if hit.key in texts])
    while group := list(islice(rest, _JOINED_TEXTS)):
        if not pattern.may_be_in_any([texts[hit.key][1] for hit in group]):
            continue
        for hit in group:
            message, text = texts[hit.key]
            if spans := pattern.spans(text, limit=1) if is_counting else pattern.spans(text):
                found[hit.key] = FoundMessage(hit, message, text, spans)
    title_hits = titles.match(hit.key for hit in candidates if hit.key not in found)
    for hit in candidates if title_hits else ():
        if hit.key in title_hits:
            message, title = title_hits[hit.key]
            found[hit.key] = FoundMessage(hit, message, title, pattern.spans(title), is_title=True)
    return [found[hit.key] for hit in candidates if hit.key in found]


def _redact_match(found: FoundMessage, redact: RedactText, pattern: Pattern) -> FoundMessage:
    """Redact the text. Matches inside a redacted secret are not highlighted."""
    text = redact(found.text, found.message.summary.ref, found.hit.position)
    return found if text == found.text else replace(found, text=text, spans=pattern.spans(text))


def _count_matches(
    archive: Archive,
    index: Index,
    pattern: Pattern,
    query: Query,
    found: list[FoundMessage],
    titles: TitleMatcher,
) -> dict[int, int]:
    """Count the matching messages of each session. Stops after a time limit, so counts may be too low."""
    deadline = time.perf_counter() + COUNT_TIMEOUT_SECONDS
    counts: Counter[int] = Counter()
    within = query.within(each.hit.session for each in found)
    for batch in batches(index.candidates(pattern, within, refine=False) if found else ()):
        found_messages = verify(archive, batch, pattern, titles, is_counting=True)
        counts.update(each.hit.session for each in found_messages)
        if time.perf_counter() > deadline:
            break
    return counts


class _Match(Struct, frozen=True, gc=False):
    """The attributes of a matching message."""

    session: int
    role: str
    model: str
    is_edit: bool
    is_error: bool
    at: int | None  # milliseconds since 1970


class PatternCounter:
    """Counts the messages that match a pattern, like `FacetCounter` those that match words.

    Every candidate is verified in the archive, once, newest first. After the time limit, only verified
    messages count: ``is_partial`` is set.
    """

    def __init__(self, archive: Archive, index: Index, pattern: Pattern) -> None:
        self._archive = archive
        self._index = index
        self._pattern = pattern
        self._titles = TitleMatcher(archive, pattern)
        self._deadline = time.perf_counter() + FACET_TIMEOUT_SECONDS
        self._verified: dict[MessageKey, _Match | None] = {}  # None: does not match
        self._matches: dict[Query, list[_Match]] = {}
        self.is_partial = False

    def by_session(self, query: Query) -> dict[int, int]:
        """Return the number of messages by session id."""
        return Counter(match.session for match in self._matching(query))

    def with_filter(self, query: Query, filter_: MessageFilter) -> int:
        """Return the number of messages that also pass a filter for a role, kind or model."""
        return sum(_passes(match, filter_) for match in self._matching(query))

    def time_range(self, query: Query) -> tuple[int, int] | None:
        """Return the first and the last time in milliseconds since 1970; None if no message has a time."""
        times = [match.at for match in self._matching(query) if match.at is not None]
        return (min(times), max(times)) if times else None

    def by_time(self, query: Query, bounds: Sequence[int]) -> list[int]:
        """Return the number of messages between each bound and the next, in milliseconds since 1970."""
        counts = Counter(
            bisect_right(bounds, match.at) - 1 for match in self._matching(query) if match.at is not None
        )
        return [counts[number] for number in range(len(bounds) - 1)]

    def _matching(self, query: Query) -> list[_Match]:
        known = self._matches.get(query)
        if known is None:
            known = self._matches[query] = list(self._verify_candidates(query))
        return known

    def _verify_candidates(self, query: Query) -> Iterator[_Match]:
        for batch in batches(self._index.candidates(self._pattern, query)):
            unknown = [hit for hit in batch if hit.key not in self._verified]
            if unknown:
                if time.perf_counter() > self._deadline:
                    self.is_partial = True
                    return
                found = {
                    each.hit.key: _attributes(each)
                    for each in verify(self._archive, unknown, self._pattern, self._titles, is_counting=True)
                }
                self._verified.update((hit.key, found.get(hit.key)) for hit in unknown)
            for hit in batch:
                if (match := self._verified[hit.key]) is not None:
                    yield match


def _attributes(found: FoundMessage) -> _Match:
    """Return the attributes that the index has of a message."""
    message, summary = found.message.message, found.message.summary
    if found.hit.position == ANNOTATIONS_POSITION:
        at = to_milliseconds(annotations_time(summary))
        return _Match(found.hit.session, "note", "", False, False, at)
    tool = message.tool
    return _Match(
        session=found.hit.session,
        role=message.role,
        model=(message.model or "").lower(),
        is_edit=bool(tool and tool.edits),
        is_error=message.role == "error" or (tool is not None and tool.is_error),
        at=to_milliseconds(message.timestamp),
    )


def _passes(match: _Match, filter_: MessageFilter) -> bool:
    match filter_.name, filter_.value:
        case "role", role:
            return match.role == role
        case "is", "edit":
            return match.is_edit
        case "is", "error":
            return match.is_error
        case "model", name:
            return name.lower() in match.model
    raise ValueError(f"messages are not counted by {filter_.name}:{filter_.value}")


@lru_cache(maxsize=8)
def required_bytes(pattern: Pattern) -> tuple[bytes, ...]:
    """Return byte strings that every stored message with the pattern contains, longest first.

    A stored message contains its text, the tool name and the result as they are, and arguments that are not
    text as JSON. So nearly every part of a pattern occurs unchanged in the stored bytes, and a message
    without these bytes need not be decoded.
    """
    if pattern.ignores_case or (pattern.is_regex and "(?" in pattern.text):
        return ()
    literals = required_literals(pattern.text) if pattern.is_regex else [(pattern.text,)]
    runs = {
        run
        for group in literals
        if len(group) == 1
        for run in _stored_runs(group[0])
        if len(run) >= _MIN_RUN_CHARS
    }
    return tuple(
        run.encode("utf-8", "surrogatepass") for run in sorted(runs, key=lambda run: (-len(run), run))
    )


def _stored_runs(literal: str) -> list[str]:
    """Return the parts of a literal that are stored unchanged, wherever in a message it occurs."""
    start, runs = 0, []
    for separator in [*_SEPARATORS.finditer(literal), None]:
        run = literal[start : separator.start() if separator is not None else len(literal)]
        if start == 0 or literal[start - 1] == "\\":
            escape = _ESCAPE_REST.match(run)
            run = run[escape.end() :] if escape is not None else run
        if not _NUMBER.fullmatch(run) and not any(run in name for name in _JSON_NAMES):
            runs.append(run)
        start = separator.end() if separator is not None else len(literal)
    return runs
