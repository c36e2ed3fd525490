"""Keep the archive up to date while the tools write: changes of all sessions, and the messages of one."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from sqlite3 import IntegrityError
from threading import Event
from typing import TYPE_CHECKING

from backscroll.archive.archive import Archive
from backscroll.archive.query.events import SessionState
from backscroll.archive.session_key import SessionKey
from backscroll.index.store import Index
from backscroll.ingest.sync import read_changes
from backscroll.model.message import Message
from backscroll.model.session import Filter, FollowedMessage, SessionChange, SessionSummary
from backscroll.sources import Source
from backscroll.sources.protocols import Watchable
from backscroll.stores.indexer import update
from backscroll.stores.lookup import find_session
from backscroll.stores.stores import Stores

if TYPE_CHECKING:
    from watchfiles import Change as Kind

Roots = Callable[[], Iterable[tuple[Source, Path]]]
_SUFFIXES = (".jsonl", ".json", ".txt", ".vscdb", ".db", "-wal", "-journal")
DEBOUNCE_MS = 100
QUIET_MS = 25  # without events; ends a burst
RETRY_MS = 100  # until a failed attempt is repeated
ROOT_CHECK_SECONDS = 1.0  # between checks for new folders to watch
MAX_PAUSE_SECONDS = 0.1  # between two syncs; the pause is as long as the sync took
LOCK_TIMEOUT_SECONDS = 0.25  # for another process that reads the same change
POLL_SECONDS = 2.0  # where the system reports no changes
FULL_CHECK_SECONDS = 60.0  # between checks of everything, in case an event was lost
WINDOW_SIZE = 64  # messages read from the end; grows if too few of them are shown
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Live:
    """Changes while the tools write."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def watch(self, stop: Event | None = None) -> Iterator[SessionChange]:
        """Keep the archive up to date until ``stop`` is set, and yield the changes of sessions.

        Call `History.sync` first. Otherwise earlier changes are yielded as well.
        """
        return self._watcher().changes(stop or Event())

    def follow(
        self, ref: str | None = None, *, last: int = 10, everything: bool = False, stop: Event | None = None
    ) -> Iterator[FollowedMessage]:
        """Yield the last messages of a session, then new and changed ones, until ``stop`` is set.

        Without a ref, the session with the latest activity is followed. If there is no session yet, or the
        ref is a complete id without a session, its start is awaited. ``everything`` includes abandoned
        branches and injected text.
        """
        if not self.is_awaited(ref):
            ref = find_session(self._stores.archive, ref or "1").ref

        def find() -> SessionSummary | None:
            return None if self.is_awaited(ref) else find_session(self._stores.archive, ref or "1")

        touched = self._watcher().touched(stop or Event())
        return _follow(self._stores.archive, find, touched, last=last, everything=everything)

    def is_awaited(self, ref: str | None) -> bool:
        """Return whether the session does not exist yet: no session at all, or none with this complete id."""
        if ref is None:
            return self._stores.archive.sessions.count(Filter()) == 0
        id_ = ref.rpartition(":")[2]
        return _UUID.fullmatch(id_) is not None and not self._stores.archive.sessions.find(id_)

    def _watcher(self) -> Watcher:
        stores = self._stores
        return Watcher(stores.archive, stores.index.index, stores.roots, stores.spool_path)


def _follow(
    archive: Archive,
    find: Callable[[], SessionSummary | None],
    touched: Iterable[set[SessionKey]],
    *,
    last: int,
    everything: bool,
) -> Iterator[FollowedMessage]:
    """Yield the last messages of a session, then new and changed ones.

    ``find`` returns the session, or None until it exists. ``touched`` yields the sessions that were just
    updated. Without ``everything``, abandoned branches and injected text are left out.
    """
    summary = find()
    follower = _Follower(archive, summary, everything) if summary is not None else None
    if follower is not None:
        yield from follower.last(last)
    for keys in touched:
        if follower is None:
            if (summary := find()) is not None:
                follower = _Follower(archive, summary, everything)
                yield from follower.last(sys.maxsize)
        elif follower.key in keys:
            yield from follower.news()


class _Follower:
    """Tracks which messages were yielded, and remembers those that may still change."""

    def __init__(self, archive: Archive, summary: SessionSummary, everything: bool) -> None:
        self._archive = archive
        self._summary = summary
        self._everything = everything
        self._fragment_id: int | None = None
        self._next = 0  # the first position that was not read
        self._yielded: dict[str, FollowedMessage] = {}  # by message id
        session = summary.parent_ref.partition(":")[2] if summary.parent_ref is not None else summary.id
        self.key = SessionKey(summary.platform, session)

    def last(self, count: int) -> list[FollowedMessage]:
        """Return the last messages, read from the end."""
        self._fragment_id, self._next = self._archive.messages.extent(self._summary)
        window = max(WINDOW_SIZE, count)
        while True:
            start = max(0, self._next - window)
            found = [one for one in self._read(start) if self._is_shown(one.message)]
            if len(found) >= count or start == 0:
                break
            window *= 4
        self._yielded = {one.message.id: one for one in found}
        return found[len(found) - min(count, len(found)) :]

    def news(self) -> Iterator[FollowedMessage]:
        """Yield messages that were added, and earlier ones that changed."""
        fragment_id, count = self._archive.messages.extent(self._summary)
        if fragment_id is not None and fragment_id == self._fragment_id and count >= self._next:
            found = [*self._pending_calls(), *self._read(self._next)]
        else:
            # The session was read again, perhaps in another order. Messages at new positions are new.
            found = list(self._read(0))
        first, self._fragment_id, self._next = self._next, fragment_id, count
        for one in found:
            before = self._yielded.get(one.message.id)
            if before is None and one.position < first:
                continue
            if not self._is_shown(one.message) or (before and not _has_changed(one, before)):
                continue
            self._yielded[one.message.id] = one
            yield FollowedMessage(one.position, one.message, before.message if before else None)

    def _read(self, start: int) -> Iterator[FollowedMessage]:
        messages = self._archive.messages.of_session(self._summary, start)
        for position, message in enumerate(messages, start=start):
            yield FollowedMessage(position, message)

    def _pending_calls(self) -> list[FollowedMessage]:
        """Return the current state of calls that had no result."""
        positions = [
            one.position
            for one in self._yielded.values()
            if one.message.tool is not None and one.message.tool.status == "pending"
        ]
        return [one for position in sorted(positions) for one in islice(self._read(position), 1)]

    def _is_shown(self, message: Message) -> bool:
        if self._everything:
            return True
        # All messages of a subagent are sidechain messages.
        is_own = not message.is_sidechain or self._summary.parent_ref is not None
        if not message.is_active or not is_own or message.role == "system":
            return False
        return message.role != "thinking" or bool(message.content)


def _has_changed(one: FollowedMessage, before: FollowedMessage) -> bool:
    return one.message.content != before.message.content or one.message.tool != before.message.tool


class Watcher:
    """Keeps an archive and its index up to date while the caller iterates over changes."""

    def __init__(self, archive: Archive, index: Index, roots: Roots, spool: Path | None = None) -> None:
        self._archive = archive
        self._index = index
        self._all_roots = roots
        self._spool = spool  # records of hooks, read with every full check
        self._sources: dict[str, Source] = {}  # reused for their caches
        self._last_event_id = archive.last_event_id()
        self._is_behind = True  # a full check is needed
        self._recheck: set[str] = set()  # new folders, checked twice
        self._full_check_at = 0.0

    def changes(self, stop: Event) -> Iterator[SessionChange]:
        """Return the changes of sessions from now on, also those that another process syncs."""
        return self._changes(self._archive.events.session_states(), stop)

    def _changes(self, known: dict[SessionKey, SessionState], stop: Event) -> Iterator[SessionChange]:
        underived: set[SessionKey] = set()
        for keys in self.touched(stop):
            keys |= underived
            if not keys:
                continue
            # Read, not derived yet. Another process may be about to do it.
            underived = keys & self._archive.events.underived_sessions()
            for key, now in self._archive.events.session_states(keys).items():
                if now != known.get(key) and (change := self._change(known.get(key), now)) is not None:
                    yield change
                known[key] = now

    def touched(self, stop: Event) -> Iterator[set[SessionKey]]:
        """Yield the sessions that were updated since the last time; often none."""
        for paths in _changed_paths(self._roots, stop):
            started = time.monotonic()
            self._sync_paths(paths)
            elapsed = time.monotonic() - started
            last_event_id = self._archive.last_event_id()
            keys = (
                self._archive.events.sessions_since(self._last_event_id)
                if last_event_id > self._last_event_id
                else set()
            )
            self._last_event_id = last_event_id
            yield keys
            # A tool that writes permanently must not keep a core busy.
            stop.wait(min(elapsed, MAX_PAUSE_SECONDS))

    def _roots(self) -> Iterator[tuple[Source, Path]]:
        for source, root in self._all_roots():
            yield self._sources.setdefault(source.name, source), root

    def _change(self, before: SessionState | None, now: SessionState) -> SessionChange | None:
        summary = self._archive.sessions.by_id(now.id)
        if summary is None:
            return None
        return SessionChange(
            at=datetime.now(UTC),
            session=summary,
            added=now.message_count - (before.message_count if before is not None else 0),
            is_new=before is None,
            has_vanished=now.is_gone and not (before is not None and before.is_gone),
        )

    def _sync_paths(self, paths: set[str] | None) -> None:
        """Sync these paths; everything if the paths are unknown."""
        now = time.monotonic()
        if paths is None or self._is_behind or now - self._full_check_at > FULL_CHECK_SECONDS:
            self._full_check_at = now
            self._recheck.clear()
            self._is_behind = not self._read(list(self._roots()), None)
        elif paths or self._recheck:
            paths |= self._recheck
            # Files may have been written into a new folder before it was watched.
            self._recheck = {path for path in paths - self._recheck if os.path.isdir(path)}  # noqa: PTH112
            affected = _affected(self._roots(), paths)
            if affected:
                self._is_behind = not self._read(affected, paths)
            else:
                # The system may report a path in another form than the user gave it.
                self._is_behind = not self._read(list(self._roots()), None)

    def _read(self, roots: Iterable[tuple[Source, Path]], paths: set[str] | None) -> bool:
        """Sync and index. Return False if another process locks the archive or the index."""
        with self._archive.sync_lock(LOCK_TIMEOUT_SECONDS) as archive:
            if archive is None:
                return False
            try:
                read_changes(archive, roots, paths=paths, spool=self._spool if paths is None else None)
            except IntegrityError:
                return False
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise
                return False
        return not self._archive.index_queue.is_pending or update(self._archive, self._index)


def _affected(roots: Iterable[tuple[Source, Path]], paths: set[str]) -> list[tuple[Source, Path]]:
    """Return the roots of the paths."""
    return [
        (source, root) for source, root in roots if any(Path(path).is_relative_to(root) for path in paths)
    ]


def _watched_folders(roots: Roots) -> dict[Path, int]:
    """Return the paths to watch with their inodes."""
    found: dict[Path, int] = {}
    for source, root in roots():
        for path in source.watched_paths(root) if isinstance(source, Watchable) else [root]:
            with suppress(OSError):
                found[path] = path.stat().st_ino
    return found


def _changed_paths(roots: Roots, stop: Event) -> Iterator[set[str] | None]:
    """Yield sets of changed paths; empty ones as a heartbeat, None if any path may have changed."""
    while not stop.is_set():
        watched = _watched_folders(roots)
        checked = time.monotonic()
        is_first = True
        for paths in _reported_paths(watched, stop):
            # Changes before the watch started are not reported.
            yield None if is_first else paths
            is_first = False
            if time.monotonic() - checked >= ROOT_CHECK_SECONDS:
                checked = time.monotonic()
                if _watched_folders(roots) != watched:
                    break


def _reported_paths(folders: Iterable[Path], stop: Event) -> Iterator[set[str] | None]:
    """Yield the paths that the system reports as changed; poll with None where it cannot."""
    from watchfiles import watch  # start-up time

    watched = list(folders)
    if watched:
        with suppress(OSError, RuntimeError):  # such as the limit on watched folders
            for found in watch(
                *watched,
                watch_filter=_is_history,
                debounce=DEBOUNCE_MS,
                step=QUIET_MS,
                stop_event=stop,
                rust_timeout=RETRY_MS,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                yield {path for _, path in found}
            return
    while not stop.wait(POLL_SECONDS if watched else ROOT_CHECK_SECONDS):
        yield None if watched else set()


def _is_history(kind: Kind, path: str) -> bool:
    """Return whether a change may affect history. A new or deleted folder may contain some."""
    return path.endswith(_SUFFIXES) or (kind.name != "modified" and not path.endswith("-shm"))
