"""Write one unit's stream into the archive.

Messages are stored in chunks of a few hundred, so that neither writing nor reading needs a whole session in
memory. A tool call stays in the buffer until its result arrives, up to a limit. A later change to a written
message goes into the table `message_update`. The rows of messages and edits contain what is counted and
looked up without decompressing chunks.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from backscroll.archive.derive.fragments import encode_closing, load_closing
from backscroll.archive.derive.usage import UsageRecorder, write_reported_usage
from backscroll.archive.storage.codec import (
    decode_chunk,
    encode_chunk,
    encode_messages,
    hash64,
    hash_record,
    to_milliseconds,
)
from backscroll.archive.storage.delta import read_message
from backscroll.archive.storage.raw_files import RawDeltaBase
from backscroll.archive.storage.strings import StringTable
from backscroll.archive.write.exclusions import Exclusions
from backscroll.model.message import TYPED_KINDS, Message, record_id_of
from backscroll.model.problem import Problem
from backscroll.model.stream import (
    ORPHAN_RESULT,
    Closing,
    ClosingUpdate,
    Item,
    Opening,
    RecordCounts,
    Replacement,
    ReportedTotals,
    SubagentLink,
    TitleHint,
    ToolResult,
    UsageReport,
    is_same_response,
    merge_repeated_call,
    message_for_orphan_result,
    with_result,
)

CHUNK_MESSAGES = 200
CHUNK_CHARS = 64 * 1024
MAX_BUFFERED_MESSAGES = 2000  # while a tool call waits for its result
PREVIEW_CHARS = 300
MAX_REPORTED_PROBLEMS = 100
_INSERT_MESSAGE = (
    "insert into message (fragment_id, position, record_hash, at, role_string_id, kind_string_id,"
    " tool_string_id, call_hash, status_string_id, decision_string_id, model_string_id, agent_string_id,"
    " is_active, forked_from_string_id, copied_from_string_id)"
    " values (?, ?, ?, nullif(?, 0), ?, nullif(?, 0), nullif(?, 0), nullif(?, 0), nullif(?, 0),"
    " nullif(?, 0), nullif(?, 0), nullif(?, 0), ?, nullif(?14, 0), nullif(?14, 0))"
)


class MessageObserver(Protocol):
    """Receives the messages of each fragment while they are written."""

    def begin_fragment(self, fragment_id: int) -> None:
        """Start a new fragment. The previous fragment is complete."""

    def add_messages(self, first_position: int, messages: Sequence[Message]) -> None:
        """Receive messages of the current fragment, as they are stored."""

    def invalidate_fragment(self) -> None:
        """Note that a message of the current fragment changed after it was received."""


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
        self._session: _FragmentWriter | None = None
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
        self._session = _FragmentWriter(self, opening)

    def _close(self, session: "_FragmentWriter", closing: Closing) -> None:
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


class _FragmentWriter:
    """Writes one fragment: the messages of one session in one unit."""

    def __init__(self, writer: UnitWriter, opening: Opening) -> None:
        self.db = writer.db
        self.is_appended = writer.is_appended
        self.opening = opening
        self.usage = UsageRecorder()
        self.reported: ReportedTotals | None = None
        self.replaced_id: str | None = None  # the next message replaces the message with this id
        self._writer = writer
        self._fragment_id, self._count, self._preview = self._begin()
        self._buffer: list[Message] = []  # the messages from position `self._first` on
        self._first = self._count
        self._sizes: list[int] = []  # characters of each message in the buffer
        self._buffer_chars = 0
        self._position_by_id: dict[str, int] = {}
        self._position_by_call: dict[str, int] = {}
        self._open_calls: set[int] = set()  # positions

    def _begin(self) -> tuple[int, int, str | None]:
        """Return id, message count and preview of the fragment: a new one, or the one to append to."""
        opening, writer = self.opening, self._writer
        if self.is_appended:
            known = self.db.execute(
                "select id, message_count, preview from fragment"
                " where +unit_id = ? and external_id = ? and status = 'current'"
                " order by parent_external_id is ? desc limit 1",  # the parent may be known only now
                [writer.unit_id, opening.id, opening.parent_id],
            ).fetchone()
            if known is not None:
                return known[0], known[1], known[2]
        cursor = self.db.execute(
            "insert into fragment (unit_id, platform, source, store, external_id, parent_external_id,"
            " is_subagent, opening, closing) values (?, ?, ?, ?, ?, ?, ?, ?, x'')",
            [
                writer.unit_id,
                writer.platform,
                opening.source,
                opening.store,
                opening.id,
                opening.parent_id,
                opening.agent_id is not None,
                msgspec.msgpack.encode(opening),
            ],
        )
        assert cursor.lastrowid is not None
        if writer.observer is not None:
            writer.observer.begin_fragment(cursor.lastrowid)
        return cursor.lastrowid, 0, None

    def add_message(self, message: Message) -> None:
        """Add a message. A message with a known id replaces the earlier one."""
        id_, tool = message.id, message.tool
        if message.usage is not None:
            self.usage.add(message.response_id or id_, message.usage, message)
        call_id = tool.id if tool is not None else None
        position = None
        if (
            self.replaced_id is not None
            or id_ in self._position_by_id
            or call_id in self._position_by_call
            or self.is_appended
        ):
            found = self._find_replaced(message, call_id)
            if found is None:
                return
            position, message = found
        if position is not None:
            self._replace(position, message)
        else:
            position = self._count
            self._count += 1
            size = _chars(message)
            self._buffer.append(message)
            self._sizes.append(size)
            self._buffer_chars += size
        self._position_by_id[id_] = position
        if call_id is not None:
            self._position_by_call[call_id] = position
            if message.tool is not None and message.tool.result is None:
                self._open_calls.add(position)
        if self._preview is None:
            self._preview = _preview(message)
        if len(self._buffer) >= CHUNK_MESSAGES or self._buffer_chars >= CHUNK_CHARS:
            self._flush(keep_open=True)

    def _find_replaced(self, message: Message, call_id: str | None) -> tuple[int | None, Message] | None:
        """Return the position that a message replaces and the message to store; None if it adds nothing."""
        position = self._position_of_id(message.id) if message.kind != ORPHAN_RESULT else None
        replaced_id, self.replaced_id = self.replaced_id, None
        early = self._position_of_id(replaced_id) if replaced_id is not None and position is None else None
        if early is not None:
            position = self._remove(early)
        if call_id is not None and (known := self._position_of_call(call_id)) is not None:
            before = self._message_at(known)
            if before.kind == ORPHAN_RESULT:
                position, message = known, merge_repeated_call(message, before)
            elif before.id == message.id:
                message = merge_repeated_call(message, before)
            elif is_same_response(before, message):
                return None
        return position, message

    def _position_of_id(self, id_: str) -> int | None:
        position = self._position_by_id.get(id_)
        if position is not None or not self.is_appended:
            return position
        rows = self.db.execute(
            "select position from message where fragment_id = ? and record_hash = ?"
            " and kind_string_id is not ? order by 1",
            [self._fragment_id, hash_record(id_, self.opening.id), self._writer.strings[ORPHAN_RESULT]],
        ).fetchall()
        order = int(id_.partition(".")[2] or 0) if id_.partition(".")[2].isdigit() or "." not in id_ else 0
        return rows[order][0] if order < len(rows) else None

    def _position_of_call(self, call_id: str) -> int | None:
        """Return the position of a tool call, added now or by an earlier read."""
        position = self._position_by_call.get(call_id)
        if position is None and self.is_appended:
            row = self.db.execute(
                "select position from message where fragment_id = ? and call_hash = ?"
                " order by position desc limit 1",
                [self._fragment_id, hash64(call_id)],
            ).fetchone()
            if row is not None:
                position = self._position_by_call[call_id] = int(row[0])
        return position

    def _message_at(self, position: int) -> Message:
        if position >= self._first:
            return self._buffer[position - self._first]
        update = self.db.execute(
            "select body from message_update where fragment_id = ? and position = ?",
            [self._fragment_id, position],
        ).fetchone()
        if update is not None:
            return decode_chunk(update[0])[0]
        row: tuple[int, bytes] = self.db.execute(
            "select position, body from message_chunk where fragment_id = ? and position <= ?"
            " order by position desc limit 1",
            [self._fragment_id, position],
        ).fetchone()
        return read_message(self.db, row[1], position - row[0])

    def add_tool_result(self, result: ToolResult) -> None:
        """Complete a tool call. A result that precedes its call is stored until the call replaces it."""
        position = self._position_of_call(result.tool_call_id)
        if position is None:
            self.add_message(message_for_orphan_result(result))
            return
        message = self._message_at(position)
        if message.tool is None:
            return
        self._open_calls.discard(position)
        attachments = message.attachments + result.attachments
        if attachments:
            attachments = tuple(dict.fromkeys(attachments))
        self._replace(
            position, replace(message, tool=with_result(message.tool, result), attachments=attachments)
        )

    def _remove(self, position: int) -> int | None:
        """Remove a message that was emitted too early. The messages after it move up by one.

        Return the last stored position if it is free then; None if the buffer became shorter instead.
        """
        removed = self._message_at(position)
        last_stored = self._first - 1
        for free in range(position, last_stored):
            self._replace(free, self._message_at(free + 1))
        free_position = None
        if position >= self._first:
            del self._buffer[position - self._first], self._sizes[position - self._first]
        elif self._buffer:
            self._replace(last_stored, self._buffer.pop(0))
            del self._sizes[0]
        else:
            free_position = last_stored
        if free_position is None:
            self._count -= 1
        self._buffer_chars = sum(self._sizes)
        for positions in (self._position_by_id, self._position_by_call):
            moved = {key: one - (one > position) for key, one in positions.items() if one != position}
            positions.clear()
            positions.update(moved)
        self._open_calls = {one - (one > position) for one in self._open_calls}
        if self._preview == _preview(removed):
            self._preview = self._first_preview(position, self._count - (free_position is not None))
        return free_position

    def _first_preview(self, start: int, end: int) -> str | None:
        """Return the preview of the first prompt between two positions."""
        found = (_preview(self._message_at(position)) for position in range(start, end))
        return next((preview for preview in found if preview), None)

    def _replace(self, position: int, message: Message) -> None:
        if position >= self._first:
            self._buffer[position - self._first] = message
            self._sizes[position - self._first] = _chars(message)
            self._buffer_chars += len(message.tool.result or "") if message.tool is not None else 0
            return
        if self._writer.observer is not None:
            self._writer.observer.invalidate_fragment()
        key = [self._fragment_id, position]
        self.db.execute(
            "insert or replace into message_update values (?, ?, ?)", [*key, encode_chunk([message])]
        )
        self.db.execute(
            "update fragment set compared_count = min(compared_count, ?) where id = ?",
            [position, self._fragment_id],
        )
        self.db.execute("delete from message where fragment_id = ? and position = ?", key)
        self.db.execute("delete from edit where fragment_id = ? and position = ?", key)
        self._insert_rows([(position, message)])

    def _flush(self, *, keep_open: bool) -> None:
        """Write the buffer, if `keep_open` only up to the first call that waits for its result."""
        end = len(self._buffer)
        if keep_open and self._open_calls and len(self._buffer) < MAX_BUFFERED_MESSAGES:
            waiting = [position for position in self._open_calls if position >= self._first]
            end = min(waiting, default=self._first + end) - self._first
        if not end:
            return
        for chunk_begin, chunk_end in _chunk_ranges(self._sizes[:end]):
            self._write_chunk(self._buffer[chunk_begin:chunk_end])
        del self._buffer[:end], self._sizes[:end]
        self._buffer_chars = sum(self._sizes)

    def _write_chunk(self, messages: list[Message]) -> None:
        data, body = encode_messages(messages)
        self.db.execute(
            "insert into message_chunk (fragment_id, position, body) values (?, ?, ?)",
            [self._fragment_id, self._first, body],
        )
        if self._writer.delta_base is not None:
            self._writer.delta_base.add_chunk(self._fragment_id, self._first, messages[0], data)
        self._insert_rows(enumerate(messages, start=self._first))
        if self._writer.observer is not None:
            self._writer.observer.add_messages(self._first, messages)
        self._first += len(messages)

    def _insert_rows(self, messages: Iterable[tuple[int, Message]]) -> None:
        writer = self._writer
        _insert_messages(
            self.db,
            writer.strings,
            self._fragment_id,
            self.opening.id,
            messages,
            unless_forgotten=lambda session: writer.exclusions.unless_forgotten(writer.platform, session),
        )

    def close(self, closing: Closing) -> None:
        """Write the remaining buffer and the facts that are known at the end."""
        self._flush(keep_open=False)
        self._update_active(closing)
        strings = self._writer.strings
        self.usage.write(self.db, strings, self._fragment_id, self.opening, is_appended=self.is_appended)
        if self.reported is not None:
            write_reported_usage(self.db, strings, self._fragment_id, self.reported)
        if closing.child_ids:
            links = [(self._fragment_id, id_) for id_ in closing.child_ids]
            self.db.executemany("insert or ignore into subagent_link values (?, ?)", links)
        if isinstance(closing, ClosingUpdate):
            before = load_closing(self.db, self._fragment_id)
            if before is not None:
                closing = closing.applied_to(before)
        self.db.execute(
            "update fragment set closing = ?, message_count = ?, preview = ?, is_derived = 0 where id = ?",
            [encode_closing(closing), self._count, self._preview, self._fragment_id],
        )

        self._write_last_record(closing)

    def _write_last_record(self, closing: Closing) -> None:
        if self.is_appended:
            self.db.execute("delete from last_record where fragment_id = ?", [self._fragment_id])
        if closing.last_record_id is not None:
            self.db.execute(
                "insert into last_record values (?, ?)",
                [self._fragment_id, hash_record(closing.last_record_id)],
            )

    def _update_active(self, closing: Closing) -> None:
        """Set `is_active` where it changed."""
        found = (self._position_of_id(id_) for id_ in closing.abandoned)
        abandoned = {position for position in found if position is not None}
        if self.is_appended:
            rows = self.db.execute(
                "select position from message where fragment_id = ? and not is_active", [self._fragment_id]
            ).fetchall()
            before = {position for (position,) in rows}
            self._set_active(before - abandoned, is_active=True)
            abandoned -= before
        self._set_active(abandoned, is_active=False)

    def _set_active(self, positions: Iterable[int], *, is_active: bool) -> None:
        self.db.executemany(
            "update message set is_active = ? where fragment_id = ? and position = ?",
            [(is_active, self._fragment_id, position) for position in positions],
        )


def _chunk_ranges(sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Split messages into chunks. A buffer that waited for a result may hold far more than one chunk."""
    begin = chars = 0
    for end, size in enumerate(sizes, start=1):
        chars += size
        if end - begin >= CHUNK_MESSAGES or chars >= CHUNK_CHARS:
            yield begin, end
            begin, chars = end, 0
    if begin < len(sizes):
        yield begin, len(sizes)


def _preview(message: Message) -> str | None:
    """Return the start of a prompt; None for any other message."""
    if message.role != "user" or message.kind not in TYPED_KINDS:
        return None
    return message.content.strip()[:PREVIEW_CHARS] or None


def _chars(message: Message) -> int:
    tool = message.tool
    if tool is None or tool.result is None:
        return len(message.content)
    return len(message.content) + len(tool.result)


def _insert_messages(
    db: sqlite3.Connection,
    strings: StringTable,
    fragment_id: int,
    session_id: str,
    messages: Iterable[tuple[int, Message]],
    *,
    unless_forgotten: Callable[[str], str | None],
) -> None:
    """Insert the rows of messages, given with their positions, and of their edits.

    `unless_forgotten` returns the id of the session that a message was copied from, or None if that session
    was forgotten.
    """
    rows: list[tuple[int, ...]] = []
    edits: list[tuple[object, ...]] = []
    last_record, record_hash = "", 0
    for position, message in messages:
        record = record_id_of(message.id)
        if record != last_record:  # the messages of a record follow each other
            last_record, record_hash = record, hash_record(record, session_id)
        tool, copied_from = message.tool, message.copied_from
        tool_name = call_hash = status = decision = 0
        if tool is not None:
            tool_name, status, decision = strings[tool.name], strings[tool.status], strings[tool.decision]
            if tool.id is not None:
                call_hash = hash64(tool.id)
            if tool.edits:
                edits += [(fragment_id, position, e.path, e.kind, e.added, e.removed) for e in tool.edits]
        rows.append(
            (
                fragment_id,
                position,
                record_hash,
                to_milliseconds(message.timestamp) or 0,
                strings[message.role],
                strings[message.kind],
                tool_name,
                call_hash,
                status,
                decision,
                strings[message.model],
                strings[message.agent_id],
                int(message.is_active),
                strings[unless_forgotten(copied_from)] if copied_from is not None else 0,
            )
        )
    db.executemany(_INSERT_MESSAGE, rows)
    if edits:
        db.executemany("insert into edit values (?, ?, ?, ?, ?, ?)", edits)
