"""Result of a sync. A plain class: `sync` without changes does not load msgspec."""

from typing import NamedTuple

__all__ = ["SyncReport", "SyncStatus"]


class SyncStatus(NamedTuple):
    """State of the sync, seen from any process."""

    is_complete: bool  # the archive contains everything that the last sync found
    is_running: bool = False
    percent: int | None = None  # None if it has just started
    remaining_seconds: float | None = None  # estimate; None if it is too early for one


class SyncReport:
    """Counts of the units that a sync read, and of the sessions that changed."""

    is_deferred = False  # too much has changed; nothing was read

    def __init__(self) -> None:
        self.units = 0  # checked for changes
        self.new = 0
        self.grew = 0
        self.rewritten = 0
        self.vanished = 0
        self.came_back = 0
        self.sessions = 0  # updated
        self.problems = 0
        self.roots: list[str] = []  # that exist
        self.unreadable: list[str] = []  # files and folders without permission to read them

    def __repr__(self) -> str:
        return f"SyncReport({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @property
    def changed(self) -> int:
        return self.new + self.grew + self.rewritten + self.came_back
