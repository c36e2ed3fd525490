"""Sessions for other eyes: written in other formats, without their secrets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.history.sessions import Sessions
from backscroll.model.export_format import Format

if TYPE_CHECKING:
    from backscroll.export.write_files import Exported
    from backscroll.ingest.audit import Progress
    from backscroll.model import SessionSummary
    from backscroll.model.redaction import FoundSecret, SecretCategory
    from backscroll.redact.redactor import Redactor

__all__ = ["Exporting"]


class Exporting(Sessions):
    """Sessions for other eyes: written in other formats, without their secrets."""

    def export_session(
        self,
        ref: str,
        format: Format = "md",
        *,
        redactor: Redactor | None = None,
        everything: bool = False,
    ) -> Iterator[str]:
        """A session as Markdown, HTML, JSON, JSON lines or text, piece by piece.

        With a redaction, secrets are replaced; afterwards it tells what was. ``everything`` tells abandoned
        branches and injected text as well; JSON always does.
        """
        from backscroll.export.formats import Teller

        summary = self.find(ref)
        teller = Teller(self._archive, format, redactor, everything=everything)
        teller.learn([summary])
        return teller.tell(summary)

    def export_sessions(
        self,
        summaries: Sequence[SessionSummary],
        folder: Path,
        format: Format = "md",
        *,
        redactor: Redactor | None = None,
        everything: bool = False,
        force: bool = False,
        missing: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """Sessions as files of a folder, one each, with an index page beside HTML.

        Raises `DestinationError`, before anything is written, when a file is there already, unless ``force``
        says to replace it or ``missing`` to write only the others.
        """
        from backscroll.export.formats import Teller

        teller = Teller(self._archive, format, redactor, everything=everything)
        return teller.write(summaries, folder, force=force, missing=missing, progress=progress)

    def find_secrets(
        self,
        summaries: Sequence[SessionSummary],
        *,
        kinds: Sequence[SecretCategory] = ("secrets",),
        progress: Progress | None = None,
    ) -> list[FoundSecret]:
        """Keys, tokens and passwords that stand in sessions: kind, hint and places, never the secret."""
        from backscroll.export.secret_report import find_secrets

        return find_secrets(self._archive, summaries, kinds, progress)
