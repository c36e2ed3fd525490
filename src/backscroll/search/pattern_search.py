"""Search for a substring or a regular expression."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Literal

from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.archive.query.message_lookup import MessageKey
from backscroll.index import Index, Query
from backscroll.index.pattern.pattern import Pattern, exact, regex
from backscroll.index.query.parser import Clause, SessionIds
from backscroll.index.query.ranking import Hit
from backscroll.model import SearchResult
from backscroll.search.byte_prefilter import required_bytes
from backscroll.search.hit_text import load_hit_texts
from backscroll.search.matches import (
    By,
    FoundMessage,
    LearnSecrets,
    RedactText,
    build_matches,
    message_key,
)
from backscroll.search.title_hits import TitleMatcher

__all__ = ["batches", "compile_pattern", "search_pattern", "verify"]

PATTERN_TIMEOUT_SECONDS = 10.0
COUNT_TIMEOUT_SECONDS = 0.2
_FIRST_BATCH_SIZE = 64  # small: most patterns match within a few candidates
_MAX_BATCH_SIZE = 1024
_JOINED_TEXTS = 64  # texts that are tested together


def compile_pattern(text: str, kind: Literal["exact", "regex"], *, ignore_case: bool) -> Pattern:
    """Compile a substring or a regular expression. Raises `UsageError` if it is invalid."""
    return (exact if kind == "exact" else regex)(text, ignores_case=ignore_case)


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
    progress: Callable[[int, int], None] | None = None,
) -> SearchResult:
    """Return the messages that match a pattern, newest first. Every candidate is verified in the archive."""
    start = time.perf_counter()
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
                if learn_secrets is not None:
                    learn_secrets({message.hit.session})
                found.append(message if redact is None else _redact_match(message, redact, pattern))
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
            for match, each in zip(build_matches(archive, found, context), found, strict=True)
        ),
        total=None,
        total_at_least=matched,
        limit=limit,
        offset=offset,
        has_more=matched > offset + limit or is_cut_short,
        took_ms=round((time.perf_counter() - start) * 1000, 3),
        is_cut_short=is_cut_short,
    )


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
    texts = load_hit_texts(archive, map(message_key, candidates), required_bytes(pattern))
    found: dict[MessageKey, FoundMessage] = {}
    rest = iter([hit for hit in candidates if message_key(hit) in texts])
    while group := list(islice(rest, _JOINED_TEXTS)):
        if not pattern.may_be_in_any([texts[message_key(hit)][1] for hit in group]):
            continue
        for hit in group:
            message, text = texts[message_key(hit)]
            if spans := pattern.spans(text, limit=1) if is_counting else pattern.spans(text):
                found[message_key(hit)] = FoundMessage(hit, message, text, spans)
    title_hits = titles.match(message_key(hit) for hit in candidates if message_key(hit) not in found)
    for hit in candidates if title_hits else ():
        if message_key(hit) in title_hits:
            message, title = title_hits[message_key(hit)]
            found[message_key(hit)] = FoundMessage(hit, message, title, pattern.spans(title), is_title=True)
    return [found[message_key(hit)] for hit in candidates if message_key(hit) in found]


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
    sessions = Clause((SessionIds(frozenset(each.hit.session for each in found)),))
    within = replace(query, clauses=(*query.clauses, sessions))
    for batch in batches(index.candidates(pattern, within, refine=False) if found else ()):
        found_messages = verify(archive, batch, pattern, titles, is_counting=True)
        counts.update(each.hit.session for each in found_messages)
        if time.perf_counter() > deadline:
            break
    return counts
