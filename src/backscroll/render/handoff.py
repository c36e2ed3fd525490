"""Summary of a session for another assistant, as Markdown and as JSON."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from backscroll.model.dates import iso
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, pluralize
from backscroll.render.session_header import format_time, session_title

SectionName = Literal["goal", "decisions", "files", "commands", "open_ends", "last_state"]

# Sections of a handoff in their order.
SECTION_TITLES: dict[SectionName, str] = {
    "goal": "Goal",
    "decisions": "Decisions",
    "files": "Files",
    "commands": "Commands",
    "open_ends": "Open items",
    "last_state": "Last state",
}
_MAX_FIELD_CHARS = 200


class Point(Struct, frozen=True):
    """A point of a section."""

    text: str
    position: int  # of its message, from 0


class Section(Struct, frozen=True):
    """The points of one topic, in the order of their messages."""

    name: SectionName
    points: tuple[Point, ...]
    left_out: int  # points that exceeded the budget


class Handoff(Struct, frozen=True):
    """Summary of a session."""

    session: SessionSummary
    sections: tuple[Section, ...]
    budget: int  # tokens
    tokens: int  # estimate: 4 characters each


def handoff_lines(handoff: Handoff) -> Iterator[str]:
    """Yield the handoff as lines of Markdown."""
    yield from header_lines(handoff.session)
    for section in handoff.sections:
        if not section.points:
            continue
        yield ""
        yield f"## {SECTION_TITLES[section.name]}"
        yield ""
        yield from (f"- {point.text}" for point in section.points)


def handoff_text(handoff: Handoff) -> str:
    """Return the handoff as Markdown."""
    return "".join(f"{line}\n" for line in handoff_lines(handoff))


def header_lines(session: SessionSummary) -> Iterator[str]:
    """Yield title and properties of the session."""
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
