"""Retention policy of a tool."""

from typing import NamedTuple

__all__ = ["Retention"]


class Retention(NamedTuple):
    """Sessions that a tool is about to delete, and the settings change that prevents it."""

    days: int  # of inactivity until deletion
    is_default: bool  # not set by the user
    settings: str  # path of the settings file
    expiring: tuple[str, ...]  # sessions that are deleted within a week
    diff: str  # a settings change that keeps them; empty if unknown
    trouble: str | None = None  # why the settings file could not be parsed
