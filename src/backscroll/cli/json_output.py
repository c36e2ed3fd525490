"""Write a JSON document to standard output."""

import sys
from typing import Any

import click

from backscroll.cli.global_options import Setup
from backscroll.errors import BackscrollError
from backscroll.render.json import encode_json

__all__ = ["write_json"]


def write_json(document: dict[str, Any]) -> None:
    """Write one document. Its ``is_complete`` is false while a long sync is running."""
    setup = click.get_current_context().find_object(Setup)
    assert setup is not None
    sys.stdout.buffer.write(encode_json(document | {"is_complete": _is_complete(setup)}))


def _is_complete(setup: Setup) -> bool:
    try:
        with setup.last_history or setup.history() as history:
            return history.archive_path.exists() and history.is_complete
    except BackscrollError:
        return False  # the archive is damaged
