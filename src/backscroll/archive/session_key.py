"""The key that identifies a session."""

from typing import NamedTuple

FIRST_SUBAGENT_ID = 1 << 60  # the ids of subagents are above all session numbers


class SessionKey(NamedTuple):
    """Platform and the tool's own id of a session."""

    platform: str
    id: str
