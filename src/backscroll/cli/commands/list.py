"""``backscroll list``: sessions, newest first."""

import sys
from typing import Any

import click

from backscroll.cli.options import make_filter, read_options, session_filters, sync_before_reading
from backscroll.cli.setup import Setup
from backscroll.cli.terminal import color_option, detect_screen
from backscroll.history import History

__all__ = ["command"]


@click.command("list")
@click.option("--limit", default=20, show_default=True, help="How many to show, at most 1000.")
@click.option("--offset", default=0, show_default=True, help="How many to pass over.")
@session_filters
@color_option
@read_options
@click.pass_obj
def command(
    setup: Setup, /, limit: int, offset: int, color: Any, as_json: bool, no_sync: bool, **options: Any
) -> None:
    """List sessions, newest first.

    In a terminal the columns fit its width. Elsewhere each line has the index, the time of the last message
    in UTC, the beginning of the id, source, workspace, messages, tokens, title, tags and marks.

    Example:

        backscroll list --workspace tideline --since 2026-10-01
    """
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        page = history.list_sessions(make_filter(options), limit=limit, offset=offset)
        is_empty = not page.data and not history.list_sessions(limit=1).data
        welcome = _welcome(history, no_sync=no_sync) if is_empty else []
        live = history.live_sessions()
    if as_json:
        from backscroll.render.json import encode_json, page_document  # what is not asked for is not loaded

        sys.stdout.buffer.write(encode_json(page_document(page)))
        return
    from backscroll.render.terminal.session_table import plain_lines, table_lines
    from backscroll.render.terminal.style import Style

    out = detect_screen(color)
    if is_empty:
        out.write(welcome)
    elif not page.data:
        total = page.pagination.total
        out.write([f"That is past the last one; {total:,} fit." if total else "No session fits."])
    elif out.width is None:
        out.write(plain_lines(page, live))
    else:
        style = Style(is_coloured=out.is_coloured)
        out.page(table_lines(page, width=out.width, style=style, live=live))


def _welcome(history: History, *, no_sync: bool) -> list[str]:
    from backscroll.cli.hints import welcome_lines

    return list(welcome_lines(history, no_sync=no_sync))
