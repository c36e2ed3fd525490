"""Derived tables that link commits and sessions: edits of fragments, content of commits, and links.

The package `commits` defines what the stored bodies contain.
"""

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import msgspec

from backscroll.archive.connection import ReadOnlyConnection, transaction
from backscroll.archive.storage.codec import Chunk, decode_chunk
from backscroll.archive.storage.delta import BodyReader
from backscroll.model.message import Message

_KEYS = {"edit_scan": "fragment_id", "git_commit": "sha", "commit_link": "repository, sha"}
# Fragments of the given sessions, and of those that the given fragments belong to.
_SAME_SESSIONS = """
    with session as materialized (
        select session_external_id as id, platform from fragment_session
        where fragment_id in (select value from json_each(:fragment_ids))
        union
        select external_id, platform from conversations
        where external_id in (select value from json_each(:session_ids))
    )
    select fragment.id from session
        join fragment on fragment.external_id = session.id and fragment.platform = session.platform
    union
    select fragment.id from session join fragment on fragment.is_subagent = 1
        and coalesce(fragment.parent_external_id, fragment.inferred_parent_external_id) = session.id
        and fragment.platform = session.platform
"""
_SCANNED_TOOL = re.compile(r"bash|shell|terminal|exec|command|commit|^(?:task|agent)$", re.IGNORECASE)


class CommitCache:
    """Store and load what each commit adds, and the sessions that were found for it."""

    def __init__(self, db: sqlite3.Connection) -> None:
        _use_temporary_tables(db)
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
            [_json(shas)],
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


class FragmentState(NamedTuple):
    """A fragment to scan, and the state that the scan describes."""

    fragment_id: int
    message_count: int
    read_at: int | None


class NewScan(NamedTuple):
    """Result of a scan."""

    state: FragmentState
    first_at: int | None  # milliseconds; None if nothing was found, 0 if its time is unknown
    body: bytes
    line_hashes: bytes


class StoredScan(NamedTuple):
    """A scan with something in it, and the session that it belongs to."""

    fragment_id: int
    number: int  # of the session
    platform: str
    session_id: str
    source: str
    workspace_path: str | None
    agent_id: str | None  # of a subagent
    body: bytes
    line_hashes: bytes


class EditScans:
    """Read fragments to scan for edits and commits, and store and load the scans."""

    def __init__(self, db: sqlite3.Connection) -> None:
        _use_temporary_tables(db)
        self._db = db
        self._reader = BodyReader(db)
        self._scanned_ids: str | None = None

    def outdated(self, version: int) -> list[FragmentState]:
        """Return the fragments without a scan of this version and of their current state."""
        rows = self._db.execute(
            "select f.id, f.message_count, u.read_at from fragment f join unit u on u.id = f.unit_id"
            " left join edit_scan s on s.fragment_id = f.id"
            " where f.message_count > 0 and length(f.closing) and (s.fragment_id is null or s.version <> ?"
            " or s.message_count <> f.message_count or s.read_at is not u.read_at) order by f.id",
            [version],
        )
        return [FragmentState(*row) for row in rows]

    def first_edit_at(self) -> int | None:
        """Return the time of the first edit or commit of all scans, in milliseconds."""
        row = self._db.execute("select min(first_at) from edit_scan").fetchone()
        return row[0] if row is not None else None

    def tool_messages(self, fragment_id: int) -> Iterator[tuple[int, Message]]:
        """Yield position and message of calls that edit files or start commands or subagents, and of reports.

        Messages that a resume or fork copied belong to the session that they were copied from.
        """
        positions = [
            position
            for (position,) in self._db.execute(
                "select m.position from message m"  # noqa: S608
                " where m.fragment_id = :id and m.copied_from_string_id is null"
                f" and (m.tool_string_id in ({self._scanned_tool_ids()})"
                " or m.kind_string_id = (select id from string where text = 'report') or exists"
                " (select 1 from edit e where e.fragment_id = :id and e.position = m.position))"
                " order by m.position",
                {"id": fragment_id},
            )
        ]
        if not positions:
            return
        updates = dict(
            self._db.execute(
                "select position, body from message_update where fragment_id = ?", [fragment_id]
            ).fetchall()
        )
        chunks = self._db.execute(
            "select position, body from message_chunk where fragment_id = ? order by position", [fragment_id]
        ).fetchall()
        starts = [start for start, _ in chunks] + [positions[-1] + 1]
        remaining = iter(positions)
        position = next(remaining, None)
        for (start, body), end in zip(chunks, starts[1:], strict=True):
            if position is None:
                return
            if position >= end:
                continue
            chunk = Chunk(self._reader.decode(body))
            while position is not None and position < end:
                updated = updates.get(position)
                yield (
                    position,
                    chunk.message(position - start) if updated is None else decode_chunk(updated)[0],
                )
                position = next(remaining, None)

    def _scanned_tool_ids(self) -> str:
        if self._scanned_ids is None:
            tools = self._db.execute(
                "select id, text from string where id in (select distinct tool_string_id from message)"
            )
            self._scanned_ids = ", ".join(str(id_) for id_, name in tools if _SCANNED_TOOL.search(name))
        return self._scanned_ids

    def message_times(self, fragment_id: int) -> list[tuple[int, int]]:
        """Return position and time, in milliseconds, of the messages that are not copies, in order."""
        return self._db.execute(
            "select position, at from message where fragment_id = ? and at is not null"
            " and copied_from_string_id is null order by position",
            [fragment_id],
        ).fetchall()

    def models(self, fragment_ids: Iterable[int]) -> dict[tuple[int, int], str]:
        """Return the models of the messages in these fragments that have one, by fragment and position."""
        rows = self._db.execute(
            "select m.fragment_id, m.position, s.text"
            " from message m join string s on s.id = m.model_string_id"
            " where m.fragment_id in (select value from json_each(?))",
            [_json(fragment_ids)],
        )
        return {(fragment_id, position): model for fragment_id, position, model in rows}

    def put(self, scans: Iterable[NewScan], version: int) -> None:
        """Store scans in one transaction. Links of commits that they may change are deleted."""
        with transaction(self._db):
            for scan in scans:
                self._db.execute("delete from edit_scan where fragment_id = ?", [scan.state.fragment_id])
                self._db.execute(
                    "insert into edit_scan values (?, ?, ?, ?, ?, ?, ?)",
                    [*scan.state, version, scan.first_at, scan.body, scan.line_hashes],
                )

    def contents(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield fragment, body and line hashes of all scans with edits or commits."""
        return self._db.execute(
            "select fragment_id, body, line_hashes from edit_scan where first_at is not null"
            " order by fragment_id"
        )

    def load(
        self, fragment_ids: Collection[int] | None = None, session_ids: Collection[str] = ()
    ) -> Iterator[StoredScan]:
        """Yield the scans with edits or commits, and their sessions.

        With ``fragment_ids``, only those of the same sessions and of the sessions in ``session_ids``.
        """
        chosen = "" if fragment_ids is None else f"s.fragment_id in ({_SAME_SESSIONS}) and"
        rows = self._db.execute(
            "select s.fragment_id, c.number, c.platform, c.external_id, c.source, c.workspace_path,"  # noqa: S608
            " iif(f.is_subagent, f.external_id, null), s.body, s.line_hashes"
            " from edit_scan s join fragment_session f on f.fragment_id = s.fragment_id"
            " join conversations c on c.external_id = f.session_external_id and c.platform = f.platform"
            f" where {chosen} s.first_at is not null order by s.fragment_id",
            {"fragment_ids": _json(fragment_ids or ()), "session_ids": _json(session_ids)},
        )
        return map(StoredScan._make, rows)

    def active_between(self, since: str, until: str) -> Iterator[StoredScan]:
        """Yield the scans of sessions that were active in a period, also of those without edits.

        The times are UTC, ISO 8601. Subagents are omitted.
        """
        rows = self._db.execute(
            "select s.fragment_id, c.number, c.platform, c.external_id, c.source, c.workspace_path, null,"
            " s.body, s.line_hashes from conversations c"
            " join fragment_session f on f.session_external_id = c.external_id and f.platform = c.platform"
            " join edit_scan s on s.fragment_id = f.fragment_id"
            " where c.started_at <= :until and c.updated_at >= :since and not f.is_subagent"
            " and c.visibility in ('listed', 'archived') order by s.fragment_id",
            {"since": since, "until": until},
        )
        return map(StoredScan._make, rows)


def _use_temporary_tables(db: sqlite3.Connection) -> None:
    """Copy the tables once if the archive is read-only. SQLite prefers temporary tables of the same name."""
    if not isinstance(db, ReadOnlyConnection):
        return
    for table, key in _KEYS.items():
        if db.execute("select 1 from temp.sqlite_master where name = ?", [table]).fetchone() is None:
            db.execute(f"create temp table {table} as select * from main.{table}")  # noqa: S608 - names are ours
            db.execute(f"create unique index temp.{table}_key on {table}({key})")


def _json(values: Iterable[int] | Iterable[str]) -> str:
    return msgspec.json.encode([*values]).decode()
