"""Input that could not be parsed, and the audit that counts all input."""

from typing import NamedTuple

from msgspec import Struct, field

from backscroll.model.message import Origin

# Every code that a problem can have. Codes are stored and compared; reasons are text for users.
PROBLEM_CODES = {
    "truncated-line": "The last line of a file is incomplete: the tool is still writing, or it crashed.",
    "line-too-large": "A line is too large to decode; only its first fields were read.",
    "nested-too-deeply": "A value has too many nested levels; it is left out.",
    "not-json": "Text that should be JSON is not JSON.",
    "unexpected-shape": "The JSON or protobuf data, the table or the list has another shape than expected.",
    "unknown-type": "The type of a record, its role, key family or table is not known.",
    "no-content": "A record has a known type and no content that is understood.",
    "damaged-record": "Part of a record cannot be decoded.",
    "altered-record": "The content of a record does not match its hash.",
    "missing-record": "A record is referenced and not in the store.",
    "orphaned-record": "A record belongs to no session.",
    "missing-table": "A database lacks a table.",
    "damaged-database": "Part of a database is damaged; rows may be missing.",
    "unreadable-database": "A database cannot be read: damaged, encrypted or not permitted.",
    "locked-database": "Another process locks a database.",
    "missing-database": "A database disappeared before it was read, or only its write-ahead log exists.",
    "permission-denied": "The user may not read a file or folder.",
    "unreadable-file": "A file cannot be opened or read.",
    "not-a-file": "A folder, a named pipe or a broken link has the name of a session file.",
    "invalid-file-name": "The name of a file is not UTF-8.",
    "changed-while-reading": "A file changed while it was read; it is read again by the next sync.",
}


# Codes of problems that the user can solve. A bug report does not help with them.
ENVIRONMENT_CODES = frozenset(
    {
        "permission-denied",
        "unreadable-file",
        "not-a-file",
        "locked-database",
        "missing-database",
        "invalid-file-name",
        "changed-while-reading",
    }
)


class Fault(NamedTuple):
    """A problem without its origin."""

    code: str
    reason: str


class Problem(Struct, frozen=True):
    """Input that could not be parsed. A value, not an exception."""

    origin: Origin
    code: str  # one of PROBLEM_CODES; stable, compared in code
    reason: str  # for users


class AuditedRoot(Struct, kw_only=True):
    """One root of one source with the counts of everything below it."""

    source: str
    path: str
    exists: bool
    units: dict[str, int] = field(default_factory=dict)  # by kind
    sessions: int = 0
    subagents: int = 0
    session_messages: int = 0  # active messages except system messages, without subagents
    subagent_messages: int = 0  # the same, of subagents
    messages: int = 0  # all messages of sessions and subagents, with system messages and abandoned branches
    unlisted: dict[str, int] = field(default_factory=dict)  # sessions that are no conversation, by reason
    completeness: dict[str, int] = field(default_factory=dict)
    records: int = 0
    parsed: int = 0
    ignored: int = 0
    problems: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)

    @property
    def is_balanced(self) -> bool:
        return self.records == self.parsed + self.ignored + self.problems


class SourceCounts(Struct, kw_only=True):
    """Counts of one root of one source in the archive, without units that the tool has deleted."""

    source: str
    path: str
    exists: bool = False
    units: int = 0
    records: int = 0
    parsed: int = 0
    ignored: int = 0
    problems: int = 0
    unknown: dict[str, int] = field(default_factory=dict)  # unknown types, families and versions


class Audit(Struct, kw_only=True):
    """Every root that was read, and the problems found there."""

    places: list[AuditedRoot]
    problems: list[Problem]

    @property
    def is_understood(self) -> bool:
        return not self.problems and not any(place.problems or place.unknown for place in self.places)


class LostMessages(Struct, frozen=True):
    """A session that lost all or some messages."""

    ref: str
    title: str | None
    lost_messages: int
    is_lost: bool  # nothing of it is left


class Repaired(Struct, frozen=True):
    """Result of a repair."""

    damaged_file: str  # where the damaged archive is kept
    rows: int  # copied to the new archive
    damaged_tables: tuple[str, ...]
    read_again: int  # units, from the tools
    parsed_again: int  # units, from their archived originals
    lost: tuple[LostMessages, ...]
    lost_originals: int  # units whose archived files or rows are gone, although their messages are not
