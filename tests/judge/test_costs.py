"""Costs: computed from the tokens of each response, and as the tool itself reports them."""

import json

import pytest

from tests.judge.blocks import text, use
from tests.judge.stage import Run, Stage


def _printed_cost(run: Run) -> float:
    """Return the cost of a run as the tool printed it."""
    return float(json.loads(run.output)["total_cost_usd"])


@pytest.mark.since("1.0.69")
def test_the_computed_cost_is_the_one_that_the_tool_prints(stage: Stage) -> None:
    stage.script.on(
        "PROMPT-COST", [text("One."), use("Bash", command="echo 1", description="x")], [text("Two.")]
    )
    run = stage.ask("PROMPT-COST go", "--model", "claude-sonnet-4-20250514")
    own = [each for each in run.exchanges if not each.is_own and each.agent is None]  # without warm-ups
    assert own and all(each.model == "claude-sonnet-4-20250514" for each in own)
    with stage.history() as history:
        total = history.statistics.report().total
    assert total.unpriced_tokens == 0
    if any(each.is_own for each in run.exchanges) or total.is_at_least:
        assert total.cost_usd is not None and 0 < total.cost_usd <= _printed_cost(run)
    else:
        assert total.cost_usd == pytest.approx(_printed_cost(run))


@pytest.mark.since("2.1.282")
def test_the_total_of_the_tool_is_not_added_across_a_fork(stage: Stage) -> None:
    original = stage.ask("First prompt avocet")
    compacted = stage.ask("/compact keep the tea", resume=original, is_prompt=False)
    fork = stage.ask("Forked prompt lark", "--fork-session", resume=original)
    with stage.history() as history:
        total = history.statistics.report().total
    printed = [_printed_cost(run) for run in (original, compacted, fork)]  # each includes those before it
    assert total.cost_usd is not None and total.reported_usd is not None
    assert total.reported_usd == pytest.approx(printed[-1]), printed
    assert total.reported_usd > total.cost_usd  # the summary has no line
