"""Interface of a source, and optional interfaces for reading.

A source inherits from `Source` and has the five members without a default. Everything else is optional.

Capabilities that reading does not need are methods of `Source`. Each returns a module or an object that a
protocol of `capabilities` describes; None if the source does not have it. The module is imported in the
method: most are slow to import, and few commands need them.

Optional interfaces for reading are classes that a source also inherits from; callers check with
``isinstance``. They are abstract base classes, not protocols: since Python 3.12, ``isinstance`` on a protocol
imports ``inspect``, which slows down start-up.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from backscroll.model.store import SESSION, UnitKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model.mcp_client import McpClient
    from backscroll.model.store import StoreKind, Unit
    from backscroll.model.stream import Checkpoint, Item, RawRow
    from backscroll.sources.capabilities import (
        Backup,
        CodeTracking,
        CompanionMoves,
        FolderIds,
        Hooks,
        ProcessLookup,
        ResumeCommands,
        RetentionPolicy,
        SessionWriter,
    )

# Kinds of units without sessions, for what cannot be read.
UNREADABLE = UnitKind("unreadable", is_single=False)  # a folder that cannot be listed
LOG = UnitKind("log", is_single=False)  # a write-ahead log without its database


class DatabaseSchema(NamedTuple):
    """Tables of a tool's databases, to which archived rows are written."""

    databases: Mapping[
        str, tuple[str, ...]
    ] = {}  # statements that create a database, by the name of its file
    values: Mapping[str, tuple[str, str]] = {}  # tables of single values: their columns of key and value
    tables: Mapping[str, str] = {}  # first column of other tables, or the whole definition of a virtual table


class Source(ABC):
    """Read-only access to the history of one tool, and what else can be done with it."""

    name: ClassVar[str]  # the prefix of a ref, the config key and the ``--source`` value
    platform: ClassVar[str]  # the value of the unified schema's ``platform`` column
    stores: ClassVar[tuple[StoreKind, ...]]  # where sessions can be stored, the best store first
    unit_kinds: ClassVar[tuple[UnitKind, ...]] = (SESSION,)
    schema: ClassVar[DatabaseSchema] = DatabaseSchema()
    color: ClassVar[tuple[str, str]] = ("#5d564e", "#bdb5aa")  # of its name, on a light and a dark page

    @abstractmethod
    def roots(self, machine: Machine) -> list[Path]:
        """Return the folders where the tool keeps history, installed or not."""

    @abstractmethod
    def units(self, root: Path) -> Iterator[Unit]:
        """List the units below a root: names, sizes and fingerprints. No parsing."""

    @abstractmethod
    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """Parse a unit, from a checkpoint if there is one. A bad record yields a `Problem`."""

    def file_ends(self) -> tuple[str, ...]:
        """Return how the names of files with sessions end. An audit reports other entries of such names."""
        return ()

    def keeps_file(self, unit: Unit) -> bool:
        """Return whether a unit is a whole file that the archive keeps byte for byte."""
        return False

    def resume(self) -> ResumeCommands | None:
        """Return how a session is resumed in the tool."""
        return None

    def processes(self) -> ProcessLookup | None:
        """Return how the process that has a session open is found."""
        return None

    def retention(self) -> RetentionPolicy | None:
        """Return which sessions the tool deletes by itself."""
        return None

    def backup(self) -> Backup | None:
        """Return what a backup of the tool's history contains, and how it is restored."""
        return None

    def writer(self) -> SessionWriter | None:
        """Return how sessions are restored from the archive, moved and copied."""
        return None

    def companion_moves(self) -> CompanionMoves | None:
        """Return how what this source keeps of another source's session is moved."""
        return None

    def folder_ids(self) -> FolderIds | None:
        """Return how the tool computes ids of workspace folders."""
        return None

    def hooks(self) -> Hooks | None:
        """Return how hooks are registered, and how their events are read."""
        return None

    def code_tracking(self) -> CodeTracking | None:
        """Return what the tool tracks about code and commits."""
        return None

    def mcp_clients(self, machine: Machine) -> tuple[McpClient, ...]:
        """Return the programs of this tool that can use an MCP server."""
        return ()


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


def string_values(record: bytes, key: str) -> list[str]:
    """Return every string that a JSON document has under a key, at any depth. For `RecordLookup`.

    The document is not decoded as a whole.
    """
    from backscroll.readers import lenient_json  # start-up: sources import this module to list units

    found = re.findall(rb'"%s"\s*:\s*("(?:[^"\\]|\\.)+")' % key.encode(), record)
    try:
        return [lenient_json.load(value) for value in found]
    except lenient_json.FAILURES:
        return []
