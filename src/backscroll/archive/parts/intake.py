"""What is read: which units are known, what they tell, and the sessions derived from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.archive.connection import transaction
from backscroll.archive.derive.live import end_sessions
from backscroll.archive.parts.opened import Opened
from backscroll.archive.write import folder_fingerprints as looks_of

if TYPE_CHECKING:
    from backscroll.archive.derive.affected import Session
    from backscroll.archive.storage.strings import Words
    from backscroll.archive.write.observer import Listener
    from backscroll.archive.write.units import Known
    from backscroll.model import Item, Mark, Row, Unit

__all__ = ["Intake"]


class Intake(Opened):
    """What is read: which units are known, what they tell, and the sessions derived from it."""

    _words: Words | None = None  # of a shard, which nobody else writes

    def known_units(
        self, source: str, root: Path, paths: Collection[str] | None = None
    ) -> dict[tuple[str, str], Known]:
        """Every unit ever read below a root, or only those at these paths, by path and key."""
        from backscroll.archive.write import units

        return units.known_units(self._db, source, str(root), paths)

    def current_units(
        self, source: str, root: Path, folders: Collection[str] | None = None
    ) -> dict[str, str]:
        """The fingerprints of the units that were below a root; see `current.current_units`."""
        from backscroll.archive.write.unit_fingerprints import current_units

        return current_units(self._db, source, str(root), self._barrier.digest, folders)

    def known_looks(self, source: str, root: Path) -> dict[str, bytes | None]:
        """How folders with units looked when all of them were known, by path; see `folders.known_looks`."""
        return looks_of.known_looks(self._db, source, str(root), self._barrier.digest)

    def settle_folders(
        self, source: str, root: Path, *, looks: Mapping[str, bytes], gone: Iterable[str]
    ) -> None:
        """Note how folders look whose units are all known; see `folders.settle`."""
        looks_of.settle(self._db, source, str(root), self._barrier.digest, looks=looks, gone=gone)

    def units_below(self, source: str, root: Path, folder: str) -> set[str]:
        """The paths of the units that are there at a path or in the folder of that name."""
        from backscroll.archive.write import units

        return units.units_below(self._db, source, str(root), folder)

    def needs_reading(self, unit: Unit, known: Known | None) -> bool:
        """Whether a unit may say something that is not known, and not to be kept out."""
        from backscroll.archive.maintenance import forget
        from backscroll.archive.write.exclusions import ALONE

        if known is None:
            return not forget.is_forgotten(self._db, unit.path, unit.key)
        if known.excluded_by is not None:
            if known.excluded_by != self._barrier.digest:
                return True
            if unit.kind in ALONE:
                return False
        return not known.is_current(unit.fingerprint)

    def mark_of(self, known: Known) -> Mark | None:
        """How far a unit was read; None when it was passed over for other patterns than today's."""
        from backscroll.archive.write import units

        if known.excluded_by is not None and known.excluded_by != self._barrier.digest:
            return None
        return units.mark_of(self._db, known.number)

    def still_begins(self, known: Known, unit: Unit, mark: Mark) -> bool:
        """Whether a file still holds, up to the mark, what was read from it."""
        from backscroll.archive.write import reparse, units

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
        rows: Iterable[Row] = (),
    ) -> bool:
        """Record a unit and all that was read from it, or none of it; ``rows`` are kept as they are.

        A listener hears the messages. False when it could not be read, or was another one at the end than at
        the beginning: then it is read again the next time, whatever its fingerprint says.
        """
        from backscroll.archive.storage.strings import Words
        from backscroll.archive.write.put_unit import put  # loaded by nobody who only reads

        if self._words is None or not self._is_shard:
            self._words = Words(self._db)
        return put(
            self._db,
            self.barrier,
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

    def merging(self) -> AbstractContextManager[None]:
        """Be about to take in much; see `merging.merging`."""
        from backscroll.archive.write.shard_merge import merging

        return merging(self._db)

    def merge(self, shards: Sequence[Path]) -> list[int]:
        """Take in what other processes read. Returns by how much the numbers of each one's accounts grow."""
        from backscroll.archive.write.shard_merge import merge

        return merge(self._db, shards)

    def account_numbers(self) -> set[int]:
        """Every account there is."""
        return {number for (number,) in self._db.execute("select number from account")}

    def mark_gone(self, numbers: Iterable[int]) -> None:
        """Note that units vanished."""
        from backscroll.archive.write import units

        with transaction(self._db):
            units.mark_gone(self._db, numbers)

    def derive(self) -> set[Session]:
        """Bring every session up to date that something was read about, and say which these were."""
        changed = [
            number for (number,) in self._db.execute("select number from account where not is_settled")
        ]
        now = datetime.now(UTC)
        end_sessions(self._db, now)
        if not changed:
            return set()
        from backscroll.archive import index_queue
        from backscroll.archive.derive.affected import affected, settle
        from backscroll.archive.derive.cursor_windows import settle_windows
        from backscroll.archive.derive.dedup import mark_copies
        from backscroll.archive.derive.session_rows import write_sessions
        from backscroll.archive.derive.token_usage import find_makers
        from backscroll.archive.maintenance.compact import give_back
        from backscroll.archive.storage.delta_bases import lean

        with transaction(self._db):
            index_queue.listen(self._db)
            sessions = affected(self._db, changed)
            mark_copies(self._db)
            find_makers(self._db)
            write_sessions(self._db, sessions, now)
            settle_windows(self._db)
            has_room = lean(self._db)
            settle(self._db)
        if has_room:
            give_back(self._db)
        return sessions

    def problems_since(self, at: datetime) -> int:
        """How many problems were met in what was read since, or is there and could not be read at all."""
        row = self._db.execute(
            "select count(*) from problem p join unit u on u.number = p.unit"
            " where u.read_at >= ? or u.is_retried and not u.is_gone",
            [at.isoformat()],
        ).fetchone()
        return int(row[0])
