"""Titles that hold a pattern: each is found with the first message that is the session's own."""

from collections.abc import Iterable
from itertools import islice

from backscroll.archive import Archive
from backscroll.archive.query.message_lookup import MessageInSession, MessageKey
from backscroll.index import Pattern
from backscroll.model import SessionSummary
from backscroll.model.searchable_text import ANNOTATIONS_POSITION

__all__ = ["TitleMatcher", "title_of"]


def title_of(summary: SessionSummary) -> str:
    """The tool's own title of a session, which it is found by; one that people gave is among their notes."""
    return summary.original_title or summary.title or ""


class TitleMatcher:
    """Those that hold a pattern, of the sessions that are asked about; each is looked at once."""

    def __init__(self, archive: Archive, pattern: Pattern) -> None:
        self._archive = archive
        self._pattern = pattern
        self._seen: set[int] = set()
        self._holding: set[int] = set()

    def at(self, places: Iterable[MessageKey]) -> dict[MessageKey, tuple[MessageInSession, str]]:
        """Those that are found at some of these places, with the messages that stand there."""
        wanted = [place for place in places if place[1] != ANNOTATIONS_POSITION]
        self._look({number for number, _ in wanted} - self._seen)
        some = [place for place in wanted if place[0] in self._holding]
        found = self._archive.messages.lookup(some) if some else {}
        return {
            place: (passage, title_of(passage.summary))
            for place, passage in found.items()
            if self._is_first(passage.summary, place[1])
        }

    def _look(self, numbers: set[int]) -> None:
        """Know which of these sessions have such a title."""
        if numbers:
            told = self._archive.sessions.titles(numbers)
            self._holding |= {number for number, title in told if self._pattern.spans(title, limit=1)}
            self._seen |= numbers

    def _is_first(self, summary: SessionSummary, position: int) -> bool:
        """Whether all that stands before was copied from another session."""
        if position == 0:
            return True
        if told := self._archive.messages.single_fragment(summary):
            return all(place in told[1] for place in range(position))
        before = islice(self._archive.messages.of_session(summary), position)
        return all(message.copied_from is not None for message in before)
