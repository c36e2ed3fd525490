"""``backscroll show``: a session, turn by turn."""

import re
import sys
from typing import Any, get_args

import click

from backscroll.cli.completion_values import complete_refs, complete_roles
from backscroll.cli.options import make_filter, read_options, session_filters, sync_before_reading
from backscroll.cli.setup import Setup
from backscroll.cli.terminal import color_option, detect_screen

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
        from backscroll.model import Role

        names = frozenset(value.split(","))
        if unknown := sorted(names - set(get_args(Role))):
            self.fail(f"{unknown[0]!r} is no role; the roles are {', '.join(get_args(Role))}", param, ctx)
        return names


@click.command("show")
@click.argument("ref", shell_complete=complete_refs)
@click.option(
    "--only",
    type=Roles(),
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
@session_filters
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
    everything: bool,
    full: bool,
    agents: bool,
    raw: bool,
    color: Any,
    as_json: bool,
    no_sync: bool,
    **options: Any,
) -> None:
    """Show a session.

    REF is an index of the list, an id, or any unambiguous beginning of one. An index of a list that was
    narrowed needs the same options: show 2 --gone. Turns and messages have numbers: --turn and --message take
    them. What is longer than the screen goes to a pager; PAGER names another one.

    Example:

        backscroll show 1 --turn -1
    """
    if as_json and (only or turns or message is not None or raw):
        raise click.UsageError("--json tells every message; leave out --only, --turn, --message and --raw")
    if turns and message is not None:
        raise click.UsageError("--turn and --message both say where to begin; give one of them")
    # The shell asks this module what can be typed; what only a reader needs is not loaded for that.
    from backscroll.cli.session_output import show_messages, show_records
    from backscroll.render.json import json_chunks
    from backscroll.render.terminal.options import TranscriptOptions
    from backscroll.render.turns import is_visible

    out = detect_screen(color)
    with setup.history() as history:
        if not no_sync:
            sync_before_reading(history)
        summary = history.find(ref, make_filter(options))
        if as_json:
            for piece in json_chunks(summary, history.messages_of(summary)):
                sys.stdout.buffer.write(piece.encode())
            return
        start = history.find_message(summary, message) if message is not None else 0
        if message is not None:
            named = history.message_at(summary, start)
            everything = everything or named is None or not is_visible(named)
        events = history.read_session(
            summary, everything=everything, with_agents=agents or full, start=start, turns=turns
        )
        view = TranscriptOptions(
            width=out.width,
            is_coloured=out.is_coloured,
            is_full=full,
            only=only or (),
            unfolded=start if message is not None else None,
            with_agents=agents or full,
        )
        if raw:
            show_records(history, summary, events, view, out)
        else:
            show_messages(summary, events, view, out)
