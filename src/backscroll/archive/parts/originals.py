"""What units were read from: files and rows, written back and told anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.archive.connection import transaction
from backscroll.archive.parts.opened import Opened

if TYPE_CHECKING:
    from backscroll.archive.write.reparse import Original
    from backscroll.archive.write.units import Known
    from backscroll.model import Item, Row, SessionSummary
    from backscroll.model.tool import Resumable

__all__ = ["Originals"]


class Originals(Opened):
    """What units were read from: files and rows, written back and told anew."""

    def write_originals(self, session_id: str, folder: Path) -> list[Path]:
        """Write the kept files of a session into a folder, byte for byte, below the names they had."""
        from backscroll.archive.storage import raw_files

        rows = self._db.execute(
            "select distinct u.number, u.path from account a join unit u on u.number = a.unit"
            " where u.kind <> 'prompts' and (a.id = ? and not a.is_agent or a.parent_id = ?)"
            " and exists (select 1 from raw r where r.unit = u.number) order by u.path",
            [session_id, session_id],
        ).fetchall()
        folder.mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        for number, path in rows:
            target = folder / Path(path).name
            if target in written:  # a session that lies in several folders
                target = folder / Path(path).parent.name / target.name
                target.parent.mkdir(exist_ok=True)
            raw_files.written_back(self._db, number, target)
            written.append(target)
        return written

    def kept_units(self, session_id: str | None = None) -> list[Original]:
        """Every unit of which rows are kept, or only those that tell of a session and its subagents."""
        from backscroll.archive.write import reparse

        return reparse.kept_units(self._db, session_id)

    def rows_of(self, original: Original, *, fullest: bool = False) -> Iterator[Row]:
        """A unit's rows; see `kept_rows.rows_of`."""
        from backscroll.archive.storage.raw_rows import rows_of

        return rows_of(self._db, original.number, fullest=fullest)

    def has_same_rows(self, original: Original, rows: Iterable[Row]) -> bool:
        """Whether these are the rows that are kept of a unit."""
        from backscroll.archive.storage.raw_rows import are_same

        return are_same(self._db, original.number, rows)

    def resumable(self, summary: SessionSummary) -> Resumable:
        """What the tool that held a session is asked to continue."""
        from backscroll.archive.storage.originals import resumable

        return resumable(self._db, summary)

    def files_of(self, summary: SessionSummary) -> list[Original]:
        """The files of a session and its subagents, as far as they are kept."""
        from backscroll.archive.storage.originals import files_of

        return files_of(self._db, summary)

    def write_original(self, original: Original, target: Path) -> None:
        """Write one kept file, byte for byte."""
        from backscroll.archive.storage import raw_files

        raw_files.written_back(self._db, original.number, target)

    def originals(self) -> list[Original]:
        """Every unit of which the file is kept."""
        from backscroll.archive.write import reparse

        return reparse.originals(self._db)

    def is_same(self, original: Original | Known, file: Path) -> bool:
        """Whether a file is, byte for byte, the one that is kept of a unit."""
        from backscroll.archive.write import reparse

        return reparse.is_same(self._db, original.number, file)

    def retell(self, original: Original, items: Iterable[Item], file: Path, *, may_lack: bool) -> bool:
        """Put what an original tells today in the place of what it told; see `reparse.retell`."""
        from backscroll.archive.write import reparse

        return reparse.retell(self._db, original, items, file, may_lack=may_lack)

    def unsettle(self) -> None:
        """Have every session derived anew."""
        with transaction(self._db):
            self._db.execute("update account set is_settled = 0, compared = 0")
