"""The SQLite file that outlives the tools: the truth."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import IntegrityError
from typing import TYPE_CHECKING

from backscroll.archive import changes, fates, nesting, notes, passages, reading, unindexed, units
from backscroll.archive.accounts import accounts_of
from backscroll.archive.barrier import ALONE, Barrier
from backscroll.archive.changes import Key, Standing
from backscroll.archive.connection import BUSY_SECONDS, connect, transaction
from backscroll.archive.derive import Session
from backscroll.archive.endings import end_sessions
from backscroll.archive.erasure import owe_erasure, owes_erasure, owes_index, settle_erasure, settle_index
from backscroll.archive.filters import Filter, numbers
from backscroll.archive.passages import Passage, Place
from backscroll.archive.trouble import is_busy
from backscroll.archive.turn import turn
from backscroll.archive.unindexed import Lack
from backscroll.archive.units import Known
from backscroll.archive.workspaces import workspace_hashes, workspaces_of
from backscroll.model import Item, Mark, Message, Row, SessionSummary, Unit
from backscroll.model.ledger import Ledger

if TYPE_CHECKING:
    from backscroll.archive.compacting import Compacted
    from backscroll.archive.forgetting import Forgotten
    from backscroll.archive.listening import Listener
    from backscroll.archive.names import Kind, Named
    from backscroll.archive.records import Records
    from backscroll.archive.retelling import Original
    from backscroll.archive.status import Status
    from backscroll.model.resumption import Resumable

__all__ = [
    "Archive",
    "Barrier",
    "Filter",
    "IntegrityError",
    "Key",
    "Known",
    "Lack",
    "Passage",
    "Place",
    "Session",
    "Standing",
]


class Archive:
    """Everything ever read, in one file."""

    def __init__(self, path: Path, *, barrier: Barrier | None = None, is_shard: bool = False) -> None:
        self.path = path
        self._db = connect(path, is_shard=is_shard)
        self._barrier = barrier or Barrier()

    def close(self) -> None:
        if self._db.in_transaction:  # a shard's only one
            self._db.execute("commit")
        self._db.close()

    @contextmanager
    def patience(self, seconds: float | None) -> Iterator["Archive | None"]:
        """Have the turn to bring it up to date, waiting for so long; None when another process has it."""
        with turn(self.path, seconds) as is_held:
            if seconds is None:
                yield self
                return
            # Whoever does not wait for a turn does not wait for a single transaction either.
            self._db.execute(f"pragma busy_timeout = {int(seconds * 1000)}")
            try:
                yield self if is_held and self._is_idle() else None
            finally:
                self._db.execute(f"pragma busy_timeout = {int(BUSY_SECONDS * 1000)}")

    def _is_idle(self) -> bool:
        try:
            self._db.execute("begin immediate")
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            return False
        self._db.execute("rollback")
        return True

    # --- writing ------------------------------------------------------------------------------------------

    def known_units(
        self, source: str, root: Path, paths: Collection[str] | None = None
    ) -> dict[tuple[str, str], Known]:
        """Every unit ever read below a root, or only those at these paths, by path and key."""
        return units.known_units(self._db, source, str(root), paths)

    def current_units(self, source: str, root: Path) -> dict[str, str]:
        """The fingerprint of every unit that was below a root, by path and key; see `units.current_units`."""
        return units.current_units(self._db, source, str(root), self._barrier.digest)

    def units_below(self, source: str, root: Path, folder: str) -> set[str]:
        """The paths of the units that are there at a path or in the folder of that name."""
        return units.units_below(self._db, source, str(root), folder)

    @property
    def barrier(self) -> Barrier:
        """What is not to be written: what was forgotten, here or where this is a shard of, or is excluded."""
        from backscroll.archive import forgetting

        forgotten = forgetting.forgotten(self._db)
        return Barrier(self._barrier.forgotten | forgotten, self._barrier.patterns)

    def needs_reading(self, unit: Unit, known: Known | None) -> bool:
        """Whether a unit may say something that is not known, and not to be kept out."""
        from backscroll.archive import forgetting

        if known is None:
            return not forgetting.is_forgotten(self._db, unit.path, unit.key)
        if known.excluded_by is not None:
            if known.excluded_by != self._barrier.digest:
                return True
            if unit.kind in ALONE:
                return False
        return not known.is_current(unit.fingerprint)

    def mark_of(self, known: Known) -> Mark | None:
        """How far a unit was read."""
        return units.mark_of(self._db, known.number)

    def still_begins(self, known: Known, unit: Unit, mark: Mark) -> bool:
        """Whether a file still holds, up to the mark, what was read from it."""
        try:
            return units.prefix_of(Path(unit.path), mark.offset) == known.prefix
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
        listener: "Listener | None" = None,
        rows: Iterable[Row] = (),
    ) -> bool:
        """Record a unit and all that was read from it, or none of it; ``rows`` are kept as they are.

        A listener hears the messages. False when it could not be read, or was another one at the end than at
        the beginning: then it is read again the next time, whatever its fingerprint says.
        """
        from backscroll.archive.putting import put  # loaded by nobody who only reads

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
        )

    def merge(self, shard: Path) -> int:
        """Take in what another process read. Returns by how much the numbers of its accounts have grown."""
        from backscroll.archive.merging import merge

        return merge(self._db, shard)

    def account_numbers(self) -> set[int]:
        """Every account there is."""
        return {number for (number,) in self._db.execute("select number from account")}

    def mark_gone(self, numbers: Iterable[int]) -> None:
        """Note that units vanished."""
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
        from backscroll.archive.compacting import give_back
        from backscroll.archive.derive import affected, mark_copies, settle
        from backscroll.archive.leaning import lean
        from backscroll.archive.responses import find_makers
        from backscroll.archive.rows import write_session

        with transaction(self._db):
            sessions = affected(self._db, changed)
            unindexed.listen(self._db)
            foreign: dict[int, set[str]] = {}
            for session in sessions:
                for account in accounts_of(self._db, session):
                    ids = account.closing.metadata.get("other_session_ids")
                    if ids:
                        foreign[account.number] = set(ids)
            mark_copies(self._db, foreign)
            find_makers(self._db)
            for session in sessions:
                write_session(self._db, session, now)
            has_room = lean(self._db)
            settle(self._db)
        if has_room:
            give_back(self._db)
        return sessions

    def problems_since(self, at: datetime) -> int:
        """How many problems were met in what was read since, or could not be read at all."""
        row = self._db.execute(
            "select count(*) from problem p join unit u on u.number = p.unit"
            " where u.read_at >= ? or u.is_retried",
            [at.isoformat()],
        ).fetchone()
        return int(row[0])

    def write_originals(self, session_id: str, folder: Path) -> list[Path]:
        """Write the kept files of a session into a folder, byte for byte, below the names they had."""
        from backscroll.archive import raw

        rows = self._db.execute(
            "select distinct u.number, u.path from account a join unit u on u.number = a.unit"
            " where u.kind <> 'prompts' and (a.id = ? and not a.is_agent or a.parent_id = ?)"
            " and exists (select 1 from raw r where r.unit = u.number) order by u.path",
            [session_id, session_id],
        ).fetchall()
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for number, path in rows:
            target = folder / Path(path).name
            raw.written_back(self._db, number, target)
            written.append(target)
        return written

    def kept_units(self, session_id: str | None = None) -> "list[Original]":
        """Every unit of which rows are kept, or only those that tell of a session and its subagents."""
        from backscroll.archive import retelling

        return retelling.kept_units(self._db, session_id)

    def rows_of(self, original: "Original", *, fullest: bool = False) -> Iterator[Row]:
        """A unit's rows; see `kept_rows.rows_of`."""
        from backscroll.archive.kept_rows import rows_of

        return rows_of(self._db, original.number, fullest=fullest)

    def resumable(self, summary: SessionSummary) -> "Resumable":
        """What the tool that held a session is asked to continue."""
        from backscroll.archive.stores import resumable

        return resumable(self._db, summary)

    def files_of(self, summary: SessionSummary) -> "list[Original]":
        """The files of a session and its subagents, as far as they are kept."""
        from backscroll.archive.stores import files_of

        return files_of(self._db, summary)

    def write_original(self, original: "Original", target: Path) -> None:
        """Write one kept file, byte for byte."""
        from backscroll.archive import raw

        raw.written_back(self._db, original.number, target)

    # --- what people add ----------------------------------------------------------------------------------

    def tags(self) -> dict[str, int]:
        """Every tag there is, with how many sessions have it."""
        return notes.tags(self._db)

    def tag(self, session: Session, *, add: Iterable[str] = (), take: Iterable[str] = ()) -> None:
        """Give a session tags, and take others away."""
        with transaction(self._db):
            notes.add_tags(self._db, session, add)
            notes.take_tags(self._db, session, take)

    def star(self, session: Session, *, is_starred: bool) -> None:
        """Mark a session as one to come back to, or no longer."""
        with transaction(self._db):
            notes.star(self._db, session, is_starred=is_starred)

    def add_note(self, session: Session, text: str) -> None:
        """Write something down about a session."""
        with transaction(self._db):
            notes.add_note(self._db, session, text)

    def edit_note(self, session: Session, number: int, text: str | None) -> bool:
        """Write a note anew, or delete it without a text. False when there is none of that number."""
        with transaction(self._db):
            return notes.edit_note(self._db, session, number, text)

    def rename(self, session: Session, title: str | None) -> None:
        """Give a session a title of one's own, or take it back."""
        with transaction(self._db):
            notes.rename(self._db, session, title)

    # --- upkeep -------------------------------------------------------------------------------------------

    def forget(self, summary: SessionSummary) -> "Forgotten":
        """Erase a session and its subagents, and never take them in again; `vacuum` erases the bytes."""
        from backscroll.archive import forgetting

        owe_erasure(self.path)
        self._db.execute("pragma secure_delete = on")
        try:
            with transaction(self._db):
                forgotten = forgetting.forget(self._db, Session(summary.platform, summary.id))
            self.derive()
        finally:
            self._db.execute("pragma secure_delete = off")
        return forgotten

    @property
    def owes_erasure(self) -> bool:
        """Whether something of what was forgotten may still be left, in the index or in free space."""
        return owes_erasure(self.path)

    @property
    def owes_index(self) -> bool:
        """Whether the index may still hold words of what was forgotten."""
        return owes_index(self.path)

    def settle_index(self) -> None:
        """The index was made anew after something was forgotten."""
        settle_index(self.path)

    def originals(self) -> "list[Original]":
        """Every unit of which the file is kept."""
        from backscroll.archive import retelling

        return retelling.originals(self._db)

    def is_same(self, original: "Original", file: Path) -> bool:
        """Whether a file is, byte for byte, the kept one."""
        from backscroll.archive import retelling

        return retelling.is_same(self._db, original.number, file)

    def retell(self, original: "Original", items: Iterable[Item], file: Path, *, may_lack: bool) -> bool:
        """Put what an original tells today in the place of what it told; see `retelling.retell`."""
        from backscroll.archive import retelling

        return retelling.retell(self._db, original, items, file, may_lack=may_lack)

    def unsettle(self) -> None:
        """Have every session derived anew."""
        with transaction(self._db):
            self._db.execute("update account set is_settled = 0, compared = 0")

    def compact(self) -> "Compacted":
        """Make the file as small as it can be."""
        from backscroll.archive.compacting import compact

        return compact(self._db, self.path)

    def vacuum(self) -> bool:
        """Leave nothing in the file of what was deleted. False when others use it, or the disk is full."""
        from backscroll.archive.compacting import vacuum

        try:
            is_gone = vacuum(self._db)
        except sqlite3.OperationalError:
            return False
        if is_gone and not self.owes_index:
            settle_erasure(self.path)
        return is_gone

    def status(self) -> "Status":
        """What there is, in numbers."""
        from backscroll.archive.status import status

        return status(self._db, self.path)

    def verify(self) -> list[str]:
        """What does not agree with itself, a sentence each; nothing when the archive is whole."""
        from backscroll.archive.status import verify

        return verify(self._db)

    # --- the index ----------------------------------------------------------------------------------------

    @property
    def identity(self) -> str:
        """What tells this archive from every other."""
        return str(self._db.execute("select id from identity").fetchone()[0])

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Meanwhile nobody writes the archive, so that one process at a time does what is to be done once."""
        with transaction(self._db):
            yield

    def unindexed(self, limit: int) -> list[Lack]:
        """Sessions and subagents whose words the index does not have, or not all of them."""
        return unindexed.lacks(self._db, limit)

    def mark_indexed(self, done: Iterable[Lack]) -> None:
        """The index has these now."""
        with transaction(self._db):
            unindexed.clear(self._db, done)

    def mark_unindexed(self) -> None:
        """The index has nothing."""
        with transaction(self._db):
            unindexed.note_everything(self._db)

    def messages_in(self, account: int, start: int) -> Iterator[Message]:
        """The messages of an account from a position on, without what they cost."""
        return reading.messages_in(self._db, account, start)

    def only_account(self, summary: SessionSummary) -> tuple[int, set[int]] | None:
        """The account that a session's messages are in, and the positions of those that are copies."""
        account = passages.only_account(self._db, summary)
        return (account, passages.copies_in(self._db, account)) if account is not None else None

    # --- what happened ------------------------------------------------------------------------------------

    def ledger(self, since: datetime | None) -> Ledger:
        """What became of sessions since a moment, or ever."""
        return fates.ledger(self._db, since)

    def moment(self) -> int:
        """Now, as the ledger counts it."""
        return changes.moment(self._db)

    def touched(self, since: int) -> set[Key]:
        """The sessions that something was read about since a moment, by whichever process."""
        return changes.touched(self._db, since)

    def unsettled(self) -> set[Key]:
        """The sessions that something was read about which has not been told yet."""
        return changes.unsettled(self._db)

    def standings(self, keys: Iterable[Key] | None = None) -> dict[Key, Standing]:
        """How far these sessions have come, or all that a list shows."""
        return changes.standings(self._db, keys)

    # --- reading ------------------------------------------------------------------------------------------

    def summaries(self, wanted: Filter, *, limit: int, offset: int) -> list[SessionSummary]:
        """One page of sessions, newest first."""
        return reading.summaries(self._db, wanted, limit=limit, offset=offset)

    def count(self, wanted: Filter) -> int:
        """How many sessions pass a filter."""
        return reading.count(self._db, wanted)

    def numbers(self, wanted: Filter) -> tuple[set[int], set[int]]:
        """The numbers of the sessions that pass with the subagents they started, and those of all others."""
        return numbers(self._db, wanted)

    def workspace_hashes(self, called: str, *, is_strict: bool = True) -> list[str]:
        """The workspaces of a path, a name, the end of a path or a host.

        When the end of a path fits several, raises `WorkspaceNotFoundError` with the candidates if strict.
        """
        return workspace_hashes(self._db, called, is_strict=is_strict)

    def workspaces_of(self, numbers: Iterable[int]) -> dict[int, str]:
        """The hashes of the workspaces that sessions and subagents belong to, by their numbers."""
        return workspaces_of(self._db, numbers)

    def find(self, id_: str) -> list[SessionSummary]:
        """Sessions and subagents whose id begins so."""
        return reading.find(self._db, id_)

    def by_number(self, number: int) -> SessionSummary | None:
        """The session or subagent that has this number in the archive."""
        return reading.by_number(self._db, number)

    def numbered(self, numbers: Iterable[int]) -> dict[int, SessionSummary]:
        """The sessions and subagents that have these numbers, by number."""
        return reading.numbered(self._db, numbers)

    def passages(self, places: Iterable[Place]) -> dict[Place, Passage]:
        """The messages that stand at these places, with the sessions they are in."""
        return passages.passages(self._db, places)

    def indexes(self, numbers: Iterable[int]) -> dict[int, int]:
        """The places of sessions in the whole list, from 1, by their numbers."""
        return passages.indexes(self._db, numbers)

    def agents_started(self, summary: SessionSummary) -> list[tuple[SessionSummary, str | None]]:
        """The subagents below a session, each with the id of the call that started it, where it is known."""
        return nesting.agents_started(self._db, summary)

    def messages_of(self, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
        """The messages of a session from a position on, in order; see `reading.messages_of`."""
        return reading.messages_of(self._db, summary, start)

    def talk_of(self, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
        """The same without what they cost, which is there at once however many there are."""
        from backscroll.archive.talk import talk_of

        return talk_of(self._db, summary, start)

    def prompts_of(self, summary: SessionSummary, agents: Collection[str] = ()) -> list[int]:
        """Where each turn begins; what these agents were told in the session's own file is left out."""
        from backscroll.archive.talk import prompts_of

        return prompts_of(self._db, summary, agents)

    def position_of(self, summary: SessionSummary, id_: str) -> list[tuple[int, str]]:
        """Positions and ids of the message that has this id, or of those whose id begins so."""
        from backscroll.archive.talk import position_of

        return position_of(self._db, summary, id_)

    def records_of(self, summary: SessionSummary) -> "Records":
        """The original records of a session's messages."""
        from backscroll.archive.records import Records

        return Records(self._db, summary)

    def names_of(self, kind: "Kind") -> list[str]:
        """Every name of this kind that a session has, the one met last first."""
        from backscroll.archive.names import names_of

        return names_of(self._db, kind)

    def sessions_beginning(self, start: str, *, source: str | None, limit: int) -> "list[Named]":
        """Sessions whose id begins so, newest first."""
        from backscroll.archive.names import sessions_beginning

        return sessions_beginning(self._db, start, source=source, limit=limit)

    def live(self) -> set[tuple[str, str]]:
        """Sessions that are being held, by platform and id."""
        from backscroll.archive.names import live

        return live(self._db)

    def extent(self, summary: SessionSummary) -> tuple[int | None, int]:
        """Which account tells of a session, if only one does, and how many messages there are."""
        return reading.extent(self._db, summary)
