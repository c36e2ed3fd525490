"""Events that the hooks of the tools recorded, and commits that the git hook reported."""

import sqlite3
from collections.abc import Iterable
from functools import cached_property

import msgspec

from backscroll.archive.connection import from_ms, text_list, transaction
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.codec import compress, decompress
from backscroll.model.hook import HookCommit, HookEvent, HookRecord
from backscroll.model.store import stores_with

_COLUMNS = "repository, sha, at, folder, event, session_external_id"


class HookEvents:
    """Events that hooks recorded. Each is stored once, also if the spool is read twice."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, records: Iterable[HookRecord]) -> int:
        """Store records in one transaction and return their number. Records with a known id are ignored."""
        with transaction(self._db):
            added = self._db.executemany(
                "insert or ignore into hook_event values (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        record.id,
                        record.at,
                        record.platform,
                        record.source,
                        record.session_id,
                        record.name,
                        record.session_id is None,
                        compress(record.body),
                    )
                    for record in records
                ],
            )
        return max(0, added.rowcount)

    def unread_sessions(self) -> list[tuple[str, SessionKey]]:
        """Return source and key of the sessions with records that are in no fragment."""
        rows = self._db.execute(
            "select min(source), platform, external_id from hook_event indexed by hook_event_unread"
            " where not is_read group by platform, external_id"
        )
        return [(source, SessionKey(platform, id_)) for source, platform, id_ in rows]

    def of_session(self, session: SessionKey) -> list[HookEvent]:
        """Return the events of a session, sorted by time."""
        rows = self._db.execute(
            "select id, at, name, body from hook_event where platform = ? and external_id = ?"
            " order by at, id",
            [session.platform, session.id],
        )
        return list(map(_event, rows))

    def has_other_content(self, session: SessionKey) -> bool:
        """Return whether another store than that of hooks, and a better one, has messages of a session."""
        better = text_list(stores_with("records", "copy", "text"))
        row = self._db.execute(
            "select 1 from fragment where external_id = ? and platform = ? and not is_subagent"  # noqa: S608
            f" and message_count > 0 and store in {better} limit 1",
            [session.id, session.platform],
        ).fetchone()
        return row is not None

    def mark_read(self, session: SessionKey) -> None:
        """Record that a fragment contains all events of a session. The caller holds the sync lock."""
        with transaction(self._db):
            self._db.execute(
                "update hook_event indexed by hook_event_unread set is_read = 1"
                " where platform = ? and external_id = ? and not is_read",
                [session.platform, session.id],
            )

    def mark_unread(self) -> None:
        """Make the next sync parse all events again."""
        with transaction(self._db):
            self._db.execute("update hook_event set is_read = 0 where external_id is not null")

    def counts(self) -> tuple[int, int, int | None]:
        """Return the number of events, of records that could not be parsed, and the last time."""
        row = self._db.execute(
            "select count(*), count(*) - count(external_id), max(at) from hook_event"
        ).fetchone()
        return row[0] - row[1], row[1], row[2]


def _event(row: tuple[str, int, str, bytes]) -> HookEvent:
    id_, at, name, body = row
    record = msgspec.json.decode(decompress(body))
    return HookEvent(
        id=id_, at=from_ms(at), name=name, payload=record["payload"], edits=tuple(record.get("edits", ()))
    )


class HookCommits:
    """Commits that the git hook reported, and the repositories that have it. Each commit is stored once."""

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


class HookRecords:
    """Store and load records of hooks."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    @cached_property
    def events(self) -> HookEvents:
        return HookEvents(self._db)

    @cached_property
    def commits(self) -> HookCommits:
        return HookCommits(self._db)
