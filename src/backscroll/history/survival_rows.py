"""Add up the lines and costs of sessions, by session, model or month."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo

from backscroll.archive import Archive
from backscroll.commits.survival import EditSurvival
from backscroll.model.code.commit import SurvivalBy, SurvivalRow
from backscroll.stats.session_costs import SessionCost

__all__ = ["survival_rows"]


def survival_rows(
    calls: Sequence[EditSurvival],
    costs: Sequence[SessionCost],
    by: SurvivalBy,
    archive: Archive,
    zone: tzinfo | None,
) -> tuple[SurvivalRow, ...]:
    """Return one row per key. The cost is that of all sessions that wrote a line, also for other work."""
    refs = {call.session: call.session_ref for call in calls}
    key = _line_key(by, archive, calls, zone)
    priced = {cost.session_id for cost in costs if cost.usd is not None}
    lines: defaultdict[str | None, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for call in calls:
        row = lines[key(call)]
        row[0] += call.written
        row[1] += call.committed
        row[2] += call.alive
        row[3] += call.alive if call.session in priced else 0
    spent: dict[str | None, float] = defaultdict(float)
    for cost in costs:
        if cost.session_id in refs and cost.usd is not None:
            spent[_cost_key(by, cost, refs)] += cost.usd
    rows = [
        SurvivalRow(
            key=name,
            lines_written=written,
            lines_committed=committed,
            lines_alive=alive,
            cost_usd=spent.get(name),
            priced_lines_alive=priced_alive,
        )
        for name, (written, committed, alive, priced_alive) in (
            lines | {name: [0, 0, 0, 0] for name in spent if name not in lines}
        ).items()
    ]
    if by == "month":
        return tuple(sorted(rows, key=lambda row: (row.key is None, row.key)))
    return tuple(
        sorted(rows, key=lambda row: (row.key is None, -row.lines_alive, -row.lines_written, row.key))
    )


def _line_key(
    by: SurvivalBy, archive: Archive, calls: Sequence[EditSurvival], zone: tzinfo | None
) -> Callable[[EditSurvival], str | None]:
    if by == "session":
        return lambda call: call.session_ref
    if by == "month":
        return lambda call: _month(call.at, zone)
    models = archive.edit_scans.models({call.fragment_id for call in calls})
    only = _only_models(archive, calls)
    return lambda call: models.get((call.fragment_id, call.position)) or only.get(call.session)


def _only_models(archive: Archive, calls: Sequence[EditSurvival]) -> dict[int, str]:
    """Return the model of each session that used only one: some tools do not name it in every message."""
    summaries = archive.sessions.by_ids({call.session for call in calls})
    return {number: summary.models[0] for number, summary in summaries.items() if len(summary.models) == 1}


def _month(at: int | None, zone: tzinfo | None) -> str | None:
    return f"{datetime.fromtimestamp(at / 1000, UTC).astimezone(zone):%Y-%m}" if at else None


def _cost_key(by: SurvivalBy, cost: SessionCost, refs: dict[int, str]) -> str | None:
    if by == "session":
        return refs[cost.session_id]
    return cost.month if by == "month" else cost.model
