"""Build the command that resumes a session in the Cursor CLI."""

from pathlib import Path

from backscroll.config import Machine
from backscroll.model.resume import Command, Refusal, Resumable
from backscroll.sources.cursor_cli import workspace

_INSTALL_HINT = "Install the Cursor CLI (https://cursor.com/cli), or add ~/.local/bin to PATH."


def resume_command(session: Resumable, machine: Machine) -> Command | Refusal:
    """Return a ``cursor-agent --resume`` command.

    ``cursor-agent`` finds a session only if it is started in the session's folder.
    """
    stores = [store for store in session.stores if store.kind == "store"]
    if not stores:
        kinds = {store.kind for store in session.stores}
        if "acp" in kinds:
            return Refusal("it belongs to another program, and only that can resume it")
        return Refusal("only a text copy of it exists, which cursor-agent cannot resume")
    store = next((store for store in stores if not store.is_gone), stores[0])
    name = Path(store.path).parent.parent.name
    candidates = [folder for folder in (session.folder, *session.folders) if folder]
    folder = next((folder for folder in candidates if workspace.folder_hash(folder) == name), None)
    note = None
    if folder is None and session.folder is not None:
        folder = session.folder
        note = "its original folder is unknown; cursor-agent may not find it here"
    argv, environ = ("cursor-agent", "--resume", session.id), _environ(store.root, machine)
    return Command(argv, folder, environ, note, _INSTALL_HINT)


def _environ(root: str, machine: Machine) -> dict[str, str]:
    """Return the variables that select a root; none if ``cursor-agent`` uses it by default."""
    home = machine.home / ".cursor"
    names = ("CURSOR_CONFIG_DIR", "CURSOR_DATA_DIR")
    defaults = {str(machine.folder(name, home)) for name in names}
    defaults.add(str(machine.folder("XDG_CONFIG_HOME", machine.home / ".config") / "cursor"))
    return {} if root in defaults else dict.fromkeys(names, root)
