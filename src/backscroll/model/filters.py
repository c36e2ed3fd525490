"""Filter and order of a session list."""

from datetime import datetime
from typing import Literal, get_args

from msgspec import Struct

__all__ = ["SORT_KEYS", "Filter", "SortKey"]

# Times and numbers are sorted in descending order, texts in ascending order.
SortKey = Literal["updated", "created", "title", "workspace", "messages", "prompts", "tokens", "lines"]
SORT_KEYS: tuple[SortKey, ...] = get_args(SortKey)


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
    with_unlisted: bool = False  # drafts, ghosts, background work of the tools, copies of subagents
