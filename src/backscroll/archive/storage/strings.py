"""Interned strings. Names of tools, models and the like occur in many rows; rows store their ids."""

import sqlite3

# Ids that are the same in every archive. The first migration inserts these strings.
FIXED_STRING_IDS = {
    text: id_
    for id_, text in enumerate(
        (
            "user",
            "assistant",
            "thinking",
            "tool",
            "error",
            "system",
            "completed",
            "pending",
            "failed",
            "cancelled",
            "accepted",
            "rejected",
            "modified",
            "queued",
        ),
        start=1,
    )
}


class StringTable(dict[str | None, int]):
    """Ids by string. A missing string is inserted.

    Valid within one transaction, or in a file that no other process writes. None maps to 0, which statements
    convert to null: binding None is slower than binding an integer.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__()
        self._db = db
        self.reset()

    def reset(self) -> None:
        """Forget the cached ids. Call this after a rollback, which removes inserted strings."""
        self.clear()
        self.update({None: 0}, **FIXED_STRING_IDS)

    def __missing__(self, text: str) -> int:
        query = "select id from string where text = ?"
        row = self._db.execute(query, [text]).fetchone()
        if row is None:
            self._db.execute("insert into string (text) values (?)", [text])
            row = self._db.execute(query, [text]).fetchone()
        id_ = self[text] = int(row[0])
        return id_


class StringLookup(dict[int, str]):
    """Strings by id, read on first use. Valid within one transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__()
        self._db = db

    def __missing__(self, id_: int) -> str:
        (text,) = self._db.execute("select text from string where id = ?", [id_]).fetchone()
        self[id_] = str(text)
        return self[id_]

    def find_id(self, text: str) -> int | None:
        """Return the id of a string; None if the archive does not contain it."""
        row = self._db.execute("select id from string where text = ?", [text]).fetchone()
        return int(row[0]) if row is not None else None
