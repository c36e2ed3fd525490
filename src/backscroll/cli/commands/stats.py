"""``backscroll stats``: show statistics."""

import re
import sys
from datetime import UTC, tzinfo
from typing import Any, Literal, get_args

import click

from backscroll.cli.messages import welcome_lines
from backscroll.cli.options import DateParam, complete_refs, filter_options, read_options, sync_before_reading
from backscroll.cli.output import Color, Screen, color_option, detect_screen, write_json
from backscroll.cli.startup import Setup
from backscroll.filters import make_filter
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.model.statistics import By, Explanation, Report, Year
from backscroll.render import statistics as render

_GROUPS = get_args(By)
_DATE = re.compile(r"\d{4}-\d\d-\d\d|today|yesterday")
DEFAULT_WIDTH = 100  # columns, if not a terminal


@click.command("stats")
@click.option(
    "--by", type=click.Choice(_GROUPS), help=f"Print one row per {', '.join(_GROUPS[:-1])} or {_GROUPS[-1]}."
)
@click.option(
    "--explain",
    metavar="REF|DATE",
    shell_complete=complete_refs,
    help="List the token usage of every response of a session or day, and the total."
    " REF: see 'backscroll show --help'.",
)
@click.option("--year", type=click.IntRange(1970, 9998), help="Print a one-page review of the given year.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "md"]),
    default="text",
    show_default=True,
    help="Format for --year.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--utc", "is_utc", is_flag=True, is_eager=True, help="Use UTC days instead of local days.")
@filter_options(of_messages=("date",))
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
    color: Color,
    as_json: bool,
    **options: Any,
) -> None:
    """Show statistics: sessions, time, tokens, cost and more.

    Counts sessions, active time, prompts, messages, tokens, cost, changed lines, accepted edits and tool
    calls. Each response is counted once, in the session that first contained it. Costs are what the
    provider's API would charge. Models without a known price are listed and not included in the cost.

    With --model, counts the messages and responses of that model, also those of subagents.

    \b
    Examples:
      backscroll stats
      backscroll stats --by month --workspace tideline
      backscroll stats --explain 1
      backscroll stats --year 2026
    """
    _check_options(
        by=by, explain=explain, year=year, form=form, as_csv=as_csv, as_json=as_json, options=options
    )
    zone = UTC if is_utc else None
    filter_ = make_filter(options)
    screen = detect_screen(color)
    with setup.history() as history:
        sync_before_reading(history)
        if year is not None:
            _print_year(
                history.statistics.year_in_review(year, filter_, zone=zone), screen, form, as_json=as_json
            )
        elif explain is not None:
            _print_explanation(_explanation(history, explain, filter_, zone), screen, zone, as_json=as_json)
        else:
            report = history.statistics.report(filter_, by=by, zone=zone)
            if not report.total.sessions and not (as_json or as_csv or history.list_sessions(limit=1).data):
                screen.write_notice(welcome_lines(history, no_sync=setup.no_sync))
                return
            _print_report(report, screen, zone, as_json=as_json, as_csv=as_csv)


def _explanation(history: History, ref_or_date: str, filter_: Filter, zone: tzinfo | None) -> Explanation:
    if not _DATE.fullmatch(ref_or_date):
        return history.statistics.explain_session(ref_or_date, zone=zone)
    day = DateParam().convert(ref_or_date, None, click.get_current_context())
    return history.statistics.explain_day(day.astimezone(zone).date(), filter_, zone=zone)


def _print_report(
    report: Report, screen: Screen, zone: tzinfo | None, *, as_json: bool, as_csv: bool
) -> None:
    if as_json:
        write_json(render.report_document(report))
    elif as_csv:
        sys.stdout.buffer.write(render.report_csv(report).encode("utf-8", "replace"))
    elif not report.total.sessions:
        screen.write_notice(["No sessions match."])
    else:
        screen.page(
            render.report_lines(report, style=screen.style, width=screen.width or DEFAULT_WIDTH, zone=zone)
        )


def _print_explanation(
    explanation: Explanation, screen: Screen, zone: tzinfo | None, *, as_json: bool
) -> None:
    if as_json:
        write_json(render.explanation_document(explanation))
    else:
        screen.page(render.explanation_lines(explanation, style=screen.style, zone=zone))


def _print_year(year: Year, screen: Screen, form: str, *, as_json: bool) -> None:
    from backscroll.render.year_review import year_lines, year_markdown

    if as_json:
        write_json(render.year_document(year))
    elif form == "md":
        screen.write(year_markdown(year))
    else:
        screen.page(year_lines(year, style=screen.style, width=screen.width or DEFAULT_WIDTH))


def _check_options(
    *,
    by: By | None,
    explain: str | None,
    year: int | None,
    form: str,
    as_csv: bool,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Raise a usage error for options that cannot be combined."""
    modes = [name for name, on in (("--by", by), ("--explain", explain), ("--year", year)) if on is not None]
    if len(modes) > 1:
        raise click.UsageError(f"{modes[0]} and {modes[1]} cannot be combined.")
    if as_csv and (as_json or explain is not None or year is not None):
        raise click.UsageError("--csv can only be combined with --by.")
    if form == "md" and (year is None or as_json):
        raise click.UsageError("--format md requires --year.")
    if year is not None and (options["since"] is not None or options["until"] is not None):
        raise click.UsageError("--year cannot be combined with --since or --until.")
