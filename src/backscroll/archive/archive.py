"""`Archive`: open, close and lock an archive, and give access to its parts."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from backscroll import model
from backscroll.archive.connection import (
    BUSY_TIMEOUT_SECONDS,
    ReadOnlyConnection,
    connect,
    is_busy,
    transaction,
)
from backscroll.archive.derive.windows import close_idle_sessions
from backscroll.archive.session_key import SessionKey
from backscroll.archive.sync_state import Fingerprints, IndexQueue, PendingErasure, SyncState, sync_lock
from backscroll.archive.write.exclusions import Exclusions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import Self

    from backscroll.archive.annotations import Annotations
    from backscroll.archive.commits import CommitCache, EditScans
    from backscroll.archive.hooks import HookRecords
    from backscroll.archive.maintenance.maintenance import Maintenance
    from backscroll.archive.query.costs import Rates
    from backscroll.archive.query.events import Events
    from backscroll.archive.query.messages import MessageQueries
    from backscroll.archive.query.originals import Originals
    from backscroll.archive.query.sessions import Facets, SessionQueries
    from backscroll.archive.query.statistics import Statistics
    from backscroll.archive.query.workspaces import WorkspaceQueries
    from backscroll.archive.write.units import UnitStore
    from backscroll.model.session import Filter, SessionSummary


class Archive:
    """An open archive. Its parts are attributes.

    Each part is imported on first use: that saves start-up time for commands that do not need it.
    """

    def __init__(
        self,
        path: Path,
        *,
        exclusions: Exclusions | None = None,
        rates: Rates | None = None,
        is_shard: bool = False,
    ) -> None:
        self.path = path
        self._rates = rates
        self._is_shard = is_shard
        self._exclusions = exclusions or Exclusions()
        self._db = connect(path, is_shard=is_shard)

    @property
    def is_read_only(self) -> bool:
        """Whether the archive was opened read-only because its file or folder cannot be written."""
        return isinstance(self._db, ReadOnlyConnection)

    @cached_property
    def fingerprints(self) -> Fingerprints:
        return Fingerprints(self._db, self._exclusions.patterns_hash)

    @cached_property
    def sync_state(self) -> SyncState:
        return SyncState(self._db)

    @cached_property
    def pending_erasure(self) -> PendingErasure:
        return PendingErasure(self.path)

    @cached_property
    def units(self) -> UnitStore:
        from backscroll.archive.write.units import UnitStore

        return UnitStore(self._db, self._exclusions, is_shard=self._is_shard)

    @cached_property
    def sessions(self) -> SessionQueries:
        from backscroll.archive.query.sessions import SessionQueries

        return SessionQueries(self._db, self._rates)

    @cached_property
    def workspaces(self) -> WorkspaceQueries:
        from backscroll.archive.query.workspaces import WorkspaceQueries

        return WorkspaceQueries(self._db)

    @cached_property
    def messages(self) -> MessageQueries:
        from backscroll.archive.query.messages import MessageQueries

        return MessageQueries(self._db, self.sessions.cache)

    @cached_property
    def events(self) -> Events:
        from backscroll.archive.query.events import Events

        return Events(self._db)

    @cached_property
    def facets(self) -> Facets:
        from backscroll.archive.query.sessions import Facets

        return Facets(self._db)

    @cached_property
    def originals(self) -> Originals:
        from backscroll.archive.query.originals import Originals

        return Originals(self._db)

    @cached_property
    def annotations(self) -> Annotations:
        from backscroll.archive.annotations import Annotations

        return Annotations(self._db)

    @cached_property
    def hooks(self) -> HookRecords:
        from backscroll.archive.hooks import HookRecords

        return HookRecords(self._db)

    @cached_property
    def edit_scans(self) -> EditScans:
        from backscroll.archive.commits import EditScans

        return EditScans(self._db)

    @cached_property
    def commit_cache(self) -> CommitCache:
        from backscroll.archive.commits import CommitCache

        return CommitCache(self._db)

    @cached_property
    def index_queue(self) -> IndexQueue:
        return IndexQueue(self._db)

    @cached_property
    def maintenance(self) -> Maintenance:
        from backscroll.archive.maintenance.maintenance import Maintenance

        return Maintenance(self._db, self.path, self.pending_erasure, self.derive)

    def statistics(self, filter_: Filter, only: SessionKey | None = None) -> Statistics:
        """Return statistics of the sessions that match, or of one of them."""
        from backscroll.archive.query.statistics import Statistics

        return Statistics(self._db, filter_, only)

    def reported_cost(self, summary: SessionSummary) -> float | None:
        """Return the dollars that the tool reports for a session; None if it reports no total.

        The cost of a forked session does not include what the original session cost before the fork.
        """
        if summary.parent_ref is not None or not self.sessions.has_reported_usage(summary):
            return None
        key = SessionKey(summary.platform, summary.id)
        increments = self.statistics(model.Filter(with_unlisted=True), key).reported()
        return round(sum(increment.usd for increment in increments), 8)  # without errors of addition

    @property
    def identity(self) -> str:
        """Random id of this archive. An index stores it to know which archive it belongs to."""
        return str(self._db.execute("select id from archive_identity").fetchone()[0])

    def derive(self) -> set[SessionKey]:
        """Derive all sessions with changed fragments. Return their keys."""
        changed = [id_ for (id_,) in self._db.execute("select id from fragment where not is_derived")]
        now = datetime.now(UTC)
        close_idle_sessions(self._db, now)
        if not changed:
            return set()
        # Imported here: a sync without changes must not load it.
        from backscroll.archive.derive.derive import derive_sessions

        return derive_sessions(self._db, changed, now)

    def last_event_id(self) -> int:
        """Return the id of the last event, 0 if there is none."""
        return int(self._db.execute("select coalesce(max(id), 0) from source_event").fetchone()[0])

    def count_problems(self, since_event: int) -> int:
        """Return the number of problems in units that were read after an event or still cannot be read."""
        row = self._db.execute(
            "select count(*) from problem p join unit u on u.id = p.unit_id"
            " where u.id in (select unit_id from source_event where id > ? and code <> 'vanished')"
            " or u.needs_retry and not u.is_gone",
            [since_event],
        ).fetchone()
        return int(row[0])

    def unreadable_paths(self) -> list[str]:
        """Return the files and folders that the last sync had no permission to read."""
        rows = self._db.execute(
            "select distinct p.path from problem p join unit u on u.id = p.unit_id"
            " where p.code = 'permission-denied' and not u.is_gone order by p.path"
        )
        return [path for (path,) in rows]

    def unlisted_ids(self, platform: str, external_ids: Iterable[str]) -> set[str]:
        """Return those of the ids that no listed session has. A sync loads no other session query."""
        import json  # start-up time; msgspec takes 12 ms longer to load

        rows = self._db.execute(
            "select value from json_each(:ids) where not exists (select 1 from conversations"
            " where external_id = value and platform = :platform and visibility in ('listed', 'archived'))",
            {"ids": json.dumps(list(external_ids)), "platform": platform},
        )
        return {external_id for (external_id,) in rows}

    def invalidate_derived(self) -> None:
        """Make the next `derive` process every session."""
        with transaction(self._db):
            self._db.execute("update fragment set is_derived = 0, compared_count = 0")

    @contextmanager
    def write_transaction(self) -> Iterator[None]:
        """Block other writers for the duration of the block."""
        with transaction(self._db):
            yield

    @contextmanager
    def sync_lock(
        self, timeout: float | None, while_waiting: Callable[[], None] | None = None
    ) -> Iterator[Self | None]:
        """Hold the sync lock, waiting at most `timeout` seconds. Yield None if another process holds it."""
        with sync_lock(self.path, timeout, while_waiting) as is_held:
            if timeout is None:
                yield self
                return
            # A caller that does not wait for the lock does not wait for a single transaction either.
            self._db.execute(f"pragma busy_timeout = {int(timeout * 1000)}")
            try:
                yield self if is_held and self._is_writable_now() else None
            finally:
                self._db.execute(f"pragma busy_timeout = {int(BUSY_TIMEOUT_SECONDS * 1000)}")

    def _is_writable_now(self) -> bool:
        try:
            self._db.execute("begin immediate")
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            return False
        self._db.execute("rollback")
        return True

    def interrupt(self) -> None:
        """Abort the running query with an SQLite error. May be called from any thread."""
        with suppress(sqlite3.ProgrammingError):  # closed in the meantime
            self._db.interrupt()

    def close(self) -> None:
        if self._db.in_transaction:  # a shard writes everything in one transaction
            self._db.execute("commit")
        self._db.close()
