"""``backscroll show``: show a session."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, get_args

import click
from msgspec.structs import replace

from backscroll.cli.options import (
    EVERYTHING_HELP,
    complete_refs,
    complete_roles,
    read_options,
    sync_before_reading,
)
from backscroll.cli.output import color_option, detect_screen
from backscroll.model.message import Role
from backscroll.model.text import one_line, pluralize
from backscroll.render.annotations import annotation_lines
from backscroll.render.json import json_chunks
from backscroll.render.transcript import TranscriptOptions, header_lines, record_lines, transcript_lines
from backscroll.render.turns import MessageItem, is_visible

if TYPE_CHECKING:
    from backscroll.cli.output import Screen
    from backscroll.cli.startup import Setup
    from backscroll.history.history import History
    from backscroll.model.message import Message
    from backscroll.model.session import SessionSummary
    from backscroll.render.transcript import TranscriptOptions
    from backscroll.render.turns import TranscriptItem


_TURN_RANGE = re.compile(r"(-?\d{1,9})(?:(-)(-?\d{1,9})?)?")
_MAX_REF_CHARS = 200


class TurnRange(click.ParamType[tuple[int, int]]):
    """Turn or range of turns: ``3``, ``3-5``, ``3-``, and from the end ``-1``, ``-3-``, ``-3--2``."""

    name = "turns"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        found = _TURN_RANGE.fullmatch(value)
        if found is None:
            self.fail(f"{value!r} is not a turn. Use 3, 3-5, 3- or -1.", param, ctx)
        first = int(found[1])
        last = first if found[2] is None else int(found[3]) if found[3] else -1
        return first, last


class Roles(click.ParamType[frozenset[str]]):
    """Comma-separated list of roles."""

    name = "roles"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        if isinstance(value, frozenset):
            return value
        names = frozenset(value.split(","))
        if unknown := sorted(names - set(get_args(Role))):
            self.fail(f"{unknown[0]!r} is not a role. Use {', '.join(get_args(Role))}.", param, ctx)
        return names


@click.command("show")
@click.argument("ref", shell_complete=complete_refs)
@click.option(
    "--only",
    type=Roles(),
    metavar="ROLES",
    shell_complete=complete_roles,
    help="Only messages with these roles, comma-separated: user, assistant, tool, thinking, error, system."
    " 'error' includes failed tool calls.",
)
@click.option(
    "--turn", "turns", type=TurnRange(), metavar="N", help="Only these turns: 3, 3-5, 3-, or -1 for the last."
)
@click.option(
    "--message", metavar="ID", help="Start at this message and show it in full. ID is its #number or its id."
)
@click.option("--alone", is_flag=True, help="With --message: show only this message.")
@click.option("--all", "--everything", "everything", is_flag=True, help=EVERYTHING_HELP)
@click.option("--full", is_flag=True, help="Do not shorten messages or tool output; include subagents.")
@click.option("--agents", is_flag=True, help="Include messages of subagents.")
@click.option("--raw", is_flag=True, help="Print the original record of each message, as the tool wrote it.")
@color_option
@read_options
@click.pass_obj
def command(
    setup: Setup,
    /,
    ref: str,
    only: frozenset[str] | None,
    turns: tuple[int, int] | None,
    message: str | None,
    alone: bool,
    everything: bool,
    full: bool,
    agents: bool,
    raw: bool,
    color: Any,
    as_json: bool,
) -> None:
    """Show a session.

    REF is an index, an id or the start of an id, also with its source: claude-code:0f3c9a. An index is the
    number that 'list' and 'search' print. The index changes when newer sessions appear; the id does not. On a
    terminal, long output goes to the pager named by PAGER.

    \b
    Examples:
      backscroll show 1
      backscroll show 1 --turn -1
      backscroll show 0f3c9a --only user,assistant
    """
    if as_json and (only or turns or message is not None or raw):
        raise click.UsageError("--json cannot be combined with --only, --turn, --message or --raw.")
    if turns and message is not None:
        raise click.UsageError("--turn and --message cannot be combined.")
    if alone and message is None:
        raise click.UsageError("--alone requires --message.")
    screen = detect_screen(color)
    with setup.history() as history:
        sync_before_reading(history)
        summary = history.find(ref)
        if as_json:
            for chunk in json_chunks(
                summary,
                history.transcript.messages(summary),
                is_complete=history.is_complete,
                reported_cost_usd=history.transcript.reported_cost(summary),
            ):
                sys.stdout.buffer.write(chunk.encode())
            return
        start = history.transcript.find_message(summary, message) if message is not None else 0
        first = history.transcript.message_at(summary, start) if message is not None else None
        everything = everything or (first is not None and not is_visible(first))
        items: Iterable[TranscriptItem]
        if alone and first is not None:
            items = [MessageItem(start, 0, first)]
        else:
            items = history.transcript.read(
                summary, everything=everything, with_agents=agents or full, start=start, turns=turns
            )
        transcript_options = TranscriptOptions(
            width=screen.width,
            is_colored=screen.is_colored,
            is_full=full,
            only=only or (),
            unfolded=start if message is not None else None,
            with_agents=agents or full,
        )
        if raw:
            _show_records(history, summary, items, transcript_options, screen)
        else:
            reported_usd = history.transcript.reported_cost(summary)
            _show_messages(
                summary, items, transcript_options, screen, with_header=not alone, reported_usd=reported_usd
            )


def _show_messages(
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


def _show_records(
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
        ref = one_line(summary.ref, _MAX_REF_CHARS)
        click.echo(
            f"The archive lacks {pluralize(len(missing), 'original record')} of {ref}."
            " Use --json to print the parsed messages.",
            err=True,
        )
