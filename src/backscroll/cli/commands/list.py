"""``backscroll list``: list sessions, newest first."""

from typing import TYPE_CHECKING, Any

import click

from backscroll.cli.messages import welcome_lines
from backscroll.cli.options import (
    PAGE_SIZE,
    filter_options,
    read_options,
    subagents_option,
    sync_before_reading,
)
from backscroll.cli.output import color_option, detect_screen, write_json
from backscroll.cli.startup import Setup
from backscroll.filters import make_filter
from backscroll.model.session import SORT_KEYS, SortKey
from backscroll.render.session_table import COLUMNS, page_footer, tab_separated_lines, table_lines

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class ColumnNames(click.ParamType[tuple[str, ...]]):
    """Comma-separated list of columns."""

    name = "columns"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = tuple(value.split(","))
        if unknown := [name for name in names if name not in COLUMNS]:
            self.fail(f"{unknown[0]!r} is not a column. Use {', '.join(COLUMNS)}.", param, ctx)
        if len(set(names)) < len(names):
            self.fail("A column occurs twice.", param, ctx)
        return names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem  # start-up time: only completion needs it

        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(f"{before}{comma}{name}") for name in COLUMNS if name.startswith(last)]


@click.command("list")
@click.option("-n", "--limit", default=PAGE_SIZE, show_default=True, help="Results to show, at most 1000.")
@click.option("--offset", default=0, show_default=True, help="Results to skip.")
@click.option(
    "--sort",
    type=click.Choice(SORT_KEYS),
    default="updated",
    show_default=True,
    help="Sort by this column: times newest first, numbers largest first, text from A to Z.",
)
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@click.option(
    "--columns",
    type=ColumnNames(),
    metavar="NAMES",
    default=(),
    help=f"Columns to print, comma-separated: {', '.join(COLUMNS)}. prompt: the first prompt; lines: changed"
    " lines; state: live, gone, partial, lossy, starred or subagent.",
)
@filter_options()
@subagents_option
@color_option
@read_options
@click.pass_obj
def command(
    setup: Setup,
    /,
    limit: int,
    offset: int,
    sort: SortKey,
    reverse: bool,
    columns: tuple[str, ...],
    color: Any,
    as_json: bool,
    **options: Any,
) -> None:
    """List sessions, newest first.

    On a terminal, prints columns that fit its width. In a pipe, prints one line per session with complete
    values, separated by tabs. The values are index, time of the last message in UTC, id, source, workspace,
    messages, tokens, title, tags and state. Unknown values are empty.

    \b
    Examples:
      backscroll list
      backscroll list --workspace tideline --since 2026-10-01
      backscroll list --sort tokens -n 5
      backscroll list --columns id,title | fzf
    """
    if as_json and columns:
        raise click.UsageError("--json cannot be combined with --columns.")
    with setup.history() as history:
        sync_before_reading(history)
        filter_ = make_filter(options, with_subagents=options["subagents"])
        page = history.list_sessions(filter_, limit=limit, offset=offset, sort=sort, is_reversed=reverse)
        is_empty = not page.data and not history.list_sessions(limit=1).data
        welcome = list(welcome_lines(history, no_sync=setup.no_sync)) if is_empty else []
        live = history.live_sessions()
    if as_json:
        from backscroll.documents import to_document  # start-up: a table needs no document

        write_json(to_document(page))
        return
    screen = detect_screen(color)
    if is_empty:
        screen.write_notice(welcome)
    elif not page.data:
        total = page.pagination.total
        notice = f"No sessions on this page ({total:,} in total)." if total else "No sessions match."
        screen.write_notice([notice])
    elif screen.width is None:
        screen.write(tab_separated_lines(page, columns=columns, style=screen.style, live=live))
        if footer := page_footer(page):
            click.echo(footer, err=True)
    else:
        lines = [*table_lines(page, width=screen.width, columns=columns, style=screen.style, live=live)]
        lines += [screen.style("dim", footer)] if (footer := page_footer(page)) else []
        screen.page(lines)
