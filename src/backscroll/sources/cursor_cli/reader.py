"""Parse the units of one root: stores, drafts, transcripts and prompt logs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backscroll.model import Item, RawRow, Unit
from backscroll.readers.read_faults import read_log_without_database, read_unlisted_folder
from backscroll.sources.cursor_cli import locations
from backscroll.sources.cursor_cli.drafts import read_draft, read_prompts
from backscroll.sources.cursor_cli.raw_records import read_raw_records
from backscroll.sources.cursor_cli.raw_rows import file_row, store_rows
from backscroll.sources.cursor_cli.store_reader import read_store
from backscroll.sources.cursor_cli.transcript_reader import RootCatalog, read_transcript

__all__ = ["RootReader"]


class RootReader:
    """Reads the units below one root."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._catalog = RootCatalog(self._root)

    def read(self, unit: Unit) -> Iterator[Item]:
        """Parse a unit."""
        path = Path(unit.path)
        match unit.kind:
            case "transcript":
                return read_transcript(path, self._catalog)
            case "prompts":
                return read_prompts(path)
            case locations.UNREADABLE_KIND:
                return read_unlisted_folder(unit)
            case locations.LOG_KIND:
                return read_log_without_database(unit)
            case _ if path.name == "meta.json":
                return read_draft(path)
        return read_store(path)

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a store and its ``meta.json``; none for a transcript."""
        path = Path(unit.path)
        match path.name:
            case "store.db":
                return store_rows(path, self._root)
            case "meta.json":
                return file_row(path, self._root)
        return iter(())

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Return the decoded records of a unit with their types."""
        return read_raw_records(Path(unit.path))
