"""A session on its way to the screen: its messages, or the records they were read from."""

from collections.abc import Iterable, Iterator
from itertools import chain

import click

from backscroll.cli.screen import Screen
from backscroll.history import History
from backscroll.model import SessionSummary, record_of
from backscroll.render.inert import one_line
from backscroll.render.noted import added_lines
from backscroll.render.terminal.records import record_lines
from backscroll.render.terminal.transcript import head_lines, transcript_lines
from backscroll.render.terminal.view import View
from backscroll.render.turns import Event, Said

__all__ = ["show_messages", "show_records"]


def show_messages(summary: SessionSummary, events: Iterable[Event], view: View, out: Screen) -> None:
    """The session as it is read; when nothing of it is, that is said."""

    def lines() -> Iterator[str]:
        yield from head_lines(summary, view)
        yield from added_lines(summary)
        told = transcript_lines(summary, events, view)
        first = next(told, None)
        yield from ("", "No message to show.") if first is None else chain((first,), told)

    out.page(lines())


def show_records(
    history: History, summary: SessionSummary, events: Iterable[Event], view: View, out: Screen
) -> None:
    """Every record once, in the order of what was read from it; what is not kept is said at the end."""
    records = history.records_of(summary)
    missing = 0

    def lines() -> Iterator[str]:
        nonlocal missing
        told: set[tuple[str, str, str]] = set()
        for event in events:
            if not isinstance(event, Said) or (view.only and event.message.role not in view.only):
                continue
            origin = event.message.origin
            # A file that was rewritten may have had another record in the same line.
            read = (origin.path, origin.place, record_of(event.message.id))
            if read in told:
                continue
            told.add(read)
            record = records.of(event.message)
            if record is None:
                missing += 1
                continue
            yield from record_lines(record, event.message, event.position, view)

    out.page(lines())
    if missing:
        name = one_line(summary.ref, 200)
        click.echo(f"{missing:,} records of {name} are not kept; show --json has what was read.", err=True)
