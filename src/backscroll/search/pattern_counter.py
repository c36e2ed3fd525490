"""Number of messages that match a pattern, by session, attribute and time."""

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from backscroll.archive import Archive
from backscroll.archive.query.message_lookup import MessageKey
from backscroll.archive.storage.codec import to_milliseconds
from backscroll.index import Filter, Index, Query
from backscroll.index.pattern.pattern import Pattern
from backscroll.model.searchable_text import ANNOTATIONS_POSITION
from backscroll.search.matches import FoundMessage, message_key
from backscroll.search.pattern_search import batches, verify
from backscroll.search.title_hits import TitleMatcher

__all__ = ["PatternCounter"]

COUNT_TIMEOUT_SECONDS = 1.0  # of all counts of a pattern


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
        self._deadline = time.perf_counter() + COUNT_TIMEOUT_SECONDS
        self._verified: dict[MessageKey, _Match | None] = {}  # None: does not match
        self._matches: dict[Query, list[_Match]] = {}
        self.is_partial = False

    def by_session(self, query: Query) -> dict[int, int]:
        """Return the number of messages by session id."""
        return Counter(match.session for match in self._matching(query))

    def with_filter(self, query: Query, filter_: Filter) -> int:
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
            unknown = [hit for hit in batch if message_key(hit) not in self._verified]
            if unknown:
                if time.perf_counter() > self._deadline:
                    self.is_partial = True
                    return
                found = {
                    message_key(each.hit): _attributes(each)
                    for each in verify(self._archive, unknown, self._pattern, self._titles, is_counting=True)
                }
                self._verified.update((message_key(hit), found.get(message_key(hit))) for hit in unknown)
            for hit in batch:
                if (match := self._verified[message_key(hit)]) is not None:
                    yield match


def _attributes(found: FoundMessage) -> _Match:
    """Return the attributes that the index has of a message."""
    message, summary = found.message.message, found.message.summary
    if found.hit.position == ANNOTATIONS_POSITION:
        last = max((note.edited_at or note.written_at for note in summary.notes), default=summary.updated_at)
        return _Match(found.hit.session, "note", "", False, False, to_milliseconds(last))
    tool = message.tool
    return _Match(
        session=found.hit.session,
        role=message.role,
        model=(message.model or "").lower(),
        is_edit=bool(tool and tool.edits),
        is_error=message.role == "error" or (tool is not None and tool.is_error),
        at=to_milliseconds(message.timestamp),
    )


def _passes(match: _Match, filter_: Filter) -> bool:
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
