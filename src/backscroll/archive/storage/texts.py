"""Words by their numbers: see `words`, where they get them."""

import sqlite3

__all__ = ["Texts"]


class Texts(dict[int, str]):
    """The words that numbers stand for, read when they are first asked for, within one transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__()
        self._db = db

    def __missing__(self, number: int) -> str:
        (text,) = self._db.execute("select text from string where id = ?", [number]).fetchone()
        self[number] = str(text)
        return self[number]

    def number(self, text: str) -> int | None:
        """The number of a word; None when it was never met."""
        row = self._db.execute("select id from string where text = ?", [text]).fetchone()
        return int(row[0]) if row is not None else None
