"""How Cursor's command line continues a session: by its id, in the folder it was held in."""

from hashlib import md5
from pathlib import Path

from backscroll.config import Machine
from backscroll.model.tool import Command, Refusal, Resumable

__all__ = ["resume_command"]


def resume_command(session: Resumable, machine: Machine) -> Command | Refusal:
    """``cursor-agent --resume``, which looks below the hash of the folder that it is started in."""
    stores = [store for store in session.stores if store.kind == "store"]
    if not stores:
        kinds = {store.kind for store in session.stores}
        if "acp" in kinds:
            return Refusal("it was held through another program, and only that can continue it")
        return Refusal("only a text copy of it is there, which cursor-agent cannot continue")
    store = next((one for one in stores if not one.is_gone), stores[0])
    hashed = Path(store.path).parent.parent.name
    candidates = [folder for folder in (session.folder, *session.folders) if folder]
    folder = next((one for one in candidates if _hash(one) == hashed), None)
    note = None
    if folder is None and session.folder is not None:
        folder = session.folder
        note = "it was stored for a folder that is not known; cursor-agent may not find it here"
    return Command(("cursor-agent", "--resume", session.id), folder, _environ(store.root, machine), note)


def _hash(folder: str) -> str:
    return md5(folder.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _environ(root: str, machine: Machine) -> dict[str, str]:
    """Where the program is to look, unless it looks there by itself."""
    home = machine.home / ".cursor"
    names = ("CURSOR_CONFIG_DIR", "CURSOR_DATA_DIR")
    usual = {str(machine.folder(name, home)) for name in names}
    usual.add(str(machine.folder("XDG_CONFIG_HOME", machine.home / ".config") / "cursor"))
    return {} if root in usual else dict.fromkeys(names, root)
