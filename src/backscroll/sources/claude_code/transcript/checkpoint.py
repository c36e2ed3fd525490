"""State of a transcript reader, stored in the checkpoint for the next reader."""

from datetime import datetime
from hashlib import blake2b

from msgspec import Struct, field

from backscroll.model import Decision, Message, Origin, Status
from backscroll.sources.claude_code.transcript.branches import TreeState
from backscroll.sources.claude_code.transcript.commands import Commands
from backscroll.sources.claude_code.transcript.copies import Conversation, Copies
from backscroll.sources.claude_code.transcript.queue import Queue
from backscroll.sources.claude_code.transcript.state_lines import Facts
from backscroll.sources.claude_code.transcript.subagents.agents import Agents, Pending

__all__ = ["EarlyResult", "ReaderState"]

MAX_CACHED_ENTRIES = 512  # per dict; repeats and early results are close to their original in the file
MAX_EARLY_RESULT_BYTES = 4 * 1024 * 1024
MAX_REJECTIONS = 16  # only those just before an interruption matter


class EarlyResult(Struct, array_like=True):
    """Tool result that was written before its call. It can be parsed only with the call."""

    result: str
    status: Status
    raw: bytes  # structured result as JSON
    origin: Origin
    record_id: str
    at: datetime | None
    decision: Decision | None = None

    @property
    def size(self) -> int:
        return len(self.result) + len(self.raw)


class ReaderState(Struct, array_like=True):
    """State after the lines read so far. Encoded as an array: the order of the fields is fixed."""

    tree: TreeState = field(default_factory=TreeState)
    facts: Facts = field(default_factory=Facts)
    queue: Queue = field(default_factory=Queue)
    agents: Agents = field(default_factory=Agents)
    pending: dict[str, Pending] = field(default_factory=dict)
    bare_calls: dict[str, list[str]] = field(default_factory=dict)  # outside of messages, ids by tool
    answered: dict[str, None] = field(default_factory=dict)  # ids of recent calls with a result
    early: dict[str, EarlyResult] = field(default_factory=dict)
    early_size: int = 0  # bytes
    repeats: dict[bytes, str] = field(default_factory=dict)  # hash of a text, and the id of its first line
    last_at: datetime | None = None
    fault_count: int = 0
    parent_id: str | None = None
    model: str | None = None  # of the first response
    first_role: str | None = None
    is_open: bool = False
    commands: Commands = field(default_factory=Commands)
    copies: Copies = field(default_factory=Copies)
    # By call id: the node of the call and its result. A stopped call has the same result as a rejected one.
    rejections: dict[str, tuple[int, EarlyResult]] = field(default_factory=dict)
    conversation: Conversation = field(default_factory=Conversation)
    last_prompt: Message | None = None  # until the next user line or answer; lines after it can attach files
    progress_agents: dict[str, "ReaderState"] = field(default_factory=dict)  # subagents without a file, by id

    def find_repeat(self, text: str, id_: str) -> str | None:
        """Return the id of an earlier line with this text, if it is recent and has another id."""
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        first_id = self.repeats.get(key)
        if first_id is not None:
            return first_id if first_id != id_ else None
        if len(self.repeats) >= MAX_CACHED_ENTRIES:
            del self.repeats[next(iter(self.repeats))]
        self.repeats[key] = id_
        return None

    def take_pending(self, call_id: str) -> Pending | None:
        """Remove and return a call without a result; None if there is none with this id."""
        pending = self.pending.pop(call_id, None)
        if pending is not None:
            if len(self.answered) >= MAX_CACHED_ENTRIES:
                del self.answered[next(iter(self.answered))]
            self.answered[call_id] = None
        return pending

    def keep_early_result(self, call_id: str, early: EarlyResult) -> None:
        """Keep a result until its call is read, unless the call already has a result."""
        if call_id in self.answered or early.size > MAX_EARLY_RESULT_BYTES:
            return
        self.take_early_result(call_id)
        while self.early and (
            len(self.early) >= MAX_CACHED_ENTRIES or self.early_size + early.size > MAX_EARLY_RESULT_BYTES
        ):
            self.take_early_result(next(iter(self.early)))
        self.early[call_id] = early
        self.early_size += early.size

    def keep_rejection(self, call_id: str, node: int, result: EarlyResult) -> None:
        """Keep the result of a rejected call until the next line shows whether the call was running."""
        self.rejections[call_id] = node, result
        if len(self.rejections) > MAX_REJECTIONS:
            del self.rejections[next(iter(self.rejections))]

    def take_early_result(self, call_id: str) -> EarlyResult | None:
        """Remove and return the result that was written before its call."""
        early = self.early.pop(call_id, None)
        if early is not None:
            self.early_size -= early.size
        return early
