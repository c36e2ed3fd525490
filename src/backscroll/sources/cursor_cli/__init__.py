"""Cursor's command line: a ``store.db`` per session under ``~/.cursor/chats``, and transcripts beside it.

docs/formats/cursor-cli.md describes the format and the versions seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.sources.cursor_cli import locations
from backscroll.sources.protocols import (
    Closeable,
    PathLookup,
    RawRecords,
    RawRows,
    RecordLookup,
    ResumeCommands,
    Watchable,
)

if TYPE_CHECKING:
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model import Checkpoint, Item, RawRow, Unit
    from backscroll.model.tool import Command, Refusal, Resumable
    from backscroll.sources.cursor_cli.transcript_reader import RootCatalog

__all__ = ["CursorCli"]


class CursorCli(Closeable, PathLookup, RawRecords, RawRows, RecordLookup, ResumeCommands, Watchable):
    """Sessions held with ``cursor-agent`` in a terminal or through another editor."""

    name = locations.SOURCE
    platform = "cursor"

    def __init__(self) -> None:
        self._known: dict[str, RootCatalog] = {}

    def roots(self, machine: Machine) -> list[Path]:
        return locations.roots(machine)

    def units(self, root: Path) -> Iterator[Unit]:
        self._known.pop(str(root), None)  # it may have changed
        return locations.find_units(root)

    def units_at(self, root: Path, paths: Collection[str]) -> list[Unit] | None:
        self._known.pop(str(root), None)
        return locations.find_units_at(root, paths)

    def watched_paths(self, root: Path) -> list[Path]:
        return locations.watched_paths(root)

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """All that a unit says. Stores and transcripts are read from the start: both may be rewritten."""
        # What reads is loaded by nobody who only looks what is there.
        from backscroll.sources.cursor_cli.drafts import read_draft, read_prompts
        from backscroll.sources.cursor_cli.store_reader import read_store
        from backscroll.sources.cursor_cli.transcript_reader import RootCatalog, read_transcript

        path = Path(unit.path)
        match unit.kind:
            case "transcript":
                known = self._known.setdefault(unit.root, RootCatalog(Path(unit.root)))
                return read_transcript(path, known)
            case "prompts":
                return read_prompts(path)
            case _ if path.name == "meta.json":
                return read_draft(path)
        return read_store(path)

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """The rows of a store and the file beside it; transcripts are kept whole."""
        from backscroll.sources.cursor_cli.raw_rows import file_row, store_rows

        path = Path(unit.path)
        match path.name:
            case "store.db":
                return store_rows(path, Path(unit.root))
            case "meta.json":
                return file_row(path, Path(unit.root))
        return iter(())

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        from backscroll.sources.cursor_cli.raw_records import read_raw_records

        return read_raw_records(Path(unit.path))

    def row_keys(self, place: str) -> tuple[str, ...]:
        from backscroll.sources.cursor_graph.record_lookup import row_keys  # start-up time

        return row_keys(place)

    def result_call_ids(self, record: bytes) -> list[str]:
        from backscroll.sources.cursor_graph.record_lookup import result_call_ids  # start-up time

        return result_call_ids(record)

    def resume_command(self, session: Resumable, machine: Machine) -> Command | Refusal:
        from backscroll.sources.cursor_cli.resume import resume_command

        return resume_command(session, machine)

    def close(self) -> None:
        """Forget the folders learned from other sessions."""
        self._known.clear()
