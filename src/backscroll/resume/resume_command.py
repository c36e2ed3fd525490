"""What continues a session, and what is in the way."""

import shutil
from pathlib import Path

from backscroll.archive import Archive
from backscroll.config import Machine
from backscroll.model import SessionSummary
from backscroll.model.tool import Command, Refusal, RestorePlan, Resumable, Resumption
from backscroll.resume.restore_files import plan
from backscroll.sources import named
from backscroll.sources.protocols import ResumeCommands, open_process

__all__ = ["resumption"]


def resumption(archive: Archive, summary: SessionSummary, machine: Machine) -> Resumption:
    """Ask the session's source how it is continued, and look whether that can be done here."""
    resumable = archive.originals.resumable(summary)
    source = named(summary.source)
    found: Command | Refusal = Refusal("its tool does not resume sessions")
    if isinstance(source, ResumeCommands):
        found = source.resume_command(resumable, machine)
    if isinstance(found, Refusal):
        return Resumption(summary, None, f"{summary.ref} cannot be continued: {found.reason}", False, None)
    is_installed = shutil.which(found.argv[0], path=machine.environ.get("PATH")) is not None
    if summary.is_gone:
        returning = plan(archive, summary)
        return Resumption(summary, found, _gone(summary, returning), is_installed, returning)
    if (pid := _held_by(resumable, summary)) is not None:
        held = f"process {pid} has {summary.ref} open already; go on there, or close it first"
        return Resumption(summary, found, held, is_installed, None)
    is_moved = found.folder is not None and not Path(found.folder).exists()
    return Resumption(summary, found, _moved(found.folder or "") if is_moved else None, is_installed, None)


def _held_by(session: Resumable, summary: SessionSummary) -> int | None:
    roots = {store.root for store in session.stores if store.source == summary.source and not store.is_gone}
    held = (open_process(named(summary.source), Path(root), session.id) for root in sorted(roots))
    return next((pid for pid in held if pid is not None), None)


def _gone(summary: SessionSummary, returning: RestorePlan) -> str:
    said = f"{summary.ref} is no longer in the tool's own store"
    if returning.obstacle is not None:
        return f"{said}, and cannot be put back: {returning.obstacle}"
    if not returning.files:
        return (
            f"{said}, and what is kept of it are rows of a database, which cannot be put back into the tool's"
            f" own yet. backscroll archive extract {summary.id[:8]} writes them beside it, and backscroll"
            f" handoff {summary.id[:8]} a briefing to go on with in a new session"
        )
    number = len(returning.files)
    what = "its file" if number == 1 else f"its {number} files"
    return f"{said}. backscroll resume {summary.id[:8]} --restore puts {what} back; nothing is overwritten"


def _moved(folder: str) -> str:
    return (
        f"the folder {folder} is not there; it was moved or deleted. Bring it back under that name, or run"
        " the command where it is now"
    )
