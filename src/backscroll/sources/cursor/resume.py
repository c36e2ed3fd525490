"""Resume a session in Cursor: open its workspace, where the user selects the session."""

from pathlib import Path

from backscroll.config import Machine
from backscroll.model.resume import Command, Resumable
from backscroll.sources.cursor.locations import roots

_INSTALL_HINT = "In Cursor, run 'Shell Command: Install 'cursor' command' from the command palette."


def resume_command(session: Resumable, machine: Machine) -> Command:
    """Return the command that opens the workspace. Cursor has no command that opens a session."""
    argv = ["cursor"]
    store = next((each for each in session.stores if not each.is_gone and each.source == "cursor"), None)
    if store is not None and Path(store.root) not in roots(machine):
        argv += ["--user-data-dir", store.root]
    if session.folder is not None and session.authority:
        argv += ["--folder-uri", f"vscode-remote://{session.authority}{session.folder}"]
    elif session.folder is not None:
        argv.append(session.folder)
    title = f"“{session.title}”" if session.title else "it"
    note = f"Cursor opens the workspace; choose {title} in its chat history"
    folder = None if session.authority else session.folder
    return Command(tuple(argv), folder, note=note, install_hint=_INSTALL_HINT)
