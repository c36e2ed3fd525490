"""What a later reading of a transcript needs of an earlier one."""

from datetime import datetime
from hashlib import blake2b

from msgspec import Struct, field

from backscroll.model import Origin, Status
from backscroll.sources.claude_code.transcript.branches import Skeleton
from backscroll.sources.claude_code.transcript.queue import Queue
from backscroll.sources.claude_code.transcript.state_lines import Facts
from backscroll.sources.claude_code.transcript.subagents import Agents, Pending

__all__ = ["EarlyResult", "ReaderState"]

MAX_REMEMBERED = 512  # what is written twice, or in the wrong order, is soon written
MAX_EARLY_RESULT_BYTES = 4 * 1024 * 1024  # bytes of answers kept for calls that may never come


class EarlyResult(Struct, array_like=True):
    """An answer that came before its call: what the call's kind decides how to read."""

    result: str
    status: Status
    raw: bytes  # the structured copy
    origin: Origin
    record_id: str
    at: datetime | None

    @property
    def size(self) -> int:
        return len(self.result) + len(self.raw)


class ReaderState(Struct, array_like=True):
    """Everything of a transcript that is kept while its lines go by."""

    skeleton: Skeleton = field(default_factory=Skeleton)
    facts: Facts = field(default_factory=Facts)
    queue: Queue = field(default_factory=Queue)
    agents: Agents = field(default_factory=Agents)
    pending: dict[str, Pending] = field(default_factory=dict)
    bare: dict[str, list[str]] = field(default_factory=dict)  # calls outside any message, by tool
    answered: dict[str, None] = field(default_factory=dict)  # the last calls that were
    early: dict[str, EarlyResult] = field(default_factory=dict)
    early_size: int = 0
    repeats: dict[bytes, str] = field(default_factory=dict)
    last_at: datetime | None = None
    faults: int = 0
    parent_id: str | None = None
    model: str | None = None  # of the first answer
    first_role: str | None = None
    is_open: bool = False

    def find_repeat(self, words: str, id_: str) -> str | None:
        """Another line that said these words a short while ago."""
        key = blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        known = self.repeats.get(key)
        if known is not None:
            return known if known != id_ else None
        if len(self.repeats) >= MAX_REMEMBERED:
            del self.repeats[next(iter(self.repeats))]
        self.repeats[key] = id_
        return None

    def take_pending(self, call: str) -> Pending | None:
        """The call that is answered now, if it is known and waits."""
        pending = self.pending.pop(call, None)
        if pending is not None:
            if len(self.answered) >= MAX_REMEMBERED:
                del self.answered[next(iter(self.answered))]
            self.answered[call] = None
        return pending

    def keep_early_result(self, call: str, early: EarlyResult) -> None:
        """Keep an answer whose call may still come; an answer written twice is none."""
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
        """The answer that came before this call, no longer kept."""
        early = self.early.pop(call, None)
        if early is not None:
            self.early_size -= early.size
        return early
