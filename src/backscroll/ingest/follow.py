"""One session, message by message, while it is being held."""

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from backscroll.archive import Archive
from backscroll.archive.session_key import SessionKey
from backscroll.model import Message, SessionSummary
from backscroll.model.live import FollowedMessage

__all__ = ["follow"]

_WINDOW = 64  # messages that are read from the end at first; more when too few of them are for people


def follow(
    archive: Archive,
    find: Callable[[], SessionSummary | None],
    touched: Iterable[set[SessionKey]],
    *,
    last: int,
    everything: bool,
) -> Iterator[FollowedMessage]:
    """The last messages of a session, then those that come; ``find`` finds it, as soon as there is one.

    Without ``everything`` these are the ones a person would read: no abandoned branches, no injected text.
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
    """How far a session has been told. Of what was told before, only what may still change is remembered."""

    def __init__(self, archive: Archive, summary: SessionSummary, everything: bool) -> None:
        self._archive = archive
        self._summary = summary
        self._everything = everything
        self._account: int | None = None
        self._next = 0  # the first position that was not looked at
        self._told: dict[str, FollowedMessage] = {}
        session = summary.parent_ref.partition(":")[2] if summary.parent_ref is not None else summary.id
        self.key = SessionKey(summary.platform, session)

    def last(self, number: int) -> list[FollowedMessage]:
        """The last messages that are there, read from the end."""
        self._account, self._next = self._archive.messages.extent(self._summary)
        window = max(_WINDOW, number)
        while True:
            start = max(0, self._next - window)
            found = [said for said in self._from(start) if self._is_wanted(said.message)]
            if len(found) >= number or start == 0:
                break
            window *= 4
        self._told = {said.message.id: said for said in found}
        return found[len(found) - min(number, len(found)) :]

    def news(self) -> Iterator[FollowedMessage]:
        """What has been added since, and what was told before and has more to it now."""
        account, number = self._archive.messages.extent(self._summary)
        if account is not None and account == self._account and number >= self._next:
            found = [*self._waiting(), *self._from(self._next)]
        else:
            # Told anew, and perhaps in another order: what stands where nothing stood is new.
            found = list(self._from(0))
        first, self._account, self._next = self._next, account, number
        for said in found:
            before = self._told.get(said.message.id)
            if before is None and said.position < first:
                continue
            if not self._is_wanted(said.message) or (before and not _has_more(said, before)):
                continue
            self._told[said.message.id] = said
            yield FollowedMessage(said.position, said.message, before.message if before else None)

    def _from(self, start: int) -> Iterator[FollowedMessage]:
        for position, message in enumerate(
            self._archive.messages.of_session(self._summary, start), start=start
        ):
            yield FollowedMessage(position, message)

    def _waiting(self) -> list[FollowedMessage]:
        """Calls without an answer, as they stand now."""
        places = [
            said.position
            for said in self._told.values()
            if said.message.tool is not None and said.message.tool.status == "pending"
        ]
        return [said for place in sorted(places) for said in islice(self._from(place), 1)]

    def _is_wanted(self, message: Message) -> bool:
        if self._everything:
            return True
        # A subagent's own messages are all beside the session that started it.
        is_own = not message.is_sidechain or self._summary.parent_ref is not None
        if not message.is_active or not is_own or message.role == "system":
            return False
        return message.role != "thinking" or bool(message.content)


def _has_more(said: FollowedMessage, before: FollowedMessage) -> bool:
    now, then = said.message, before.message
    return now.content != then.content or now.tool != then.tool
