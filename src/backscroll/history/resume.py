"""Resume a session in its tool, open its files, or hand it over."""

from pathlib import Path

from backscroll.errors import BackscrollError, DataNotFoundError, UsageError
from backscroll.highlights.handoff import build_handoff
from backscroll.model.export import SecretLocation
from backscroll.model.resume import Command, RestorePlan, Resumption
from backscroll.model.search import paths_of
from backscroll.model.session import SessionSummary
from backscroll.redact.redactor import Redactor
from backscroll.render.handoff import Handoff
from backscroll.resume import (
    edit_location,
    file_command,
    folder_command,
    remote_file_command,
    remote_folder_command,
    resumption,
)
from backscroll.search.search import Search
from backscroll.stores.lookup import find_session, find_top_session
from backscroll.stores.stores import Stores
from backscroll.transfer.restore import apply_restore, plan_restore


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
        return resumption(self._stores.archive, summary, self._stores.machine, self._restore_plan)

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
