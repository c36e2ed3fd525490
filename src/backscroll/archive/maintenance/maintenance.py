"""Maintenance of the archive file: forget, copy, compact, verify, and report counts and sizes."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from contextlib import closing, suppress
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from backscroll.archive.connection import ReadOnlyConnection, decode_errors, transaction
from backscroll.archive.derive.copies import mark_undone_copies, undone_copies_of
from backscroll.archive.derive.derive import derive_sessions
from backscroll.archive.maintenance import compact as compaction
from backscroll.archive.maintenance.compact import CompactResult
from backscroll.archive.maintenance.forget import (
    ForgetResult,
    forget_session,
    forgotten_sessions,
    keep_sessions,
)
from backscroll.archive.maintenance.relocation import NewRoot, move_sessions, relocate_units
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.codec import decode_messages, hash_record, lacks_seek_table
from backscroll.archive.storage.delta import BodyReader
from backscroll.archive.storage.raw_rows import verify_rows
from backscroll.archive.sync_state import PendingErasure
from backscroll.model.message import Origin
from backscroll.model.problem import Problem, SourceCounts
from backscroll.model.session import SessionSummary
from backscroll.model.statistics import MonthGrowth
from backscroll.model.store import Unit
from backscroll.model.text import pluralize
from backscroll.model.workspace import PathMaps

# Small files that belong to a stored file are stored like rows, but are none.
_IS_NO_SIDE_FILE = "unit_id not in (select unit_id from raw_segment)"
_SESSIONS = "select started_at, message_count from conversations where visibility in ('listed', 'archived')"
# The originals of a unit belong to its oldest session. Some units, such as lists of titles, have none.
_ORIGINALS = (
    "select (select min(c.started_at) from fragment_session f join conversations c"
    " on c.external_id = f.session_external_id and c.platform = f.platform where f.unit_id = o.unit_id),"
    " o.bytes from (select unit_id, sum(size) as bytes from (select unit_id, size from raw_segment"
    " union all select unit_id, size from raw_row) group by unit_id) o where o.bytes is not null"
)
_COUNTS = """
select source, root, count(*), coalesce(sum(json_extract(record_counts, '$.records')), 0),
    coalesce(sum(json_extract(record_counts, '$.parsed')), 0),
    coalesce(sum(json_extract(record_counts, '$.ignored')), 0),
    coalesce(sum(json_extract(record_counts, '$.problems')), 0)
from unit where not is_gone group by source, root
"""
# The condition on the text skips nearly all units: few have unknown types.
_UNKNOWN = """
select u.source, u.root, e.key, sum(e.value)
from unit u, json_each(u.record_counts, '$.unknown') e
where not u.is_gone and instr(u.record_counts, '"unknown":{}') = 0
group by u.source, u.root, e.key order by e.key
"""
_PROBLEMS = "from problem p join unit u on u.id = p.unit_id where not u.is_gone"


class Status(Struct):
    """Counts and sizes of the archive."""

    path: str
    size: int
    schema: int
    sessions: int
    subagents: int
    session_messages: int  # active messages except system messages, without subagents
    subagent_messages: int  # the same, of subagents
    messages: int  # all that are stored, with system messages, abandoned branches and copies
    units: int
    gone: int  # units that the tools no longer have
    problems: int
    kept_bytes: int  # original files
    kept_size: int  # the same, compressed
    rows: int  # original database rows
    rows_bytes: int
    rows_size: int  # the same, compressed


class Maintenance:
    """Forget sessions, copy, compact and verify the archive, and report counts and sizes."""

    def __init__(
        self,
        db: sqlite3.Connection,
        path: Path,
        pending_erasure: PendingErasure,
        derive: Callable[[], object],
    ) -> None:
        self._db = db
        self._path = path
        self._pending_erasure = pending_erasure
        self._derive = derive

    def forget(self, summary: SessionSummary) -> ForgetResult:
        """Delete a session and its subagents and exclude them from later syncs.

        Call `vacuum` afterwards to overwrite the deleted bytes.
        """
        self._pending_erasure.start()
        self._db.execute("pragma secure_delete = on")
        try:
            with transaction(self._db):
                session = SessionKey(summary.platform, summary.id)
                copies = undone_copies_of(self._db, session)  # no list shows them, so they are erased, too
                result = forget_session(self._db, session)
                for copy in copies:
                    forget_session(self._db, copy)
            self._derive()
        finally:
            self._db.execute("pragma secure_delete = off")
        return result

    def is_empty(self) -> bool:
        """Return whether the archive contains no session and remembers no forgotten one."""
        tables = ("fragment", "forgotten_session")
        return not any(self._db.execute(f"select 1 from {table} limit 1").fetchone() for table in tables)  # noqa: S608

    def hide_undone_copies(self, sessions: Iterable[SessionKey]) -> None:
        """Stop listing copies of sessions that `undo` removed from the tool."""
        with transaction(self._db):
            mark_undone_copies(self._db, sessions)
        self._derive()

    def copy(self, target: Path) -> None:
        """Write a consistent copy of the archive to a new file, while other processes may write."""
        target.touch(mode=0o600)
        with closing(sqlite3.connect(target, isolation_level=None)) as copy:
            copy.execute("pragma synchronous = off")
            self._db.backup(copy)

    def copy_sessions(self, target: Path, sessions: Iterable[SessionKey]) -> None:
        """Write a copy of the archive with some sessions only, also in its unused pages, to a new file."""
        complete = target.with_name(f"{target.name}.complete")
        try:
            self.copy(complete)
            with closing(sqlite3.connect(complete, isolation_level=None)) as copy:
                copy.execute("pragma journal_mode = off")
                copy.execute("pragma synchronous = off")
                copy.execute("pragma foreign_keys = on")
                keep_sessions(copy, sessions)
                target.touch(mode=0o600)
                copy.execute("vacuum into ?", [str(target)])
        finally:
            complete.unlink(missing_ok=True)

    def merge(self, other: Path, only: Collection[SessionKey] | None = None) -> frozenset[SessionKey]:
        """Add what a private copy of another archive has and this one has not; see `merge_sessions`."""
        # Imported here: few commands merge archives.
        from backscroll.archive.maintenance.merge import merge_sessions

        added = merge_sessions(self._db, self._path, other, only)
        self._derive()
        return added

    def session_keys(self) -> frozenset[SessionKey]:
        """Return all sessions, listed or not."""
        query = "select distinct platform, session_external_id from fragment_session"
        return frozenset(SessionKey(*row) for row in self._db.execute(query))

    def annotations(self) -> frozenset[tuple[str, str, str, str]]:
        """Return all annotations: platform and id of the session, kind, and content."""
        query = (
            "select platform, external_id, 'tag', name from tag"
            " union all select platform, external_id, 'star', '' from star"
            " union all select platform, external_id, 'note', text from note"
            " union all select platform, external_id, 'title', '' from user_title"  # the title here stays
            " union all select platform, external_id, 'link', sha from manual_link"
        )
        return frozenset(self._db.execute(query).fetchall())

    def forgotten(self) -> frozenset[tuple[str, str]]:
        """Return platform and id of the forgotten sessions."""
        return forgotten_sessions(self._db)

    def relocate(self, new_root: NewRoot, maps: PathMaps) -> int:
        """Change paths in a private copy for another machine; see `relocate_units`."""
        return relocate_units(self._db, new_root, maps)

    def move_sessions(
        self, sessions: Iterable[SessionKey], before: str, after: str, *, is_undo: bool = False
    ) -> None:
        """Move sessions that their tools have deleted to another folder, or undo such a move."""
        with transaction(self._db):
            move_sessions(self._db, sessions, before, after, is_undo=is_undo)
        self._derive()

    def compact(self) -> CompactResult:
        """Reduce the file to its minimum size."""
        return compaction.compact(self._db, self._path)

    def vacuum(self) -> bool:
        """Remove deleted data from the file. Return False if it is in use or the disk is full."""
        try:
            is_done = compaction.vacuum(self._db)
        except sqlite3.OperationalError:
            return False
        if is_done and not self._pending_erasure.is_index_pending:
            self._pending_erasure.finish()
        return is_done

    def status(self) -> Status:
        """Return counts and sizes."""
        return _read_status(self._db, self._path)

    def growth(self) -> list[MonthGrowth]:
        """Return sessions, messages and bytes of originals by month, oldest first."""
        return _read_growth(self._db)

    def source_counts(self) -> dict[tuple[str, str], SourceCounts]:
        """Return the record counts of each root, by source and path, as of the last sync."""
        return _read_source_counts(self._db)

    def current_problems(self, limit: int) -> tuple[int, list[Problem]]:
        """Return the number of problems in units that the tools still have, and the first ones."""
        return _count_current_problems(self._db), _read_current_problems(self._db, limit)

    def mark_to_read_again(self, ids: Iterable[int]) -> None:
        """Make the next sync read units from the start."""
        with transaction(self._db):
            self._db.executemany(
                "update unit set fingerprint = '', needs_retry = 1, checkpoint_offset = null,"
                " checkpoint_line = null, checkpoint_state = null, prefix_hash = null where id = ?",
                [(unit_id,) for unit_id in ids],
            )

    def units_to_read_again(self, ids: Iterable[int]) -> list[tuple[int, Unit, str]]:
        """Return those of the units that no sync has read since a repair: id, unit and platform."""
        query = (
            "select id, platform, source, root, path, key, size, kind from unit"
            " where id = ? and fingerprint = ''"
        )
        return [
            (unit_id, Unit(source, root, path, key, size=size, kind=kind), platform)
            for one in ids
            for unit_id, platform, source, root, path, key, size, kind in self._db.execute(query, [one])
        ]

    def delete_sessions_without_messages(self) -> None:
        """Delete the rows of sessions of which nothing is left after a repair, not even a subagent."""
        with transaction(self._db):
            self._db.execute(
                "delete from conversations where visibility = 'listed' and (platform, external_id) not in"
                " (select platform, external_id from fragment union"
                " select platform, coalesce(parent_external_id, inferred_parent_external_id) from fragment"
                " where coalesce(parent_external_id, inferred_parent_external_id) is not null)"
            )
            # An inlined subagent is in the fragment of its session.
            self._db.execute(
                "delete from subagent where not exists (select 1 from fragment f where f.platform ="
                " subagent.platform and f.external_id in (subagent.agent_id, subagent.parent_external_id))"
            )

    def verify(self) -> list[str]:
        """Return one sentence per inconsistency; none if the archive is intact."""
        return _verify(self._db)


def _read_status(db: sqlite3.Connection, path: Path) -> Status:
    """Count rows and bytes."""

    def value(query: str) -> int:
        return int(db.execute(query).fetchone()[0])

    sessions, session_messages = db.execute(
        "select count(*), coalesce(sum(message_count), 0) from conversations"
        " where visibility in ('listed', 'archived')"
    ).fetchone()
    # A resumed session repeats inlined subagents. Each counts once.
    subagents, subagent_messages = db.execute(
        "select count(*), coalesce(sum(message_count), 0) from (select max(message_count) as message_count"
        " from subagent where visibility in ('listed', 'archived') group by platform, agent_id)"
    ).fetchone()
    return Status(
        path=str(path),
        size=sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*")),
        schema=value("pragma user_version"),
        sessions=sessions,
        subagents=subagents,
        session_messages=session_messages,
        subagent_messages=subagent_messages,
        messages=value("select coalesce(sum(message_count), 0) from fragment where status = 'current'"),
        units=value("select count(*) from unit"),
        gone=value("select count(*) from unit where is_gone"),
        problems=value("select count(*) from problem"),
        kept_bytes=value("select coalesce(sum(size), 0) from raw_segment"),
        kept_size=value("select coalesce(sum(length(body)), 0) from raw_segment"),
        rows=value(f"select count(*) from raw_row where {_IS_NO_SIDE_FILE}"),  # noqa: S608
        rows_bytes=value(f"select coalesce(sum(size), 0) from raw_row where {_IS_NO_SIDE_FILE}"),  # noqa: S608
        rows_size=value("select coalesce(sum(length(body)), 0) from blob_chunk"),
    )


def _read_growth(db: sqlite3.Connection, zone: tzinfo | None = None) -> list[MonthGrowth]:
    """Return all months of a zone or of local time, oldest first. The row without a month is the last one."""
    sums: defaultdict[str | None, list[int]] = defaultdict(lambda: [0, 0, 0])
    for started_at, messages in db.execute(_SESSIONS):
        month = sums[_month(started_at, zone)]
        month[0] += 1
        month[1] += messages
    for started_at, size in db.execute(_ORIGINALS):
        sums[_month(started_at, zone)][2] += size
    return [
        MonthGrowth(month, *counts)
        for month, counts in sorted(sums.items(), key=lambda item: (item[0] is None, item[0] or ""))
    ]


def _month(at: str | None, zone: tzinfo | None) -> str | None:
    return datetime.fromisoformat(at).astimezone(zone).strftime("%Y-%m") if at is not None else None


def _read_source_counts(db: sqlite3.Connection) -> dict[tuple[str, str], SourceCounts]:
    """Return the counts of each root, by source and path."""
    found = {
        (source, root): SourceCounts(
            source=source,
            path=root,
            units=units,
            records=records,
            parsed=parsed,
            ignored=ignored,
            problems=problems,
        )
        for source, root, units, records, parsed, ignored, problems in db.execute(_COUNTS)
    }
    for source, root, name, count in db.execute(_UNKNOWN):
        found[source, root].unknown[name] = count
    return found


def _count_current_problems(db: sqlite3.Connection) -> int:
    """Return the number of problems."""
    return int(db.execute(f"select count(*) {_PROBLEMS}").fetchone()[0])


def _read_current_problems(db: sqlite3.Connection, limit: int) -> list[Problem]:
    """Return the first problems, by path."""
    rows = db.execute(
        f"select p.path, p.place, p.code, p.reason {_PROBLEMS} order by p.path, p.rowid limit ?", [limit]
    )
    return [Problem(Origin(path, place), code, reason) for path, place, code, reason in rows]


def _verify(db: sqlite3.Connection) -> list[str]:
    """Return one sentence per inconsistency."""
    found = [
        f"the database is damaged: {row[0]}" for row in db.execute("pragma integrity_check") if row[0] != "ok"
    ]
    found += [f"a row of {row[0]} refers to a missing row" for row in db.execute("pragma foreign_key_check")]
    reader = BodyReader(db)
    for unit_id, offset, digest, *stored in db.execute(
        "select unit_id, offset, sha256, delta_base_unit_id, delta_base_fragment_id, body from raw_segment"
    ):
        try:
            is_intact = sha256(reader.decode_segment(*stored)).digest() == digest
        except decode_errors():
            is_intact = False
        if not is_intact:
            found.append(f"the original of unit {unit_id} is damaged at byte {offset}")
    found += verify_rows(db)
    for fragment_id, count, session_id in db.execute(
        "select id, message_count, external_id from fragment where status = 'current'"
    ).fetchall():
        try:
            found += verify_fragment(db, fragment_id, count, session_id)
        except decode_errors():
            found.append(f"the messages of fragment {fragment_id} are damaged")
    return found or _verify_sessions(db)


class _RollBackError(Exception):
    """Ends a transaction whose changes are not wanted."""


def _verify_sessions(db: sqlite3.Connection) -> list[str]:
    """Derive all sessions again, compare their rows, and undo it.

    In a copy with some sessions, a session that repeats another one counts the tokens of the missing one.
    """
    if isinstance(db, ReadOnlyConnection):
        return []
    copies = db.execute(
        "select distinct s.platform, s.session_external_id from fragment_session s"
        " join response r on r.fragment_id = s.fragment_id where r.is_copy"
    ).fetchall()
    before = _derived_rows(db, copies)
    after = before
    with suppress(_RollBackError), transaction(db):
        db.execute("update fragment set is_derived = 0, compared_count = 0")
        fragments = [id_ for (id_,) in db.execute("select id from fragment")]
        derive_sessions(db, fragments, datetime.now(UTC))
        after = _derived_rows(db, copies)
        raise _RollBackError
    return [
        f"the row of session {key[1]} does not match its messages"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _derived_rows(
    db: sqlite3.Connection, copies: Collection[tuple[str, str]]
) -> dict[tuple[str, str], tuple[object, ...]]:
    """Return what is derived of each session and subagent; without the tokens of copies."""
    rows = db.execute(
        "select platform, external_id, external_id, total_tokens, source, workspace_path, started_at,"
        " updated_at, title, message_count, first_message_preview, git_branch, models, version,"
        " interaction_count, total_changes from conversations where visibility = 'listed' union all"
        " select platform, parent_external_id || '/' || agent_id, parent_external_id, total_tokens, source,"
        " null, started_at, updated_at, title, message_count, prompt, null, model, null,"
        " total_tool_use_count, total_duration_ms from subagent where visibility = 'listed'"
    )
    excluded = frozenset(copies)
    return {
        (platform, id_): (None if (platform, session) in excluded else tokens, *values)
        for platform, id_, session, tokens, *values in rows
    }


def verify_fragment(db: sqlite3.Connection, fragment_id: int, count: int, session_id: str) -> list[str]:
    """Check that a fragment's chunks contain exactly the messages of its rows."""
    query = "select position, record_hash from message where fragment_id = ?"
    records = dict(db.execute(query, [fragment_id]).fetchall())
    if len(records) != count:
        return [
            f"fragment {fragment_id} has {pluralize(len(records), 'row')} of {pluralize(count, 'message')}"
        ]
    query = "select position from message_update where fragment_id = ?"
    updated = {position for (position,) in db.execute(query, [fragment_id])}
    position = 0
    reader = BodyReader(db)
    query = "select position, body from message_chunk where fragment_id = ? order by position"
    for first, body in db.execute(query, [fragment_id]):
        if first != position:
            return [f"fragment {fragment_id} lacks the messages from {position} to {first}"]
        messages = decode_messages(reader.decode(body))
        if lacks_seek_table(body):
            return [f"the messages of fragment {fragment_id} are damaged"]
        for message in messages:
            if position not in updated and records.get(position) != hash_record(message.id, session_id):
                return [f"message {position} of fragment {fragment_id} does not match its row"]
            position += 1
    return [] if position == count else [f"fragment {fragment_id} ends at message {position} of {count}"]
