"""``backscroll note``: what people write down about a session."""

import click

from backscroll.cli.annotation_output import as_json, change
from backscroll.cli.app import Setup
from backscroll.cli.completion_values import complete_refs
from backscroll.history import History
from backscroll.model import SessionSummary

__all__ = ["command"]


@click.command("note")
@click.argument("ref", shell_complete=complete_refs)
@click.argument("text", required=False)
@click.option("--edit", type=int, metavar="N", help="Put TEXT in the place of note N.")
@click.option("--delete", type=int, metavar="N", help="Delete note N.")
@as_json
@click.pass_obj
def command(
    setup: Setup, ref: str, text: str | None, edit: int | None, delete: int | None, as_json: bool
) -> None:
    """Write something down about a session, in the archive only.

    A session may have several notes. Without TEXT they are shown. backscroll search finds their words.

    Example:

        backscroll note 1 "the fix is in the second half"
    """
    if delete is not None and (text is not None or edit is not None):
        raise click.UsageError("a note is either written or deleted: leave out TEXT and --edit")
    if edit is not None and text is None:
        raise click.UsageError(f"note {edit} needs its new words: TEXT")

    def do(history: History, known: str) -> SessionSummary:
        if delete is not None:
            return history.edit_note(known, delete, None)
        if edit is not None:
            return history.edit_note(known, edit, text)
        return history.find(known) if text is None else history.add_note(known, text)

    change(setup, ref, do, as_json=as_json)
