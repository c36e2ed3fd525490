"""The Cursor CLI: one ``store.db`` per session below ``~/.cursor/chats``, and text transcripts.

docs/formats/cursor-cli.md describes the format and its versions.

locations          find stores, drafts, transcripts and prompt lists
reader             parse the units of one root
store_reader       read a session from its store
blob_rows          the rows of a store
metadata           metadata of a session
session_header     opening, closing and nested subagents of a session
copied_messages    mark the messages of a copied session
recovery           recover a conversation without a valid root
drafts             sessions without a conversation, and prompt lists
transcript_paths   parse the path of a transcript
transcript_reader  read a session from its transcript
transcript_jsonl   transcripts as JSON lines
transcript_text    transcripts as plain text
workspace          find the workspace of a session
model_names        display names of models
raw_rows           the rows that the archive keeps
raw_records        decoded records for bug reports
backup             files, credentials and selected sessions in a backup
resume             build the command that resumes a session
writing/           plan moves, copies and restores of sessions
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from backscroll.sources.cursor_cli import locations
from backscroll.sources.cursor_graph.record_lookup import result_call_ids, row_keys
from backscroll.sources.protocols import (
    Closeable,
    PathLookup,
    RawRecords,
    RawRows,
    RecordLookup,
    Watchable,
)

if TYPE_CHECKING:
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model import Checkpoint, Item, RawRow, Unit
    from backscroll.sources.cursor_cli.reader import RootReader

__all__ = ["CursorCli"]


class CursorCli(Closeable, PathLookup, RawRecords, RawRows, RecordLookup, Watchable):
    """Sessions of ``cursor-agent``, in a terminal or in an editor that uses ACP."""

    name = locations.SOURCE
    platform = "cursor"
    capability_modules: ClassVar[dict[str, str]] = {
        "BackupContents": "backup",
        "CompanionMoves": "writing.session_writer",
        "PathMapping": "writing.relocation",
        "ResumeCommands": "resume",
        "SessionInsertion": "backup",
        "SessionSelection": "backup",
        "SessionWriter": "writing.session_writer",
    }

    def __init__(self) -> None:
        self._readers: dict[str, RootReader] = {}  # by root

    def roots(self, machine: Machine) -> list[Path]:
        return locations.roots(machine)

    def units(self, root: Path) -> Iterator[Unit]:
        self._readers.pop(str(root), None)  # its catalog may be outdated
        return locations.find_units(root)

    def units_at(self, root: Path, paths: Collection[str]) -> list[Unit] | None:
        self._readers.pop(str(root), None)
        return locations.find_units_at(root, paths)

    def watched_paths(self, root: Path) -> list[Path]:
        return locations.watched_paths(root)

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """Parse a unit from its start, because stores and transcripts may be rewritten."""
        return self._reader(unit.root).read(unit)

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a store and its ``meta.json``; none for a transcript."""
        return self._reader(unit.root).raw_rows(unit)

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        return self._reader(unit.root).raw_records(unit)

    def row_keys(self, place: str) -> tuple[str, ...]:
        return row_keys(place)

    def result_call_ids(self, record: bytes) -> list[str]:
        return result_call_ids(record)

    def close(self) -> None:
        self._readers.clear()

    def _reader(self, root: str) -> RootReader:
        from backscroll.sources.cursor_cli.reader import RootReader  # start-up: not needed without a change

        return self._readers.setdefault(root, RootReader(root))
