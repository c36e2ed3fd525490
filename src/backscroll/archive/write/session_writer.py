"""One session as a unit tells it, on its way into the archive.

Messages are kept in pieces of a few hundred, so that neither writing nor reading ever needs a whole session.
A tool call stays in hand until it is answered, as long as that does not take too long; what is said of an
earlier message later on is kept as an amendment of it.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from backscroll.archive.derive.token_usage import Spending
from backscroll.archive.storage.codec import number_of, pack, packed, record_number, unpack
from backscroll.archive.storage.delta import message_in
from backscroll.archive.write.closings import packed_closing
from backscroll.archive.write.message_rows import insert_messages
from backscroll.model import (
    WITHOUT_CALL,
    Closing,
    Message,
    Opening,
    ToolResult,
    answered,
    is_same_response,
    with_answer,
    without_call,
)

if TYPE_CHECKING:
    from backscroll.archive.write.unit_writer import UnitWriter

__all__ = ["AccountWriter"]

_PIECE = 200  # messages
_PIECE_SIZE = 64 * 1024  # characters
_MOST_HELD = 2000  # messages kept in hand for an answer
_PREVIEW = 300


class AccountWriter:
    """One session as this unit tells it, while it is written."""

    def __init__(self, writer: "UnitWriter", opening: Opening) -> None:
        self.writer = writer
        self.db = writer.db
        self.is_appended = writer.is_appended
        self.opening = opening
        self.number, self.count, self.preview = self._begin()
        self.held: list[Message] = []  # the messages not yet written, from position `self.first` on
        self.first = self.count
        self.sizes: list[int] = []  # of each of them, in characters
        self.held_size = 0
        self.places: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self.open_calls: set[int] = set()
        self.arriving: str | None = None  # whose place the next message takes
        self.spending = Spending()

    def _begin(self) -> tuple[int, int, str | None]:
        opening, writer = self.opening, self.writer
        if self.is_appended:
            known = self.db.execute(
                "select id, message_count, preview from fragment"
                " where +unit_id = ? and external_id = ? and status = 'current'"
                " order by parent_external_id is ? desc limit 1",  # whose it is may be said only now
                [writer.unit, opening.id, opening.parent_id],
            ).fetchone()
            if known is not None:
                return known[0], known[1], known[2]
        cursor = self.db.execute(
            "insert into fragment (unit_id, platform, source, store, external_id, parent_external_id,"
            " is_subagent, opening, closing) values (?, ?, ?, ?, ?, ?, ?, ?, x'')",
            [
                writer.unit,
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
        if writer.listener is not None:
            writer.listener.begin(cursor.lastrowid)
        return cursor.lastrowid, 0, None

    def say(self, message: Message) -> None:
        """Take a message; the same id said again takes the place of what was said before."""
        id_, tool = message.id, message.tool
        if message.usage is not None:
            self.spending.spend(message.response_id or id_, message.usage, message)
        call = tool.id if tool is not None else None
        place = None
        if self.arriving is not None or id_ in self.places or call in self.calls or self.is_appended:
            found = self._met(message, call)
            if found is None:
                return
            place, message = found
        if place is not None:
            self._amend(place, message)
        else:
            place = self.count
            self.count += 1
            size = _size(message)
            self.held.append(message)
            self.sizes.append(size)
            self.held_size += size
        self.places[id_] = place
        if call is not None:
            self.calls[call] = place
            if message.tool is not None and message.tool.result is None:
                self.open_calls.add(place)
        if self.preview is None and message.role == "user" and message.kind in (None, "queued"):
            self.preview = message.content.strip()[:_PREVIEW] or None
        if len(self.held) >= _PIECE or self.held_size >= _PIECE_SIZE:
            self._flush(keep_open=True)

    def _met(self, message: Message, call: str | None) -> tuple[int | None, Message] | None:
        """Where a message takes the place of another, and as what; None when it says nothing new."""
        place = self._known_place(message.id) if message.kind != WITHOUT_CALL else None
        early, self.arriving = self.arriving, None
        if early is not None and place is None:
            place = self._known_place(early)
            self.places.pop(early, None)
        if call is not None and (known := self._call(call)) is not None:
            before = self._message(known)
            if before.kind == WITHOUT_CALL:
                place, message = known, with_answer(message, before)
            elif before.id == message.id:
                message = with_answer(message, before)
            elif is_same_response(before, message):
                return None
        return place, message

    def _known_place(self, id_: str) -> int | None:
        place = self.places.get(id_)
        if place is not None or not self.is_appended:
            return place
        rows = self.db.execute(
            "select position from message where fragment_id = ? and record_hash = ?"
            " and kind_string_id is not ? order by 1",
            [self.number, record_number(id_, self.opening.id), self.writer.words[WITHOUT_CALL]],
        ).fetchall()
        order = int(id_.partition(".")[2] or 0) if id_.partition(".")[2].isdigit() or "." not in id_ else 0
        return rows[order][0] if order < len(rows) else None

    def _call(self, call: str) -> int | None:
        """Where a call stands, in this reading or from an earlier one."""
        place = self.calls.get(call)
        if place is None and self.is_appended:
            row = self.db.execute(
                "select position from message where fragment_id = ? and call_hash = ?"
                " order by position desc limit 1",
                [self.number, number_of(call)],
            ).fetchone()
            if row is not None:
                place = self.calls[call] = int(row[0])
        return place

    def _message(self, place: int) -> Message:
        return self.held[place - self.first] if place >= self.first else self._written(place)

    def answer(self, answer: ToolResult) -> None:
        """Complete a call. An answer may precede its call, which then takes its place."""
        place = self._call(answer.tool_call_id)
        if place is None:
            self.say(without_call(answer))
            return
        message = self._message(place)
        if message.tool is None:
            return
        self.open_calls.discard(place)
        attachments = message.attachments + answer.attachments
        if attachments:
            attachments = tuple(dict.fromkeys(attachments))
        self._amend(place, replace(message, tool=answered(message.tool, answer), attachments=attachments))

    def _amend(self, place: int, message: Message) -> None:
        if place >= self.first:
            self.held[place - self.first] = message
            self.sizes[place - self.first] = _size(message)
            self.held_size += len(message.tool.result or "") if message.tool is not None else 0
            return
        if self.writer.listener is not None:
            self.writer.listener.amend()
        self.db.execute(
            "insert or replace into message_update values (?, ?, ?)", [self.number, place, pack([message])]
        )
        self.db.execute(
            "update fragment set compared_count = min(compared_count, ?) where id = ?", [place, self.number]
        )
        self.db.execute("delete from message where fragment_id = ? and position = ?", [self.number, place])
        self.db.execute("delete from edit where fragment_id = ? and position = ?", [self.number, place])
        self._insert([(place, message)])

    def _written(self, place: int) -> Message:
        amended = self.db.execute(
            "select body from message_update where fragment_id = ? and position = ?", [self.number, place]
        ).fetchone()
        if amended is not None:
            return unpack(amended[0])[0]
        row: tuple[int, bytes] = self.db.execute(
            "select position, body from message_chunk where fragment_id = ? and position <= ?"
            " order by position desc limit 1",
            [self.number, place],
        ).fetchone()
        return message_in(self.db, row[1], place - row[0])

    def _flush(self, *, keep_open: bool) -> None:
        """Write the messages in hand, up to the first call that still waits for its answer."""
        stop = len(self.held)
        if keep_open and self.open_calls and len(self.held) < _MOST_HELD:
            waiting = [place for place in self.open_calls if place >= self.first]
            stop = min(waiting, default=self.first + stop) - self.first
        if not stop:
            return
        for begin, end in _pieces(self.sizes[:stop]):
            self._write(self.held[begin:end])
        del self.held[:stop], self.sizes[:stop]
        self.held_size = sum(self.sizes)

    def _write(self, piece: list[Message]) -> None:
        plain, body = packed(piece)
        row = [self.number, self.first, body]
        self.db.execute("insert into message_chunk (fragment_id, position, body) values (?, ?, ?)", row)
        if self.writer.told is not None:
            self.writer.told.add(self.number, self.first, piece[0], plain)
        self._insert(enumerate(piece, start=self.first))
        if self.writer.listener is not None:
            self.writer.listener.say(self.first, piece)
        self.first += len(piece)

    def _insert(self, placed: Iterable[tuple[int, Message]]) -> None:
        writer = self.writer
        insert_messages(
            self.db,
            writer.words,
            self.number,
            self.opening.id,
            placed,
            remembered=lambda session: writer.exclusions.remembered(writer.platform, session),
        )

    def close(self, closing: Closing) -> None:
        self._flush(keep_open=False)
        self._mark_abandoned(closing)
        writer = self.writer
        self.spending.write(self.db, writer.words, self.number, self.opening, is_appended=self.is_appended)
        if closing.child_ids:
            children = [(self.number, id_) for id_ in closing.child_ids]
            self.db.executemany("insert or ignore into subagent_link values (?, ?)", children)
        self.db.execute(
            "update fragment set closing = ?, message_count = ?, preview = ?, is_derived = 0 where id = ?",
            [packed_closing(self.db, self.number, closing), self.count, self.preview, self.number],
        )

    def _mark_abandoned(self, closing: Closing) -> None:
        """Say which messages are on the branch that is shown; only rows that change are touched."""
        found = (self._known_place(id_) for id_ in closing.abandoned)
        left = {place for place in found if place is not None}
        if self.is_appended:
            rows = self.db.execute(
                "select position from message where fragment_id = ? and not is_active", [self.number]
            ).fetchall()
            before = {place for (place,) in rows}
            self._activate(before - left, is_active=True)
            left -= before
        self._activate(left, is_active=False)

    def _activate(self, places: Iterable[int], *, is_active: bool) -> None:
        change = "update message set is_active = ? where fragment_id = ? and position = ?"
        self.db.executemany(change, [(is_active, self.number, place) for place in places])


def _pieces(sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Messages that waited for one answer may be more than anybody wants to unpack for one of them."""
    begin = size = 0
    for end, more in enumerate(sizes, start=1):
        size += more
        if end - begin >= _PIECE or size >= _PIECE_SIZE:
            yield begin, end
            begin, size = end, 0
    if begin < len(sizes):
        yield begin, len(sizes)


def _size(message: Message) -> int:
    tool = message.tool
    if tool is None or tool.result is None:
        return len(message.content)
    return len(message.content) + len(tool.result)
