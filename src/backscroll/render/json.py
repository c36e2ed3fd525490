"""JSON documents for other programs. Keys and formats are a public contract: only additions are allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from backscroll.model import Session
from backscroll.model.dates import iso
from backscroll.model.text import escape_json

if TYPE_CHECKING:
    from backscroll.model import Message, PaginatedResult, SearchMatch, SearchResult, SessionSummary
    from backscroll.model.export import FoundSecret

__all__ = [
    "encode_json",
    "encode_json_line",
    "json_chunks",
    "json_lines",
    "message_document",
    "page_document",
    "search_document",
    "secrets_document",
    "session_document",
    "summary_document",
]


def encode_json(document: Any) -> bytes:
    """Encode one JSON document, indented."""
    return escape_json(msgspec.json.format(msgspec.json.encode(document), indent=2)) + b"\n"


def summary_document(summary: SessionSummary) -> dict[str, Any]:
    """Return a session as in `list --json`."""
    document = msgspec.structs.asdict(summary)
    document["created_at"] = iso(summary.created_at)
    document["updated_at"] = iso(summary.updated_at)
    document["notes"] = [
        msgspec.structs.asdict(note) | {"written_at": iso(note.written_at), "edited_at": iso(note.edited_at)}
        for note in summary.notes
    ]
    return document


def page_document(page: PaginatedResult[SessionSummary]) -> dict[str, Any]:
    """Return a page of sessions."""
    return {
        "data": [summary_document(summary) for summary in page.data],
        "pagination": msgspec.structs.asdict(page.pagination),
    }


def search_document(found: SearchResult) -> dict[str, Any]:
    """Return a page of search matches."""
    page: dict[str, Any] = {
        "total": found.total,
        "limit": found.limit,
        "offset": found.offset,
        "has_more": found.has_more,
    }
    if found.total is None:
        page["total_at_least"] = found.total_at_least
    return {
        "data": [_match_document(match) for match in found.data],
        "pagination": page,
        "took_ms": found.took_ms,
        "is_relaxed": found.is_relaxed,
    }


def _match_document(match: SearchMatch) -> dict[str, Any]:
    document = msgspec.structs.asdict(match) | {"timestamp": iso(match.timestamp)}
    if match.ranks is not None:
        document["ranks"] = msgspec.structs.asdict(match.ranks)
    if match.also is not None:
        document["also"] = msgspec.structs.asdict(match.also) | {"timestamp": iso(match.also.timestamp)}
    return document


def session_document(session: Session, *, is_complete: bool = True, **fields: Any) -> dict[str, Any]:
    """Return a session with all its messages. ``is_complete`` is false while a long sync is running.

    ``fields`` are other facts about the session.
    """
    messages = _messages(session.messages)
    return summary_document(session.summary) | {**fields, "is_complete": is_complete, "messages": messages}


def _messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return [message_document(message, position) for position, message in enumerate(messages)]


def message_document(message: Message, position: int) -> dict[str, Any]:
    """Return one message. Unknown values are null."""
    tool = message.tool
    usage = message.usage
    return {
        "id": message.id,
        "position": position,
        "role": message.role,
        "kind": message.kind,
        "content": message.content,
        "timestamp": iso(message.timestamp),
        "timestamp_source": message.timestamp_source,
        "model": message.model,
        "parent_id": message.parent_id,
        "response_id": message.response_id,
        "agent_id": message.agent_id,
        "is_active": message.is_active,
        "tool_call_id": tool.id if tool else None,
        "tool_name": tool.name if tool else None,
        "tool_params": tool.params if tool else None,
        "tool_result": tool.result if tool else None,
        "status": tool.status if tool else None,
        "decision": tool.decision if tool else None,
        "attachments": [msgspec.structs.asdict(attachment) for attachment in message.attachments],
        "cwd": message.cwd,
        "git_branch": message.git_branch,
        "stop_reason": message.stop_reason,
        "is_sidechain": message.is_sidechain,
        "copied_from": message.copied_from,
        "usage": None
        if usage is None
        else {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_creation_input_tokens": usage.cache_creation_input_tokens,
            "cache_read_input_tokens": usage.cache_read_input_tokens,
        },
        "origin": {"path": message.origin.path, "place": message.origin.place},
    }


def secrets_document(found: Iterable[FoundSecret]) -> dict[str, Any]:
    """Return kinds and locations of secrets, without their text."""
    data = [
        {
            "kind": secret.kind,
            "number": secret.number,
            "hint": secret.hint,
            "count": secret.count,
            "places": [
                {"session_ref": location.ref, "message_index": location.position}
                for location in secret.locations
            ],
        }
        for secret in found
    ]
    return {"data": data, "total": len(data)}


def json_chunks(
    summary: SessionSummary, messages: Iterable[Message], *, is_complete: bool = True, **fields: Any
) -> Iterator[str]:
    """Yield an encoded `session_document` in chunks, one message at a time.

    ``is_complete`` is false while a long sync is running. ``fields`` are other facts about the session.
    """
    document = session_document(Session(summary, ()), is_complete=is_complete, **fields)
    head = encode_json(document).decode().removesuffix("[]\n}\n")
    yield head + "["
    position = -1
    for position, message in enumerate(messages):
        encoded = encode_json(message_document(message, position)).decode().removesuffix("\n")
        yield ("," if position else "") + "\n    " + encoded.replace("\n", "\n    ")
    yield "]\n}\n" if position < 0 else "\n  ]\n}\n"


def json_lines(summary: SessionSummary, messages: Iterable[Message]) -> Iterator[str]:
    """Yield the summary on the first line, then one line per message."""
    yield encode_json_line(summary_document(summary)).decode()
    for position, message in enumerate(messages):
        yield encode_json_line(message_document(message, position)).decode()


def encode_json_line(document: dict[str, Any]) -> bytes:
    """Encode a JSON document on one line."""
    return escape_json(msgspec.json.encode(document)) + b"\n"
