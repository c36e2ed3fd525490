"""State that a reader of a transcript passes to the next one."""

from datetime import datetime
from hashlib import blake2b

from msgspec import Struct, field

from backscroll.model import Origin, Status
from backscroll.sources.claude_code.transcript.branches import Skeleton
from backscroll.sources.claude_code.transcript.queue import Queue
from backscroll.sources.claude_code.transcript.state_lines import Facts
from backscroll.sources.claude_code.transcript.subagents import Agents, Pending

__all__ = ["EarlyResult", "ReaderState"]

MAX_REMEMBERED = 512  # entries; repeats and early results are close to each other in the file
MAX_EARLY_RESULT_BYTES = 4 * 1024 * 1024  # of results without a call


class EarlyResult(Struct, array_like=True):
    """A tool result that was written before its call. The call decides how it is parsed."""

    result: str
    status: Status
    raw: bytes  # structured result as JSON
    origin: Origin
    record_id: str
    at: datetime | None

    @property
    def size(self) -> int:
        return len(self.result) + len(self.raw)


class ReaderState(Struct, array_like=True):
    """Everything that is kept of the lines read so far."""

    skeleton: Skeleton = field(default_factory=Skeleton)
    facts: Facts = field(default_factory=Facts)
    queue: Queue = field(default_factory=Queue)
    agents: Agents = field(default_factory=Agents)
    pending: dict[str, Pending] = field(default_factory=dict)
    bare: dict[str, list[str]] = field(default_factory=dict)  # calls outside of messages, by tool
    answered: dict[str, None] = field(default_factory=dict)  # the most recent ones
    early: dict[str, EarlyResult] = field(default_factory=dict)
    early_size: int = 0
    repeats: dict[bytes, str] = field(default_factory=dict)
    last_at: datetime | None = None
    faults: int = 0
    parent_id: str | None = None
    model: str | None = None  # of the first response
    first_role: str | None = None
    is_open: bool = False

    def find_repeat(self, words: str, id_: str) -> str | None:
        """Return the id of another recent line with this text."""
        key = blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        known = self.repeats.get(key)
        if known is not None:
            return known if known != id_ else None
        if len(self.repeats) >= MAX_REMEMBERED:
            del self.repeats[next(iter(self.repeats))]
        self.repeats[key] = id_
        return None

    def take_pending(self, call: str) -> Pending | None:
        """Remove and return a call that waits for its result; None if it is unknown."""
        pending = self.pending.pop(call, None)
        if pending is not None:
            if len(self.answered) >= MAX_REMEMBERED:
                del self.answered[next(iter(self.answered))]
            self.answered[call] = None
        return pending

    def keep_early_result(self, call: str, early: EarlyResult) -> None:
        """Keep a result until its call is read, unless the call already has a result."""
        if call in self.answered or early.size > MAX_EARLY_RESULT_BYTES:
            return
        self.take_early_result(call)
        while self.early and (
            len(self.early) >= MAX_REMEMBERED or self.early_size + early.size > MAX_EARLY_RESULT_BYTES
        ):
            self.take_early_result(next(iter(self.early)))
        self.early[call] = early
        self.early_size += early.size

    def take_early_result(self, call: str) -> EarlyResult | None:
        """Remove and return the result that was written before its call."""
        early = self.early.pop(call, None)
        if early is not None:
            self.early_size -= early.size
        return early
