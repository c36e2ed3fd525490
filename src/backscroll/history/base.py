"""The archive and the index of one home, opened when they are first needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from backscroll import sources
from backscroll.config import Machine, NamedRoot, Settings, archive_home, settings, this_machine
from backscroll.errors import (
    ArchiveError,
    BackscrollError,
    UsageError,
)
from backscroll.readers.file_names import is_text, plain

if TYPE_CHECKING:
    from backscroll.archive import Archive
    from backscroll.index import Index
    from backscroll.sources import Source

__all__ = ["Opened"]


class Opened:
    """The archive and the index of one home, opened when they are first needed."""

    def __init__(
        self,
        *,
        roots: Sequence[NamedRoot] = (),
        home: Path | None = None,
        machine: Machine | None = None,
    ) -> None:
        self._machine = machine or this_machine()
        self._named = tuple(roots)
        self._home = home
        for root in self._named:
            if root.source not in sources.names():
                sources.named(root.source)

    @staticmethod
    def source_names() -> tuple[str, ...]:
        """Return the names of all sources that can be read."""
        return sources.names()

    @property
    def archive_path(self) -> Path:
        """The archive's file, whether or not it exists yet."""
        return archive_home(self._home, self._machine) / "archive.db"

    @cached_property
    def _archive(self) -> Archive:
        from backscroll.archive import Archive  # the database is loaded only by those who need it
        from backscroll.archive.write.exclusions import Exclusions

        return Archive(self.archive_path, exclusions=Exclusions(patterns=self.settings.exclude))

    @cached_property
    def settings(self) -> Settings:
        """What the archive's settings file says. Raises `UsageError` when it cannot be understood."""
        return settings(self.archive_path.parent, self._machine)

    def interrupt(self) -> None:
        """From any thread: what the archive is being asked at this moment ends with an `ArchiveError`."""
        if (archive := self.__dict__.get("_archive")) is not None:
            archive.interrupt()

    def close(self) -> None:
        """Close the archive, if it was opened."""
        if "_archive" in self.__dict__:
            self._archive.close()
            del self.__dict__["_archive"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is not None:
            self._tell_trouble(error)

    def _tell_trouble(self, error: BaseException) -> None:
        """Raise in a sentence what the archive's file has said with an error of its own, at whatever step."""
        if isinstance(error, BackscrollError | OSError | KeyboardInterrupt):
            return
        from backscroll.archive.errors import is_trouble, trouble

        if is_trouble(error):
            raise trouble(error, self.archive_path) from error

    @property
    def _index_folder(self) -> Path:
        return self.archive_path.with_name("index")

    @cached_property
    def _index(self) -> Index:
        from backscroll.index import Index

        return Index(self._index_folder)

    def _update_index(self) -> None:
        from backscroll.index import IndexDamagedError
        from backscroll.ingest.indexer import update

        try:
            update(self._archive, self._index)
        except (OSError, IndexDamagedError) as error:
            raise ArchiveError(
                f"{self._index_folder}: {error}. The archive is whole, and the next sync completes the index:"
                " make room, or check who may write there",
                self._index_folder,
                is_readable=True,
            ) from error

    def roots(self) -> Iterator[tuple[Source, Path]]:
        """Every folder that is looked at, whether or not it exists."""
        wanted = {root.source for root in self._named} or set(sources.names())
        for name in filter(wanted.__contains__, sources.names()):
            source = sources.named(name)
            named = [root.path for root in self._named if root.source == name]
            for path in named or source.roots(self._machine):
                if not is_text(str(path)):
                    reason = "its name is not UTF-8; name a link to it that has another"
                    raise UsageError(f"{plain(str(path))} cannot be kept track of: {reason}")
                yield source, path
