"""Which units are known, and how new ones are stored."""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from backscroll.archive.connection import transaction
from backscroll.archive.maintenance import forget
from backscroll.archive.storage.strings import Words
from backscroll.archive.write import reparse, units
from backscroll.archive.write.exclusions import ALONE, Exclusions
from backscroll.archive.write.observer import Listener
from backscroll.archive.write.put_unit import put
from backscroll.archive.write.shard_merge import merge, merging
from backscroll.archive.write.units import KnownUnit
from backscroll.model import Checkpoint, Item, RawRow, Unit

__all__ = ["UnitStore"]


class UnitStore:
    """Known units, and writing new ones."""

    def __init__(self, db: sqlite3.Connection, exclusions: Exclusions, *, is_shard: bool) -> None:
        self._db = db
        self._exclusions = exclusions
        self._is_shard = is_shard
        self._words: Words | None = None  # kept between units of a shard, which has a single writer

    def known(
        self, source: str, root: Path, paths: Collection[str] | None = None
    ) -> dict[tuple[str, str], KnownUnit]:
        """Every unit ever read below a root, or only those at these paths, by path and key."""
        return units.known_units(self._db, source, str(root), paths)

    def below(self, source: str, root: Path, folder: str) -> set[str]:
        """The paths of the units that are there at a path or in the folder of that name."""
        return units.units_below(self._db, source, str(root), folder)

    def needs_reading(self, unit: Unit, known: KnownUnit | None) -> bool:
        """Whether a unit may say something that is not known, and not to be kept out."""
        if known is None:
            return not forget.is_forgotten(self._db, unit.path, unit.key)
        if known.excluded_by is not None:
            if known.excluded_by != self._exclusions.digest:
                return True
            if unit.kind in ALONE:
                return False
        return not known.is_current(unit.fingerprint)

    def checkpoint(self, known: KnownUnit) -> Checkpoint | None:
        """How far a unit was read; None when it was passed over for other patterns than today's."""
        if known.excluded_by is not None and known.excluded_by != self._exclusions.digest:
            return None
        return units.mark_of(self._db, known.number)

    def is_prefix_unchanged(self, known: KnownUnit, unit: Unit, mark: Checkpoint) -> bool:
        """Whether a file still holds, up to the mark, what was read from it."""
        path = Path(unit.path)
        try:
            return units.still_begins(known, path, mark.offset) and (
                reparse.is_same_lately(self._db, known.number, path, mark.offset)
            )
        except OSError:
            return False

    def put(
        self,
        unit: Unit,
        platform: str,
        items: Iterable[Item],
        *,
        event: str,
        is_appended: bool = False,
        keeps_file: bool = False,
        listener: Listener | None = None,
        rows: Iterable[RawRow] = (),
    ) -> bool:
        """Record a unit and all that was read from it, or none of it; ``rows`` are kept as they are.

        A listener hears the messages. False when it could not be read, or was another one at the end than at
        the beginning: then it is read again the next time, whatever its fingerprint says.
        """
        if self._words is None or not self._is_shard:
            self._words = Words(self._db)
        return put(
            self._db,
            self.exclusions,
            unit,
            platform,
            items,
            event=event,
            is_appended=is_appended,
            keeps_file=keeps_file,
            listener=listener,
            rows=rows,
            words=self._words,
        )

    def bulk_merge(self) -> AbstractContextManager[None]:
        """Be about to take in much; see `merging.merging`."""
        return merging(self._db)

    def merge_shards(self, shards: Sequence[Path]) -> list[int]:
        """Take in what other processes read. Returns by how much the numbers of each one's accounts grow."""
        return merge(self._db, shards)

    def fragment_ids(self) -> set[int]:
        """Every account there is."""
        return {number for (number,) in self._db.execute("select id from fragment")}

    def mark_gone(self, numbers: Iterable[int]) -> None:
        """Note that units vanished."""
        with transaction(self._db):
            units.mark_gone(self._db, numbers)

    @property
    def exclusions(self) -> Exclusions:
        """What must not be stored: excluded workspaces and forgotten sessions."""
        if self._is_shard:  # nothing is forgotten in a shard; its parent passes the list on
            return self._exclusions
        return Exclusions(self._exclusions.forgotten | forget.forgotten(self._db), self._exclusions.patterns)
