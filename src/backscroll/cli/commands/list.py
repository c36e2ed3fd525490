"""``backscroll list``: list sessions, newest first."""

from typing import Any

import click

from backscroll.cli.global_options import Setup
from backscroll.cli.hints import welcome_lines
from backscroll.cli.json_output import write_json
from backscroll.cli.options import (
    make_filter,
    page_options,
    read_options,
    session_filters,
    sync_before_reading,
)
from backscroll.cli.terminal import color_option, detect_screen
from backscroll.render.json import page_document
from backscroll.render.terminal.session_table import plain_lines, table_lines
from backscroll.render.terminal.style import Style

__all__ = ["command"]


@click.command("list")
@page_options
@session_filters
@color_option
@read_options
@click.pass_obj
def command(
    setup: Setup, /, limit: int, offset: int, color: Any, as_json: bool, no_sync: bool, **options: Any
) -> None:
    """List sessions, newest first.

    On a terminal, prints columns that fit its width. Otherwise prints one line per session: index, time of
    the last message in UTC, start of the id, source, workspace, messages, tokens, title, tags and marks.

    \b
    Examples:
      backscroll list
      backscroll list --workspace tideline --since 2026-10-01
      backscroll list --gone
    """
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        page = history.list_sessions(make_filter(options), limit=limit, offset=offset)
        is_empty = not page.data and not history.list_sessions(limit=1).data
        welcome = list(welcome_lines(history, no_sync=no_sync)) if is_empty else []
        live = history.live_sessions()
    if as_json:
        write_json(page_document(page))
        return
    screen = detect_screen(color)
    if is_empty:
        screen.write(welcome)
    elif not page.data:
        total = page.pagination.total
        screen.write([f"No sessions on this page ({total:,} in total)." if total else "No sessions match."])
    elif screen.width is None:
        screen.write(plain_lines(page, live))
    else:
        style = Style(is_coloured=screen.is_coloured)
        screen.page(table_lines(page, width=screen.width, style=style, live=live))
