"""Session titles that match a pattern. A title is a hit at the first message of its own session."""

from collections.abc import Iterable
from itertools import count, takewhile

from backscroll.archive import Archive
from backscroll.archive.query.message_lookup import MessageInSession, MessageKey
from backscroll.index import Pattern
from backscroll.model import SessionSummary
from backscroll.model.searchable_text import ANNOTATIONS_POSITION
from backscroll.search.hit_text import title_of

__all__ = ["TitleMatcher"]


class TitleMatcher:
    """Matches the titles of sessions against a pattern, each title once."""

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
