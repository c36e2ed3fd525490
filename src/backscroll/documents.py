"""The public JSON documents. Interfaces and reference derive theirs from here.

    to_document      any struct of the model: its fields in order
    …_document       documents whose shape differs from the model: messages, search results
    schemas          JSON Schema of documents

Names, order and formats of documents are a public contract: only additions are allowed. The filters of
sessions are in `filters`: a list at a terminal needs no document.
"""

from collections.abc import Iterable
from datetime import date, datetime
from functools import cache
from pathlib import PurePath
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from backscroll.model.dates import iso
from backscroll.model.message import (
    Attachment,
    Decision,
    Message,
    Origin,
    Role,
    Status,
    Time,
    TimeSource,
    ToolCall,
)
from backscroll.model.search import RecalledSession, RecallResult, SearchMatch, SearchResult
from backscroll.model.session import PaginatedResult, SessionSummary
from backscroll.model.workspace import WorkspaceSummary


def to_document(value: Struct) -> dict[str, Any]:
    """Return the fields of a struct for JSON. Times are UTC with milliseconds. Unset fields are left out."""
    document = asdict(value)
    for name in _nested_fields(type(value)):
        if document[name] is UNSET:
            del document[name]
        else:
            document[name] = _plain(document[name])
    return document


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return to_document(value)
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, PurePath) else value


@cache
def _nested_fields(type_: type[Struct]) -> tuple[str, ...]:
    """Return the fields that are not JSON by their type. Checking every value takes twice as long."""
    hints = get_type_hints(type_)
    return tuple(name for name in type_.__struct_fields__ if not _is_json(hints[name]))


def _is_json(type_: Any) -> bool:
    parts = get_args(type_)
    is_plain = type_ in (str, int, float, bool, NoneType, ...) or get_origin(type_) is Literal
    return is_plain or (bool(parts) and all(map(_is_json, parts)))


class Usage(Struct, frozen=True):
    """Tokens of a response, on its first message."""

    input_tokens: int | None
    output_tokens: int | None
    cache_creation_input_tokens: int | None
    cache_read_input_tokens: int | None


class MessageDocument(Struct, frozen=True, kw_only=True):
    """A message with its tool call. Unknown values are null."""

    id: str
    position: int  # in the session, from 0
    role: Role
    kind: str | None
    content: str
    timestamp: Time | None
    timestamp_source: TimeSource | None
    model: str | None
    parent_id: str | None
    response_id: str | None
    agent_id: str | None  # the subagent that wrote it
    is_active: bool  # on the branch that the tool shows
    tool_call_id: str | None
    tool_name: str | None
    tool_params: dict[str, Any] | None
    tool_result: str | None
    status: Status | None  # of the tool call
    decision: Decision | None  # of the user about the tool call
    attachments: tuple[Attachment, ...]
    cwd: str | None
    git_branch: str | None
    stop_reason: str | None
    is_sidechain: bool
    copied_from: str | None  # the session that first contained the message
    usage: Usage | None
    origin: Origin


_TOOL_FIELDS = (
    ("tool_call_id", "id"),
    ("tool_name", "name"),
    ("tool_params", "params"),
    ("tool_result", "result"),
    ("status", "status"),
    ("decision", "decision"),
)


def message_document(message: Message, position: int) -> dict[str, Any]:
    """Return a message as a `MessageDocument`."""
    document: dict[str, Any] = dict.fromkeys(MessageDocument.__struct_fields__)
    document.update(asdict(message))
    document["position"] = position
    document["timestamp"] = iso(message.timestamp)
    document["attachments"] = [asdict(attachment) for attachment in message.attachments]
    document["origin"] = asdict(message.origin)
    if message.usage is not None:
        document["usage"] = {name: getattr(message.usage, name) for name in Usage.__struct_fields__}
    tool: ToolCall | None = document.pop("tool")
    if tool is not None:
        document.update((name, getattr(tool, field)) for name, field in _TOOL_FIELDS)
    return document


class SearchPagination(Struct, frozen=True):
    """Position of a page of matches."""

    total: int | None  # sessions with all words; null if counting is too expensive
    limit: int
    offset: int
    has_more: bool
    total_at_least: int | UnsetType | None = UNSET  # instead of the total


class MatchPage(Struct, frozen=True):
    """A page of matches, best first."""

    data: tuple[SearchMatch, ...]
    pagination: SearchPagination
    took_ms: float
    is_relaxed: bool  # no message has all words; these have the most


def search_document(found: SearchResult) -> dict[str, Any]:
    """Return search results as a `MatchPage`."""
    at_least = found.total_at_least if found.total is None else UNSET
    pagination = SearchPagination(found.total, found.limit, found.offset, found.has_more, at_least)
    return to_document(MatchPage(found.data, pagination, found.took_ms, found.is_relaxed))


class RecallDocument(Struct, frozen=True):
    """Sessions that are relevant to a task, best first."""

    data: tuple[RecalledSession, ...]
    token_budget: int
    left_out: int  # relevant sessions that exceed the token budget


def recall_document(result: RecallResult) -> dict[str, Any]:
    """Return the sessions of a recall as a `RecallDocument`."""
    return to_document(RecallDocument(result.sessions, result.token_budget, result.left_out))


class SessionPage(PaginatedResult[SessionSummary], frozen=True):
    """A page of sessions."""


class MessagePage(PaginatedResult[MessageDocument], frozen=True):
    """A page of messages, in order."""


class SessionDetails(SessionSummary, frozen=True, kw_only=True):
    """A session without its messages."""

    reported_cost_usd: float | None  # by the tool


class WorkspaceList(Struct, frozen=True):
    """All workspaces."""

    data: tuple[WorkspaceSummary, ...]


class Failure(Struct, frozen=True):
    """Why a request failed."""

    status: int
    message: str


class ErrorDocument(Struct, frozen=True):
    """The response to a request that failed."""

    error: Failure


def schemas(
    types: Iterable[type], ref_template: str
) -> tuple[tuple[dict[str, Any], ...], dict[str, dict[str, Any]]]:
    """Return the JSON Schema of each document, and the schemas of its parts by name.

    Documents have all fields, also those with the default value.
    """
    roots, components = msgspec.json.schema_components(types, ref_template=ref_template)
    for schema in components.values():
        properties = schema.get("properties", {})
        required = set(schema.get("required", ()))
        schema["required"] = [
            name for name in properties if name in required or "default" in properties[name]
        ]
        for each in properties.values():
            each.pop("default", None)
    return roots, components
