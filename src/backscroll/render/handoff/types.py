"""Value types of a handoff."""

from typing import Literal

from msgspec import Struct

from backscroll.model import SessionSummary

__all__ = ["SECTIONS", "Candidate", "Handoff", "Point", "Section", "SectionName"]

SectionName = Literal["goal", "decisions", "files", "commands", "open_ends", "last_state"]

SECTIONS: dict[SectionName, str] = {
    "goal": "Goal",
    "decisions": "Decisions",
    "files": "Files",
    "commands": "Commands",
    "open_ends": "Open items",
    "last_state": "Last state",
}


class Candidate(Struct, frozen=True):
    """A point that may be included, with its weight. Higher weights are selected first."""

    section: SectionName
    text: str
    weight: float
    position: int  # of its message; orders the points of a section
    max_chars: int = 400


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
