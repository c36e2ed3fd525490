"""Claude Code: a JSONL file per session under ``~/.claude/projects``.

docs/formats/claude-code.md describes the format and the versions seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from backscroll.sources.claude_code import locations
from backscroll.sources.claude_code.folders import Folder, list_all_folders
from backscroll.sources.protocols import (
    FolderListing,
    PathLookup,
    RawRecords,
    RawRows,
    RecordLookup,
    Watchable,
)
from backscroll.sources.record_ids import string_values

if TYPE_CHECKING:
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model import Checkpoint, Item, RawRow, Unit
    from backscroll.sources.claude_code.reader import UnitReader

__all__ = ["ClaudeCode"]


class ClaudeCode(FolderListing, PathLookup, RawRecords, RawRows, RecordLookup, Watchable):
    """History of Claude Code: transcripts of sessions and subagents, and the prompt log."""

    name = locations.NAME
    platform = "claude_code"
    capability_modules: ClassVar[dict[str, str]] = {
        "BackupContents": "backup",
        "HookEvents": "hooks",
        "HookSettings": "hooks",
        "PathMapping": "writing.relocation",
        "ProcessLookup": "resume",
        "ResumeCommands": "resume",
        "RetentionPolicy": "retention",
        "SessionInsertion": "writing.insert",
        "SessionSelection": "session_selection",
        "SessionWriter": "writing.session_writer",
    }

    def roots(self, machine: Machine) -> list[Path]:
        return locations.roots(machine)

    def units(self, root: Path) -> Iterator[Unit]:
        return locations.units(root)

    def folders(self, root: Path) -> Iterator[Folder]:
        return list_all_folders(str(root))

    def units_at(self, root: Path, paths: Collection[str]) -> list[Unit]:
        return locations.units_at(root, paths)

    def watched_paths(self, root: Path) -> list[Path]:
        return locations.watched_paths(root)

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """Parse transcripts and the prompt log from their checkpoint on, other files from the start."""
        return self._reader.read(unit, since)

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a session in the database of version 0.2, or the side files of a transcript."""
        return self._reader.raw_rows(unit)

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Return every line with its type and, if there is one, its subtype."""
        return self._reader.raw_records(unit)

    @cached_property
    def _reader(self) -> UnitReader:
        from backscroll.sources.claude_code.reader import UnitReader  # start-up: not needed to list units

        return UnitReader()

    def row_keys(self, place: str) -> tuple[str, ...]:
        """Return the possible keys of a row in the database of version 0.2."""
        return (place, place.partition(" ")[0])

    def result_call_ids(self, record: bytes) -> list[str]:
        return string_values(record, "tool_use_id") if b"tool_use_id" in record else []
