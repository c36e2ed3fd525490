"""A briefing of a demo session contains the facts that are needed to continue it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from backscroll.history.history import History
from backscroll.render.handoff import handoff_lines

BRIEFINGS = json.loads((Path(__file__).parent / "questions.json").read_text(encoding="utf-8"))["briefings"]


def _missing_facts(history: History, briefing: dict[str, Any], tokens: int) -> list[str]:
    handoff = history.resume.handoff(briefing["session"], tokens=tokens)
    assert handoff.tokens <= tokens
    text = "\n".join(handoff_lines(handoff))
    return [fact for fact in (*briefing["must_name"], *briefing["files"]) if fact not in text]


@pytest.mark.parametrize("tokens", [500, 2000])
def test_a_briefing_contains_nine_of_ten_facts(history: History, tokens: int) -> None:
    facts = sum(len(briefing["must_name"]) + len(briefing["files"]) for briefing in BRIEFINGS)
    missing = [fact for briefing in BRIEFINGS for fact in _missing_facts(history, briefing, tokens)]
    assert len(BRIEFINGS) >= 7
    assert facts >= 30
    assert len(missing) * 10 <= facts, missing


def test_a_session_with_open_ends_has_a_section_for_them(history: History) -> None:
    for briefing in BRIEFINGS:
        handoff = history.resume.handoff(briefing["session"])
        sections = [section for section in handoff.sections if section.name == "open_ends"]
        open_ends = [point.text for section in sections for point in section.points]
        assert len(open_ends) >= min(1, len(briefing["open_ends"])), briefing["session"]


def test_a_briefing_contains_goals_decisions_and_open_ends(history: History) -> None:
    """A fact counts as found if two thirds of its longer words are in the briefing."""
    expected, found = 0, 0
    for briefing in BRIEFINGS:
        text = "\n".join(handoff_lines(history.resume.handoff(briefing["session"]))).lower()
        for fact in (briefing["goal"], *briefing["decisions"], *briefing["open_ends"]):
            words = re.findall(r"[\w.]{4,}", fact.lower())
            expected += 1
            found += sum(word[:5].rstrip(".") in text for word in words) * 3 >= len(words) * 2
    assert expected >= 25
    assert found * 10 >= expected * 9
