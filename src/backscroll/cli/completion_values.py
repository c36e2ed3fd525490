"""What the shell offers while somebody types: from the archive as it is, without a sync."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, get_args

import click

from backscroll.errors import BackscrollError
from backscroll.model.sanitize import one_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from backscroll.archive.query.completion import Kind, Names

__all__ = ["complete_names", "complete_refs", "complete_roles", "complete_tags"]

_MOST = 100
_TITLE = 60


def complete_refs(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Ids that begin so, newest first, with what the sessions are called."""
    from click.shell_completion import CompletionItem

    source, colon, start = typed.rpartition(":")
    given = set(ctx.params.get("refs") or ())

    def found(names: Names) -> list[CompletionItem]:
        return [
            CompletionItem(f"{source}{colon}{one.id}", help=one_line(one.title or "", _TITLE))
            for one in names.sessions(start, source=source or None, limit=_MOST)
            if one.id not in given
        ]

    return _asked(ctx, found)


def complete_names(
    kind: Kind,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Workspaces, branches or models that sessions have."""

    def complete(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
        return _asked(ctx, lambda names: _fitting(names.of(kind), typed))

    return complete


def complete_tags(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Tags that sessions have."""
    return _asked(ctx, lambda names: _fitting(names.of("tag"), typed.lstrip("#")))


def complete_roles(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Roles with commas between them: the next one."""
    from click.shell_completion import CompletionItem

    from backscroll.model import Role

    before, comma, last = typed.rpartition(",")
    chosen = before.split(",")
    rest = [role for role in get_args(Role) if role.startswith(last) and role not in chosen]
    return [CompletionItem(f"{before}{comma}{role}") for role in rest]


def _fitting(names: Iterable[str], typed: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    clean = (one_line(name, 300) for name in names)
    return [CompletionItem(name) for name in clean if name.casefold().startswith(typed.casefold())][:_MOST]


def _asked(ctx: click.Context, ask: Callable[[Names], list[CompletionItem]]) -> list[CompletionItem]:
    """What the archive says; nothing when there is none yet, or it cannot be read.

    Neither the library nor the model is loaded for it: that takes longer than the answer.
    """
    from backscroll.archive.query.completion import Names
    from backscroll.config import archive_home, this_machine

    try:
        with Names(archive_home(ctx.find_root().params.get("home"), this_machine()) / "archive.db") as names:
            return ask(names)
    except (BackscrollError, OSError):
        return []  # whoever is typing is not to be interrupted
