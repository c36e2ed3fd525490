"""Commits and the sessions that led to them."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

EvidenceKind = Literal[
    "commit", "content", "files", "time", "workspace", "worktree", "branch", "tracking", "manual"
]

SurvivalBy = Literal["session", "model", "month"]


class Evidence(Struct, frozen=True, gc=False):
    """One reason to link a session with a commit."""

    kind: EvidenceKind
    weight: float  # share of the score
    detail: str


class LinkedSession(Struct, frozen=True, gc=False):
    """A session that led to a commit. The score is the sum of the weights, at most 1."""

    session_ref: str
    session_id: str
    score: float
    evidence: tuple[Evidence, ...]


class OpenSession(Struct, frozen=True, gc=False):
    """A session that was open in the repository at the time of a commit. It is no evidence."""

    session_ref: str
    session_id: str
    first: int  # positions of its first and last message in the window
    last: int


class CommitSummary(Struct, frozen=True, kw_only=True):
    """A commit with the sessions that led to it, best first."""

    sha: str
    parent: str | None
    author: str
    at: datetime  # of the author: it stays the same in a rebase
    subject: str
    sessions: tuple[LinkedSession, ...]
    context: tuple[OpenSession, ...] = ()  # of a commit without sessions: those open at the time, by time

    @property
    def refs(self) -> set[str]:
        """The sessions that led to the commit, and those open at the time."""
        return {*(each.session_ref for each in self.sessions), *(each.session_ref for each in self.context)}


class CommitTurn(Struct, frozen=True):
    """Messages of one turn that led to a commit: positions of the first and the last one."""

    session_ref: str
    first: int
    last: int
    prompt: str | None  # the user's words


class CommitDetails(CommitSummary, frozen=True, kw_only=True):
    """A commit with its sessions and their turns."""

    turns: tuple[CommitTurn, ...]
    is_merge: bool = False  # only its commit call is evidence


class BlameLine(Struct, frozen=True, kw_only=True, gc=False):
    """A line of a file as it is now, and its origin. Lines that no session wrote have no session."""

    line: int  # from 1
    text: str
    sha: str | None  # None if it is not committed
    session_ref: str | None
    message_id: str | None  # that wrote the line, or started the subagent that did
    prompt: str | None  # the user's words that asked for it
    prompt_id: str | None
    first: int | None  # positions of the turn's first and last message
    last: int | None
    agent_ref: str | None  # the subagent that wrote it
    author: str | None  # of the commit
    at: datetime | None  # of the author
    subject: str | None


class ChangedFile(Struct, frozen=True):
    """A file that a commit changes. The counts are None for a binary file."""

    path: str
    added: int | None
    removed: int | None
    exists: bool  # in the commit: it is not deleted by it


class FileFacts(Struct, frozen=True):
    """A text file of a repository."""

    path: str  # relative to the root
    size: int  # bytes
    line_count: int


class SurvivalRow(Struct, frozen=True, kw_only=True):
    """Lines that sessions wrote into a repository, and what they cost."""

    key: str | None  # ref of the session, model or month; None if it is not known
    lines_written: int
    lines_committed: int
    lines_alive: int  # in the last commit
    cost_usd: float | None  # None if it is not known
    priced_lines_alive: int  # of sessions whose cost is known

    @property
    def cost_per_alive_line(self) -> float | None:
        """Dollars per line that is alive, of sessions with a known cost; None if there is none."""
        if self.cost_usd is None or not self.priced_lines_alive:
            return None
        return self.cost_usd / self.priced_lines_alive


class TrackedEdit(Struct, frozen=True, gc=False):
    """Code of a session in a file, as the tool's own tracking reports it. The text is not known."""

    session_id: str
    path: str  # name or path of the file
    at: int  # milliseconds since 1970


class TrackedCode(Struct, frozen=True):
    """What a tool tracks about code and commits."""

    edits: tuple[TrackedEdit, ...] = ()
    commits: dict[str, tuple[int, int]] = {}  # by hash: added lines of sessions, and all added lines
