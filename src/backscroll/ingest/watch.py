"""Notice what the tools write while they write it, and read it at once."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import IntegrityError
from threading import Event
from typing import TYPE_CHECKING

from backscroll.archive import Archive
from backscroll.archive.query.events import SessionState
from backscroll.archive.session_key import SessionKey
from backscroll.index import Index
from backscroll.ingest.indexer import update
from backscroll.ingest.sync import sync
from backscroll.model.live import SessionChange
from backscroll.sources import Source
from backscroll.sources.protocols import Watchable

if TYPE_CHECKING:
    from watchfiles import Change as Kind

__all__ = ["Watcher"]

Roots = Callable[[], Iterable[tuple[Source, Path]]]

_ENDINGS = (".jsonl", ".json", ".txt", ".vscdb", ".db", "-wal", "-journal")
_DEBOUNCE = 100  # ms
_STEP = 25  # ms of quiet that end a burst
_TICK = 100  # ms, after which what could not be done at once is tried again
_BEAT = 1.0  # seconds, after which places that appeared are noticed
_REST = 0.1  # seconds at most between two looks, for as long as the first one took
_PATIENCE = 0.25  # seconds to wait for another process that is reading the same change
_POLL = 2.0  # seconds between two looks where nothing tells of changes
_ROUND = 60.0  # seconds, after which everything is looked at, should a change have gone unnoticed


class Watcher:
    """Keeps an archive and its index up to date as long as somebody asks for changes."""

    def __init__(self, archive: Archive, index: Index, roots: Roots) -> None:
        self._archive = archive
        self._index = index
        self._all_roots = roots
        self._sources: dict[str, Source] = {}  # kept, for they remember what has not changed
        self._moment = archive.events.last_id()
        self._is_behind = True  # it is not known what is still to be read or indexed
        self._unsure: set[str] = set()  # folders to be looked at once more
        self._rounded = 0.0

    def changes(self, stop: Event) -> Iterator[SessionChange]:
        """What becomes of sessions from now on, whichever process reads it first."""
        known = self._archive.events.session_states()
        unclear: set[SessionKey] = set()
        for keys in self.touched(stop):
            keys |= unclear
            if not keys:
                continue
            # Of these something was read that nobody has told yet, perhaps another process is about to.
            unclear = keys & self._archive.events.underived_sessions()
            for key, now in self._archive.events.session_states(keys).items():
                if now != known.get(key) and (change := self._change(known.get(key), now)) is not None:
                    yield change
                known[key] = now

    def touched(self, stop: Event) -> Iterator[set[SessionKey]]:
        """The sessions that something was read about, time and again; often none."""
        for paths in _noticed(self._roots, stop):
            began = time.monotonic()
            self._look(paths)
            took = time.monotonic() - began
            moment = self._archive.events.last_id()
            keys = self._archive.events.sessions_since(self._moment) if moment > self._moment else set()
            self._moment = moment
            yield keys
            # A tool that writes all the time is not to cost all the time of a processor.
            stop.wait(min(took, _REST))

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

    def _look(self, paths: set[str] | None) -> None:
        """Read what changed at these paths, or anywhere when it is not known where."""
        now = time.monotonic()
        if paths is None or self._is_behind or now - self._rounded > _ROUND:
            self._rounded = now
            self._unsure.clear()
            self._is_behind = not self._read(list(self._roots()), None)
        elif paths or self._unsure:
            paths |= self._unsure
            # In a new folder files may have been written before anybody watched it.
            self._unsure = {path for path in paths - self._unsure if os.path.isdir(path)}  # noqa: PTH112
            affected = _affected(self._roots(), paths)
            if affected:
                self._is_behind = not self._read(affected, paths)
            else:
                # The system spells paths in another way than the user.
                self._is_behind = not self._read(list(self._roots()), None)

    def _read(self, roots: Iterable[tuple[Source, Path]], paths: set[str] | None) -> bool:
        """Whether archive and index are up to date now; not while another process holds one of them."""
        with self._archive.sync_lock(_PATIENCE) as archive:
            if archive is None:
                return False
            try:
                sync(archive, roots, paths=paths)
            except IntegrityError:
                return False
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise
                return False
        return not self._archive.index_queue.is_pending or update(self._archive, self._index)


def _affected(roots: Iterable[tuple[Source, Path]], paths: set[str]) -> list[tuple[Source, Path]]:
    """The roots that one of the paths is at or below."""
    return [
        (source, root) for source, root in roots if any(Path(path).is_relative_to(root) for path in paths)
    ]


def _existing(roots: Roots) -> dict[Path, int]:
    """The places to watch, and which file or folder each is at the moment."""
    found: dict[Path, int] = {}
    for source, root in roots():
        for place in source.watched_paths(root) if isinstance(source, Watchable) else [root]:
            with suppress(OSError):
                found[place] = place.stat().st_ino
    return found


def _noticed(roots: Roots, stop: Event) -> Iterator[set[str] | None]:
    """The paths that changed, again and again: none when nothing did for a while, None when it may be any."""
    while not stop.is_set():
        places = _existing(roots)
        checked = time.monotonic()
        is_first = True
        for paths in _reported(places, stop):
            # What was written before the watch began is not reported.
            yield None if is_first else paths
            is_first = False
            if time.monotonic() - checked >= _BEAT:
                checked = time.monotonic()
                if _existing(roots) != places:
                    break


def _reported(places: Iterable[Path], stop: Event) -> Iterator[set[str] | None]:
    """What the system tells of changes below these places; where it cannot, any path after a while."""
    from watchfiles import watch  # loaded by nobody who does not watch

    watched = list(places)
    if watched:
        with suppress(OSError, RuntimeError):  # for example more folders than the system lets a user watch
            for found in watch(
                *watched,
                watch_filter=_is_history,
                debounce=_DEBOUNCE,
                step=_STEP,
                stop_event=stop,
                rust_timeout=_TICK,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                yield {path for _, path in found}
            return
    while not stop.wait(_POLL if watched else _BEAT):
        yield None if watched else set()


def _is_history(kind: "Kind", path: str) -> bool:
    """Whether a change may be one of history; a folder that comes or goes may have some in it."""
    return path.endswith(_ENDINGS) or (kind.name != "modified" and not path.endswith("-shm"))
