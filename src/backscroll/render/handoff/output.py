"""A handoff as Markdown and as JSON."""

from collections.abc import Iterator
from typing import Any

import msgspec

from backscroll.model.dates import iso
from backscroll.model.text import one_line, pluralize
from backscroll.render.handoff.types import SECTIONS, Handoff
from backscroll.render.session_header import format_time, session_title

__all__ = ["handoff_document", "handoff_lines", "handoff_text", "header_lines"]

_MAX_FIELD_CHARS = 200


def header_lines(handoff: Handoff) -> Iterator[str]:
    """Yield title and properties of the session."""
    session = handoff.session
    started, updated = format_time(session.created_at), format_time(session.updated_at)
    fields = [
        f"`{one_line(session.ref, _MAX_FIELD_CHARS)}`",
        one_line(session.workspace_path or "", _MAX_FIELD_CHARS),
        f"branch {one_line(session.git_branch, _MAX_FIELD_CHARS)}" if session.git_branch else "",
        f"{started} to {updated} UTC" if started and updated else "",
        pluralize(session.message_count, "message"),
    ]
    yield f"# {session_title(session)}"
    yield ""
    yield "Summary of an earlier assistant session, extracted automatically. Quoted, not verified."
    yield ", ".join(field for field in fields if field) + "."


def handoff_lines(handoff: Handoff) -> Iterator[str]:
    """Yield the handoff as lines of Markdown."""
    yield from header_lines(handoff)
    for section in handoff.sections:
        if not section.points:
            continue
        yield ""
        yield f"## {SECTIONS[section.name]}"
        yield ""
        yield from (f"- {point.text}" for point in section.points)


def handoff_text(handoff: Handoff) -> str:
    """Return the handoff as Markdown."""
    return "".join(f"{line}\n" for line in handoff_lines(handoff))


def handoff_document(handoff: Handoff) -> dict[str, Any]:
    """Return the handoff as JSON, with the Markdown as ``text``."""
    session = handoff.session
    return {
        "ref": session.ref,
        "title": session.title,
        "workspace_path": session.workspace_path,
        "git_branch": session.git_branch,
        "created_at": iso(session.created_at),
        "updated_at": iso(session.updated_at),
        "sections": {
            section.name: [msgspec.structs.asdict(point) for point in section.points]
            for section in handoff.sections
        },
        "left_out": {section.name: section.left_out for section in handoff.sections},
        "token_budget": handoff.budget,
        "estimated_tokens": handoff.tokens,
        "text": handoff_text(handoff),
    }
