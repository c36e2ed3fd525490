"""The library: everything a face can do is a method here."""

from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.history.annotations import Noting
from backscroll.history.archive_admin import Keeping
from backscroll.history.export import Exporting
from backscroll.history.recall import Recalling
from backscroll.history.resume import Continuing
from backscroll.history.statistics import Counting
from backscroll.history.sync import Syncing
from backscroll.history.transcript import Reading
from backscroll.history.workspaces import Belonging

if TYPE_CHECKING:
    from backscroll.testing.demo import Demo

__all__ = ["History"]


class History(Belonging, Syncing, Keeping, Noting, Reading, Exporting, Recalling, Continuing, Counting):
    """A person's history, wherever the tools have left it.

    With ``roots`` only these folders are read; otherwise every place where a tool keeps its history.
    """

    def write_demo(self, folder: Path) -> "Demo":
        """Write a made-up history into a folder that does not exist yet, or is empty.

        Raises `DestinationError` when it cannot be written; then nothing is left behind.
        """
        from backscroll.history.demo import write_demo  # imports the builders, which no other command needs

        return write_demo(folder)
