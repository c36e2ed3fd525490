"""Queries for messages."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator

from backscroll.archive.query import message_lookup
from backscroll.archive.query import messages as reading
from backscroll.archive.query.message_lookup import MessageInSession, MessageKey
from backscroll.archive.query.message_stream import position_of, prompts_of, talk_of
from backscroll.archive.query.original_records import Records
from backscroll.archive.query.read_cache import AtHand
from backscroll.model import Message, SessionSummary

__all__ = ["MessageQueries"]


class MessageQueries:
    """Read messages, find their positions and their original records."""

    def __init__(self, db: sqlite3.Connection, cache: AtHand) -> None:
        self._db = db
        self._at_hand = cache

    def lookup(
        self, places: Iterable[MessageKey], having: tuple[bytes, ...] = ()
    ) -> dict[MessageKey, MessageInSession]:
        """The messages that stand at these places, with the sessions they are in.

        Some that do not have these bytes as they are packed may be left out.
        """
        return message_lookup.passages(self._db, self._at_hand, places, having)

    def of_session(self, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
        """The messages of a session from a position on, in order; see `reading.messages_of`."""
        return reading.messages_of(self._db, summary, start)

    def without_usage(self, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
        """The same without what they cost, which is there at once however many there are."""
        return talk_of(self._db, summary, start)

    def turn_starts(self, summary: SessionSummary, agents: Collection[str] = ()) -> list[int]:
        """Where each turn begins; what these agents were told in the session's own file is left out."""
        return prompts_of(self._db, summary, agents)

    def find_positions(self, summary: SessionSummary, id_: str) -> list[tuple[int, str]]:
        """Positions and ids of the message that has this id, or of those whose id begins so."""
        return position_of(self._db, summary, id_)

    def original_records(self, summary: SessionSummary) -> Records:
        """The original records of a session's messages."""
        return Records(self._db, summary)

    def extent(self, summary: SessionSummary) -> tuple[int | None, int]:
        """Which account tells of a session, if only one does, and how many messages there are."""
        return reading.extent(self._db, summary)

    def of_fragment(self, account: int, start: int) -> Iterator[Message]:
        """The messages of an account from a position on, without what they cost."""
        return reading.messages_in(self._db, account, start)

    def single_fragment(self, summary: SessionSummary) -> tuple[int, set[int]] | None:
        """The account that a session's messages are in, and the positions of those that are copies."""
        account = message_lookup.only_account(self._db, summary)
        return (account, message_lookup.copies_in(self._db, account)) if account is not None else None
