"""The library: everything a face can do is a method here."""

from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.history.belonging import Belonging
from backscroll.history.continuing import Continuing
from backscroll.history.counting import Counting
from backscroll.history.exporting import Exporting
from backscroll.history.keeping import Keeping
from backscroll.history.noting import Noting
from backscroll.history.reading import Reading
from backscroll.history.recalling import Recalling
from backscroll.history.syncing import Syncing

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
        from backscroll.testing import demo  # a long story, which nobody else should have to load

        return demo.write(folder)
