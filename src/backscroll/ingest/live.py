"""Changes while the tools write: of all sessions, and the messages of one."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from threading import Event

from backscroll.archive.archive import Archive
from backscroll.archive.session_key import SessionKey
from backscroll.ingest.watch import Watcher
from backscroll.model.message import Message
from backscroll.model.session import Filter, FollowedMessage, SessionChange, SessionSummary
from backscroll.stores.lookup import find_session
from backscroll.stores.stores import Stores

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
