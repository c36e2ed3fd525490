"""What became of sessions, ever or since a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backscroll.archive.parts.opened import Opened

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backscroll.archive.query.session_state import Key, Standing
    from backscroll.model.events import Ledger

__all__ = ["Happenings"]


class Happenings(Opened):
    """What became of sessions, ever or since a moment."""

    def ledger(self, since: datetime | None) -> Ledger:
        """What became of sessions since a moment, or ever."""
        from backscroll.archive.query import events

        return events.ledger(self._db, since)

    def moment(self) -> int:
        """Now, as the ledger counts it."""
        from backscroll.archive.query import session_state

        return session_state.moment(self._db)

    def touched(self, since: int) -> set[Key]:
        """The sessions that something was read about since a moment, by whichever process."""
        from backscroll.archive.query import session_state

        return session_state.touched(self._db, since)

    def unsettled(self) -> set[Key]:
        """The sessions that something was read about which has not been told yet."""
        from backscroll.archive.query import session_state

        return session_state.unsettled(self._db)

    def standings(self, keys: Iterable[Key] | None = None) -> dict[Key, Standing]:
        """How far these sessions have come, or all that a list shows."""
        from backscroll.archive.query import session_state

        return session_state.standings(self._db, keys)

    def live(self) -> set[tuple[str, str]]:
        """Sessions that are being held, by platform and id."""
        from backscroll.archive.query.completion import live

        return live(self._db)
