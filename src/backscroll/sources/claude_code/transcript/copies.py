"""Find lines that a fork or resume copied.

``--fork-session`` copies lines with their ids and times and does not mark them. Evidence, best first:

- ``session_id`` (interactive, 2.1.325) or ``sessionId`` (2.0.76) names the session that wrote the line.
- ``requestRef`` (2.1.325) names a request that the file does not contain. Requests are not copied.
- A queue operation or file snapshot before the line has a later time: the line was written after it.

Before 2.0, ``-p --resume`` and ``--input-format stream-json`` copy the conversation with new ids and times:
into a new file, or again into the same file below a new root.
"""

from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from backscroll.model.stream import CopiedLines
from backscroll.readers import timestamps
from backscroll.sources.claude_code.transcript.line_structs import ApiMessage, Block, Line

TIMED_TYPES = frozenset({"queue-operation", "file-history-snapshot"})
_MAX_SPANS = 64
_MAX_REQUESTS = 16  # a response follows its request closely
# The tool writes some state lines just before a line that it created earlier. A fork takes longer than this.
_MIN_DELAY = timedelta(milliseconds=100)
_MAX_COPY_GAP = timedelta(milliseconds=20)  # between copied lines; an answer of a model takes longer
MAX_SKIPPED_LINES = 8  # that a repeated conversation does not contain


class Copies(Struct):
    """Evidence for copied lines in one file. Stored in the checkpoint."""

    spans: list[CopiedLines] = field(default_factory=list)
    written_at: datetime | None = None  # latest time of a state line; later lines were written after it
    request_ids: dict[str, None] = field(default_factory=dict)  # of recent requests
    block_at: datetime | None = None  # time of the first of the lines that were written at once
    block_end: datetime | None = None

    def add_state_time(self, at: datetime | None) -> None:
        """Add the time of a state line."""
        if at is not None and (self.written_at is None or at > self.written_at):
            self.written_at = at

    def add_request(self, request_id: Any) -> None:
        """Add a request that this session sent."""
        if isinstance(request_id, str):
            self.request_ids[request_id] = None
            if len(self.request_ids) > _MAX_REQUESTS:
                del self.request_ids[next(iter(self.request_ids))]

    def may_be_copied(self, line: Line, at: datetime | None, session_id: str) -> bool:
        """Return whether there may be evidence for a copy in a line. Called for every line."""
        return (
            line.session_id != session_id
            or line.request_ref is not None
            or (self.written_at is not None and at is not None and at < self.written_at)
            or (line.original_session_id is not None and line.original_session_id != session_id)
        )

    def add_line(self, line: Line, at: datetime | None, session_id: str, first_at: datetime | None) -> None:
        """Add a line that may be copied. ``first_at`` is the first time in the file."""
        if at is None:
            return
        written_at = self.written_at
        if written_at is not None and written_at - at >= _MIN_DELAY:
            self._extend(at, at, written_at, None)
        original_id = line.original_session_id or line.session_id
        if original_id != session_id and isinstance(original_id, str) and original_id:
            self._extend(at, at, None, original_id)
        request_id = line.request_ref
        if request_id is not None and isinstance(request_id, str) and request_id not in self.request_ids:
            # Without a request of this session, all lines before the response were copied too.
            self._extend(at if self.request_ids or first_at is None else first_at, at, None, None)

    def add_old_line(self, line: Line, at: datetime | None) -> None:
        """Add a line of a version before 2.0. Copies are written at once, without request or cost."""
        if at is None:
            return
        if self.block_at is None or self.block_end is None or not _is_next(self.block_end, at):
            self.block_at = at
        elif line.type == "assistant" and (line.cost_usd == 0 or line.cost_usd is line.request_id is None):
            self._extend(self.block_at, at, None, None, has_new_ids=True)
        self.block_end = at

    def _extend(
        self,
        first_at: datetime,
        last_at: datetime,
        written_at: datetime | None,
        session_id: str | None,
        *,
        has_new_ids: bool = False,
    ) -> None:
        """Add lines to the span with the same evidence, else as a new span."""
        for index in range(len(self.spans) - 1, -1, -1):
            span = self.spans[index]
            if (span.written_at, span.session_id, span.has_new_ids) == (written_at, session_id, has_new_ids):
                first_at, last_at = min(span.first_at, first_at), max(span.last_at, last_at)
                self.spans[index] = replace(span, first_at=first_at, last_at=last_at)
                return
        if len(self.spans) < _MAX_SPANS:
            self.spans.append(CopiedLines(first_at, last_at, written_at, session_id, has_new_ids))


def _is_next(before: datetime, at: datetime) -> bool:
    return timedelta() <= at - before <= _MAX_COPY_GAP


def state_time(record: dict[str, Any]) -> datetime | None:
    """Return the time of a queue operation or file snapshot."""
    snapshot = record.get("snapshot")
    return timestamps.from_value((snapshot if isinstance(snapshot, dict) else record).get("timestamp"))


class Conversation(Struct):
    """Lines since the last root, to find those that are written again. Stored in the checkpoint."""

    lines: list[tuple[bytes, int]] = field(default_factory=list)  # hash of the content, and node
    next_index: int = -1  # in `lines`, of the line that is repeated next; -1 outside of a repetition
    last_id: str | None = None  # of the last line of a repetition

    def find_original(self, key: bytes, id_: str, parent: str | None) -> int:
        """Return the node of the line that a line repeats; -1 if it is new."""
        first = self.next_index if parent == self.last_id else -1
        last = first + MAX_SKIPPED_LINES
        if parent is None:
            first, last = 0, 0
        for index in range(first, min(last + 1, len(self.lines))) if first >= 0 else ():
            if self.lines[index][0] == key:
                self.next_index, self.last_id = index + 1, id_
                return self.lines[index][1]
        self.next_index = -1
        if parent is None:
            self.lines.clear()
        return -1


def is_before_2(line: Line) -> bool:
    """Return whether a version before 2.0 wrote the line."""
    version = line.version
    return isinstance(version, str) and version[:2] in ("0.", "1.")


def content_key(line: Line) -> bytes | None:
    """Return a key of the content of a user or assistant line that is the same in copies, if it has one."""
    message = line.message
    if not isinstance(message, ApiMessage) or line.is_sidechain is True:
        return None
    content = message.content
    blocks = content if isinstance(content, list) else [content]
    if len(blocks) == 1 and isinstance(blocks[0], Block):
        block = blocks[0]
        id_ = block.id or block.tool_use_id
        if isinstance(id_, str):  # the common case: a tool call or result
            return f"{block.type} {id_}".encode("utf-8", "surrogatepass")
    parts = [str(message.id)]
    for each in blocks:
        if isinstance(each, Block):
            kind = "" if each.type == "text" else each.type
            text = each.text if each.text is not None else each.thinking
            parts.append(f"{kind} {each.id or each.tool_use_id} {text}")
        else:
            parts.append(f" None {each}")
    return blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
