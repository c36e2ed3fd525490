"""The command that resumes a session, and what prevents it."""

import shutil
from collections.abc import Callable
from pathlib import Path

from backscroll.archive import Archive
from backscroll.config import Machine
from backscroll.model import SessionSummary
from backscroll.model.resume import Command, Refusal, RestorePlan, Resumable, Resumption
from backscroll.model.text import pluralize
from backscroll.sources import named
from backscroll.sources.capabilities import ProcessLookup, ResumeCommands
from backscroll.sources.capability_lookup import capability

__all__ = ["resumption"]


def resumption(
    archive: Archive,
    summary: SessionSummary,
    machine: Machine,
    restore_plan: Callable[[SessionSummary], RestorePlan],
) -> Resumption:
    """Return the command of the session's source, and any obstacle on this machine.

    ``restore_plan`` is called if the session is no longer in its tool's store.
    """
    resumable = archive.originals.resumable(summary)
    commands = capability(named(summary.source), ResumeCommands)
    found: Command | Refusal = Refusal("its tool does not resume sessions")
    if commands is not None:
        found = commands.resume_command(resumable, machine)
    if isinstance(found, Refusal):
        return Resumption(summary, None, _refused(summary, found), False, None)
    is_installed = shutil.which(found.argv[0], path=machine.environ.get("PATH")) is not None
    if summary.is_gone:
        returning = restore_plan(summary)
        return Resumption(summary, found, _gone(summary, returning), is_installed, returning)
    if (pid := _held_by(resumable, summary)) is not None:
        held = f"Process {pid} has {summary.ref} open. Continue there, or close it first."
        return Resumption(summary, found, held, is_installed, None)
    is_moved = found.folder is not None and not Path(found.folder).exists()
    return Resumption(summary, found, _moved(found.folder or "") if is_moved else None, is_installed, None)


def _held_by(session: Resumable, summary: SessionSummary) -> int | None:
    processes = capability(named(summary.source), ProcessLookup)
    if processes is None:
        return None
    roots = {store.root for store in session.stores if store.source == summary.source and not store.is_gone}
    held = (processes.open_process(Path(root), session.id) for root in sorted(roots))
    return next((pid for pid in held if pid is not None), None)


def _refused(summary: SessionSummary, refusal: Refusal) -> str:
    return (
        f"{summary.ref} cannot be resumed: {refusal.reason}."
        f" Run 'backscroll handoff {_short_id(summary)}' to continue in a new session."
    )


def _short_id(summary: SessionSummary) -> str:
    """Return the first digits of an id, or the whole id if it starts with a word ("prompts-…")."""
    return summary.id if "-" in summary.id[:8] else summary.id[:8]


def _gone(summary: SessionSummary, returning: RestorePlan) -> str:
    gone = f"{summary.ref} is no longer in the tool's own store"
    if returning.obstacle is not None:
        return (
            f"{gone} and cannot be restored. {returning.obstacle}"
            f" Run 'backscroll handoff {_short_id(summary)}' to continue in a new session."
        )
    count = len(returning.files)
    what = "its file" if count == 1 else f"its {count} files"
    if returning.row_count:
        rows = pluralize(returning.row_count, "row")
        what = f"{rows} of its database" if not count else f"{what} and {rows} of its database"
    return f"{gone}. Run 'backscroll resume {_short_id(summary)} --restore' to restore {what}."


def _moved(folder: str) -> str:
    return (
        f"The folder {folder} does not exist. It was moved or deleted. Restore it, or run the command in its"
        " new location."
    )
