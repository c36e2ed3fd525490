"""What the index does not have yet, and what it needs for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backscroll.archive.connection import transaction
from backscroll.archive.parts.opened import Opened

if TYPE_CHECKING:
    from backscroll.archive.index_queue import Lack
    from backscroll.model import Message, SessionSummary

__all__ = ["Debts"]


class Debts(Opened):
    """What the index does not have yet, and what it needs for it."""

    @property
    def identity(self) -> str:
        """What tells this archive from every other."""
        return str(self._db.execute("select id from identity").fetchone()[0])

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Meanwhile nobody writes the archive, so that one process at a time does what is to be done once."""
        with transaction(self._db):
            yield

    @property
    def is_index_behind(self) -> bool:
        """Whether there is anything that the index does not have."""
        return self._db.execute("select 1 from unindexed limit 1").fetchone() is not None

    def unindexed(self, limit: int) -> list[Lack]:
        """Sessions and subagents whose words the index does not have, or not all of them."""
        from backscroll.archive import index_queue

        return index_queue.lacks(self._db, limit)

    def mark_indexed(self, done: Iterable[Lack]) -> None:
        """The index has these now."""
        from backscroll.archive import index_queue

        with transaction(self._db):
            index_queue.clear(self._db, done)

    def mark_unindexed(self) -> None:
        """The index has nothing."""
        from backscroll.archive import index_queue

        with transaction(self._db):
            index_queue.note_everything(self._db)

    def messages_in(self, account: int, start: int) -> Iterator[Message]:
        """The messages of an account from a position on, without what they cost."""
        from backscroll.archive.query import messages as reading

        return reading.messages_in(self._db, account, start)

    def only_account(self, summary: SessionSummary) -> tuple[int, set[int]] | None:
        """The account that a session's messages are in, and the positions of those that are copies."""
        from backscroll.archive.query import message_lookup

        account = message_lookup.only_account(self._db, summary)
        return (account, message_lookup.copies_in(self._db, account)) if account is not None else None
