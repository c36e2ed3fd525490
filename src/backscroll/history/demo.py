"""The demo: a made-up home folder with its own archive."""

import shutil
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing import demo
from backscroll.testing.demo import Demo as Demo


def write_demo(folder: Path) -> Demo:
    """Write the demo, sync it into `folder/archive`, then delete one session as the tool would.

    If anything fails, nothing is left behind.
    """
    written = demo.write(folder)
    try:
        roots = [NamedRoot(source, Path(path)) for source, path in written.roots.items()]
        with History(home=Path(written.folder, "archive"), roots=roots) as history:
            history.sync()
        demo.delete_session(written)
    except BaseException:
        shutil.rmtree(written.folder, ignore_errors=True)
        raise
    return written


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
        roots = [NamedRoot(source, self.folder / name) for source, name in demo.ROOTS.items()]
        return History(home=self.folder / "archive", roots=roots)

    def write(self) -> None:
        """Write the demo, unless it is there, and sync it. Raises `DestinationError`.

        One session is deleted after the first sync, so that the demo has a deleted session.
        """
        if not all((self.folder / name).is_dir() for name in demo.ROOTS.values()):
            write_demo(self.folder)
        with self.open() as history:
            history.sync()
