"""A briefing as Markdown to paste, and as a document for programs."""

from collections.abc import Iterator
from typing import Any

import msgspec

from backscroll.model.dates import iso
from backscroll.model.sanitize import one_line
from backscroll.render.handoff.types import SECTIONS, Handoff
from backscroll.render.session_header import format_time, session_title

__all__ = ["handoff_document", "handoff_lines", "handoff_text", "header_lines"]

_WIDTH = 200


def header_lines(briefing: Handoff) -> Iterator[str]:
    """Which session it is."""
    session = briefing.session
    begun, last = format_time(session.created_at), format_time(session.updated_at)
    facts = [
        f"`{one_line(session.ref, _WIDTH)}`",
        one_line(session.workspace_path or "", _WIDTH),
        f"branch {one_line(session.git_branch, _WIDTH)}" if session.git_branch else "",
        f"{begun} to {last} UTC" if begun and last else "",
        f"{session.message_count:,} messages",
    ]
    yield f"# {session_title(session)}"
    yield ""
    yield "Where an earlier session with an assistant stands, drawn from it by rules; quoted, not checked."
    yield ", ".join(fact for fact in facts if fact) + "."


def handoff_lines(briefing: Handoff) -> Iterator[str]:
    """The whole, as Markdown."""
    yield from header_lines(briefing)
    for section in briefing.sections:
        if not section.points:
            continue
        yield ""
        yield f"## {SECTIONS[section.name]}"
        yield ""
        yield from (f"- {point.text}" for point in section.points)


def handoff_text(briefing: Handoff) -> str:
    """The whole, as it is pasted."""
    return "".join(f"{line}\n" for line in handoff_lines(briefing))


def handoff_document(briefing: Handoff) -> dict[str, Any]:
    """The whole for programs, with the text."""
    session = briefing.session
    return {
        "ref": session.ref,
        "title": session.title,
        "workspace_path": session.workspace_path,
        "git_branch": session.git_branch,
        "created_at": iso(session.created_at),
        "updated_at": iso(session.updated_at),
        "sections": {
            section.name: [msgspec.structs.asdict(point) for point in section.points]
            for section in briefing.sections
        },
        "left_out": {section.name: section.left_out for section in briefing.sections},
        "token_budget": briefing.budget,
        "estimated_tokens": briefing.tokens,
        "text": handoff_text(briefing),
    }
