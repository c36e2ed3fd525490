"""Filter of a session list."""

from datetime import datetime

from msgspec import Struct

__all__ = ["Filter"]


class Filter(Struct, frozen=True, kw_only=True):
    """Conditions that listed sessions meet. Every field is optional."""

    source: str | None = None
    workspace: str | None = None  # a path, a folder name, the end of a path, or a host; may contain *
    since: datetime | None = None
    until: datetime | None = None  # exclusive
    branch: str | None = None  # may contain *; case-insensitive
    model: str | None = None  # may contain *; case-insensitive; without * any part of the name
    has_edits: bool = False
    is_gone: bool | None = None
    tags: tuple[str, ...] = ()  # all of them; each may contain *
    is_starred: bool = False
    with_subagents: bool = False
    with_unlisted: bool = False  # drafts, ghosts and the background work of the tools
