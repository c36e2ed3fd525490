"""Commits with their sessions, and what the lines of sessions cost."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from backscroll import git
from backscroll.archive.archive import Archive
from backscroll.commits.commits import Commits
from backscroll.commits.survival import EditSurvival, find_survival
from backscroll.git.repository import find_commit
from backscroll.model.commit import SurvivalBy, SurvivalRow
from backscroll.model.session import Filter
from backscroll.model.sync import Progress
from backscroll.pricing.prices import with_own
from backscroll.stats.totals import SessionCost, session_costs
from backscroll.stores.lookup import AnyPath


class CommitsAndCosts(Commits):
    """Commits with their sessions, and what the lines of sessions cost."""

    def survival(
        self,
        repository: AnyPath = ".",
        *,
        by: SurvivalBy = "session",
        since: datetime | None = None,
        ref: str | None = None,
        zone: tzinfo | None = None,
        progress: Progress | None = None,
    ) -> tuple[SurvivalRow, ...]:
        """Return how many lines of sessions were committed and are alive, by session, model or month.

        Sessions that wrote no line into the repository are omitted. With ``since``, only lines written and
        money spent from then on count. Lines are alive in ``ref``, by default HEAD. Months are those of
        ``zone``, or of this machine. Raises `RepositoryError` or `CommitNotFoundError`.
        """
        opened = git.open_repository(Path(repository))
        revision = "HEAD"  # a checkout can have lines before its first commit
        if ref is not None or (opened.is_bare and opened.has_branches):
            revision = find_commit(opened, ref or "HEAD")
        archive = self._stores.archive
        counted = archive.statistics(Filter(with_unlisted=True, since=since))
        costs = session_costs(counted, with_own(self._stores.settings.prices), zone=zone)
        calls = find_survival(
            archive, opened, ref=revision, since=since, fragment_ids=counted.fragment_ids(), progress=progress
        )
        return _survival_rows(calls, costs, by, self._stores.archive, zone)


def _survival_rows(
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
