"""``backscroll stats``: what sessions add up to."""

import re
import sys
from datetime import UTC, tzinfo
from typing import Any, Literal

import click

from backscroll.cli.completion_values import complete_refs
from backscroll.cli.hints import welcome_lines
from backscroll.cli.options import DateParam, make_filter, message_filters, read_options, sync_before_reading
from backscroll.cli.setup import Setup
from backscroll.cli.terminal import Colour, Screen, color_option, detect_screen
from backscroll.history import History
from backscroll.model import Filter
from backscroll.model.statistics import By, Explanation, Report, Year
from backscroll.render.json import encode_json
from backscroll.render.statistics.explanation import explanation_lines
from backscroll.render.statistics.json import (
    explanation_document,
    report_csv,
    report_document,
    year_document,
)
from backscroll.render.statistics.report import report_lines
from backscroll.render.terminal.style import Style

__all__ = ["command"]

_BY = ["day", "week", "month", "source", "workspace", "model", "tool"]
_DAY = re.compile(r"\d{4}-\d\d-\d\d|today|yesterday")
_WIDTH = 100  # where there is no terminal


@click.command("stats")
@click.option("--by", type=click.Choice(_BY), help="A row for each, in place of the sum of everything.")
@click.option(
    "--explain",
    metavar="REF|DAY",
    shell_complete=complete_refs,
    help="Every usage record of a session or a day, and the sum.",
)
@click.option("--year", type=click.IntRange(1970, 9998), help="A year in review, on one page.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "md"]),
    default="text",
    show_default=True,
    help="With --year: text or Markdown.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@click.option("--utc", "is_utc", is_flag=True, is_eager=True, help="Days of UTC, not of this machine.")
@message_filters
@color_option
@read_options
@click.pass_obj
def command(
    setup: Setup,
    /,
    by: By | None,
    explain: str | None,
    year: int | None,
    form: Literal["text", "md"],
    as_csv: bool,
    is_utc: bool,
    color: Colour,
    as_json: bool,
    no_sync: bool,
    **options: Any,
) -> None:
    """Add up sessions, prompts, time, tokens, cost, lines and tool calls.

    Every response counts once, where it was first made. Cost is told at the prices of an API; models without
    a known price are named, and in no cost.

    Example:

        backscroll stats --by month --workspace tideline
    """
    _check(by=by, explain=explain, year=year, form=form, as_csv=as_csv, as_json=as_json, options=options)
    zone = UTC if is_utc else None
    wanted = make_filter(options | {"subagents": False})
    out = detect_screen(color)
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        if year is not None:
            _review(history.year_in_review(year, wanted, zone=zone), out, form, as_json=as_json)
        elif explain is not None:
            _explain(_explained(history, explain, wanted, zone), out, zone, as_json=as_json)
        else:
            report = history.stats(wanted, by=by, zone=zone)
            if not report.total.sessions and not (as_json or as_csv or history.list_sessions(limit=1).data):
                out.write(welcome_lines(history, no_sync=no_sync))
                return
            _report(report, out, zone, as_json=as_json, as_csv=as_csv)


def _explained(history: History, what: str, wanted: Filter, zone: tzinfo | None) -> Explanation:
    if not _DAY.fullmatch(what):
        return history.explain_session(what, zone=zone)
    day = DateParam().convert(what, None, click.get_current_context())
    return history.explain_day(day.astimezone(zone).date(), wanted, zone=zone)


def _report(report: Report, out: Screen, zone: tzinfo | None, *, as_json: bool, as_csv: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(encode_json(report_document(report)))
    elif as_csv:
        sys.stdout.buffer.write(report_csv(report).encode("utf-8", "replace"))
    elif not report.total.sessions:
        out.write(["No session fits."])
    else:
        style = Style(is_coloured=out.is_coloured)
        out.page(report_lines(report, style=style, width=out.width or _WIDTH, zone=zone))


def _explain(told: Explanation, out: Screen, zone: tzinfo | None, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(encode_json(explanation_document(told)))
    else:
        out.page(explanation_lines(told, style=Style(is_coloured=out.is_coloured), zone=zone))


def _review(year: Year, out: Screen, form: str, *, as_json: bool) -> None:
    from backscroll.render.statistics.year import year_lines, year_markdown  # with a parser of Markdown

    if as_json:
        sys.stdout.buffer.write(encode_json(year_document(year)))
    elif form == "md":
        out.write(year_markdown(year))
    else:
        out.page(year_lines(year, style=Style(is_coloured=out.is_coloured), width=out.width or _WIDTH))


def _check(
    *,
    by: By | None,
    explain: str | None,
    year: int | None,
    form: str,
    as_csv: bool,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Say which options do not go together."""
    asked = [name for name, on in (("--by", by), ("--explain", explain), ("--year", year)) if on is not None]
    if len(asked) > 1:
        raise click.UsageError(f"{asked[0]} and {asked[1]} do not go together.")
    if as_csv and (as_json or explain is not None or year is not None):
        raise click.UsageError("--csv goes with --by, or alone.")
    if form == "md" and (year is None or as_json):
        raise click.UsageError("--format md goes with --year.")
    if year is not None and (options["since"] is not None or options["until"] is not None):
        raise click.UsageError("--year says which days are meant; leave --since and --until out.")
