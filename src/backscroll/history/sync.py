"""What the tools keep on disk: read into the archive, watched, surveyed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backscroll.history.sessions import Sessions
from backscroll.sources.protocols import RawRecords, RetentionPolicy, close

if TYPE_CHECKING:
    from threading import Event

    from backscroll.ingest.audit import Progress
    from backscroll.ingest.watch import Watcher
    from backscroll.model import Retention, SessionSummary
    from backscroll.model.audit import Audit
    from backscroll.model.live import FollowedMessage, SessionChange
    from backscroll.model.sync_report import SyncReport
    from backscroll.readers.json_outline import Outline

__all__ = ["Syncing"]

_WHOLE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Syncing(Sessions):
    """What the tools keep on disk: read into the archive, watched, surveyed."""

    _is_compared = False  # whether the archive was asked to look at everything, and knows how it looks

    def sync(self, progress: Progress | None = None, *, wait: bool = True) -> SyncReport | None:
        """Read what changed into the archive. None when another process is at it and ``wait`` is off."""
        import sqlite3

        from backscroll.archive.errors import is_busy, is_trouble, trouble
        from backscroll.ingest.sync import sync

        try:
            with self._archive.sync_lock(None if wait else 0.0) as archive:
                if archive is None:
                    return None
                if wait and archive.pending_erasure.is_pending:
                    self._finish_erasure()
                report = sync(archive, self.roots(), progress, index=lambda: self._index)
        except sqlite3.Error as error:
            if not wait and is_busy(error):
                return None
            if is_trouble(error):
                raise trouble(error, self.archive_path) from error
            raise
        self._is_compared = True
        if self._archive.index_queue.is_pending or not self._index_folder.exists():
            self._update_index()
        return report

    def _finish_erasure(self) -> None:
        from backscroll.ingest.maintenance import erase

        erase(self._archive, self._index)

    def watch(self, stop: Event | None = None) -> Iterator[SessionChange]:
        """Keep the archive up to date until told to stop, and tell what becomes of sessions meanwhile.

        `sync` first: else all that is new since the last time is told as well.
        """
        from threading import Event  # loaded by nobody who does not wait

        return self._watcher().changes(stop or Event())

    def follow(
        self, ref: str | None = None, *, last: int = 10, everything: bool = False, stop: Event | None = None
    ) -> Iterator[FollowedMessage]:
        """A session's last messages, then every one that comes, until told to stop.

        Without a ref it is the session with the newest activity. One that is not there yet is waited for: any
        at all, or the one with a whole id. ``everything`` tells abandoned branches and injected text as well.
        """
        from threading import Event

        from backscroll.ingest.follow import follow

        if not self.is_awaited(ref):
            summary = self.find("1" if ref is None else ref)
            ref = summary.ref

        def find() -> SessionSummary | None:
            return None if self.is_awaited(ref) else self.find("1" if ref is None else ref)

        touched = self._watcher().touched(stop or Event())
        return follow(self._archive, find, touched, last=last, everything=everything)

    def is_awaited(self, ref: str | None) -> bool:
        """Whether there is no such session yet, but one may begin: any at all, or one with this whole id."""
        from backscroll.model import Filter

        if ref is None:
            return self._archive.sessions.count(Filter()) == 0
        id_ = ref.rpartition(":")[2]
        return _WHOLE_ID.fullmatch(id_) is not None and not self._archive.sessions.find(id_)

    def _watcher(self) -> Watcher:
        from backscroll.ingest.watch import Watcher

        return Watcher(self._archive, self._index, self.roots)

    def retentions(self, now: datetime | None = None) -> list[Retention]:
        """What the tools themselves will delete within a week. What was synced is kept here."""
        now = now or datetime.now(UTC)
        found: list[Retention] = []
        for source, root in self.roots():
            if isinstance(source, RetentionPolicy) and root.is_dir():
                is_current = self._is_compared
                known = self._archive.fingerprints.folders(source.name, root) if is_current else None
                one = source.retention(root, now, known)
                found += [one] if one is not None else []
        return found

    def audit(self, progress: Progress | None = None) -> Audit:
        """What there is, and whether all of it was understood."""
        from backscroll.ingest.audit import audit

        return audit(self.roots(), progress)

    def outlines(self) -> dict[str, dict[str, Outline]]:
        """Keys and types of every kind of record, by source, with no value in them."""
        from backscroll.readers.json_outline import Outline

        found: dict[str, dict[str, Outline]] = {}
        for source, root in self.roots():
            kinds = found.setdefault(source.name, {})
            if not isinstance(source, RawRecords) or not root.is_dir():
                continue
            for unit in source.units(root):
                for kind, document in source.raw_records(unit):
                    kinds.setdefault(kind, Outline()).add(document)
            close(source)
        return found
