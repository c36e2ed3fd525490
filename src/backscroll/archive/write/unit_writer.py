"""One unit's stream on its way into the archive."""

import sqlite3
from collections.abc import Iterable

from backscroll.archive.storage.codec import number_of, record_number
from backscroll.archive.storage.delta_raw import Told
from backscroll.archive.storage.strings import Words
from backscroll.archive.write.exclusions import Exclusions
from backscroll.archive.write.observer import Listener
from backscroll.archive.write.session_writer import AccountWriter
from backscroll.model import (
    Closing,
    Item,
    Message,
    Opening,
    Problem,
    RecordCounts,
    Replacement,
    SubagentLink,
    TitleHint,
    ToolResult,
    UsageReport,
)

__all__ = ["UnitWriter"]

_MOST_PROBLEMS = 100


class UnitWriter:
    """Puts what a unit tells into the archive; the caller has a transaction open."""

    def __init__(
        self,
        db: sqlite3.Connection,
        unit: int,
        platform: str,
        *,
        is_appended: bool = False,
        exclusions: Exclusions | None = None,
        listener: Listener | None = None,
        told: Told | None = None,
        words: Words | None = None,
    ) -> None:
        self.db = db
        self.unit = unit
        self.platform = platform
        self.is_appended = is_appended
        self.problems: list[Problem] = []
        self._sessions = 0
        self.tally = RecordCounts()
        self._account: AccountWriter | None = None
        self.exclusions = exclusions or Exclusions()
        self.listener = listener
        self.told = told
        self._is_outside = False  # within a session that was forgotten
        self.was_forgotten = False  # something in the unit
        self.was_excluded = False
        self.words = Words(db) if words is None else words

    @property
    def was_read(self) -> bool:
        """False when a file or database could not be opened: then a problem is all that it tells."""
        if self._sessions or not self.problems:
            return True
        return self.tally.records > 0 and set(self.tally.kinds) != {"database"}

    def write(self, items: Iterable[Item]) -> None:
        """Take the whole stream."""
        db = self.db
        for item in items:
            if self._account is not None:  # nearly all are messages and answers of a session
                if type(item) is Message:
                    self._account.say(item)
                    continue
                if type(item) is ToolResult:
                    self._account.answer(item)
                    continue
            match item:
                case Opening():
                    self._open(item)
                case Replacement(early) if self._account is not None:
                    self._account.arriving = early
                case UsageReport() if self._account is not None:
                    self._account.spending.spend(item.response_id, item.usage, None)
                case Closing() if self._account is not None:
                    self._close(self._account, item)
                case Closing():
                    self._is_outside = False
                case TitleHint() | SubagentLink() | Problem() if self._is_outside:
                    pass
                case TitleHint(message_id, title):
                    self._name(record_number(message_id), title)
                case SubagentLink():
                    call = number_of(item.tool_call_id)
                    row = [self.unit, item.agent_id, item.tool_call_id, call, item.evidence, item.strength]
                    db.execute("insert into subagent_evidence values (?, ?, ?, ?, ?, ?)", row)
                case Problem(origin, code, reason) if not self.exclusions.names(
                    f"{origin.path} {origin.place}"
                ):
                    if len(self.problems) < _MOST_PROBLEMS:
                        self.problems.append(item)
                    row = [self.unit, code, origin.path, origin.place, reason]
                    db.execute("insert into problem values (?, ?, ?, ?, ?)", row)
                case RecordCounts():
                    self.tally = item

    def _name(self, record: int, title: str) -> None:
        """Keep a title. The last one that a unit gives is the one; one that it gives no more stays."""
        self.db.execute("delete from title_hint where unit_id = ? and record_hash = ?", [self.unit, record])
        self.db.execute("insert into title_hint values (?, ?, ?)", [self.unit, record, title])

    def _open(self, opening: Opening) -> None:
        if self.exclusions.is_forgotten(self.platform, opening):
            self._is_outside = self.was_forgotten = True
            self._sessions += 1
            return
        if self.exclusions.patterns:
            self.db.execute("savepoint session")
        self._account = AccountWriter(self, opening)

    def _close(self, account: AccountWriter, closing: Closing) -> None:
        account.close(closing)
        self._account = None
        self._sessions += 1
        if not self.exclusions.patterns:
            return
        if self.exclusions.is_excluded(closing.workspace):
            # The workspace is known only now. What was kept before it was excluded stays as it was.
            self.was_excluded = True
            self.db.execute("rollback to session")
            self.words.start_again()
            self.db.execute(
                "update fragment set status = 'current' where id = (select max(id) from fragment"
                " where unit_id = ? and external_id = ? and parent_external_id is ?)",
                [self.unit, account.opening.id, account.opening.parent_id],
            )
        self.db.execute("release session")
