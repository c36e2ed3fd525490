"""As much of what could be said as there is room for, what matters most first."""

import re
from collections.abc import Iterable

from backscroll.model.sanitize import one_line
from backscroll.render.handoff.types import SECTIONS, Candidate, Point, Section, SectionName

__all__ = ["CHARACTERS", "fit"]

CHARACTERS = 4  # that a token is taken for; no tokeniser is asked
_SHORTEST = 120  # characters; a point is not cut to less
_MARK = 4  # what a point costs beside its words
_LABEL = re.compile(r"^(?:You|Assistant|Then|Summary|Not answered(?: to the end)?): ")


def fit(candidates: Iterable[Candidate], room: int) -> tuple[Section, ...]:
    """Sections of points that take no more room, in characters, than there is."""
    chosen: dict[SectionName, list[tuple[int, int, Point]]] = {name: [] for name in SECTIONS}
    left_out = dict.fromkeys(SECTIONS, 0)
    seen: set[str] = set()
    ordered = sorted(enumerate(candidates), key=lambda one: (-one[1].weight, -one[1].position, one[0]))
    for place, one in ordered:
        said = " ".join(_LABEL.sub("", one.text).lower().split())
        if said in seen:
            continue
        seen.add(said)
        heading = 0 if chosen[one.section] else len(SECTIONS[one.section]) + 6
        left = room - heading - _MARK
        text = one_line(one.text, one.longest)
        if len(text) > left:
            if left < _SHORTEST:
                left_out[one.section] += 1
                continue
            text = one_line(one.text, left)
        room -= len(text) + heading + _MARK
        chosen[one.section].append((one.position, place, Point(text, one.position)))
    return tuple(
        Section(name, tuple(point for *_, point in sorted(points, key=lambda one: one[:2])), left_out[name])
        for name, points in chosen.items()
        if points or left_out[name]
    )
