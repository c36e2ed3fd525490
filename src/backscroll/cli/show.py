"""``backscroll show``: a session, turn by turn."""

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, get_args

import click

from backscroll.cli.app import Setup
from backscroll.cli.completing import complete_refs, complete_roles
from backscroll.cli.options import bring_up_to_date, reading
from backscroll.cli.screen import Screen, coloured, screen
from backscroll.history import History
from backscroll.model import Role, SessionSummary
from backscroll.render.documents import json_pieces
from backscroll.render.inert import one_line
from backscroll.render.noted import added_lines
from backscroll.render.terminal.records import record_lines
from backscroll.render.terminal.transcript import head_lines, transcript_lines
from backscroll.render.terminal.view import View
from backscroll.render.turns import Event, Said, is_shown

__all__ = ["command"]

_TURNS = re.compile(r"(-?\d{1,9})(?:(-)(-?\d{1,9})?)?")


class Turns(click.ParamType[tuple[int, int]]):
    """``3``, ``3-5``, ``3-``, and from the end ``-1``, ``-3-``, ``-3--2``."""

    name = "turns"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        found = _TURNS.fullmatch(value)
        if found is None:
            self.fail(f"{value!r} is no turn; write it like 3, 3-5, 3- or -1", param, ctx)
        first = int(found[1])
        last = first if found[2] is None else int(found[3]) if found[3] else -1
        return first, last


class Roles(click.ParamType[frozenset[str]]):
    """Roles with commas between them."""

    name = "roles"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        if isinstance(value, frozenset):
            return value
        names = frozenset(filter(None, value.split(",")))
        if unknown := sorted(names - set(get_args(Role))):
            self.fail(f"{unknown[0]!r} is no role; the roles are {', '.join(get_args(Role))}", param, ctx)
        return names


@click.command("show")
@click.argument("ref", shell_complete=complete_refs)
@click.option(
    "--only",
    type=Roles(),
    default="",
    metavar="ROLES",
    shell_complete=complete_roles,
    help="Only user, assistant, tool, thinking, error; with commas between them.",
)
@click.option("--turn", "turns", type=Turns(), metavar="N", help="A turn: 3, 3-5, 3-, or from the end -1.")
@click.option("--message", metavar="ID", help="Begin at this message, unfolded: its #number or its id.")
@click.option("--all", "everything", is_flag=True, help="Abandoned branches and injected text as well.")
@click.option("--full", is_flag=True, help="Nothing folded and nothing cut; subagents' messages as well.")
@click.option("--agents", is_flag=True, help="The messages of subagents as well.")
@click.option("--raw", is_flag=True, help="The original record of each message, as the tool wrote it.")
@coloured
@reading
@click.pass_obj
def command(
    setup: Setup,
    /,
    ref: str,
    only: frozenset[str],
    turns: tuple[int, int] | None,
    message: str | None,
    everything: bool,
    full: bool,
    agents: bool,
    raw: bool,
    color: Any,
    as_json: bool,
    no_sync: bool,
) -> None:
    """Show a session.

    REF is an index of the list, an id, or any unambiguous beginning of one. Turns and messages have numbers:
    --turn and --message take them. What is longer than the screen goes to a pager; PAGER names another one.

    Example:

        backscroll show 1 --turn -1
    """
    if as_json and (only or turns or message or raw):
        raise click.UsageError("--json tells every message; leave out --only, --turn, --message and --raw")
    if turns and message:
        raise click.UsageError("--turn and --message both say where to begin; give one of them")
    out = screen(color)
    with setup.history() as history:
        if not no_sync:
            bring_up_to_date(history)
        summary = history.find(ref)
        if as_json:
            for piece in json_pieces(summary, history.messages_of(summary)):
                sys.stdout.buffer.write(piece.encode())
            return
        start = history.find_message(summary, message) if message else 0
        if message:
            named = next(history.messages_of(summary, start), None)
            everything = everything or named is None or not is_shown(named)
        events = history.read_session(
            summary, everything=everything, with_agents=agents or full, start=start, turns=turns
        )
        view = View(
            width=out.width,
            is_coloured=out.is_coloured,
            is_full=full,
            only=only,
            unfolded=start if message else None,
            with_agents=agents or full,
        )
        if raw:
            _show_records(history, summary, events, view, out)
        else:
            out.page(_lines(summary, events, view))


def _lines(summary: SessionSummary, events: Iterable[Event], view: View) -> Iterator[str]:
    return chain(head_lines(summary, view), added_lines(summary), transcript_lines(summary, events, view))


def _show_records(
    history: History, summary: SessionSummary, events: Iterable[Event], view: View, out: Screen
) -> None:
    """Every record once, in the order of what was read from it; what is not kept is said at the end."""
    records = history.records_of(summary)
    missing = 0

    def lines() -> Iterator[str]:
        nonlocal missing
        told: set[tuple[str, str]] = set()
        for event in events:
            if not isinstance(event, Said) or (view.only and event.message.role not in view.only):
                continue
            origin = (event.message.origin.path, event.message.origin.place)
            if origin in told:
                continue
            told.add(origin)
            record = records.of(event.message)
            if record is None:
                missing += 1
                continue
            yield from record_lines(record, event.message, event.position, view)

    out.page(lines())
    if missing:
        name = one_line(summary.ref, 200)
        click.echo(f"{missing:,} records of {name} are not kept; show --json has what was read.", err=True)
