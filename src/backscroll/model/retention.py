"""Sessions that a tool will delete, and how many days before Backscroll warns.

No structs: a sync without changes does not load msgspec.
"""

from typing import NamedTuple

WARNING_DAYS = 7  # before a tool deletes a session


class Retention(NamedTuple):
    """Sessions that a tool is about to delete, and the settings change that prevents it."""

    days: int  # of inactivity until deletion
    is_default: bool  # not set by the user
    settings: str  # path of the settings file
    expiring: tuple[str, ...]  # sessions that are deleted within `WARNING_DAYS`
    diff: str  # a settings change that keeps them; empty if unknown
    trouble: str | None = None  # why the settings file could not be parsed
