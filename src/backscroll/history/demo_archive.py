"""The demo history of an archive: in a folder next to it, with an archive of its own."""

from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history.history import History

__all__ = ["DEMO_ROOTS", "DemoArchive"]

DEMO_ROOTS = {"claude-code": ".claude", "cursor": ".config/Cursor", "cursor-cli": ".cursor"}  # in its folder


class DemoArchive:
    """The demo of one archive. It is never mixed with the user's sessions."""

    def __init__(self, history: History) -> None:
        self.folder: Path = history.archive_path.with_name("demo").absolute()

    @property
    def is_written(self) -> bool:
        """Whether the demo can be opened."""
        return (self.folder / "archive" / "archive.db").is_file()

    def open(self) -> History:
        """Return the history of the demo."""
        roots = [NamedRoot(source, self.folder / name) for source, name in DEMO_ROOTS.items()]
        return History(home=self.folder / "archive", roots=roots)

    def write(self) -> None:
        """Write the demo, unless it is there, and sync it. Raises `DestinationError`.

        One session is deleted after the first sync, so that the demo has a deleted session.
        """
        from backscroll.history.demo import write_demo  # start-up: the builders of all tools

        if not all((self.folder / name).is_dir() for name in DEMO_ROOTS.values()):
            write_demo(self.folder)
        with self.open() as history:
            history.sync()
