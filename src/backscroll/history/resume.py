"""Resume a session in its tool, open its files, or hand it over."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from backscroll.config import Machine
from backscroll.errors import BackscrollError, DataNotFoundError, UsageError
from backscroll.highlights.handoff import build_handoff
from backscroll.model.export import SecretLocation
from backscroll.model.message import Edit, Message
from backscroll.model.resume import Command, Refusal, RestorePlan, Resumable, Resumption
from backscroll.model.search import paths_of
from backscroll.model.session import SessionSummary
from backscroll.model.text import pluralize
from backscroll.redact import Redactor
from backscroll.render.handoff import Handoff
from backscroll.search.search import Search
from backscroll.sources import named
from backscroll.stores.lookup import find_session, find_top_session
from backscroll.stores.stores import Stores
from backscroll.transfer.restore import apply_restore, plan_restore
from backscroll.transfer.stored_sessions import resumable_session

_MAX_FILE_BYTES = 20_000_000  # larger files are not searched for a line
_GOTO = ("cursor", "code", "code-insiders", "codium", "windsurf")  # -g FILE:LINE
_COLON = ("zed", "zeditor", "subl", "hx", "helix", "idea", "pycharm", "webstorm", "goland")  # FILE:LINE
_PLUS = (  # +LINE FILE
    "vi", "vim", "nvim", "gvim", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne"
)  # fmt: skip


class Resume:
    """Resume a session in its tool, open its files, or hand it over."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def plan(self, ref: str) -> Resumption:
        """Return the command that resumes a session, and any obstacle. A subagent stands for its session."""
        return self.plan_of(find_session(self._stores.archive, ref))

    def plan_of(self, summary: SessionSummary) -> Resumption:
        """Return the same for a session that was already found."""
        if summary.parent_ref is not None:
            summary = find_session(self._stores.archive, summary.parent_ref)
        machine = self._stores.machine
        resumable = resumable_session(self._stores.archive, summary)
        commands = named(summary.source).resume()
        found: Command | Refusal = Refusal("its tool does not resume sessions")
        if commands is not None:
            found = commands.resume_command(resumable, machine)
        if isinstance(found, Refusal):
            return Resumption(summary, None, _refused(summary, found), False, None)
        is_installed = _is_installed(found.argv[0], machine)
        if summary.is_gone:
            returning = self._restore_plan(summary)
            return Resumption(summary, found, _gone(summary, returning), is_installed, returning)
        if (pid := _held_by(resumable, summary)) is not None:
            held = f"Process {pid} has {summary.ref} open. Continue there, or close it first."
            return Resumption(summary, found, held, is_installed, None)
        is_moved = found.folder is not None and not Path(found.folder).exists()
        obstacle = _moved(found.folder or "") if is_moved else None
        return Resumption(summary, found, obstacle, is_installed, None)

    def _restore_plan(self, summary: SessionSummary) -> RestorePlan:
        try:
            changes = plan_restore(self._stores.archive, summary, self._stores.root_paths()).plan.changes
        except BackscrollError as error:
            return RestorePlan((), 0, error.reason)
        if changes.is_empty:
            return RestorePlan((), 0, "Its files exist with other content.")
        files = [change for change in changes.files if change.content is not None]
        paths, size = tuple(str(file.path) for file in files), sum(file.size for file in files)
        return RestorePlan(paths, size, None, len(changes.rows))

    def restore_files(self, ref: str) -> list[Path]:
        """Restore a session that its tool has deleted, and return the paths of its files.

        Nothing is overwritten, and the change can be undone. See `History.restore_session`.
        """
        archive = self._stores.archive
        planned = plan_restore(archive, find_top_session(archive, ref), self._stores.root_paths())
        result = apply_restore(archive, self._stores.change_log, planned)
        return [Path(path) for path in result.files]

    def open_command(self, ref: str, position: int | None = None) -> Command:
        """Return the command that opens a session's workspace, or the file of the message at a position.

        Raises `DataNotFoundError` if that file or folder does not exist. One on a remote host is not checked.
        """
        archive, machine = self._stores.archive, self._stores.machine
        summary = find_session(archive, ref)
        workspace = summary.workspace_path
        authority = archive.originals.resumable(find_top_session(archive, ref)).authority
        argv: tuple[str, ...] | None
        if position is None:
            if workspace is None:
                raise DataNotFoundError(f"The workspace of {summary.ref} is unknown.", "")
            if authority:
                return Command(remote_folder_command(authority, workspace, machine))
            argv, path = folder_command(workspace, machine), workspace
        else:
            _, count = archive.messages.extent(summary)
            if not 0 <= position < count:
                raise UsageError(f"{summary.ref} has no message {position}. Positions are 0 to {count - 1}.")
            message = next(archive.messages.of_session(summary, position))
            place = edit_location(message, paths_of(message), workspace, is_remote=bool(authority))
            if place is None:
                raise DataNotFoundError(f"Message {position} of {summary.ref} names no file.", "")
            if authority:
                return Command(remote_file_command(authority, place.path, place.line, machine))
            argv, path = file_command(place.path, place.line, machine), place.path
        if not Path(path).exists():
            raise DataNotFoundError(f"{path} does not exist. It was moved or deleted.", path)
        if argv is None:
            raise DataNotFoundError(f"No program found to open {path}. Set EDITOR to your editor.", path)
        folder = workspace if workspace is not None and Path(workspace).is_dir() else None
        return Command(argv, folder)

    def handoff(self, ref: str, *, tokens: int = 2000, redactor: Redactor | None = None) -> Handoff:
        """Return a short version of a session for another assistant, within a token budget.

        A redactor replaces secrets and reports them afterwards.
        """
        archive = self._stores.archive
        summary = find_session(archive, ref)
        if redactor is None:
            return build_handoff(summary, archive.messages.of_session(summary), tokens=tokens)
        Search(self._stores).learn_secrets(redactor, summary)
        location = SecretLocation(summary.ref, None)
        return build_handoff(
            redactor.redact_summary(summary),
            archive.messages.of_session(summary),
            tokens=tokens,
            clean=lambda text: redactor.redact_text(text, location),
        )


def _held_by(session: Resumable, summary: SessionSummary) -> int | None:
    processes = named(summary.source).processes()
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


def _short_id(summary: SessionSummary) -> str:
    """Return the first digits of an id, or the whole id if it starts with a word ("prompts-…")."""
    return summary.id if "-" in summary.id[:8] else summary.id[:8]


def _moved(folder: str) -> str:
    return (
        f"The folder {folder} does not exist. It was moved or deleted. Restore it, or run the command in its"
        " new location."
    )


class EditLocation(Struct, frozen=True):
    """A file, and a line in it if known."""

    path: str
    line: int | None = None


def edit_location(
    message: Message, paths: Sequence[str], workspace: str | None, *, is_remote: bool = False
) -> EditLocation | None:
    """Return the first file that a message edits, else the first of ``paths``; None if there is none.

    The line is where the edit is today. For a file on a remote host, it is where the edit was made.
    """
    tool = message.tool
    edits = tool.edits if tool is not None else ()
    if edits:
        path = _absolute(edits[0].path, message, workspace)
        return EditLocation(path, _line_of(edits[0], None if is_remote else Path(path)))
    if not paths:
        return None
    offset = tool.params.get("offset") if tool is not None else None
    line = offset if isinstance(offset, int) and offset > 0 else None
    return EditLocation(_absolute(paths[0], message, workspace), line)


def _absolute(path: str, message: Message, workspace: str | None) -> str:
    base = message.cwd or workspace
    return path if base is None else str(Path(base) / path)


def _line_of(edit: Edit, path: Path | None) -> int | None:
    """Return the current line of the added text nearest to the original one; else the original line."""
    hunk = next((one for one in edit.hunks if one.added), None) or next(iter(edit.hunks), None)
    if hunk is None:
        return None
    first = next((line for line in hunk.added if line.strip()), None)
    original_line = hunk.new_start or hunk.old_start
    if first is None or path is None:
        return original_line
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            return original_line
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return original_line
    matches = [number for number, text in enumerate(lines, start=1) if text == first.rstrip("\r\n")]
    return min(matches, key=lambda line: abs(line - (original_line or 1)), default=original_line)


def file_command(path: str, line: int | None, machine: Machine) -> tuple[str, ...] | None:
    """Return the command that opens a file at a line: VISUAL, EDITOR, an installed editor, or the system."""
    for argv in (*_configured(machine), *((name,) for name in _GOTO)):
        if _is_installed(argv[0], machine):
            return _at_line(argv, path, line)
    return _system_command(path, machine)


def folder_command(path: str, machine: Machine) -> tuple[str, ...] | None:
    """Return the command that opens a folder: an editor with a file tree, the system, or any editor."""
    configured = _configured(machine)
    with_folders = [argv for argv in configured if _name(argv) in (*_GOTO, *_COLON)]
    for argv in (*with_folders, *((name,) for name in _GOTO)):
        if _is_installed(argv[0], machine):
            return (*argv, path)
    return _system_command(path, machine) or next(((*argv, path) for argv in configured), None)


def remote_folder_command(authority: str, path: str, machine: Machine) -> tuple[str, ...]:
    """Return the command that opens a folder on a remote host, such as ``ssh-remote+host``."""
    return (*_remote_editor(machine), "--folder-uri", f"vscode-remote://{authority}{path}")


def remote_file_command(authority: str, path: str, line: int | None, machine: Machine) -> tuple[str, ...]:
    """Return the command that opens a file on a remote host at a line."""
    return _at_line((*_remote_editor(machine), "--remote", authority), path, line)


def _remote_editor(machine: Machine) -> tuple[str, ...]:
    """Return an editor that can connect to a remote host: Cursor, even if not installed, or a relative."""
    able = [argv for argv in _configured(machine) if _name(argv) in _GOTO]
    installed = (argv for argv in (*able, *((name,) for name in _GOTO)) if _is_installed(argv[0], machine))
    return next(installed, (_GOTO[0],))


def _configured(machine: Machine) -> list[tuple[str, ...]]:
    """Return the editors of the environment, with their options."""
    named = (machine.environ.get("VISUAL", ""), machine.environ.get("EDITOR", ""))
    return [words for text in named if (words := _words(text))]


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError:  # a quote that is never closed
        return tuple(text.split())


def _name(argv: tuple[str, ...]) -> str:
    return Path(argv[0]).stem.lower()


def _at_line(argv: tuple[str, ...], path: str, line: int | None) -> tuple[str, ...]:
    if line is None:
        return (*argv, path)
    name = _name(argv)
    if name in _GOTO:
        return (*argv, "-g", f"{path}:{line}")
    if name in _COLON:
        return (*argv, f"{path}:{line}")
    return (*argv, f"+{line}", path) if name in _PLUS else (*argv, path)


def _system_command(path: str, machine: Machine) -> tuple[str, ...] | None:
    match machine.system:
        case "darwin":
            return ("open", path)
        case "win32" | "cygwin":
            return ("explorer", path)
    return ("xdg-open", path) if _is_installed("xdg-open", machine) else None


def _is_installed(program: str, machine: Machine) -> bool:
    return shutil.which(program, path=machine.environ.get("PATH")) is not None
