"""The cost per prompt is that of the sessions with a cost."""

from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.statistics import Report
from backscroll.render.humanize import format_usd
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript
from backscroll.web.pages.figures import cards

USAGE = {"input_tokens": 100_000, "output_tokens": 1000}


def report(folder: Path, *, with_cursor: bool) -> Report:
    session = Transcript().user("a").assistant("b", usage=USAGE, model="claude-opus-4-8")
    session.user("c").assistant("d", usage=USAGE, model="claude-opus-4-8").write(folder / "claude")
    ide = cursor.Home(folder / "cursor")
    if with_cursor:
        ide.composer([cursor.user("e"), cursor.assistant("f"), cursor.user("g"), cursor.assistant("h")])
    ide.write()
    roots = [NamedRoot("claude-code", folder / "claude"), NamedRoot("cursor", folder / "cursor")]
    with History(roots=roots, home=folder / "home") as history:
        history.sync()
        return history.statistics.breakdown(period="day", by=["model"]).reports["day"]


@pytest.mark.parametrize("with_cursor", [False, True])
def test_prompts_of_sessions_without_a_cost_do_not_lower_the_cost_per_prompt(
    tmp_path: Path, with_cursor: bool
) -> None:
    found = report(tmp_path, with_cursor=with_cursor)
    assert found.total.prompts == (4 if with_cursor else 2)
    assert found.total.cost_usd
    (card,) = [card for card in cards(found) if card.label == "Cost"]
    expected = f"{format_usd(found.total.cost_usd / 2)} per prompt"
    assert card.note == (f"{expected} with a known cost" if with_cursor else expected)
