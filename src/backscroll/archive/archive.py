"""Everything that can be done with an archive, in one class."""

from backscroll.archive.parts.debts import Debts
from backscroll.archive.parts.happenings import Happenings
from backscroll.archive.parts.originals import Originals
from backscroll.archive.parts.remarks import Remarks
from backscroll.archive.parts.telling import Telling
from backscroll.archive.parts.upkeep import Upkeep

__all__ = ["Archive"]


class Archive(Upkeep, Originals, Remarks, Debts, Happenings, Telling):
    """Everything ever read, in one file."""
