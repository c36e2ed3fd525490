"""JSON documents on standard output. `render.json` is loaded only if a document is written."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from backscroll.cli.global_options import Setup
from backscroll.errors import BackscrollError

if TYPE_CHECKING:
    from types import ModuleType

    from backscroll.model import PaginatedResult, SearchResult, SessionSummary

__all__ = ["write_json", "write_page", "write_search"]


def write_json(document: dict[str, Any]) -> None:
    """Write one document. Its ``is_complete`` is false while a long sync is running."""
    setup = click.get_current_context().find_object(Setup)
    assert setup is not None
    document = document | {"is_complete": _is_complete(setup)}
    sys.stdout.buffer.write(_renderer().encode_json(document))


def write_page(page: PaginatedResult[SessionSummary]) -> None:
    """Write a page of sessions."""
    write_json(_renderer().page_document(page))


def write_search(found: SearchResult) -> None:
    """Write a page of search matches."""
    write_json(_renderer().search_document(found))


def _renderer() -> ModuleType:
    from backscroll.render import json  # start-up: text output does not need it

    return json


def _is_complete(setup: Setup) -> bool:
    try:
        with setup.last_history or setup.history() as history:
            return history.archive_path.exists() and history.is_complete
    except BackscrollError:
        return False  # the archive is damaged
