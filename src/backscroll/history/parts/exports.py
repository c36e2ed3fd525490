"""Sessions as files, and the secrets in them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from backscroll.export.file_names import file_names
from backscroll.export.formats import Exporter
from backscroll.export.secret_report import find_secrets
from backscroll.export.write_files import Exported, write_one
from backscroll.history.arguments import check_choice
from backscroll.history.stores import Stores
from backscroll.model import SessionSummary
from backscroll.model.export import Format, FoundSecret, SecretCategory
from backscroll.redact.redactor import Redactor

__all__ = ["Exports", "file_name"]

Progress = Callable[[int, int], None]  # messages done, and in total


class Exports:
    """Sessions as files, and the secrets in them."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def stream(
        self,
        summary: SessionSummary,
        format: Format = "md",
        *,
        redactor: Redactor | None = None,
        everything: bool = False,
    ) -> Iterator[str]:
        """Stream a session in a format."""
        check_choice("format", format, Format)
        exporter = Exporter(self._stores.archive, format, redactor, everything=everything)
        exporter.learn([summary])
        return exporter.stream(summary)

    def write_files(
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
        """Write one file per session into a folder, and an index page for HTML.

        Raises `DestinationError` before anything is written if a file exists, unless ``force`` replaces it or
        ``missing`` skips it.
        """
        check_choice("format", format, Format)
        exporter = Exporter(self._stores.archive, format, redactor, everything=everything)
        return exporter.write(summaries, folder, force=force, missing=missing, progress=progress)

    def write_file(self, chunks: Iterable[str], path: Path, *, force: bool = False) -> Path:
        """Write one exported session. Raises `DestinationError` if the file exists, unless ``force``."""
        return write_one(chunks, path, force=force)

    def find_secrets(
        self,
        summaries: Sequence[SessionSummary],
        *,
        kinds: Sequence[SecretCategory] = ("secrets",),
        progress: Progress | None = None,
    ) -> list[FoundSecret]:
        """Return the keys, tokens and passwords in sessions: kind, hint and places, never the secret."""
        return find_secrets(self._stores.archive, summaries, kinds, progress)


def file_name(summary: SessionSummary, format: Format = "md") -> str:
    """Return the file name of an exported session."""
    return file_names([summary], format)[0]
