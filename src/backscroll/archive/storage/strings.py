"""Words that stand in many rows, such as the names of tools and models, kept once and named by a number."""

import sqlite3

__all__ = ["FIXED", "Words"]

# The first words of every archive, with the numbers they have in all of them. They never change.
FIXED = {
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


class Words(dict[str | None, int]):
    """The numbers of words, within one transaction, or in a file that nobody else writes.

    A word that was never met gets the next number when it is asked for. No word is 0, of which statements
    make null: handing over None takes longer than any number.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__()
        self._db = db
        self.start_again()

    def start_again(self) -> None:
        """At first, and after something was undone, which takes its words along."""
        self.clear()
        self.update({None: 0}, **FIXED)

    def __missing__(self, word: str) -> int:
        query = "select id from string where text = ?"
        row = self._db.execute(query, [word]).fetchone()
        if row is None:
            self._db.execute("insert into string (text) values (?)", [word])
            row = self._db.execute(query, [word]).fetchone()
        number = self[word] = int(row[0])
        return number
