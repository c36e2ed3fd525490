"""Interface of a source, and optional interfaces for reading.

A source has the five members of `Source`. Everything else is optional: a source that can do more inherits
from the class, and callers check with ``isinstance``. These are abstract base classes, not protocols: since
Python 3.12, ``isinstance`` on a protocol imports ``inspect``, which slows down start-up. `capabilities` has
what reading does not need. `RetentionPolicy` is one of these, and here because every sync uses it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model import Checkpoint, Item, RawRow, Retention, Unit

__all__ = [
    "ChangeMarkers",
    "Closeable",
    "Folder",
    "FolderListing",
    "ImageFiles",
    "PathLookup",
    "RawRecords",
    "RawRows",
    "RecordLookup",
    "RetentionPolicy",
    "Source",
    "Watchable",
    "close",
    "raw_rows",
]


class Source(Protocol):
    """Read-only access to the history of one tool."""

    @property
    def name(self) -> str:
        """The prefix of a ref, the config key and the ``--source`` value."""

    @property
    def platform(self) -> str:
        """The value of the unified schema's ``platform`` column."""

    def roots(self, machine: Machine) -> list[Path]:
        """Return the folders where the tool keeps history, installed or not."""

    def units(self, root: Path) -> Iterator[Unit]:
        """List the units below a root: names, sizes and fingerprints. No parsing."""

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """Parse a unit, from a checkpoint if there is one. A bad record yields a `Problem`."""


class RetentionPolicy(Protocol):
    """Predicts which sessions the tool deletes."""

    def retention(
        self, root: Path, now: datetime, fingerprints: Mapping[str, bytes | None] | None = None
    ) -> Retention | None:
        """Return the sessions that the tool deletes within a week; None if there are none.

        ``fingerprints`` are the current fingerprints of all folders, by path. With them, only folders without
        one are listed.
        """


class Folder(Protocol):
    """Listed folder. If its fingerprint is unchanged, its units are not compared."""

    @property
    def path(self) -> str:
        """The path, with a separator at the end."""

    @property
    def is_unreadable(self) -> bool:
        """True if the folder could not be listed: its content is unknown."""

    @property
    def unit_count(self) -> int:
        """The number of units in the folder itself."""

    @property
    def fingerprint(self) -> bytes:
        """A value that changes whenever a unit in the folder changes, or the code that selects units."""

    def units(self) -> Iterator[Unit]:
        """Return the units in the folder itself, as they were when it was listed."""


class FolderListing(ABC):
    """Lists units folder by folder, so that unchanged folders are skipped. For sources of single files."""

    @abstractmethod
    def folders(self, root: Path) -> Iterator[Folder]:
        """Return every folder that has units, and every folder that could not be listed."""


class PathLookup(ABC):
    """Finds the units that a change of a file affects, without listing the others."""

    @abstractmethod
    def units_at(self, root: Path, paths: Collection[str]) -> Iterable[Unit] | None:
        """Return the units affected by changes at these paths. A path of a folder affects all units in it.

        Return None if all units have to be compared.
        """


class ChangeMarkers(ABC):
    """Has marker units: units that change whenever any other unit changes."""

    @abstractmethod
    def change_markers(self, root: Path) -> list[Unit]:
        """Return the marker units. They are read after all other units."""


class Watchable(ABC):
    """Knows which paths to watch. By default the whole root is watched."""

    @abstractmethod
    def watched_paths(self, root: Path) -> list[Path]:
        """Return the files and folders that the tool writes history to, existing or not."""


class RawRows(ABC):
    """Returns the database rows that make up a unit, so that the archive can keep them."""

    @abstractmethod
    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a unit without secrets. Those of a file are the small files that belong to it.

        Raises `BackscrollError` or `sqlite3.Error` if they cannot be read to the end.
        """


class RawRecords(ABC):
    """Returns decoded records, so that their structure can be printed for a bug report."""

    @abstractmethod
    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Return the type and content of each record of a unit. Records with secrets are omitted."""


class RecordLookup(ABC):
    """Finds the records behind a message among the rows and lines that the archive keeps."""

    @abstractmethod
    def row_keys(self, place: str) -> tuple[str, ...]:
        """Return the possible keys of the row at the place of an origin."""

    @abstractmethod
    def result_call_ids(self, record: bytes) -> list[str]:
        """Return the ids of the tool calls whose results a line or row contains."""


class ImageFiles(ABC):
    """Finds the files of images that a record only names."""

    @abstractmethod
    def image_file(self, root: Path, attached_path: str) -> Path | None:
        """Return the file of an attached image below a root; None if it does not exist there."""


class Closeable(ABC):
    """Keeps files or caches open between two calls."""

    @abstractmethod
    def close(self) -> None:
        """Close files and caches. The source can be used again."""


def raw_rows(source: Source, unit: Unit) -> Iterator[RawRow]:
    """Return the rows of a unit; none if the source does not read rows."""
    return source.raw_rows(unit) if isinstance(source, RawRows) else iter(())


def close(source: Source) -> None:
    """Close the source if it keeps anything open."""
    if isinstance(source, Closeable):
        source.close()
