"""A session on its way to the screen: its messages, or the records they were read from."""

from collections.abc import Iterable, Iterator
from itertools import chain

import click
from msgspec.structs import replace

from backscroll.cli.terminal import Screen
from backscroll.history import History
from backscroll.model import Message, SessionSummary
from backscroll.model.sanitize import one_line
from backscroll.render.annotations import annotation_lines
from backscroll.render.terminal.options import TranscriptOptions
from backscroll.render.terminal.records import record_lines
from backscroll.render.terminal.transcript import header_lines, transcript_lines
from backscroll.render.turns import MessageItem, TranscriptItem

__all__ = ["show_messages", "show_records"]


def show_messages(
    summary: SessionSummary, events: Iterable[TranscriptItem], view: TranscriptOptions, out: Screen
) -> None:
    """The session as it is read; when nothing of it is, that is said."""

    def lines() -> Iterator[str]:
        yield from header_lines(summary, view)
        yield from annotation_lines(summary)
        told = transcript_lines(summary, events, view)
        first = next(told, None)
        yield from ("", "No message to show.") if first is None else chain((first,), told)

    out.page(lines())


def show_records(
    history: History,
    summary: SessionSummary,
    events: Iterable[TranscriptItem],
    view: TranscriptOptions,
    out: Screen,
) -> None:
    """Every record once, in the order of what was read from it, a call's answer after the call.

    What is not kept is said at the end.
    """
    records = history.records_of(summary)
    missing: set[tuple[str, str]] = set()

    def found(message: Message) -> Iterator[tuple[bytes, Message]]:
        record = records.of(message)
        if record is None:
            missing.add((message.origin.path, message.origin.place))
        else:
            yield record, message
        answer = records.answer(message)
        if answer is not None:
            yield answer[0], replace(message, origin=answer[1])

    def lines() -> Iterator[str]:
        told: set[tuple[str, str, int]] = set()
        for event in events:
            if not isinstance(event, MessageItem) or (view.only and event.message.role not in view.only):
                continue
            for record, message in found(event.message):
                # A file that was rewritten may have had another record in the same line.
                read = (message.origin.path, message.origin.place, hash(record))
                if read not in told:
                    told.add(read)
                    yield from record_lines(record, message, event.position, view)

    out.page(lines())
    if missing:
        name = one_line(summary.ref, 200)
        click.echo(
            f"{len(missing):,} records of {name} are not kept; show --json has what was read.", err=True
        )
