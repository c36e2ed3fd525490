"""What a briefing is made of."""

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
    "open_ends": "Open ends",
    "last_state": "Last state",
}


class Candidate(Struct, frozen=True):
    """Something that may be said, and how much there is to be said for it."""

    section: SectionName
    text: str
    weight: float
    position: int  # of the message that it is from; where it stands within its section
    longest: int = 400  # characters


class Point(Struct, frozen=True):
    """Something that is said."""

    text: str
    position: int  # of the message that it is from, from 0


class Section(Struct, frozen=True):
    """What is said about one matter, in the order in which it came up."""

    name: SectionName
    points: tuple[Point, ...]
    left_out: int  # points for which there was no room


class Handoff(Struct, frozen=True):
    """A session in short."""

    session: SessionSummary
    sections: tuple[Section, ...]
    budget: int  # tokens
    tokens: int  # an estimate: four characters each
