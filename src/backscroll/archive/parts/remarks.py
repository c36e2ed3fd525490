"""What people add to sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backscroll.archive.connection import transaction
from backscroll.archive.parts.opened import Opened

if TYPE_CHECKING:
    from backscroll.archive.derive.affected import Session

__all__ = ["Remarks"]


class Remarks(Opened):
    """What people add to sessions."""

    def tags(self) -> dict[str, int]:
        """Every tag there is, with how many sessions have it."""
        from backscroll.archive import annotations

        return annotations.tags(self._db)

    def tag(self, session: Session, *, add: Iterable[str] = (), take: Iterable[str] = ()) -> None:
        """Give a session tags, and take others away."""
        from backscroll.archive import annotations

        with transaction(self._db):
            annotations.add_tags(self._db, session, add)
            annotations.take_tags(self._db, session, take)

    def star(self, session: Session, *, is_starred: bool) -> None:
        """Mark a session as one to come back to, or no longer."""
        from backscroll.archive import annotations

        with transaction(self._db):
            annotations.star(self._db, session, is_starred=is_starred)

    def add_note(self, session: Session, text: str) -> None:
        """Write something down about a session."""
        from backscroll.archive import annotations

        with transaction(self._db):
            annotations.add_note(self._db, session, text)

    def edit_note(self, session: Session, number: int, text: str | None) -> bool:
        """Write a note anew, or delete it without a text. False when there is none of that number."""
        from backscroll.archive import annotations

        with transaction(self._db):
            return annotations.edit_note(self._db, session, number, text)

    def rename(self, session: Session, title: str | None) -> None:
        """Give a session a title of one's own, or take it back."""
        from backscroll.archive import annotations

        with transaction(self._db):
            annotations.rename(self._db, session, title)
