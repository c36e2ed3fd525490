"""The key that identifies a session, and the SQL for the session of a subagent."""

from typing import NamedTuple

FIRST_SUBAGENT_ID = 1 << 60  # the ids of subagents are above all session numbers
# The session of a subagent, from a row of `fragment f`.
PARENT = "coalesce(f.parent_external_id, f.inferred_parent_external_id)"


class SessionKey(NamedTuple):
    """Platform and the tool's own id of a session."""

    platform: str
    id: str
