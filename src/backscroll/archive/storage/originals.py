"""Stored originals of units: files and database rows."""

import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage import raw_files
from backscroll.archive.storage.raw_rows import has_same_rows, read_rows
from backscroll.model import STORES, RawRow, SessionSummary
from backscroll.model.resume import Resumable, Store
from backscroll.model.safekeeping.path_maps import PathMaps
from backscroll.model.unit import estimate_bytes

__all__ = ["Original", "Originals"]

_PARENT = "coalesce(f.parent_external_id, f.inferred_parent_external_id)"


class Original(msgspec.Struct, frozen=True):
    """A unit whose file or database rows are stored."""

    id: int
    source: str
    platform: str
    root: str
    path: str
    size: int  # bytes, or rows of a database
    modified_at: int | None  # milliseconds
    key: str = ""
    fingerprint: str = ""  # when it was last read
    is_gone: bool = False

    @property
    def estimated_bytes(self) -> int:
        """The size. For a session in a database, an estimate from its number of rows."""
        return estimate_bytes(self.size, self.key)


class Originals:
    """Original files and rows of units: list, read, compare, write."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def units_with_file(self) -> list[Original]:
        """Return every unit whose file is stored, ordered by root."""
        rows = self._db.execute(
            "select id, source, platform, root, path, size, modified_at from unit"
            " where id in (select unit_id from raw_segment) order by source, root, path"
        )
        return [Original(*row) for row in rows]

    def units_with_rows(self, session_id: str | None = None) -> list[Original]:
        """Return every unit whose rows are stored, or only those of a session, ordered by root.

        Side files of a file that is stored itself do not count.
        """
        rows = self._db.execute(
            "select id, source, platform, root, path, size, modified_at, key, fingerprint, is_gone"
            " from unit u where exists (select 1 from raw_row where unit_id = u.id)"
            " and not exists (select 1 from raw_segment where unit_id = u.id)"
            " and (:id is null or exists (select 1 from fragment f where f.unit_id = u.id"
            "  and (f.external_id = :id or f.parent_external_id = :id)))"
            " order by source, root, path, key",
            {"id": session_id},
        )
        return [Original(*row) for row in rows]

    def files(self, summary: SessionSummary) -> list[Original]:
        """Return the units whose stored file belongs to a session or its subagents alone."""
        rows = self._db.execute(
            "select distinct u.id, u.source, u.platform, u.root, u.path, u.size, u.modified_at, u.key,"  # noqa: S608
            " u.fingerprint, u.is_gone from fragment f join unit u on u.id = f.unit_id"
            " where u.kind <> 'prompts' and f.platform = :platform"
            f" and (f.external_id = :id and not f.is_subagent or {_PARENT} = :id)"
            " and exists (select 1 from raw_segment r where r.unit_id = u.id) order by u.path",
            {"platform": summary.platform, "id": summary.id},
        )
        return [Original(*row) for row in rows]

    def session_ids_by_path(self) -> dict[str, tuple[str, ...]]:
        """Return the sessions that were read from each file, by path. Prompt logs are omitted."""
        found: dict[str, tuple[str, ...]] = {}
        rows = self._db.execute(
            "select distinct u.path, s.session_external_id from fragment_session s"
            " join unit u on u.id = s.unit_id where u.kind <> 'prompts' and not u.is_gone order by u.path"
        )
        for path, session_id in rows:
            found[path] = (*found.get(path, ()), session_id)
        return found

    def side_files(self, original: Original) -> list[tuple[str, int]]:
        """Return path and size of the stored side files of a unit. Paths are below its root."""
        rows = self._db.execute(
            "select path, max(size) from raw_row where unit_id = ? and table_name = '' and path <> ''"
            " and content_hash is not null group by path order by path",
            [original.id],
        )
        return rows.fetchall()

    def in_store(self, summary: SessionSummary) -> list[Original]:
        """Return the units of a session and its subagents that are in the store of its source."""
        return [unit for unit in self.in_stores(summary) if unit.source == summary.source]

    def in_stores(self, summary: SessionSummary) -> list[Original]:
        """Return the units of a session and its subagents that are in the store of any source."""
        rows = self._db.execute(
            "select distinct u.id, u.source, u.platform, u.root, u.path, u.size, u.modified_at, u.key,"  # noqa: S608
            " u.fingerprint, u.is_gone from fragment f join unit u on u.id = f.unit_id"
            " where u.kind <> 'prompts' and not u.is_gone and f.platform = :platform"
            f" and (f.external_id = :id and not f.is_subagent or {_PARENT} = :id) order by u.path",
            {"platform": summary.platform, "id": summary.id},
        )
        return [Original(*row) for row in rows]

    def read_file(self, original: Original) -> Iterator[bytes]:
        """Read one stored file in blocks. Raises `ArchiveError` if it is damaged."""
        return raw_files.read_file(self._db, original.id, Path(original.path))

    def folder_maps(self, original: Original) -> PathMaps:
        """Return the folders that a restore onto this machine replaced. The stored file has the old ones."""
        (pairs,) = self._db.execute("select folder_maps from unit where id = ?", [original.id]).fetchone()
        return PathMaps(msgspec.json.decode(pairs) if pairs else ())

    def write_file(self, original: Original, target: Path) -> None:
        """Write one stored file, byte for byte."""
        raw_files.write_file(self._db, original.id, target)

    def write_session(self, session_id: str, folder: Path) -> list[Path]:
        """Write the stored files of a session into a folder under their names, byte for byte."""
        rows = self._db.execute(
            "select distinct u.id, u.path from fragment f join unit u on u.id = f.unit_id"
            " where u.kind <> 'prompts'"
            " and (f.external_id = ? and not f.is_subagent or f.parent_external_id = ?)"
            " and exists (select 1 from raw_segment r where r.unit_id = u.id) order by u.path",
            [session_id, session_id],
        ).fetchall()
        folder.mkdir(parents=True, exist_ok=True)
        written: list[Path] = []
        for unit_id, path in rows:
            target = folder / Path(path).name
            if target in written:  # a session with files in several folders
                target = folder / Path(path).parent.name / target.name
                target.parent.mkdir(exist_ok=True)
            raw_files.write_file(self._db, unit_id, target)
            written.append(target)
        return written

    def is_same_file(self, unit_id: int, file: Path) -> bool:
        """Return whether a file equals the last stored version of a unit, byte for byte."""
        segments = self._db.execute(
            "select size, sha256 from raw_segment where unit_id = :unit and version ="
            " (select max(version) from raw_segment where unit_id = :unit) order by offset",
            {"unit": unit_id},
        )
        try:
            with file.open("rb") as opened:
                return all(sha256(opened.read(size)).digest() == digest for size, digest in segments) and (
                    not opened.read(1)
                )
        except OSError:
            return False

    def rows(self, original: Original, *, fullest: bool = False) -> Iterator[RawRow]:
        """Read the stored rows of a unit; see `raw_rows.read_rows`."""
        return read_rows(self._db, original.id, fullest=fullest)

    def has_same_rows(self, original: Original, rows: Iterable[RawRow]) -> bool:
        """Return whether these rows equal the stored rows of a unit."""
        return has_same_rows(self._db, original.id, rows)

    def resumable(self, summary: SessionSummary) -> Resumable:
        """Return what a tool needs to resume a session."""
        session = SessionKey(summary.platform, summary.id)
        row = self._db.execute(
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
            stores=self._stores(session),
        )

    def _stores(self, session: SessionKey) -> tuple[Store, ...]:
        """Return the stores that contain a session, best and current first."""
        rows = self._db.execute(
            "select distinct u.source, u.root, u.path, f.store, u.is_gone from fragment f"  # noqa: S608
            " join unit u on u.id = f.unit_id where f.platform = ? and f.external_id = ?"
            f" and (not f.is_subagent or {_PARENT} is null)",
            [*session],
        )
        found = [Store(source, root, path, kind, bool(gone)) for source, root, path, kind, gone in rows]
        return tuple(sorted(found, key=lambda store: (STORES.index(store.kind), store.is_gone, store.path)))
