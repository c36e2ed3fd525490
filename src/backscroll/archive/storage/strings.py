"""Words that stand in many rows, such as the names of tools and models, kept once and named by a number."""

import sqlite3

__all__ = ["FIXED_STRING_IDS", "StringLookup", "StringTable"]

# The first words of every archive, with the numbers they have in all of them. They never change.
FIXED_STRING_IDS = {
    word: number
    for number, word in enumerate(
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
    """The numbers of words, within one transaction, or in a file that nobody else writes.

    A word that was never met gets the next number when it is asked for. No word is 0, of which statements
    make null: handing over None takes longer than any number.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__()
        self._db = db
        self.reset()

    def reset(self) -> None:
        """At first, and after something was undone, which takes its words along."""
        self.clear()
        self.update({None: 0}, **FIXED_STRING_IDS)

    def __missing__(self, word: str) -> int:
        query = "select id from string where text = ?"
        row = self._db.execute(query, [word]).fetchone()
        if row is None:
            self._db.execute("insert into string (text) values (?)", [word])
            row = self._db.execute(query, [word]).fetchone()
        number = self[word] = int(row[0])
        return number


class StringLookup(dict[int, str]):
    """The words that numbers stand for, read when they are first asked for, within one transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__()
        self._db = db

    def __missing__(self, number: int) -> str:
        (text,) = self._db.execute("select text from string where id = ?", [number]).fetchone()
        self[number] = str(text)
        return self[number]

    def find_id(self, text: str) -> int | None:
        """The number of a word; None when it was never met."""
        row = self._db.execute("select id from string where text = ?", [text]).fetchone()
        return int(row[0]) if row is not None else None
