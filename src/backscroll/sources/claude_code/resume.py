"""Build the command that resumes a session, and find the process that has it open."""

from collections.abc import Collection
from pathlib import Path

from backscroll.config import Machine
from backscroll.model.resume import Command, Refusal, Resumable
from backscroll.model.transfer import BlockingProcess
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.workspace import matches, project_folder

_CONFIG_VARIABLE = "CLAUDE_CONFIG_DIR"
_INSTALL_HINT = "Install it with 'npm install -g @anthropic-ai/claude-code', or add its folder to PATH."


def resume_command(session: Resumable, machine: Machine) -> Command | Refusal:
    """Return ``claude --resume`` with the id of a session.

    It runs in the project's folder, because versions before autumn 2026 find the session only there.
    """
    stores = [store for store in session.stores if store.kind == "lines" and store.path.endswith(".jsonl")]
    if not stores:
        kinds = {store.kind for store in session.stores}
        if "lines" in kinds:
            return Refusal("it is in the database of Claude Code 0.2, which later versions do not read")
        if "prompts" in kinds:
            return Refusal(
                "Claude Code has deleted its messages. Only the prompts are kept in its prompt log"
            )
        return Refusal("it has no transcript")
    store = next((store for store in stores if not store.is_gone), stores[0])
    project = project_folder(Path(store.path))
    name = project.name if project is not None else ""
    candidates = [folder for folder in (session.folder, *session.folders) if folder]
    folder = next((path for path in candidates if matches(path, name)), None)
    note = None
    if folder is None:
        folder = session.folder
        note = (
            f"the folder of the project {name} is unknown; older versions find the session only there"
            if folder is not None
            else None
        )
    argv, environ = ("claude", "--resume", session.id), _environ(Path(store.root), machine)
    return Command(argv, folder, environ, note, _INSTALL_HINT)


def _environ(root: Path, machine: Machine) -> dict[str, str]:
    """Return the environment variable for a history folder other than the default; else nothing."""
    default = machine.folder(_CONFIG_VARIABLE, machine.home / ".claude")
    return {} if root == default else {_CONFIG_VARIABLE: str(root)}


def open_process(root: Path, session_id: str) -> int | None:
    """Return the process that has a session open; None if unknown. Versions from 2.1.139 store it."""
    for path in sorted((root / "sessions").glob("*.json")):
        try:
            entry = lenient_json.load(path.read_bytes())
        except (OSError, *lenient_json.FAILURES):
            continue
        if not isinstance(entry, dict) or entry.get("sessionId") != session_id:
            continue
        pid = entry.get("pid")
        if isinstance(pid, int) and _process_start_time(pid) in (None, str(entry.get("procStart"))):
            return pid
    return None


def blocking_processes(root: Path, session_ids: Collection[str]) -> list[BlockingProcess]:
    """Return the processes that have sessions open, by the tool's registry, else by their command lines."""
    if not session_ids:
        return []
    resumed = _resumed_sessions()
    found: list[BlockingProcess] = []
    for session_id in session_ids:
        pid = open_process(root, session_id) or resumed.get(session_id)
        if pid is not None:
            reason = f"Process {pid} has the session {session_id} open. Exit Claude Code there and try again."
            found.append(BlockingProcess(pid, reason))
    return found


def _resumed_sessions() -> dict[str, int]:
    """Return the ids in the command lines of ``claude --resume``: before 2.1.139 there is no registry."""
    found: dict[str, int] = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if {"--resume", "-r"} & set(arguments):
            found |= dict.fromkeys(arguments, int(path.parent.name))
    return found


def _process_start_time(pid: int) -> str | None:
    """Return the start time of a process; "" if there is no such process, None if it is unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() else None
    except OSError:
        return None
    return stat.rpartition(b")")[2].split()[19].decode()
