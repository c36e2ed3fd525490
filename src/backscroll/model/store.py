"""Units and stores of a tool's history, and their kinds. Each source declares its own kinds.

The archive knows no source. What it needs to know about the kinds in its rows, it looks up here. This module
is light, because an idle sync loads it.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

ROW_BYTES = 8 * 1024  # estimate for a database row with its blobs


class Unit(NamedTuple):
    """The smallest thing that can be read again on its own."""

    source: str  # "claude-code"
    root: str  # the tool's home folder
    path: str
    key: str = ""  # key of the session's rows in a database; empty for a whole file
    fingerprint: str = ""  # unchanged if the content is unchanged
    size: int = 0  # bytes, or rows of a database
    kind: str = "session"  # name of a `UnitKind` of the source
    session_id: str | None = None  # if known without parsing
    title: str | None = None  # if known without parsing
    modified_at: int = 0  # nanoseconds since 1970, 0 if unknown; the newest units are read first

    @property
    def estimated_bytes(self) -> int:
        """The size. For a session in a database, an estimate from its number of rows."""
        return estimate_bytes(self.size, self.key)


def estimate_bytes(size: int, key: str) -> int:
    """Return the size of a unit in bytes. With a key, the size is a number of rows."""
    return size * ROW_BYTES if key else size


# What a store contains, from the most to the least complete.
StoreContent = Literal[
    "records",  # the tool's own records, from which it can resume a session
    "copy",  # messages without some of their properties, such as a text copy
    "text",  # the text in a search index
    "events",  # events that hooks recorded
    "prompts",  # only the user's prompts
    "notes",  # metadata of another program: title, archived or not
    "usage",  # only token counts
]


class StoreKind(NamedTuple):
    """Kind of a store of sessions."""

    name: str
    content: StoreContent = "records"


class UnitKind(NamedTuple):
    """Kind of a unit."""

    name: str
    is_single: bool = True  # never contains more than one session
    is_prompt_log: bool = False  # contains only the prompts of its sessions


SESSION = UnitKind("session")  # the kind of a unit, if it says nothing else
# What Backscroll's own hooks recorded.
HOOK_EVENTS = StoreKind("hooks", "events")
HOOK_USAGE = StoreKind("usage", "usage")
HOOK_RECORDS = UnitKind("hooks")


# All declared kinds, by name. One id found in several stores is one session; its content comes from the first
# of these stores.
STORES: dict[str, StoreKind] = {}


UNIT_KINDS: dict[str, UnitKind] = {}


def declare(stores: Iterable[StoreKind], unit_kinds: Iterable[UnitKind]) -> None:
    """Add the kinds of a source. Stores with the same content keep the order in which they are declared.

    Raises `ValueError` if another kind has the same name.
    """
    for store in stores:
        if STORES.setdefault(store.name, store) != store:
            raise ValueError(f"There is another kind of store with the name {store.name!r}.")
    for unit_kind in unit_kinds:
        if UNIT_KINDS.setdefault(unit_kind.name, unit_kind) != unit_kind:
            raise ValueError(f"There is another kind of unit with the name {unit_kind.name!r}.")
    contents = get_args(StoreContent)
    ranked = sorted(STORES.values(), key=lambda store: contents.index(store.content))
    STORES.clear()
    STORES.update((store.name, store) for store in ranked)


declare((HOOK_EVENTS, HOOK_USAGE), (SESSION, HOOK_RECORDS))


def store_rank(name: str) -> int:
    """Return the position of a store among all; that of an unknown store is the last."""
    return list(STORES).index(name) if name in STORES else len(STORES)


def store_content(name: str) -> StoreContent | None:
    """Return what a store contains; None if it is unknown."""
    store = STORES.get(name)
    return store.content if store is not None else None


def stores_with(*contents: StoreContent) -> tuple[str, ...]:
    """Return the names of the stores with one of these contents."""
    return tuple(store.name for store in STORES.values() if store.content in contents)


def single_session_kinds() -> tuple[str, ...]:
    """Return the kinds of units that never contain more than one session."""
    return tuple(kind.name for kind in UNIT_KINDS.values() if kind.is_single)


def prompt_log_kinds() -> tuple[str, ...]:
    """Return the kinds of units that contain only prompts."""
    return tuple(kind.name for kind in UNIT_KINDS.values() if kind.is_prompt_log)
