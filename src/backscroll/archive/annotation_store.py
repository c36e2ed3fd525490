"""Tags, stars, notes and titles that users give to sessions."""

import sqlite3
from collections.abc import Iterable

from backscroll.archive import annotations
from backscroll.archive.connection import transaction
from backscroll.archive.session_key import SessionKey

__all__ = ["Annotations"]


class Annotations:
    """Read and change what users add to sessions."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def tags(self) -> dict[str, int]:
        """Every tag there is, with how many sessions have it."""
        return annotations.tags(self._db)

    def update_tags(self, session: SessionKey, *, add: Iterable[str] = (), take: Iterable[str] = ()) -> None:
        """Give a session tags, and take others away."""
        with transaction(self._db):
            annotations.add_tags(self._db, session, add)
            annotations.take_tags(self._db, session, take)

    def set_star(self, session: SessionKey, *, is_starred: bool) -> None:
        """Mark a session as one to come back to, or no longer."""
        with transaction(self._db):
            annotations.star(self._db, session, is_starred=is_starred)

    def add_note(self, session: SessionKey, text: str) -> None:
        """Write something down about a session."""
        with transaction(self._db):
            annotations.add_note(self._db, session, text)

    def edit_note(self, session: SessionKey, number: int, text: str | None) -> bool:
        """Write a note anew, or delete it without a text. False when there is none of that number."""
        with transaction(self._db):
            return annotations.edit_note(self._db, session, number, text)

    def set_title(self, session: SessionKey, title: str | None) -> None:
        """Give a session a title of one's own, or take it back."""
        with transaction(self._db):
            annotations.rename(self._db, session, title)
