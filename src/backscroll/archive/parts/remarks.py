"""What people add to sessions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backscroll.archive import notes
from backscroll.archive.connection import transaction
from backscroll.archive.derive import Session
from backscroll.archive.parts.opened import Opened

if TYPE_CHECKING:
    pass

__all__ = ["Remarks"]


class Remarks(Opened):
    """What people add to sessions."""

    def tags(self) -> dict[str, int]:
        """Every tag there is, with how many sessions have it."""
        return notes.tags(self._db)

    def tag(self, session: Session, *, add: Iterable[str] = (), take: Iterable[str] = ()) -> None:
        """Give a session tags, and take others away."""
        with transaction(self._db):
            notes.add_tags(self._db, session, add)
            notes.take_tags(self._db, session, take)

    def star(self, session: Session, *, is_starred: bool) -> None:
        """Mark a session as one to come back to, or no longer."""
        with transaction(self._db):
            notes.star(self._db, session, is_starred=is_starred)

    def add_note(self, session: Session, text: str) -> None:
        """Write something down about a session."""
        with transaction(self._db):
            notes.add_note(self._db, session, text)

    def edit_note(self, session: Session, number: int, text: str | None) -> bool:
        """Write a note anew, or delete it without a text. False when there is none of that number."""
        with transaction(self._db):
            return notes.edit_note(self._db, session, number, text)

    def rename(self, session: Session, title: str | None) -> None:
        """Give a session a title of one's own, or take it back."""
        with transaction(self._db):
            notes.rename(self._db, session, title)
