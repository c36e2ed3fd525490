"""Result types of the tools."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from backscroll.model import Attachment, Decision, Pagination, Role, SearchMatch, SessionSummary, Status
from backscroll.model.search import RecalledSession
from backscroll.model.text import sanitize
from backscroll.model.workspace import WorkspaceSummary

__all__ = [
    "AgentAnswer",
    "ExportAnswer",
    "MessageItem",
    "RecallAnswer",
    "SearchAnswer",
    "SessionAnswer",
    "SessionsAnswer",
    "StatsAnswer",
    "ToolAnswer",
    "WorkspacesAnswer",
    "compact",
    "json_schema",
    "more_hint",
    "paginate",
]

T = TypeVar("T")


class ToolAnswer(Struct, frozen=True):
    """A result in two forms: text for a model, a document for a program."""

    text: str  # quoted history
    document: dict[str, Any]
    notes: tuple[str, ...] = ()  # lines of the server: totals, how to get the next page


class MessageItem(Struct, frozen=True, kw_only=True):
    """A message. Missing fields are unknown or do not apply."""

    position: int
    role: Role
    kind: str | None
    content: str
    timestamp: datetime | None
    model: str | None
    agent_id: str | None
    is_active: bool
    tool_name: str | None
    tool_params: dict[str, Any] | str | None  # a string if it was cut
    tool_result: str | None
    status: Status | None
    decision: Decision | None
    attachments: tuple[Attachment, ...]
    copied_from: str | None
    cut_chars: int | None  # characters omitted at the end


class SessionsAnswer(Struct):
    notice: str
    is_complete: bool  # False while the first sync is running
    data: list[SessionSummary]
    pagination: Pagination


class SessionAnswer(Struct):
    notice: str
    is_complete: bool  # False while the first sync is running
    session: SessionSummary
    messages: list[MessageItem]
    next_from: int | None  # start of the next page


class AgentAnswer(Struct):
    notice: str
    is_complete: bool  # False while the first sync is running
    agent_id: str
    parent_session_id: str
    messages: list[MessageItem]
    prompt: str | None
    model: str | None
    total_duration_ms: int | None
    total_tokens: int | None
    total_tool_use_count: int
    next_from: int | None


class SearchPagination(Struct):
    total: int | None
    limit: int
    offset: int
    has_more: bool
    total_at_least: int | None


class SearchAnswer(Struct):
    notice: str
    is_complete: bool  # False while the first sync is running
    data: list[SearchMatch]
    pagination: SearchPagination
    took_ms: float
    is_relaxed: bool


class ExportAnswer(Struct):
    notice: str
    is_complete: bool  # False while the first sync is running
    ref: str
    format: str
    text: str
    next_from_char: int | None


class WorkspacesAnswer(Struct):
    notice: str
    is_complete: bool  # False while the first sync is running
    data: list[WorkspaceSummary]
    pagination: Pagination


class StatsAnswer(Struct):
    notice: str
    is_complete: bool  # False while the first sync is running
    data: list[dict[str, Any]]
    total: dict[str, Any]
    prices_checked: str
    zone: str
    pagination: Pagination
    by: str | None
    since: str | None
    until: str | None


class RecallAnswer(Struct):
    notice: str
    is_complete: bool  # False while the first sync is running
    data: list[RecalledSession]
    token_budget: int
    left_out: int


def json_schema(struct_type: type, *, is_output: bool = False) -> dict[str, Any]:
    """Return the JSON schema of a struct. In outputs, null fields are optional."""
    schema = msgspec.json.schema(struct_type)
    definitions = schema["$defs"]
    root: dict[str, Any] = definitions.pop(schema["$ref"].rpartition("/")[2])
    if is_output:
        nullable = {name for name, field in root["properties"].items() if _is_nullable(field)}
        root["required"] = [name for name in root.get("required", []) if name not in nullable]
        for definition in definitions.values():
            definition.pop("required", None)
    return root | ({"$defs": definitions} if definitions else {})


def _is_nullable(schema: Mapping[str, Any]) -> bool:
    return any(option.get("type") == "null" for option in schema.get("anyOf", ()))


def more_hint(offset: int, *, has_more: bool) -> str:
    """Return how to get the next page, or an empty string."""
    return f"; more with offset={offset}" if has_more else ""


def paginate(rows: Sequence[T], *, limit: int, offset: int) -> tuple[Sequence[T], Pagination]:
    """Return one page of a complete list."""
    page = rows[offset : offset + limit]
    return page, Pagination(len(rows), limit, offset, has_more=offset + len(page) < len(rows))


def compact(document: dict[str, Any]) -> dict[str, Any]:
    """Drop null and empty fields, and control characters in text."""
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
