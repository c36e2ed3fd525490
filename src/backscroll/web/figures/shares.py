"""Tables by source, workspace, model and tool, with a bar in each row."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from backscroll.model.statistics import Sums, Tokens
from backscroll.render.terminal.humanize import compact_number, format_cost, format_percent
from backscroll.web.charts import share_bar
from backscroll.web.figures.bars import changed_lines
from backscroll.web.figures.data import FigureData
from backscroll.web.figures.names import short_name
from backscroll.web.labels import distinct_labels
from backscroll.web.session_query import SessionQuery
from backscroll.web.urls import with_query

__all__ = ["Row", "Table", "share_tables"]

_MAX_ROWS = 8


class Row(NamedTuple):
    """A row of a table with a bar."""

    label: str
    title: str
    url: str
    bar: Markup
    values: list[str]


class Table(NamedTuple):
    """Figures by source, workspace, model or tool."""

    title: str
    columns: list[str]
    rows: list[Row]
    more: list[Row]


def share_tables(data: FigureData) -> Iterator[Table]:
    """Yield the tables of a time range."""
    reports = data.breakdown.reports
    yield _table("Sources", reports["source"].rows, _activity_columns, _source_url)
    yield _table("Workspaces", reports["workspace"].rows, _activity_columns, _workspace_url)
    yield _table("Models", reports["model"].rows, _model_columns, _model_url)
    yield _table("Tools", reports["tool"].rows, _tool_columns, _no_url)
    yield _files(data)
    yield _tokens(next(iter(reports.values())).total.tokens)


def _files(data: FigureData) -> Table:
    """Return the files with the most edits."""
    files = data.breakdown.files
    highest = max((file.edits for file in files), default=0)
    rows = [
        Row(
            short_name(file.path),
            file.path,
            _file_url(file.path),
            share_bar(file.edits, highest),
            [f"{file.edits:,}", f"+{file.added:,} −{file.removed:,}" if file.added or file.removed else ""],
        )
        for file in files
    ]
    return Table("Most edited files", ["Edits", "Lines"], rows, [])


def _tokens(tokens: Tokens | None) -> Table:
    """Return the kinds of tokens."""
    if tokens is None:
        return Table("Tokens", [], [], [])
    counts = {
        "Cache reads": tokens.cache_read,
        "Cache writes": tokens.cache_write + tokens.cache_write_1h,
        "Input": tokens.input,
        "Output": tokens.output,
    }
    rows = [
        Row(
            name,
            f"{count:,}",
            "",
            share_bar(count, max(counts.values())),
            [compact_number(count), _share(count, tokens)],
        )
        for name, count in counts.items()
        if count
    ]
    return Table("Kinds of tokens", ["Tokens", "Share"], rows, [])


def _share(count: int, tokens: Tokens) -> str:
    return format_percent(count / tokens.total) if tokens.total else ""


Columns = Callable[[Sums | None], tuple[list[str], float]]  # values of a row, and the length of its bar


def _activity_columns(row: Sums | None) -> tuple[list[str], float]:
    if row is None:
        return ["Sessions", "Messages", "Lines", "Cost"], 0
    values = [f"{row.sessions:,}", f"{row.messages or 0:,}", changed_lines(row), format_cost(row)]
    return values, row.messages or 0


def _model_columns(row: Sums | None) -> tuple[list[str], float]:
    if row is None:
        return ["Sessions", "Tokens", "Cost"], 0
    total = row.tokens.total if row.tokens is not None else 0
    tokens = compact_number(total) if row.tokens is not None else ""
    return [f"{row.sessions:,}", tokens, format_cost(row)], total


def _tool_columns(row: Sums | None) -> tuple[list[str], float]:
    if row is None:
        return ["Calls", "Failed"], 0
    failures = f"{row.tool_failures:,}" if row.tool_failures else ""
    return [f"{row.tool_calls or 0:,}", failures], row.tool_calls or 0


def _table(title: str, sums: Sequence[Sums], columns: Columns, url: Callable[[str], str]) -> Table:
    ranked = sorted((row for row in sums if row.key is not None), key=lambda row: -columns(row)[1])
    highest = max((columns(row)[1] for row in ranked), default=0)
    rows = []
    labels = distinct_labels((row.key or "", short_name(row.key or "")) for row in ranked)
    for row, label in zip(ranked, labels, strict=True):
        key = row.key or ""
        values, length = columns(row)
        rows.append(Row(label, key, url(key), share_bar(length, highest), values))
    return Table(title, columns(None)[0], rows[:_MAX_ROWS], rows[_MAX_ROWS:])


def _source_url(name: str) -> str:
    return SessionQuery(source=name).url()


def _workspace_url(name: str) -> str:
    return SessionQuery(workspace=name).url()


def _model_url(name: str) -> str:
    return SessionQuery(model=name).url()


def _file_url(path: str) -> str:
    """Return the address of a search for the edits of a file."""
    return with_query("/search", {"q": f'file:"{path.replace(chr(34), "*")}" is:edit'})


def _no_url(name: str) -> str:
    return ""
