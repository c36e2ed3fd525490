"""Recalled sessions as text and as JSON."""

from collections.abc import Iterator
from typing import Any

import msgspec

from backscroll.model.dates import iso
from backscroll.model.search import Excerpt, RecalledSession, RecallResult
from backscroll.model.text import one_line, sanitize
from backscroll.render.terminal.humanize import short_id

__all__ = ["recall_document", "recall_lines", "recalled_session_document"]

_MAX_FIELD_CHARS = 100


def recall_lines(result: RecallResult, *, user_label: str = "you") -> Iterator[str]:
    """Yield each session with its excerpts. A number in brackets is the position of a message."""
    for rank, session in enumerate(result.sessions, start=1):
        if rank > 1:
            yield ""
        yield f"{rank}. {_heading(session)}"
        for excerpt in session.excerpts:
            yield from _excerpt_lines(excerpt, user_label)


def recall_document(result: RecallResult) -> dict[str, Any]:
    """Return the result as JSON. Unknown values are null."""
    return {
        "data": [recalled_session_document(session) for session in result.sessions],
        "token_budget": result.token_budget,
        "left_out": result.left_out,
    }


def recalled_session_document(session: RecalledSession) -> dict[str, Any]:
    """Return one of the sessions as JSON."""
    document = msgspec.structs.asdict(session) | {"updated_at": iso(session.updated_at)}
    document["excerpts"] = [
        msgspec.structs.asdict(excerpt) | {"timestamp": iso(excerpt.timestamp)}
        for excerpt in session.excerpts
    ]
    return document


def _heading(session: RecalledSession) -> str:
    source = session.session_ref.partition(":")[0]
    fields = [
        one_line(session.title or "untitled", _MAX_FIELD_CHARS),
        one_line(session.workspace_name or "", _MAX_FIELD_CHARS),
        f"{session.updated_at:%Y-%m-%d}" if session.updated_at else "",
        f"{source}:{short_id(session.session_id)}",
    ]
    return " · ".join(field for field in fields if field)


def _excerpt_lines(excerpt: Excerpt, user_label: str) -> Iterator[str]:
    if excerpt.asked:
        yield from _labeled_lines("asked", excerpt.asked)
    position = f"[{excerpt.message_index}]"
    if excerpt.agent_ref:
        position = f"[{excerpt.message_index} of subagent {one_line(excerpt.agent_ref, _MAX_FIELD_CHARS)}]"
    role = user_label if excerpt.role == "user" else excerpt.role
    yield from _labeled_lines(f"{position} {role}", excerpt.text)
    if excerpt.outcome:
        yield from _labeled_lines("outcome", excerpt.outcome)


def _labeled_lines(label: str, text: str) -> Iterator[str]:
    first, *others = sanitize(text).splitlines() or [""]
    yield f"   {label}: {first}"
    yield from (f"     {line}" for line in others)
