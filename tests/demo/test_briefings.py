"""A briefing of a demo session names the facts that somebody needs who goes on with it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.render.handoff import handoff_lines
from backscroll.testing.demo import Demo

BRIEFINGS = json.loads((Path(__file__).parent / "questions.json").read_text(encoding="utf-8"))["briefings"]


@pytest.fixture(scope="module")
def history(written: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    roots = [NamedRoot(name, Path(root)) for name, root in written.roots.items()]
    with History(roots=roots, home=tmp_path_factory.mktemp("archive")) as history:
        history.sync()
        yield history


def _missing(history: History, briefing: dict[str, Any], tokens: int) -> list[str]:
    made = history.resume.handoff(briefing["session"], tokens=tokens)
    assert made.tokens <= tokens
    text = "\n".join(handoff_lines(made))
    return [fact for fact in (*briefing["must_name"], *briefing["files"]) if fact not in text]


@pytest.mark.parametrize("tokens", [500, 2000])
def test_nine_facts_in_ten_are_named(history: History, tokens: int) -> None:
    facts = sum(len(one["must_name"]) + len(one["files"]) for one in BRIEFINGS)
    missing = [fact for one in BRIEFINGS for fact in _missing(history, one, tokens)]
    assert len(BRIEFINGS) >= 7
    assert facts >= 30
    assert len(missing) * 10 <= facts, missing


def test_open_ends_stand_among_the_open_ends(history: History) -> None:
    for briefing in BRIEFINGS:
        made = history.resume.handoff(briefing["session"])
        told = [point.text for one in made.sections if one.name == "open_ends" for point in one.points]
        assert len(told) >= min(1, len(briefing["open_ends"])), briefing["session"]


def test_goals_decisions_and_open_ends_are_told_in_their_own_words(history: History) -> None:
    """A paraphrase is met when two thirds of its longer words are in the briefing."""
    asked, met = 0, 0
    for briefing in BRIEFINGS:
        text = "\n".join(handoff_lines(history.resume.handoff(briefing["session"]))).lower()
        for fact in (briefing["goal"], *briefing["decisions"], *briefing["open_ends"]):
            words = re.findall(r"[\w.]{4,}", fact.lower())
            asked += 1
            met += sum(word[:5].rstrip(".") in text for word in words) * 3 >= len(words) * 2
    assert asked >= 25
    assert met * 10 >= asked * 9
