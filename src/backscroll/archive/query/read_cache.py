"""What was read lately and may be asked for again, kept for as long as the archive stays as it is.

Whoever types a search letter by letter, or turns its pages, is shown much the same messages each time.
"""

import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count, islice

import msgspec

from backscroll.archive.query.chunk_cache import Spot, Unpacked
from backscroll.archive.query.workspaces import Known, known_workspaces
from backscroll.archive.storage.codec import unpack
from backscroll.model import Message, SessionSummary

__all__ = ["AtHand", "Told"]

_SESSIONS = 2000  # that are kept

Told = tuple[SessionSummary, int | None]  # a session, and the account that alone tells of it


class AtHand:
    """Sessions and their messages, the order of the list and the workspaces, for one connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._seen: tuple[int, int] | None = None
        self._unpacked = Unpacked(db)
        self._sessions: dict[int, Told] = {}
        self._starts: dict[int, list[int]] = {}  # where the pieces of an account begin
        self._amended: dict[int, set[int]] = {}  # where those of its messages are that were amended
        self._indexes: dict[int, int] | None = None
        self._workspaces: list[Known] | None = None

    def messages(self, spots: Sequence[Spot], having: tuple[bytes, ...] = ()) -> dict[Spot, Message]:
        """The messages at these spots, as they stand today; a spot where nothing stands is left out.

        So may be those that do not have some bytes as they are packed, which is known without unpacking them.
        """
        self._refresh()
        self._learn({account for account, _ in spots})
        found = self._amendments([spot for spot in spots if spot[1] in self._amended[spot[0]]])
        wanted: defaultdict[Spot, list[int]] = defaultdict(list)
        for account, position in spots:
            starts = self._starts[account]
            before = bisect_right(starts, position)
            if before and (account, position) not in found:
                start = starts[before - 1]
                wanted[account, start].append(position - start)
        for (account, start), part, places in self._unpacked.parts(wanted):
            for place, message in part.messages(places, having):
                found[account, start + place] = message
        return found

    def sessions(self, numbers: set[int], read: Callable[[set[int]], dict[int, Told]]) -> dict[int, Told]:
        """The sessions that have these numbers, by number; those that are not at hand are read."""
        self._refresh()
        unknown = numbers - self._sessions.keys()
        found = {number: self._sessions[number] for number in numbers - unknown}
        if unknown:
            read_now = read(unknown)
            found |= read_now
            self._sessions |= read_now
            for number in list(islice(self._sessions, max(0, len(self._sessions) - _SESSIONS))):
                del self._sessions[number]
        return found

    def indexes(self) -> dict[int, int]:
        """The places that sessions have in the whole list, from 1, by number."""
        self._refresh()
        if self._indexes is None:
            (numbers,) = self._db.execute(
                "select json_group_array(number) from (select number from conversations"
                " where visibility in ('listed', 'archived') order by updated_at desc, number desc)"
            ).fetchone()
            self._indexes = dict(zip(msgspec.json.decode(numbers, type=list[int]), count(1), strict=False))
        return self._indexes

    def workspaces(self) -> list[Known]:
        """Every workspace that somebody may mean."""
        self._refresh()
        if self._workspaces is None:
            self._workspaces = known_workspaces(self._db)
        return self._workspaces

    def _refresh(self) -> None:
        """Forget what may no longer be so."""
        (version,) = self._db.execute("pragma data_version").fetchone()  # of what others have changed
        seen = version, self._db.total_changes
        if seen != self._seen:
            self._seen = seen
            self._unpacked = Unpacked(self._db)
            self._sessions.clear()
            self._starts.clear()
            self._amended.clear()
            self._indexes = None
            self._workspaces = None

    def _learn(self, accounts: set[int]) -> None:
        """Find out where the pieces of accounts begin, and which of their messages were amended."""
        unknown = accounts - self._starts.keys()
        if not unknown:
            return
        self._starts |= self._positions("message_chunk", unknown)
        self._amended |= {
            number: set(some) for number, some in self._positions("message_update", unknown).items()
        }

    def _positions(self, table: str, accounts: set[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {account: [] for account in accounts}
        for account, position in self._db.execute(
            f"select fragment_id, position from {table}"  # noqa: S608 - names are ours
            " where fragment_id in (select value from json_each(?)) order by fragment_id, position",
            [msgspec.json.encode(accounts).decode()],
        ):
            found[account].append(position)
        return found

    def _amendments(self, spots: Sequence[Spot]) -> dict[Spot, Message]:
        """Messages as they stand since something was said of them later."""
        return {
            (account, position): unpack(body)[0]
            for account, position in spots
            for (body,) in self._db.execute(
                "select body from message_update where fragment_id = ? and position = ?", [account, position]
            )
        }
