"""The SQLite file that outlives the tools: the truth.

A name is loaded when it is first asked for: whoever only asks what sessions are called, as a shell does with
every key, does not wait for what reads and writes them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlite3 import IntegrityError

    from backscroll.archive.barrier import Barrier
    from backscroll.archive.changes import Key, Standing
    from backscroll.archive.derive import Session
    from backscroll.archive.filters import Filter
    from backscroll.archive.passages import Passage, Place
    from backscroll.archive.unindexed import Lack
    from backscroll.archive.units import Known
    from backscroll.archive.whole import Archive

__all__ = [
    "Archive",
    "Barrier",
    "Filter",
    "IntegrityError",
    "Key",
    "Known",
    "Lack",
    "Passage",
    "Place",
    "Session",
    "Standing",
]

_PLACES = {
    "Archive": "backscroll.archive.whole",
    "Barrier": "backscroll.archive.barrier",
    "Filter": "backscroll.archive.filters",
    "IntegrityError": "sqlite3",
    "Key": "backscroll.archive.changes",
    "Known": "backscroll.archive.units",
    "Lack": "backscroll.archive.unindexed",
    "Passage": "backscroll.archive.passages",
    "Place": "backscroll.archive.passages",
    "Session": "backscroll.archive.derive",
    "Standing": "backscroll.archive.changes",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return value
