"""What every source can do. Adding one is a room like its neighbours and a line in the registry."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from backscroll.config import Machine
from backscroll.model import Checkpoint, Item, RawRow, Retention, Unit
from backscroll.model.tool import Command, Refusal, Resumable

__all__ = ["Folder", "Source"]


class Folder(Protocol):
    """A folder as it was listed, of which nothing more is asked when it looks as it did."""

    @property
    def path(self) -> str:
        """Where it is, with the separator at the end."""

    @property
    def is_closed(self) -> bool:
        """Whether it could not be listed: then nothing is known of what is in it and below."""

    @property
    def number(self) -> int:
        """How many units there are in it."""

    @property
    def look(self) -> bytes:
        """Changes whenever a unit in it does, or what counts as one."""

    def units(self) -> Iterator[Unit]:
        """Its units, as they were when it was listed; none of folders below."""


class Source(Protocol):
    """One tool's history on disk, opened for reading only."""

    @property
    def name(self) -> str:
        """The prefix of a ref, the config key and the ``--source`` value."""

    @property
    def platform(self) -> str:
        """The value of the unified schema's ``platform`` column."""

    def roots(self, machine: Machine) -> list[Path]:
        """Where this tool keeps history, whether or not it is installed."""

    def units(self, root: Path) -> Iterator[Unit]:
        """What is there. Cheap: names, sizes and change tokens, no parsing."""

    def folders(self, root: Path) -> Iterator[Folder] | None:
        """What `units` tells, folder by folder; None where a unit is more than a file in a folder."""

    def units_at(self, root: Path, paths: Collection[str]) -> Iterable[Unit] | None:
        """Of the units those that a change at one of these paths bears on, and all that are in a folder.

        None where only a look at everything can tell.
        """

    def signs(self, root: Path) -> list[Unit] | None:
        """Units that change whenever any other does, and come after all others; None where there are none."""

    def watched(self, root: Path) -> list[Path]:
        """The files and folders that history is written to, whether or not they exist."""

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """What it says from there on. A bad record is a problem; the good ones still arrive."""

    def rows(self, unit: Unit) -> Iterator[RawRow]:
        """The rows of a database that make up a unit, as they lie there, without secrets; none of a file.

        Raises `BackscrollError` or `sqlite3.Error` when they cannot be read to the end.
        """

    def documents(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """The raw records, decoded, by kind, to look at their outline; never one that holds secrets."""

    def retention(
        self, root: Path, now: datetime, looks: Mapping[str, bytes | None] | None = None
    ) -> Retention | None:
        """What the tool itself will delete within a week, if it does such things.

        Whoever has just compared all folders gives their looks, by path: then nothing is listed again but
        those without one.
        """

    def resumption(self, session: Resumable, machine: Machine) -> Command | Refusal:
        """What continues a session in the tool itself, whether or not that is installed."""

    def held_by(self, root: Path, session_id: str) -> int | None:
        """The process of the tool that has a session open, as far as the tool tells."""

    def close(self) -> None:
        """Let go of whatever stayed open between two readings."""
