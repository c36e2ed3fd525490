"""Values that shell completion offers. Read from the archive without a sync."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, get_args

import click

from backscroll.config import archive_home, this_machine
from backscroll.errors import BackscrollError
from backscroll.model.text import one_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from backscroll.history import CompletionNames, NameKind

__all__ = ["complete_names", "complete_refs", "complete_roles", "complete_tags"]

MAX_VALUES = 100
MAX_TITLE_CHARS = 60
MAX_NAME_CHARS = 300


def complete_refs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return session ids with this prefix, newest first, with titles as help."""
    from click.shell_completion import CompletionItem

    source, colon, prefix = incomplete.rpartition(":")
    given = set(ctx.params.get("refs") or ())

    def items(names: CompletionNames) -> list[CompletionItem]:
        return [
            CompletionItem(
                f"{source}{colon}{session.id}", help=one_line(session.title or "", MAX_TITLE_CHARS)
            )
            for session in names.sessions(prefix, source=source or None, limit=MAX_VALUES)
            if session.id not in given
        ]

    return _query_archive(ctx, items)


def complete_names(
    kind: NameKind,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a completion function for workspaces, branches or models."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _query_archive(ctx, lambda names: _with_prefix(names.of_kind(kind), incomplete))

    return complete


def complete_tags(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return tags with this prefix."""
    return _query_archive(ctx, lambda names: _with_prefix(names.of_kind("tag"), incomplete.lstrip("#")))


def complete_roles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return completions for the last role of a comma-separated list."""
    from click.shell_completion import CompletionItem

    from backscroll.model import Role  # start-up time: only this completion needs it

    before, comma, last = incomplete.rpartition(",")
    chosen = before.split(",")
    roles = [role for role in get_args(Role) if role.startswith(last) and role not in chosen]
    return [CompletionItem(f"{before}{comma}{role}") for role in roles]


def _with_prefix(names: Iterable[str], prefix: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    clean = (one_line(name, MAX_NAME_CHARS) for name in names)
    matching = [CompletionItem(name) for name in clean if name.casefold().startswith(prefix.casefold())]
    return matching[:MAX_VALUES]


def _query_archive(
    ctx: click.Context, query: Callable[[CompletionNames], list[CompletionItem]]
) -> list[CompletionItem]:
    """Return the result of a query; an empty list if the archive is missing or cannot be read.

    Imports neither `History` nor the model: that takes longer than the query.
    """
    from backscroll.history import CompletionNames

    try:
        with CompletionNames(
            archive_home(ctx.find_root().params.get("home"), this_machine()) / "archive.db"
        ) as names:
            return query(names)
    except (BackscrollError, OSError):
        return []  # an error message would disturb the command line
