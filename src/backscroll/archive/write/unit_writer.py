"""Write one unit's stream into the archive."""

import sqlite3
from collections.abc import Iterable

from backscroll.archive.storage.codec import hash64, hash_record
from backscroll.archive.storage.delta_raw import RawDeltaBase
from backscroll.archive.storage.strings import StringTable
from backscroll.archive.write.exclusions import Exclusions
from backscroll.archive.write.fragment_writer import FragmentWriter, MessageObserver
from backscroll.model import (
    Closing,
    Item,
    Message,
    Opening,
    Problem,
    RecordCounts,
    Replacement,
    ReportedTotals,
    SubagentLink,
    TitleHint,
    ToolResult,
    UsageReport,
)

__all__ = ["UnitWriter"]

MAX_REPORTED_PROBLEMS = 100


class UnitWriter:
    """Writes the stream of one unit. The caller holds a transaction."""

    def __init__(
        self,
        db: sqlite3.Connection,
        unit_id: int,
        platform: str,
        *,
        is_appended: bool = False,
        exclusions: Exclusions | None = None,
        observer: MessageObserver | None = None,
        delta_base: RawDeltaBase | None = None,
        strings: StringTable | None = None,
    ) -> None:
        self.db = db
        self.unit_id = unit_id
        self.platform = platform
        self.is_appended = is_appended
        self.exclusions = exclusions or Exclusions()
        self.observer = observer
        self.delta_base = delta_base
        self.strings = StringTable(db) if strings is None else strings
        self.problems: list[Problem] = []
        self.record_counts = RecordCounts()
        self.has_forgotten = False  # the unit contains a forgotten session
        self.has_excluded = False  # the unit contains a session of an excluded workspace
        self._session: FragmentWriter | None = None
        self._session_count = 0
        self._is_skipping = False  # inside a forgotten session

    @property
    def was_read(self) -> bool:
        """False if a file or database could not be opened: the stream then contains problems only."""
        if self._session_count or not self.problems:
            return True
        return self.record_counts.records > 0 and set(self.record_counts.kinds) != {"database"}

    def write(self, items: Iterable[Item]) -> None:
        """Write the whole stream."""
        for item in items:
            if self._session is not None:  # nearly all items are messages and tool results
                if type(item) is Message:
                    self._session.add_message(item)
                    continue
                if type(item) is ToolResult:
                    self._session.add_tool_result(item)
                    continue
            match item:
                case Opening():
                    self._open(item)
                case Replacement(message_id) if self._session is not None:
                    self._session.replaced_id = message_id
                case UsageReport() if self._session is not None:
                    self._session.usage.add(item.response_id, item.usage, item)
                case ReportedTotals() if self._session is not None:
                    self._session.reported = item
                case Closing() if self._session is not None:
                    self._close(self._session, item)
                case Closing():
                    self._is_skipping = False
                case TitleHint() | SubagentLink() | Problem() if self._is_skipping:
                    pass
                case TitleHint(message_id, title):
                    self._add_title_hint(hash_record(message_id), title)
                case SubagentLink():
                    self._add_evidence(item)
                case Problem():
                    self._add_problem(item)
                case RecordCounts():
                    self.record_counts = item

    def _add_title_hint(self, record_hash: int, title: str) -> None:
        """Store a title. The last hint for a record wins; a hint that the unit no longer gives stays."""
        key = [self.unit_id, record_hash]
        self.db.execute("delete from title_hint where unit_id = ? and record_hash = ?", key)
        self.db.execute("insert into title_hint values (?, ?, ?)", [*key, title])

    def _add_evidence(self, link: SubagentLink) -> None:
        call_hash = hash64(link.tool_call_id)
        self.db.execute(
            "insert into subagent_evidence values (?, ?, ?, ?, ?, ?)",
            [self.unit_id, link.agent_id, link.tool_call_id, call_hash, link.evidence, link.strength],
        )

    def _add_problem(self, problem: Problem) -> None:
        path, location = problem.origin.path, problem.origin.place
        if self.exclusions.mentions_forgotten(f"{path} {location}"):
            return
        if len(self.problems) < MAX_REPORTED_PROBLEMS:
            self.problems.append(problem)
        row = [self.unit_id, problem.code, path, location, problem.reason]
        self.db.execute("insert into problem values (?, ?, ?, ?, ?)", row)

    def _open(self, opening: Opening) -> None:
        if self.exclusions.is_forgotten(self.platform, opening):
            self._is_skipping = self.has_forgotten = True
            self._session_count += 1
            return
        if self.exclusions.patterns:
            self.db.execute("savepoint session")
        self._session = FragmentWriter(self, opening)

    def _close(self, session: FragmentWriter, closing: Closing) -> None:
        session.close(closing)
        self._session = None
        self._session_count += 1
        if not self.exclusions.patterns:
            return
        if self.exclusions.is_excluded(closing.workspace):
            # The workspace is known only now. What was stored before it was excluded stays.
            self.has_excluded = True
            self.db.execute("rollback to session")
            self.strings.reset()
            self.db.execute(
                "update fragment set status = 'current' where id = (select max(id) from fragment"
                " where unit_id = ? and external_id = ? and parent_external_id is ?)",
                [self.unit_id, session.opening.id, session.opening.parent_id],
            )
        self.db.execute("release session")
