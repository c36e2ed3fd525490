"""Build the command that resumes a session, and find the process that has it open."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from backscroll.config import Machine
from backscroll.model.resume import Command, Refusal, Resumable
from backscroll.model.transfer import BlockingProcess
from backscroll.readers import lenient_json
from backscroll.readers.processes import command_lines, files_open_for_writing
from backscroll.sources.claude_code.workspace import matches, project_folder

_CONFIG_VARIABLE = "CLAUDE_CONFIG_DIR"
_PROGRAM = "claude"
_PACKAGE = "/claude-code/"  # in the path of its script
_RUNTIMES = frozenset({"node", "bun", "deno"})
_ID_OPTIONS = frozenset({"--resume", "-r", "--session-id"})
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
    """Return the process that has a session open; None if no process is known."""
    return _open_processes(root, [session_id]).get(session_id)


def blocking_processes(root: Path, session_ids: Collection[str]) -> list[BlockingProcess]:
    """Return the processes that have sessions open."""
    return [
        BlockingProcess(
            pid, f"Process {pid} has the session {session_id} open. Exit Claude Code there and try again."
        )
        for session_id, pid in _open_processes(root, session_ids).items()
    ]


def _open_processes(root: Path, session_ids: Collection[str]) -> dict[str, int]:
    """Return the process of each session that is open.

    It is in the tool's registry, from 2.1.139, or has a file of the session open for writing. The tool opens
    the transcript for each line only, so that earlier versions are found by their own command line.
    """
    if not session_ids:
        return {}
    found = dict(_resumed_sessions())
    for pid, path in files_open_for_writing(root):
        found |= {part.partition(".")[0]: pid for part in path.parts}
    found |= dict(_registered_sessions(root))
    return {session_id: found[session_id] for session_id in session_ids if session_id in found}


def _registered_sessions(root: Path) -> Iterator[tuple[str, int]]:
    for path in sorted((root / "sessions").glob("*.json"), reverse=True):
        try:
            entry = lenient_json.load(path.read_bytes())
        except (OSError, *lenient_json.FAILURES):
            continue
        if not isinstance(entry, dict) or not isinstance(entry.get("sessionId"), str):
            continue
        pid = entry.get("pid")
        if isinstance(pid, int) and _process_start_time(pid) in (None, str(entry.get("procStart"))):
            yield entry["sessionId"], pid


def _resumed_sessions() -> Iterator[tuple[str, int]]:
    """Yield the ids in the command lines of Claude Code. A fork only reads the session that it names."""
    for pid, command in command_lines():
        arguments = _tool_arguments(command)
        if "--fork-session" in arguments:
            continue
        for number, argument in enumerate(arguments):
            name, equals, value = argument.partition("=")
            if name in _ID_OPTIONS and not equals:
                value = "".join(arguments[number + 1 : number + 2])
            elif name not in _ID_OPTIONS:
                value = argument[2:] if argument.startswith("-r") else ""
            if value:
                yield value.rpartition("/")[2].removesuffix(".jsonl"), pid


def _tool_arguments(command: Sequence[str]) -> Sequence[str]:
    """Return the arguments of Claude Code, also if Node.js or Bun runs it; none of another program."""
    for number, word in enumerate(command[:2]):
        name = word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
        if name == _PROGRAM or _PACKAGE in word:
            return command[number + 1 :]
        if name not in _RUNTIMES:
            break
    return ()


def _process_start_time(pid: int) -> str | None:
    """Return the start time of a process; "" if there is no such process, None if it is unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() else None
    except OSError:
        return None
    return stat.rpartition(b")")[2].split()[19].decode()
