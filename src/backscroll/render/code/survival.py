"""Lines that sessions wrote, committed and kept, with their cost."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from backscroll.model import SessionSummary
from backscroll.model.code.commit import SurvivalBy, SurvivalRow
from backscroll.model.text import one_line
from backscroll.render.terminal.humanize import format_usd, short_id
from backscroll.render.terminal.style import Style
from backscroll.render.terminal.width import cell_width, pad, truncate

__all__ = ["survival_document", "survival_lines", "survival_rows"]

_HEADINGS = ("written", "committed", "alive", "cost", "per line")


def survival_document(rows: Sequence[SurvivalRow]) -> dict[str, Any]:
    """Return the rows as in `survival --json`."""
    return {
        "data": [
            {
                "key": row.key,
                "lines_written": row.lines_written,
                "lines_committed": row.lines_committed,
                "lines_alive": row.lines_alive,
                "cost_usd": row.cost_usd,
                "cost_per_alive_line_usd": row.cost_per_alive_line,
            }
            for row in rows
        ]
    }


def survival_rows(rows: Sequence[SurvivalRow]) -> Iterator[str]:
    """Yield one line per row, separated by tabs. Unknown values are empty."""
    for row in rows:
        costs = (f"{usd:.6f}" if usd is not None else "" for usd in (row.cost_usd, row.cost_per_alive_line))
        counts = map(str, (row.lines_written, row.lines_committed, row.lines_alive))
        yield "\t".join([row.key or "", *counts, *costs])


def survival_lines(
    rows: Sequence[SurvivalRow],
    by: SurvivalBy,
    titles: Mapping[str, SessionSummary],
    *,
    style: Style,
    width: int,
) -> Iterator[str]:
    """Yield a table with a heading and a total. ``titles`` are the sessions by ref."""
    total = _total(rows)
    table = [_cells(row) for row in (*rows, total)]
    widths = [
        max(len(heading), *(len(cells[column]) for cells in table))
        for column, heading in enumerate(_HEADINGS)
    ]
    names = [_name(row, titles) for row in rows]
    space = max(10, width - sum(widths) - 2 * len(widths))
    name_width = min(space, max(map(cell_width, (by, "total", *names))))
    heading = "  ".join(
        pad(text, width, is_right=True) for text, width in zip(_HEADINGS, widths, strict=True)
    )
    yield style("dim", f"{pad(by, name_width)}  {heading}")
    for name, cells in zip(names, table[:-1], strict=True):
        yield f"{pad(truncate(name, name_width), name_width)}  {_joined(cells, widths)}"
    if len(rows) > 1:
        yield style("strong", f"{pad('total', name_width)}  {_joined(table[-1], widths)}")


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(pad(cell, width, is_right=True) for cell, width in zip(cells, widths, strict=True))


def _total(rows: Sequence[SurvivalRow]) -> SurvivalRow:
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    return SurvivalRow(
        key=None,
        lines_written=sum(row.lines_written for row in rows),
        lines_committed=sum(row.lines_committed for row in rows),
        lines_alive=sum(row.lines_alive for row in rows),
        cost_usd=sum(costs) if costs else None,
        priced_lines_alive=sum(row.priced_lines_alive for row in rows),
    )


def _cells(row: SurvivalRow) -> list[str]:
    counts = (row.lines_written, row.lines_committed, row.lines_alive)
    per_line = row.cost_per_alive_line
    return [
        *(f"{count:,}" for count in counts),
        format_usd(row.cost_usd) if row.cost_usd is not None else "-",
        f"${per_line:,.4f}" if per_line is not None else "-",
    ]


def _name(row: SurvivalRow, titles: Mapping[str, SessionSummary]) -> str:
    if row.key is None:
        return "(unknown)"
    summary = titles.get(row.key)
    if summary is None:
        return row.key
    title = one_line(summary.title or summary.first_message_preview or "", 60)
    return f"{summary.source}:{short_id(summary.id)}  {title}".rstrip()
