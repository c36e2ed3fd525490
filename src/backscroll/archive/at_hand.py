"""What was read lately and may be asked for again, kept for as long as the archive stays as it is.

Whoever types a search letter by letter, or turns its pages, is shown much the same messages each time.
"""

import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import count

import msgspec

from backscroll.archive.bodies import unpack
from backscroll.archive.unpacked import Spot, Unpacked
from backscroll.archive.workspaces import Known, known_workspaces
from backscroll.model import Message

__all__ = ["AtHand"]


class AtHand:
    """Pieces of messages, the order of the list and the workspaces, for one connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._seen: tuple[int, int] | None = None
        self._unpacked = Unpacked(db)
        self._starts: dict[int, list[int]] = {}  # where the pieces of an account begin
        self._indexes: dict[int, int] | None = None
        self._workspaces: list[Known] | None = None

    def messages(self, spots: Sequence[Spot], having: tuple[bytes, ...] = ()) -> dict[Spot, Message]:
        """The messages at these spots, as they stand today; a spot where nothing stands is left out.

        So may be those that do not have some bytes as they are packed, which is known without unpacking them.
        """
        self._refresh()
        amended = self._db.execute(
            "select a.account, a.position, a.body from json_each(?) j cross join amendment a"
            " on a.account = json_extract(j.value, '$[0]') and a.position = json_extract(j.value, '$[1]')",
            [msgspec.json.encode(spots).decode()],
        )
        found = {(account, position): unpack(body)[0] for account, position, body in amended.fetchall()}
        wanted: defaultdict[Spot, list[int]] = defaultdict(list)
        starts = self._starts_of({account for account, _ in spots})
        for account, position in spots:
            before = bisect_right(starts[account], position)
            if before and (account, position) not in found:
                start = starts[account][before - 1]
                wanted[account, start].append(position - start)
        for (account, start), part, places in self._unpacked.parts(wanted):
            if not all(some in part.plain for some in having):
                continue
            for place in places:
                message = part.message(place, having)
                if message is not None:
                    found[account, start + place] = message
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
            self._starts.clear()
            self._indexes = None
            self._workspaces = None

    def _starts_of(self, accounts: set[int]) -> dict[int, list[int]]:
        """Where the pieces of accounts begin."""
        unknown = accounts - self._starts.keys()
        self._starts |= {account: [] for account in unknown}
        rows = self._db.execute(
            "select account, position from chunk where account in (select value from json_each(?))"
            " order by account, position",
            [msgspec.json.encode(unknown).decode()],
        )
        for account, start in rows if unknown else ():
            self._starts[account].append(start)
        return self._starts
