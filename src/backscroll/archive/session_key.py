"""The key that identifies a session."""

from typing import NamedTuple

__all__ = ["SessionKey"]


class SessionKey(NamedTuple):
    """Platform and the tool's own id of a session."""

    platform: str
    id: str
