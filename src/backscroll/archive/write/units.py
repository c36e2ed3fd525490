"""Units: look up known ones, store new ones in one transaction, and parse stored originals again."""

import os
import sqlite3
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct, field

from backscroll.archive.connection import transaction
from backscroll.archive.derive.fragments import decode_closing, retain_title
from backscroll.archive.derive.session_rows import delete_empty_session
from backscroll.archive.maintenance import forget
from backscroll.archive.maintenance.relocation import apply_folder_maps
from backscroll.archive.query.originals import Original
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage import raw_files
from backscroll.archive.storage.codec import decode_chunk
from backscroll.archive.storage.delta import read_messages, rebase_fragment_dependents
from backscroll.archive.storage.raw_files import SEGMENT_BYTES, RawDeltaBase, delta_compress_file
from backscroll.archive.storage.raw_rows import store_rows
from backscroll.archive.storage.strings import StringTable
from backscroll.archive.write import unit_rows
from backscroll.archive.write.exclusions import Exclusions
from backscroll.archive.write.shard_merge import merge_shards, reduced_page_cache
from backscroll.archive.write.superseded import retain_deleted_sessions, retain_removed_messages
from backscroll.archive.write.unit_rows import KnownUnit, prefix_hash, stat_or_none
from backscroll.archive.write.unit_writer import MessageObserver, UnitWriter
from backscroll.model.message import Origin
from backscroll.model.problem import Fault, Problem
from backscroll.model.store import single_session_kinds
from backscroll.model.stream import Checkpoint, Closing, Item, RawRow
from backscroll.model.unit import Unit
from backscroll.readers.read_faults import read_fault

RECENTLY_WRITTEN_SECONDS = 600.0  # a file written to more recently may change at any moment
MAX_SINGLE_PATH_QUERIES = 500  # above this, one query reads all units of the root


class UnitStore:
    """Units of the archive: look up, store, merge."""

    def __init__(self, db: sqlite3.Connection, exclusions: Exclusions, *, is_shard: bool) -> None:
        self._db = db
        self._exclusions = exclusions
        self._is_shard = is_shard
        self._strings: StringTable | None = None  # kept between units of a shard, which has a single writer

    def known(
        self, source: str, root: Path, paths: Collection[str] | None = None
    ) -> dict[tuple[str, str], KnownUnit]:
        """Return every unit ever read below a root, or only those at some paths, by path and key."""
        query = (
            "select path, key, id, fingerprint, size, is_gone, needs_retry, coalesce(prefix_hash, x''),"
            " patterns_hash from unit left join excluded_unit on unit_id = id where source = ? and root = ?"
        )
        values = [source, str(root)]
        if paths is None or len(paths) > MAX_SINGLE_PATH_QUERIES:
            rows = self._db.execute(query, values).fetchall()
        else:
            rows = [
                row for path in paths for row in self._db.execute(f"{query} and path = ?", [*values, path])
            ]
        return {
            (path, key): KnownUnit(id_, fingerprint, size, bool(is_gone), bool(needs_retry), prefix, patterns)
            for path, key, id_, fingerprint, size, is_gone, needs_retry, prefix, patterns in rows
        }

    def below(self, source: str, root: Path, folder: str) -> set[str]:
        """Return the paths of current units at a path or in the folder of that name."""
        query = "select distinct path from unit where source = ? and root = ? and not is_gone and path"
        values = [source, str(root)]
        own = self._db.execute(f"{query} = ?", [*values, folder])
        bounds = [f"{folder}{os.sep}", f"{folder}{chr(ord(os.sep) + 1)}"]
        below = self._db.execute(f"{query} > ? and path < ?", [*values, *bounds])
        return {path for (path,) in (*own, *below)}

    def needs_reading(self, unit: Unit, known: KnownUnit | None) -> bool:
        """Return whether a unit may contain something new that is neither forgotten nor excluded."""
        if known is None:
            return not forget.is_forgotten_unit(self._db, unit.path, unit.key)
        if known.excluded_by is not None:
            if known.excluded_by != self._exclusions.patterns_hash:
                return True
            if unit.kind in single_session_kinds():
                return False
        return not known.is_current(unit.fingerprint)

    def checkpoint(self, known: KnownUnit) -> Checkpoint | None:
        """Return how far a unit was read; None if part of it was excluded by other patterns than now."""
        if known.excluded_by is not None and known.excluded_by != self._exclusions.patterns_hash:
            return None
        return unit_rows.load_checkpoint(self._db, known.id)

    def is_prefix_unchanged(self, known: KnownUnit, unit: Unit, checkpoint: Checkpoint) -> bool:
        """Return whether a file is unchanged up to a checkpoint."""
        path = Path(unit.path)
        try:
            return unit_rows.is_prefix_unchanged(known, path, checkpoint.offset) and (
                self._is_end_unchanged(known.id, path, checkpoint.offset)
            )
        except OSError:
            return False

    def _is_end_unchanged(self, unit_id: int, file: Path, end: int) -> bool:
        """Return whether the last segment's worth of bytes before `end` equals what is stored."""
        segments = self._db.execute(
            "select offset, size, sha256 from raw_segment where unit_id = :unit and version ="
            " (select max(version) from raw_segment where unit_id = :unit) and offset + size <= :end"
            " order by offset desc",
            {"unit": unit_id, "end": end},
        )
        with file.open("rb") as opened:
            for offset, size, digest in segments:
                opened.seek(offset)
                if sha256(opened.read(size)).digest() != digest:
                    return False
                if end - offset >= SEGMENT_BYTES:
                    break
        return True

    def put(
        self,
        unit: Unit,
        platform: str,
        items: Iterable[Item],
        *,
        event: str,
        is_appended: bool = False,
        keeps_file: bool = False,
        observer: MessageObserver | None = None,
        rows: Iterable[RawRow] = (),
    ) -> bool:
        """Store a unit and everything read from it in one transaction; `rows` are stored as they are.

        Return False if the unit could not be read or changed while it was read. The next sync then reads it
        again, even if its fingerprint is unchanged.
        """
        if self._strings is None or not self._is_shard:
            self._strings = StringTable(self._db)
        return _put_unit(
            self._db,
            self.exclusions,
            self._strings,
            unit,
            platform,
            items,
            event=event,
            is_appended=is_appended,
            keeps_file=keeps_file,
            observer=observer,
            rows=rows,
        )

    def replace_from_original(
        self, original: Original, items: Iterable[Item], file: Path, *, may_be_incomplete: bool
    ) -> bool:
        """Replace what was read from a unit by parsing its original again.

        A source may have become better at reading it. `items` are what it reads now.
        """
        return _replace_from_original(self._db, original, items, file, may_be_incomplete=may_be_incomplete)

    def bulk_merge(self) -> AbstractContextManager[None]:
        """Limit SQLite's page cache while shards are merged, to leave memory to the readers."""
        return reduced_page_cache(self._db)

    def merge_shards(self, shards: Sequence[Path]) -> list[int]:
        """Merge shards that other processes wrote. Return the offset added to each shard's fragment ids."""
        return merge_shards(self._db, shards)

    def fragment_ids(self) -> set[int]:
        """Return the ids of all fragments."""
        return {id_ for (id_,) in self._db.execute("select id from fragment")}

    def mark_gone(self, unit_ids: Iterable[int]) -> int:
        """Record that units vanished, and return how many. What was read from them stays.

        A unit that could never be read is deleted and not counted.
        """
        count = 0
        with transaction(self._db):
            for unit_id in unit_ids:
                deleted = self._db.execute("delete from unit where id = ? and read_at is null", [unit_id])
                if deleted.rowcount:
                    continue
                count += 1
                self._db.execute("update unit set is_gone = 1 where id = ?", [unit_id])
                self._db.execute("update fragment set is_derived = 0 where unit_id = ?", [unit_id])
                unit_rows.add_event(self._db, unit_id, "vanished")
        return count

    @property
    def exclusions(self) -> Exclusions:
        """Excluded workspaces and forgotten sessions."""
        if self._is_shard:  # a shard has no list of its own; its parent process passes one
            return self._exclusions
        return Exclusions(
            self._exclusions.forgotten | forget.forgotten_sessions(self._db), self._exclusions.patterns
        )


class _UnreadableError(Exception):
    """A unit could not be read, or changed while it was read."""


def _put_unit(
    db: sqlite3.Connection,
    exclusions: Exclusions,
    strings: StringTable,
    unit: Unit,
    platform: str,
    items: Iterable[Item],
    *,
    event: str,
    is_appended: bool,
    keeps_file: bool,
    observer: MessageObserver | None,
    rows: Iterable[RawRow],
) -> bool:
    """Store a unit; see `UnitStore.put`."""
    try:
        with transaction(db):
            if forget.is_forgotten_unit(db, unit.path, unit.key):
                return True
            unit_id, is_new = unit_rows.register_unit(db, unit, platform)
            if is_appended:
                unit_rows.discard_truncated_line(db, unit_id)
            elif not is_new:
                unit_rows.mark_superseded(db, unit_id)
            delta_base = RawDeltaBase(db, unit.path)
            writer = UnitWriter(
                db,
                unit_id,
                platform,
                is_appended=is_appended,
                exclusions=exclusions,
                observer=observer,
                delta_base=delta_base if keeps_file else None,
                strings=strings,
            )
            path = Path(unit.path)
            snapshot = _FileSnapshot(path, unit.size) if keeps_file else None
            writer.write(items)
            if not writer.was_read:
                raise _UnreadableError
            if writer.has_forgotten and forget.delete_forgotten_originals(db, unit_id, unit.kind):
                return True
            counts = writer.record_counts
            is_storable = not writer.has_forgotten and not writer.has_excluded
            if not is_new:
                removed = retain_removed_messages(db, unit_id, is_appended=is_appended)
                if removed and not is_appended:
                    event = "overwritten"
            content = b""
            if keeps_file and is_storable:
                content = raw_files.store_file(
                    db,
                    unit_id,
                    path,
                    delta_base,
                    is_new=is_new,
                    is_appended=is_appended,
                    end=unit.size or sys.maxsize,
                    content=counts.file_content if is_new else b"",
                )
            if writer.has_excluded and unit.kind in single_session_kinds():
                counts.checkpoint = None  # when the exclusion ends, the unit is read from the start
            # Part of a file that grew may have been excluded before. A new unit has no such row.
            if writer.has_excluded or not (is_appended or is_new):
                unit_rows.set_excluded(db, unit_id, exclusions.patterns_hash if writer.has_excluded else None)
            needs_retry = is_storable and not store_rows(db, unit_id, rows, is_new=is_new)
            unit_rows.save_unit(
                db,
                unit_id,
                unit,
                counts,
                event=event,
                is_appended=is_appended,
                needs_retry=needs_retry,
                delta_base=delta_base,
                content=content,
            )
            if snapshot is not None and not snapshot.is_unchanged(may_grow=counts.checkpoint is not None):
                raise _UnreadableError
    except (_UnreadableError, OSError) as error:
        # Locked, unreadable or changing: what was stored before stays, and the next sync tries again.
        strings.reset()
        fault = Fault("changed-while-reading", "changed while it was read; the next sync reads it again")
        if isinstance(error, OSError):
            fault = read_fault(error)
        with transaction(db):
            unit_id, _ = unit_rows.register_unit(db, unit, platform)
            problems = [] if writer.was_read else writer.problems
            unit_rows.mark_for_retry(db, unit_id, problems or [Problem(Origin(unit.path, "file"), *fault)])
        return False
    return True


class _FileSnapshot:
    """Identity, size and time of a file before it is read, to detect that it changed meanwhile.

    Data appended after `size` bytes does not matter to a reader that stops there.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = str(path)
        self._size = size
        self._before = stat_or_none(self._path)
        is_recent = (
            self._before is not None and time.time() - self._before.st_mtime < RECENTLY_WRITTEN_SECONDS
        )
        self._prefix_hash = _prefix_hash_or_none(self._path, size) if is_recent else None

    def is_unchanged(self, *, may_grow: bool) -> bool:
        """Return whether the file is the same, or if `may_grow` still begins with the same bytes."""
        now = stat_or_none(self._path)
        if now is None or self._before is None:
            return False
        if _identity(now) == _identity(self._before):
            return True
        if not may_grow or now.st_ino != self._before.st_ino or now.st_size < self._size:
            return False
        return self._prefix_hash is not None and (
            _prefix_hash_or_none(self._path, self._size) == self._prefix_hash
        )


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _prefix_hash_or_none(path: str, size: int) -> bytes | None:
    try:
        return prefix_hash(Path(path), size)
    except OSError:
        return None


class _LessContentError(Exception):
    """The new fragments contain less than the old ones."""


def _replace_from_original(
    db: sqlite3.Connection, original: Original, items: Iterable[Item], file: Path, *, may_be_incomplete: bool
) -> bool:
    """Replace the current fragments of a unit. Superseded fragments stay.

    `may_be_incomplete` means that files next to the original no longer exist. New fragments are then rejected
    if they lack content of these files, or, for rows of a database, if they contain less than the old ones.
    Return False if they were rejected or the original is unreadable.
    """
    unit_id = original.id
    try:
        with transaction(db):
            before = _content_sizes(db, unit_id) if may_be_incomplete else {}
            sessions = db.execute(
                "select distinct platform, session_external_id from fragment_session where unit_id = ?",
                [unit_id],
            ).fetchall()
            replaced = db.execute(
                "select id, external_id, parent_external_id, store, closing from fragment"
                " where unit_id = ? and status = 'current'",
                [unit_id],
            ).fetchall()
            rebase_fragment_dependents(db, [fragment_id for fragment_id, *_ in replaced])
            db.execute("delete from fragment where unit_id = ? and status = 'current'", [unit_id])
            for table in ("subagent_evidence", "problem"):
                db.execute(f"delete from {table} where unit_id = ?", [unit_id])  # noqa: S608 - names are ours
            # After a rewrite, a title hint may come from an earlier version that is no longer complete.
            was_rewritten = "exists (select 1 from fragment where unit_id = :unit and status <> 'current')"
            db.execute(
                f"delete from title_hint where unit_id = :unit and not {was_rewritten}",  # noqa: S608
                {"unit": unit_id},
            )
            writer = UnitWriter(db, unit_id, original.platform)
            writer.write(items)
            if not writer.was_read:
                raise _LessContentError
            if may_be_incomplete and _has_less(_content_sizes(db, unit_id), before, is_file=not original.key):
                raise _LessContentError
            apply_folder_maps(db, unit_id)
            for _, *key, closing in replaced:
                _retain_title(db, [unit_id, *key], closing)
            retain_deleted_sessions(db, unit_id)
            delta_compress_file(db, unit_id)
            unit_rows.save_reparsed_unit(db, unit_id, writer.record_counts, file)
            for platform, session_id in sessions:
                delete_empty_session(db, SessionKey(platform, session_id))
    except _LessContentError:
        return False
    return True


def _retain_title(db: sqlite3.Connection, key: list[object], closing: bytes) -> None:
    """Keep the title of a replaced fragment. It may come from an earlier version of the original."""
    new = db.execute(
        "select id from fragment where unit_id = ? and external_id = ? and parent_external_id is ?"
        " and store = ? and status = 'current'",
        key,
    ).fetchone()
    if new is not None:
        retain_title(db, closing, new[0])


class _MessageSizes(Struct):
    """Amounts of content in the messages of a fragment."""

    chars: int = 0
    fact_count: int = 0  # known models, times, branches and attachment fields
    # By message id: what may be stored in other files, which are results and attachments.
    from_files: dict[str, tuple[int, int]] = field(default_factory=dict)


class _ContentSize(Struct, frozen=True):
    """Amounts of content that must not decrease when a fragment is replaced."""

    messages: _MessageSizes
    has_title: bool
    has_workspace: bool
    subagent_facts: int
    metadata_keys: int
    evidence: int

    def has_less_than(self, before: "_ContentSize", *, is_file: bool) -> bool:
        """Return whether content is missing.

        The messages of a file are all in it: if the reader no longer emits one, it was a duplicate.
        """
        new, old = self.messages, before.messages
        if is_file:
            is_less = any(
                new.from_files[id_][0] < chars or new.from_files[id_][1] < fact_count
                for id_, (chars, fact_count) in old.from_files.items()
                if id_ in new.from_files
            )
        else:
            is_less = new.chars < old.chars or new.fact_count < old.fact_count
        pairs = zip(msgspec.structs.astuple(self)[1:], msgspec.structs.astuple(before)[1:], strict=True)
        return is_less or any(now < then for now, then in pairs)


_ContentSizes = dict[tuple[str, str | None], _ContentSize]  # by external id and parent


def _content_sizes(db: sqlite3.Connection, unit_id: int) -> _ContentSizes:
    sizes: _ContentSizes = {}
    query = "select count(*) from subagent_evidence where unit_id = ?"
    (evidence,) = db.execute(query, [unit_id]).fetchone()
    for fragment_id, external_id, parent_id, body in db.execute(
        "select id, external_id, parent_external_id, closing from fragment"
        " where unit_id = ? and status = 'current'",
        [unit_id],
    ).fetchall():
        closing = decode_closing(body) or Closing()
        sizes[external_id, parent_id] = _ContentSize(
            _message_sizes(db, fragment_id),
            closing.title is not None,
            closing.workspace is not None,
            sum(value is not None for agent in closing.agents for value in msgspec.structs.astuple(agent)),
            len(closing.metadata),
            evidence,
        )
    return sizes


def _message_sizes(db: sqlite3.Connection, fragment_id: int) -> _MessageSizes:
    updates = {
        position: decode_chunk(body)[0]
        for position, body in db.execute(
            "select position, body from message_update where fragment_id = ?", [fragment_id]
        )
    }
    sizes = _MessageSizes()
    chunks = "select position, body from message_chunk where fragment_id = ?"
    for first, body in db.execute(chunks, [fragment_id]):
        for position, message in enumerate(read_messages(db, body), start=first):
            message = updates.get(position, message)
            result_chars = len((message.tool and message.tool.result) or "")
            sizes.chars += len(message.content) + result_chars
            known = [
                value
                for attachment in message.attachments
                for value in msgspec.structs.astuple(attachment)
                if value is not None
            ]
            if result_chars or known:
                sizes.from_files[message.id] = result_chars, len(known)
            facts = (message.model, message.timestamp, message.git_branch)
            sizes.fact_count += len(known) + sum(fact is not None for fact in facts)
    return sizes


def _has_less(now: _ContentSizes, before: _ContentSizes, *, is_file: bool) -> bool:
    return any(
        key not in now or now[key].has_less_than(size, is_file=is_file) for key, size in before.items()
    )
