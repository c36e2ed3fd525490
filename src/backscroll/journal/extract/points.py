"""Points of an entry: texts with the quotes in them, chosen by weight within the limits of a section."""

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from backscroll.model.code.journal import Quote, SectionName

__all__ = ["Point", "select"]

MAX_POINTS: dict[SectionName, int] = {
    "synopsis": 6,
    "accomplishments": 6,
    "frustrations": 6,
    "decisions": 8,
    "open": 5,
}


class Point(Struct, frozen=True):
    """One item of a section. The text before and after the quotes is added when it is rendered."""

    section: SectionName
    label: str  # such as "Agreed"; may be empty
    quotes: tuple[Quote, ...]
    weight: float
    at: datetime | None
    order: int  # position in the material
    details: tuple[str, ...] = ()  # Markdown, after the quotes
    is_dialogue: bool = False  # each message is shown on its own line


def select(points: Iterable[Point], section: SectionName) -> list[Point]:
    """Return the points of a section with the highest weight, in the order of the material."""
    candidates = [point for point in points if point.section == section]
    candidates.sort(key=lambda point: (-point.weight, point.order))
    chosen = candidates[: MAX_POINTS.get(section, len(candidates))]
    return sorted(chosen, key=lambda point: (point.order, point.quotes[0].position if point.quotes else 0))
