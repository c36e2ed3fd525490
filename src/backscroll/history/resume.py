"""Going on with a session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.errors import DataNotFoundError, UsageError
from backscroll.history.sessions import Sessions

if TYPE_CHECKING:
    from backscroll.model import SessionSummary
    from backscroll.model.tool import Command, Resumption
    from backscroll.redact.redactor import Redactor
    from backscroll.render.handoff import Handoff

__all__ = ["Continuing"]


class Continuing(Sessions):
    """Going on with a session: in its own tool, at its files, or with another assistant."""

    def resumption(self, ref: str) -> Resumption:
        """What continues a session in its own tool, and what is in the way; a subagent's is its session's."""
        from backscroll.resume.resume_command import resumption

        return resumption(self._archive, self._session_of(ref), self._machine)

    def put_back(self, ref: str) -> list[Path]:
        """Write the files of a session that its tool has deleted to where they were, and say which.

        Nothing is overwritten. Raises `DestinationError` when it cannot be done; then nothing is left behind.
        """
        from backscroll.resume.restore_files import put_back

        return put_back(self._archive, self._session_of(ref))

    def opening(self, ref: str, position: int | None = None) -> Command:
        """What opens a session's workspace, or the file that the message at a position is about.

        Raises `DataNotFoundError` when there is no such file or folder here.
        """
        from backscroll.model.searchable_text import paths_of
        from backscroll.model.tool import Command
        from backscroll.resume.edit_location import place_of
        from backscroll.resume.editors import file_command, folder_command

        summary = self.find(ref)
        workspace = summary.workspace_path
        if position is None:
            if workspace is None:
                raise DataNotFoundError(f"of {summary.ref} no workspace is known", "")
            argv, path = folder_command(workspace, self._machine), workspace
        else:
            _, number = self._archive.messages.extent(summary)
            if not 0 <= position < number:
                raise UsageError(f"{summary.ref} has no message {position}; they are counted from 0")
            message = next(self._archive.messages.of_session(summary, position))
            place = place_of(message, paths_of(message), workspace)
            if place is None:
                raise DataNotFoundError(f"message {position} of {summary.ref} is about no file", "")
            argv, path = file_command(place.path, place.line, self._machine), place.path
        if not Path(path).exists():
            raise DataNotFoundError(f"{path} is not there; it was moved or deleted", path)
        if argv is None:
            raise DataNotFoundError(f"nothing here opens {path}; name your editor in EDITOR", path)
        folder = workspace if workspace is not None and Path(workspace).is_dir() else None
        return Command(argv, folder)

    def briefing(self, ref: str, *, tokens: int = 2000, redactor: Redactor | None = None) -> Handoff:
        """A session in short, to go on with elsewhere, within so many tokens by estimate.

        With a redaction, secrets are replaced; afterwards it tells what was.
        """
        from backscroll.model.redaction import SecretLocation
        from backscroll.render.handoff import build_handoff

        summary = self.find(ref)
        if redactor is None:
            return build_handoff(summary, self._archive.messages.of_session(summary), tokens=tokens)
        self.learn_secrets(redactor, summary)
        place = SecretLocation(summary.ref, None)
        return build_handoff(
            redactor.redact_summary(summary),
            self._archive.messages.of_session(summary),
            tokens=tokens,
            clean=lambda text: redactor.redact_text(text, place),
        )

    def _session_of(self, ref: str) -> SessionSummary:
        summary = self.find(ref)
        return summary if summary.parent_ref is None else self.find(summary.parent_ref)
