"""Records of hooks.

events   what the hooks of the assistants recorded
commits  what the git hook reported, and the repositories that have it
"""

import sqlite3
from functools import cached_property

from backscroll.archive.hooks.commits import HookCommits
from backscroll.archive.hooks.events import HookEvents

__all__ = ["HookRecords"]


class HookRecords:
    """Store and load records of hooks."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    @cached_property
    def events(self) -> HookEvents:
        return HookEvents(self._db)

    @cached_property
    def commits(self) -> HookCommits:
        return HookCommits(self._db)
