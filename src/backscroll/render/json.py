"""JSON for other programs: encoded documents, and sessions with all their messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from backscroll.documents import message_document, to_document
from backscroll.model.session import Session
from backscroll.model.text import escape_json

if TYPE_CHECKING:
    from backscroll.model.export import FoundSecret
    from backscroll.model.message import Message
    from backscroll.model.session import SessionSummary


def encode_json(document: Any) -> bytes:
    """Encode one JSON document, indented."""
    return escape_json(msgspec.json.format(msgspec.json.encode(document), indent=2)) + b"\n"


def session_document(session: Session, *, is_complete: bool = True, **fields: Any) -> dict[str, Any]:
    """Return a session with all its messages. ``is_complete`` is false while a long sync is running.

    ``fields`` are other facts about the session.
    """
    messages = [message_document(message, position) for position, message in enumerate(session.messages)]
    return to_document(session.summary) | {**fields, "is_complete": is_complete, "messages": messages}


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
    yield encode_json_line(to_document(summary)).decode()
    for position, message in enumerate(messages):
        yield encode_json_line(message_document(message, position)).decode()


def encode_json_line(document: dict[str, Any]) -> bytes:
    """Encode a JSON document on one line."""
    return escape_json(msgspec.json.encode(document)) + b"\n"
