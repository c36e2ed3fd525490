"""Commits that the git hook reported, and the repositories that have it."""

import sqlite3
from collections.abc import Iterable

from backscroll.archive.connection import transaction
from backscroll.model.code.hooks import HookCommit

__all__ = ["HookCommits"]

_COLUMNS = "repository, sha, at, folder, event, session_external_id"


class HookCommits:
    """Reported commits: each once, until it is processed and afterwards."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, commits: Iterable[HookCommit]) -> int:
        """Store commits and their repositories in one transaction. Return the number of new commits."""
        rows = [(one.repository, one.sha, one.at, one.folder, one.event, one.session_id) for one in commits]
        if not rows:
            return 0
        with transaction(self._db):
            self._db.executemany(
                "insert or ignore into hook_repository (path) values (?)", {(row[0],) for row in rows}
            )
            added = self._db.executemany(
                f"insert or ignore into hook_commit ({_COLUMNS}) values (?, ?, ?, ?, ?, ?)",  # noqa: S608
                rows,
            )
        return max(0, added.rowcount)

    def pending(self) -> list[HookCommit]:
        """Return the commits that were not processed, oldest first."""
        rows = self._db.execute(f"select {_COLUMNS} from hook_commit where not is_done order by at, sha")  # noqa: S608
        return [
            HookCommit(repository=repository, sha=sha, at=at, folder=folder, event=event, session_id=session)
            for repository, sha, at, folder, event, session in rows
        ]

    @property
    def is_pending(self) -> bool:
        return self._db.execute("select 1 from hook_commit where not is_done limit 1").fetchone() is not None

    @property
    def count(self) -> int:
        return int(self._db.execute("select count(*) from hook_commit").fetchone()[0])

    @property
    def done_count(self) -> int:
        return int(self._db.execute("select count(*) from hook_commit where is_done").fetchone()[0])

    def mark_done(self, commits: Iterable[HookCommit]) -> None:
        """Record that commits were processed."""
        with transaction(self._db):
            self._db.executemany(
                "update hook_commit set is_done = 1 where repository = ? and sha = ?",
                [(one.repository, one.sha) for one in commits],
            )

    def sessions(self, repository: str) -> dict[str, str]:
        """Return the session that made each commit of a repository, as far as its tool said so."""
        rows = self._db.execute(
            "select sha, session_external_id from hook_commit where repository = ?"
            " and session_external_id is not null",
            [repository],
        )
        return dict(rows.fetchall())

    def repositories(self) -> dict[str, str]:
        """Return the git folders of the repositories with the hook, and the fingerprints of their reflogs."""
        return dict(self._db.execute("select path, fingerprint from hook_repository").fetchall())

    def set_fingerprint(self, repository: str, fingerprint: str) -> None:
        """Record the state of a repository; add it if it is new."""
        with transaction(self._db):
            self._db.execute(
                "insert into hook_repository values (?, ?)"
                " on conflict do update set fingerprint = excluded.fingerprint",
                [repository, fingerprint],
            )

    def delete_repository(self, repository: str) -> None:
        """Stop to look for commits in a repository. Reported commits stay."""
        with transaction(self._db):
            self._db.execute("delete from hook_repository where path = ?", [repository])
