"""Result types of the tools.

A session is named by its ``ref`` and a message by its ``position``, as in the arguments.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

from msgspec import Struct

from backscroll.mcp.quoting import NOTICE, quote_history
from backscroll.model import Attachment, Decision, Pagination, Role, Status
from backscroll.model.code.commit import EvidenceKind
from backscroll.model.safekeeping.backup import FileCheck
from backscroll.model.search import SearchRanks
from backscroll.model.session import Completeness, Note
from backscroll.model.text import sanitize
from backscroll.model.workspace import WorkspaceSummary

__all__ = [
    "AgentAnswer",
    "CodeAnswer",
    "CommitAnswer",
    "ExportAnswer",
    "JournalContextAnswer",
    "JournalWriteAnswer",
    "MessageItem",
    "PlanAnswer",
    "RecallAnswer",
    "SearchAnswer",
    "SessionAnswer",
    "SessionsAnswer",
    "StatsAnswer",
    "ToolAnswer",
    "ValidationAnswer",
    "WorkspacesAnswer",
    "more_hint",
    "paginate",
    "rename",
]

T = TypeVar("T")


class ToolAnswer(Struct, frozen=True):
    """A result in two forms with the same content: text for a model, a document for a program."""

    text: str  # quoted history
    document: dict[str, Any]
    hints: tuple[str, ...] = ()  # lines of the server: totals, how to get the next page

    def as_text(self, sync_note: str | None) -> str:
        """Return the quoted text, followed by the hints."""
        return quote_history(self.text, *self._all_hints(sync_note))

    def as_document(self, sync_note: str | None) -> dict[str, Any]:
        """Return the document without null and empty fields and without control characters."""
        document = {"notice": NOTICE, "is_complete": sync_note is None, **self.document}
        return _compact_fields(document) | {"hints": [*map(sanitize, self._all_hints(sync_note))]}

    def _all_hints(self, sync_note: str | None) -> tuple[str, ...]:
        return self.hints if sync_note is None else (*self.hints, sync_note)


class SessionItem(Struct, frozen=True, kw_only=True):
    """A session. Missing fields are unknown or do not apply."""

    ref: str
    index: int | None  # from 1, in the complete list
    source: str
    platform: str
    title: str | None
    workspace_path: str | None
    workspace_name: str | None
    message_count: int
    created_at: datetime | None
    updated_at: datetime | None
    first_message_preview: str | None
    git_branch: str | None
    models: tuple[str, ...]
    version: str | None
    agent_refs: tuple[str, ...]  # of its subagents
    parent_ref: str | None  # of a subagent: the session that started it
    interaction_count: int
    acceptance_rate: float | None
    total_tokens: int | None
    total_changes: int
    completeness: Completeness
    is_gone: bool
    tags: tuple[str, ...]
    is_starred: bool
    notes: tuple[Note, ...]
    original_title: str | None


class MessageItem(Struct, frozen=True, kw_only=True):
    """A message. Missing fields are unknown or do not apply."""

    position: int
    role: Role
    kind: str | None
    content: str
    timestamp: datetime | None
    model: str | None
    agent_ref: str | None
    tool_name: str | None
    tool_params: dict[str, Any] | str | None  # a string if it was cut
    tool_result: str | None
    status: Status | None
    decision: Decision | None
    attachments: tuple[Attachment, ...]
    copied_from: str | None
    cut_chars: int | None  # characters omitted at the end
    full_chars: int | None  # length of its longest text, if something was cut


class SecondMatchItem(Struct, frozen=True, kw_only=True):
    position: int
    role: Role
    timestamp: datetime | None
    match: str
    highlights: tuple[tuple[int, int], ...]
    line_number: int


class MatchItem(Struct, frozen=True, kw_only=True):
    """A message that matches a query."""

    ref: str
    index: int | None  # of the session, from 1, in the complete list
    source: str
    title: str | None
    workspace_name: str | None
    position: int
    role: Role
    timestamp: datetime | None
    match: str
    highlights: tuple[tuple[int, int], ...]  # in the match
    context: tuple[str, ...]  # lines around the match, including it
    line_number: int
    score: float
    match_count: int  # matching messages of the session
    parent_ref: str | None  # of a subagent: the session that started it
    matches_all: bool  # the session has all words, not some
    also: SecondMatchItem | None  # another message, if the words are spread over several
    ranks: SearchRanks | None
    is_note: bool  # the match is in the user's notes on the session
    is_title: bool  # the match is in the title of the session


class ExcerptItem(Struct, frozen=True, kw_only=True):
    """A part of a session that is relevant to a task."""

    agent_ref: str | None  # set if it is from a subagent
    position: int
    role: Role
    timestamp: datetime | None
    asked: str | None
    text: str
    outcome: str | None


class RecalledItem(Struct, frozen=True, kw_only=True):
    """A session that is relevant to a task."""

    ref: str
    title: str | None
    workspace_name: str | None
    updated_at: datetime | None
    excerpts: tuple[ExcerptItem, ...]


class _Answer(Struct, kw_only=True):
    notice: str
    is_complete: bool  # False while the first sync is running
    hints: list[str]  # totals, how to get the next page


class SessionsAnswer(_Answer, kw_only=True):
    data: list[SessionItem]
    pagination: Pagination


class SessionAnswer(_Answer, kw_only=True):
    session: SessionItem
    messages: list[MessageItem]
    next_position: int | None  # start of the next page


class AgentAnswer(_Answer, kw_only=True):
    ref: str
    parent_ref: str
    messages: list[MessageItem]
    prompt: str | None
    model: str | None
    total_duration_ms: int | None
    total_tokens: int | None
    total_tool_use_count: int
    next_position: int | None


class SearchPagination(Struct):
    total: int | None
    limit: int
    offset: int
    has_more: bool
    total_at_least: int | None


class SearchAnswer(_Answer, kw_only=True):
    data: list[MatchItem]
    pagination: SearchPagination
    took_ms: float
    is_relaxed: bool


class ExportAnswer(_Answer, kw_only=True):
    ref: str
    format: str
    text: str
    next_from_char: int | None


class WorkspacesAnswer(_Answer, kw_only=True):
    data: list[WorkspaceSummary]
    pagination: Pagination


class StatsAnswer(_Answer, kw_only=True):
    data: list[dict[str, Any]]
    total: dict[str, Any]
    prices_checked: str
    zone: str
    pagination: Pagination
    by: str | None
    since: str | None
    until: str | None


class RecallAnswer(_Answer, kw_only=True):
    data: list[RecalledItem]
    token_budget: int
    left_out: int


class EvidenceItem(Struct, frozen=True, kw_only=True):
    kind: EvidenceKind
    weight: float
    detail: str


class TurnItem(Struct, frozen=True, kw_only=True):
    position: int
    last_position: int
    prompt: str | None


class LinkedItem(Struct, frozen=True, kw_only=True):
    """A session that led to a commit."""

    ref: str
    title: str | None
    workspace_name: str | None
    score: float
    evidence: tuple[EvidenceItem, ...]
    turns: tuple[TurnItem, ...]
    omitted_turns: int | None


class CommitAnswer(_Answer, kw_only=True):
    sha: str
    parent: str | None
    author: str
    at: datetime
    subject: str
    sessions: list[LinkedItem]


class RangeItem(Struct, frozen=True, kw_only=True):
    """Consecutive lines of a file with the same origin. Without a ref, no session wrote them."""

    first_line: int
    last_line: int
    sha: str | None  # None if they are not committed
    at: datetime | None
    author: str | None
    subject: str | None
    ref: str | None
    title: str | None
    agent_ref: str | None
    position: int | None
    last_position: int | None
    prompt: str | None


class CodeAnswer(_Answer, kw_only=True):
    file: str
    data: list[RangeItem]


class PlanAnswer(_Answer, kw_only=True):
    status: Literal["planned", "applied", "blocked", "failed", "running", "nothing_to_do"]
    reason: str | None  # why a given plan was not applied
    plan: dict[str, Any] | None  # unless it was applied
    plan_id: str | None  # to apply the plan
    expires_at: datetime | None  # of the plan
    command: str | None  # if it is blocked: the shell command to run later
    result: dict[str, Any] | None  # if it was applied


class ValidationAnswer(_Answer, kw_only=True):
    status: str  # valid, warnings or invalid
    file_count: int
    files: list[FileCheck]  # the ones that are not valid
    problems: list[str]
    manifest: dict[str, Any] | None


class JournalContextAnswer(_Answer, kw_only=True):
    sha: str
    path: str | None = None  # of the existing entry
    material: str
    sections: dict[str, str]
    quotes: list[dict[str, Any]]
    notes: list[dict[str, str]]


class JournalWriteAnswer(_Answer, kw_only=True):
    status: Literal["written", "kept", "rejected"]  # kept: the user edited the entry
    path: str | None = None
    result: dict[str, Any] | None = None
    problems: list[dict[str, Any]] | None = None  # quotes that are not verbatim


def more_hint(offset: int, *, has_more: bool) -> str:
    """Return how to get the next page, or an empty string."""
    return f"; more with offset={offset}" if has_more else ""


def paginate(rows: Sequence[T], *, limit: int, offset: int) -> tuple[Sequence[T], Pagination]:
    """Return one page of a complete list."""
    page = rows[offset : offset + limit]
    return page, Pagination(len(rows), limit, offset, has_more=offset + len(page) < len(rows))


def rename(document: dict[str, Any], names: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the document with other field names. A field whose new name is None is dropped."""
    renamed = ((names.get(name, name), value) for name, value in document.items())
    return {name: value for name, value in renamed if name is not None}


def _compact_fields(document: dict[str, Any]) -> dict[str, Any]:
    return {key: _compact(value) for key, value in document.items() if value is not None}


def _compact(value: Any) -> Any:
    match value:
        case str():
            return sanitize(value)
        case dict():
            fields = {sanitize(str(key)): _compact(each) for key, each in value.items() if each is not None}
            return {key: each for key, each in fields.items() if each not in ([], {})}
        case list() | tuple():
            return [_compact(each) for each in value]
    return value
