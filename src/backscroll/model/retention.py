"""When a tool deletes its own history."""

from typing import NamedTuple

__all__ = ["Retention"]


class Retention(NamedTuple):
    """What a tool is about to delete of its own accord, and how to keep it from doing so."""

    days: int  # after which it deletes what nobody has touched
    is_default: bool  # nobody has set it
    settings: str  # the file where it is set
    expiring: tuple[str, ...]  # sessions that go within a week
    diff: str  # the change that would keep them; empty when nobody can say
    trouble: str | None = None  # why the file where it is set could not be understood
