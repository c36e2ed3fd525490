"""Result of a sync. A plain class: `sync` without changes does not load msgspec."""

__all__ = ["SyncReport"]


class SyncReport:
    """Counts of the units that a sync read, and of the sessions that changed."""

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

    def __repr__(self) -> str:
        return f"SyncReport({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @property
    def changed(self) -> int:
        return self.new + self.grew + self.rewritten + self.came_back
