"""The SQLite file that outlives the tools: the truth."""

from sqlite3 import IntegrityError

from backscroll.archive.barrier import Barrier
from backscroll.archive.changes import Key, Standing
from backscroll.archive.derive import Session
from backscroll.archive.filters import Filter
from backscroll.archive.parts.debts import Debts
from backscroll.archive.parts.happenings import Happenings
from backscroll.archive.parts.originals import Originals
from backscroll.archive.parts.remarks import Remarks
from backscroll.archive.parts.telling import Telling
from backscroll.archive.parts.upkeep import Upkeep
from backscroll.archive.passages import Passage, Place
from backscroll.archive.unindexed import Lack
from backscroll.archive.units import Known

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


class Archive(Upkeep, Originals, Remarks, Debts, Happenings, Telling):
    """Everything ever read, in one file."""
