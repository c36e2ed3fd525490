"""Build, update and query the index of an archive."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from backscroll.archive.archive import Archive
from backscroll.errors import ArchiveError
from backscroll.index.store import Index, IndexDamagedError

T = TypeVar("T")


class IndexAccess:
    """The index of an archive. It is built when missing, and rebuilt when damaged."""

    def __init__(self, archive: Archive, path: Path) -> None:
        self._archive = archive
        self._path = path
        self.index = Index(path)

    def update(self) -> bool:
        """Index what the archive has queued. Return False if another process is writing the index.

        Raises `ArchiveError` if the index cannot be written.
        """
        from backscroll.stores.indexer import update  # start-up: most searches find the index up to date

        try:
            return update(self._archive, self.index)
        except (OSError, IndexDamagedError) as error:
            raise ArchiveError(
                f"The index {self._path} cannot be written: {error}. The archive is intact."
                " Free disk space or check the permissions.",
                self._path,
                hint="Then run 'backscroll sync'.",
                is_readable=True,
            ) from error

    def query(self, run: Callable[[Index], T]) -> T:
        """Run a query. A missing index is built first. A damaged index is rebuilt and queried again."""
        if not self.index.is_usable():
            self.update()
        try:
            return run(self.index)
        except IndexDamagedError:
            self.index.rebuild()
            self.update()
            return run(self.index)
