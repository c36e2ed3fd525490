"""What earlier sessions have to say about a task, for people, for models and for programs."""

from collections.abc import Iterator
from typing import Any

import msgspec

from backscroll.model.dates import iso
from backscroll.model.sanitize import one_line, sanitize
from backscroll.model.search import Excerpt, RecalledSession, RecallResult
from backscroll.render.terminal.session_table import short_id

__all__ = ["recall_document", "recall_lines", "recalled_session_document"]

_WIDTH = 100
_ROLES = {"user": "you"}


def recall_lines(recollection: RecallResult) -> Iterator[str]:
    """Each session with its excerpts; a number in brackets is the message's position."""
    for number, session in enumerate(recollection.sessions, start=1):
        if number > 1:
            yield ""
        yield f"{number}. {_heading(session)}"
        for excerpt in session.excerpts:
            yield from _excerpt_lines(excerpt)


def recall_document(recollection: RecallResult) -> dict[str, Any]:
    """The same for programs; what is unknown or not there is null."""
    return {
        "data": [recalled_session_document(session) for session in recollection.sessions],
        "token_budget": recollection.token_budget,
        "left_out": recollection.left_out,
    }


def recalled_session_document(session: RecalledSession) -> dict[str, Any]:
    """One of the sessions."""
    document = msgspec.structs.asdict(session) | {"updated_at": iso(session.updated_at)}
    document["excerpts"] = [
        msgspec.structs.asdict(one) | {"timestamp": iso(one.timestamp)} for one in session.excerpts
    ]
    return document


def _heading(session: RecalledSession) -> str:
    source = session.session_ref.partition(":")[0]
    facts = [
        one_line(session.title or "untitled", _WIDTH),
        one_line(session.workspace_name or "", _WIDTH),
        f"{session.updated_at:%Y-%m-%d}" if session.updated_at else "",
        f"{source}:{short_id(session.session_id)}",
    ]
    return " · ".join(fact for fact in facts if fact)


def _excerpt_lines(excerpt: Excerpt) -> Iterator[str]:
    if excerpt.asked:
        yield from _said("asked", excerpt.asked)
    place = f"[{excerpt.message_index}]"
    if excerpt.agent_ref:
        place = f"[{excerpt.message_index} of subagent {one_line(excerpt.agent_ref, _WIDTH)}]"
    yield from _said(f"{place} {_ROLES.get(excerpt.role, excerpt.role)}", excerpt.text)
    if excerpt.outcome:
        yield from _said("outcome", excerpt.outcome)


def _said(who: str, text: str) -> Iterator[str]:
    first, *others = sanitize(text).splitlines() or [""]
    yield f"   {who}: {first}"
    yield from (f"     {line}" for line in others)
