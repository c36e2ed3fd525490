"""Changes while the tools write."""

import re
from collections.abc import Iterator
from threading import Event

from backscroll.history.session_refs import find_session
from backscroll.history.stores import Stores
from backscroll.ingest.follow import follow
from backscroll.ingest.watch import Watcher
from backscroll.model import Filter, SessionSummary
from backscroll.model.session import FollowedMessage, SessionChange

__all__ = ["Live"]

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
        return follow(self._stores.archive, find, touched, last=last, everything=everything)

    def is_awaited(self, ref: str | None) -> bool:
        """Return whether the session does not exist yet: no session at all, or none with this complete id."""
        if ref is None:
            return self._stores.archive.sessions.count(Filter()) == 0
        id_ = ref.rpartition(":")[2]
        return _UUID.fullmatch(id_) is not None and not self._stores.archive.sessions.find(id_)

    def _watcher(self) -> Watcher:
        stores = self._stores
        return Watcher(stores.archive, stores.index.index, stores.roots, stores.spool_path)
