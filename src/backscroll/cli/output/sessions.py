"""Print a session: its messages, or the original records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from backscroll.model.text import one_line, pluralize
from backscroll.render.annotations import annotation_lines
from backscroll.render.terminal.records import record_lines
from backscroll.render.terminal.transcript import header_lines, transcript_lines
from backscroll.render.turns import MessageItem

if TYPE_CHECKING:
    from backscroll.cli.output.terminal import Screen
    from backscroll.history import History
    from backscroll.model import Message, SessionSummary
    from backscroll.render.terminal.options import TranscriptOptions
    from backscroll.render.turns import TranscriptItem

__all__ = ["show_messages", "show_records"]

MAX_REF_CHARS = 200


def show_messages(
    summary: SessionSummary,
    events: Iterable[TranscriptItem],
    view: TranscriptOptions,
    screen: Screen,
    *,
    with_header: bool = True,
    reported_usd: float | None = None,
) -> None:
    """Print a session's header and messages, or only the messages."""

    def lines() -> Iterator[str]:
        if with_header:
            yield from header_lines(summary, view, reported_usd=reported_usd)
            yield from annotation_lines(summary)
        transcript = transcript_lines(summary, events, view)
        blank = next(transcript, None)  # before the first message
        if with_header:
            yield ""
        yield from ("No messages to show.",) if blank is None else transcript

    screen.page(lines())


def show_records(
    history: History,
    summary: SessionSummary,
    events: Iterable[TranscriptItem],
    view: TranscriptOptions,
    screen: Screen,
) -> None:
    """Print each original record once, in message order; the result of a tool call follows the call.

    Print a warning if records are not in the archive.
    """
    records = history.transcript.records(summary)
    missing: set[tuple[str, str]] = set()

    def records_of(message: Message) -> Iterator[tuple[bytes, Message]]:
        record = records.of(message)
        if record is None:
            missing.add((message.origin.path, message.origin.place))
        else:
            yield record, message
        result = records.result_of(message)
        if result is not None:
            yield result[0], replace(message, origin=result[1])

    def lines() -> Iterator[str]:
        printed: set[tuple[str, str, int]] = set()
        for event in events:
            if not isinstance(event, MessageItem) or not view.selects(event.message):
                continue
            for record, message in records_of(event.message):
                # The hash distinguishes records at the same line of a file that was rewritten.
                key = (message.origin.path, message.origin.place, hash(record))
                if key not in printed:
                    printed.add(key)
                    yield from record_lines(record, message, event.position, view)

    screen.page(lines())
    if missing:
        ref = one_line(summary.ref, MAX_REF_CHARS)
        click.echo(
            f"The archive lacks {pluralize(len(missing), 'original record')} of {ref}."
            " Use --json to print the parsed messages.",
            err=True,
        )
