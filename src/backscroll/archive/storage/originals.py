"""Kept originals: files and rows."""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage import raw_files
from backscroll.archive.storage.raw_rows import has_same_rows, read_rows
from backscroll.archive.write import reparse
from backscroll.archive.write.reparse import Original
from backscroll.archive.write.units import KnownUnit
from backscroll.model import STORES, Item, RawRow, SessionSummary
from backscroll.model.tool import Resumable, Store

__all__ = ["Originals", "files_of", "resumable"]


class Originals:
    """Original files and rows of units: write, compare, reparse."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def write_session(self, session_id: str, folder: Path) -> list[Path]:
        """Write the kept files of a session into a folder, byte for byte, below the names they had."""
        rows = self._db.execute(
            "select distinct u.id, u.path from fragment f join unit u on u.id = f.unit_id"
            " where u.kind <> 'prompts'"
            " and (f.external_id = ? and not f.is_subagent or f.parent_external_id = ?)"
            " and exists (select 1 from raw_segment r where r.unit_id = u.id) order by u.path",
            [session_id, session_id],
        ).fetchall()
        folder.mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        for number, path in rows:
            target = folder / Path(path).name
            if target in written:  # a session that lies in several folders
                target = folder / Path(path).parent.name / target.name
                target.parent.mkdir(exist_ok=True)
            raw_files.write_file(self._db, number, target)
            written.append(target)
        return written

    def units_with_rows(self, session_id: str | None = None) -> list[Original]:
        """Every unit of which rows are kept, or only those that tell of a session and its subagents."""
        return reparse.units_with_rows(self._db, session_id)

    def rows(self, original: Original, *, fullest: bool = False) -> Iterator[RawRow]:
        """A unit's rows; see `kept_rows.rows_of`."""
        return read_rows(self._db, original.id, fullest=fullest)

    def has_same_rows(self, original: Original, rows: Iterable[RawRow]) -> bool:
        """Whether these are the rows that are kept of a unit."""
        return has_same_rows(self._db, original.id, rows)

    def resumable(self, summary: SessionSummary) -> Resumable:
        """What the tool that held a session is asked to continue."""
        return resumable(self._db, summary)

    def files(self, summary: SessionSummary) -> list[Original]:
        """The files of a session and its subagents, as far as they are kept."""
        return files_of(self._db, summary)

    def write_file(self, original: Original, target: Path) -> None:
        """Write one kept file, byte for byte."""
        raw_files.write_file(self._db, original.id, target)

    def units_with_file(self) -> list[Original]:
        """Every unit of which the file is kept."""
        return reparse.units_with_file(self._db)

    def is_same_file(self, original: Original | KnownUnit, file: Path) -> bool:
        """Whether a file is, byte for byte, the one that is kept of a unit."""
        return reparse.is_same_file(self._db, original.id, file)

    def replace_parsed(
        self, original: Original, items: Iterable[Item], file: Path, *, may_be_incomplete: bool
    ) -> bool:
        """Put what an original tells today in the place of what it told; see `reparse.retell`."""
        return reparse.replace_from_original(
            self._db, original, items, file, may_be_incomplete=may_be_incomplete
        )


def resumable(db: sqlite3.Connection, summary: SessionSummary) -> Resumable:
    """What the tool that held a session is asked to continue."""
    session = SessionKey(summary.platform, summary.id)
    row = db.execute(
        "select metadata from conversations where platform = ? and external_id = ?", [*session]
    ).fetchone()
    metadata = msgspec.json.decode(row[0]) if row is not None else {}
    folders = metadata.get("cwds")
    return Resumable(
        id=summary.id,
        title=summary.original_title or summary.title,
        folder=summary.workspace_path,
        authority=metadata.get("workspace_authority"),
        folders=tuple(folders) if isinstance(folders, list) else (),
        stores=_stores(db, session),
    )


def _stores(db: sqlite3.Connection, session: SessionKey) -> tuple[Store, ...]:
    rows = db.execute(
        "select distinct u.source, u.root, u.path, f.store, u.is_gone from fragment f"
        " join unit u on u.id = f.unit_id where f.platform = ? and f.external_id = ?"
        " and (not f.is_subagent or coalesce(f.parent_external_id, f.inferred_parent_external_id) is null)",
        [*session],
    )
    found = [Store(source, root, path, kind, bool(gone)) for source, root, path, kind, gone in rows]
    return tuple(sorted(found, key=lambda one: (STORES.index(one.kind), one.is_gone, one.path)))


def files_of(db: sqlite3.Connection, summary: SessionSummary) -> list[Original]:
    """The files that tell of nothing but a session and its subagents, as far as they are kept."""
    rows = db.execute(
        "select distinct u.id, u.source, u.platform, u.root, u.path, u.size, u.modified_at, u.key,"
        " u.fingerprint, u.is_gone from fragment f join unit u on u.id = f.unit_id"
        " where u.kind <> 'prompts' and f.platform = :platform"
        " and (f.external_id = :id and not f.is_subagent"
        " or coalesce(f.parent_external_id, f.inferred_parent_external_id) = :id)"
        " and exists (select 1 from raw_segment r where r.unit_id = u.id) order by u.path",
        {"platform": summary.platform, "id": summary.id},
    )
    return [Original(*row) for row in rows]
