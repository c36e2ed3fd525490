"""Resume a session with Claude Code: by id, in the folder of its project."""

from pathlib import Path

from backscroll.config import Machine
from backscroll.model.tool import Command, Refusal, Resumable
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.project_key import matches
from backscroll.sources.claude_code.workspace import project_folder

__all__ = ["open_process", "resume_command"]

_HOME = "CLAUDE_CONFIG_DIR"


def resume_command(session: Resumable, machine: Machine) -> Command | Refusal:
    """Return ``claude --resume``.

    Versions before autumn 2026 find a session only in its project's folder.
    """
    stores = [store for store in session.stores if store.kind == "lines" and store.path.endswith(".jsonl")]
    if not stores:
        kinds = {store.kind for store in session.stores}
        if "lines" in kinds:
            return Refusal("it is in the database of Claude Code 0.2, which later versions do not read")
        return Refusal("only its prompts are left" if "prompts" in kinds else "its transcript is gone")
    store = next((one for one in stores if not one.is_gone), stores[0])
    project = project_folder(Path(store.path))
    name = project.name if project is not None else ""
    candidates = [folder for folder in (session.folder, *session.folders) if folder]
    folder = next((one for one in candidates if matches(one, name)), None)
    note = None
    if folder is None:
        folder = session.folder
        note = (
            f"its project is called {name}, after a folder that is not known; older versions look only there"
        )
        note = None if folder is None else note
    return Command(("claude", "--resume", session.id), folder, _environ(Path(store.root), machine), note)


def _environ(root: Path, machine: Machine) -> dict[str, str]:
    """Return the variable for another history folder than the default."""
    usual = machine.folder(_HOME, machine.home / ".claude")
    return {} if root == usual else {_HOME: str(root)}


def open_process(root: Path, session_id: str) -> int | None:
    """Return the process that has a session open; None if unknown. Version 2.1.139 and later store it."""
    for path in sorted((root / "sessions").glob("*.json")):
        try:
            told = lenient_json.load(path.read_bytes())
        except (OSError, *lenient_json.FAILURES):
            continue
        if not isinstance(told, dict) or told.get("sessionId") != session_id:
            continue
        number = told.get("pid")
        if isinstance(number, int) and _started(number) in (None, str(told.get("procStart"))):
            return number
    return None


def _started(pid: int) -> str | None:
    """Return the start time of a process; "" if it does not exist, None if that is unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() else None
    except OSError:
        return None
    return stat.rpartition(b")")[2].split()[19].decode()
