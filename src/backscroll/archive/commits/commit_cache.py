"""What each commit adds, and the sessions that were found for it. The caller defines the content."""

import sqlite3
from collections.abc import Collection, Iterable

import msgspec

from backscroll.archive.commits.temporary import use_temporary_tables
from backscroll.archive.connection import transaction

__all__ = ["CommitCache"]


class CommitCache:
    """Store and load the content of commits and their links."""

    def __init__(self, db: sqlite3.Connection) -> None:
        use_temporary_tables(db)
        self._db = db

    def known(self, version: int) -> set[str]:
        """Return the hashes of the commits that are stored."""
        rows = self._db.execute("select sha from git_commit where version = ?", [version])
        return {sha for (sha,) in rows}

    def put_commits(self, commits: Iterable[tuple[str, bytes, bytes]], version: int) -> None:
        """Store commits: hash, body and line hashes."""
        with transaction(self._db):
            self._db.executemany(
                "insert or replace into git_commit values (?, ?, ?, ?)",
                ((sha, version, body, line_hashes) for sha, body, line_hashes in commits),
            )

    def commits(self, shas: Collection[str], *, are_most: bool = False) -> dict[str, tuple[bytes, bytes]]:
        """Return body and line hashes of the stored commits among these.

        ``are_most`` means that these are most of the stored commits: one scan is then faster.
        """
        if are_most:  # half the time of looking up each one
            rows = self._db.execute("select sha, body, line_hashes from git_commit")
            wanted = set(shas)
            return {sha: (body, hashes) for sha, body, hashes in rows if sha in wanted}
        rows = self._db.execute(
            "select sha, body, line_hashes from git_commit where sha in (select value from json_each(?))",
            [msgspec.json.encode([*shas]).decode()],
        )
        return {sha: (body, hashes) for sha, body, hashes in rows}

    def links(self, repository: str) -> dict[str, bytes]:
        """Return the stored links of a repository by hash of the commit."""
        query = "select sha, body from commit_link where repository = ?"
        return dict(self._db.execute(query, [repository]).fetchall())

    def put_links(self, repository: str, links: Iterable[tuple[str, int, bytes]]) -> None:
        """Store links: hash of the commit, its time in milliseconds, and the body."""
        with transaction(self._db):
            self._db.executemany(
                "insert or replace into commit_link values (?, ?, ?, ?)",
                ((repository, sha, committed_at, body) for sha, committed_at, body in links),
            )
