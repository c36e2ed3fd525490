"""With a model filter, `stats` counts the messages and responses of that model, subagents included."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.model.statistics import Sums
from backscroll.render.statistics import report_lines
from backscroll.render.terminal_text import Style
from backscroll.testing.claude_code import Transcript

OPUS, HAIKU = "claude-opus-4-8", "claude-haiku-4-5"
USAGE = {"input_tokens": 1000, "output_tokens": 100}


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A session with two models and a subagent that uses the second one, and a session with the first one."""
    root = tmp_path / "claude"
    session = Transcript(version="2.1.230", seed=1).user("go").assistant("a", usage=USAGE, model=OPUS)
    session.user("and?").assistant("b", usage=USAGE, model="claude-sonnet-4-5")
    session.subagent("count").assistant("two", usage=USAGE, model=HAIKU)
    session.write(root)
    Transcript(version="2.1.230", seed=2).user("x").assistant("y", usage=USAGE, model=OPUS).write(root)
    with History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "home") as history:
        history.sync()
        yield history


def row(history: History, model: str) -> Sums:
    (found,) = [one for one in history.statistics.report(by="model").rows if one.key == model]
    return found


@pytest.mark.parametrize("model", [OPUS, "claude-sonnet-4-5", HAIKU])
def test_a_model_costs_the_same_as_filter_and_as_row(history: History, model: str) -> None:
    expected = row(history, model)
    for pattern in (model, model.upper(), model[7:], f"{model[:9]}*{model[-3:]}"):
        total = history.statistics.report(Filter(model=pattern)).total
        assert (total.cost_usd, total.tokens, total.responses) == (
            expected.cost_usd,
            expected.tokens,
            expected.responses,
        )
        assert (total.messages or 0) + (total.subagent_messages or 0) == expected.messages
        assert total.sessions == expected.sessions
        assert (total.prompts, total.active_seconds) == (None, None)
    (by_model,) = history.statistics.report(Filter(model=model), by="model").rows
    assert by_model == expected


def test_a_model_that_only_subagents_used_is_found(history: History) -> None:
    report = history.statistics.report(Filter(model="haiku"))
    assert (report.total.sessions, report.total.messages, report.total.subagent_messages) == (1, 0, 1)
    assert report.total.cost_usd
    text = "\n".join(report_lines(report, style=Style(is_colored=False), width=100))
    assert "Messages      0 (plus 1 by subagents)" in text
    assert "Prompts" not in text
    assert "copies" not in text


def test_all_groupings_of_a_model_add_up_to_the_same_cost(history: History) -> None:
    cost = row(history, OPUS).cost_usd
    for by in ("day", "source", "workspace", "model"):
        rows = history.statistics.report(Filter(model="opus"), by=by).rows  # type: ignore[arg-type]
        assert sum(one.cost_usd or 0 for one in rows) == pytest.approx(cost)


def test_an_unknown_model_has_nothing(history: History) -> None:
    total = history.statistics.report(Filter(model="gpt-99")).total
    assert (total.sessions, total.messages, total.tokens, total.cost_usd) == (0, 0, None, None)
