"""The Cursor CLI: one ``store.db`` per session below ``~/.cursor/chats``, and text transcripts.

docs/formats/cursor-cli.md describes the format and its versions.

locations     find stores, drafts, transcripts and prompt lists
reader        parse the units of one root; drafts, prompt lists and raw records
store_reader  read a session from its store
store_rows    the rows of a store, also of a damaged one, and those that the archive keeps
metadata      metadata of a session: the table ``meta`` and ``meta.json``
transcripts   read a session from its transcript
workspace     find the workspace of a session
backup        files, credentials and selected sessions in a backup
resume        build the command that resumes a session
writing       plan moves, copies and restores of sessions
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.model.store import SESSION, StoreKind, UnitKind
from backscroll.sources.cursor_cli import locations
from backscroll.sources.protocols import (
    LOG,
    UNREADABLE,
    Closeable,
    DatabaseSchema,
    PathLookup,
    RawRecords,
    RawRows,
    RecordLookup,
    Source,
    Watchable,
)

if TYPE_CHECKING:
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model.store import Unit
    from backscroll.model.stream import Checkpoint, Item, RawRow
    from backscroll.sources.capabilities import (
        Backup,
        CompanionMoves,
        ResumeCommands,
        SessionWriter,
    )
    from backscroll.sources.cursor_cli.reader import RootReader


class CursorCli(Source, Closeable, PathLookup, RawRecords, RawRows, RecordLookup, Watchable):
    """Sessions of ``cursor-agent``, in a terminal or in an editor that uses ACP."""

    name = locations.SOURCE
    platform = "cursor"
    stores = (
        StoreKind("store"),
        StoreKind("acp"),  # the same, used by another editor
        StoreKind("transcript", "copy"),
        StoreKind("prompts", "prompts"),
    )
    unit_kinds = (
        SESSION,
        UnitKind("transcript"),
        UnitKind("prompts", is_single=False, is_prompt_log=True),
        LOG,
        UNREADABLE,
    )
    schema = DatabaseSchema(
        databases={
            "store.db": (
                "create table blobs (id TEXT PRIMARY KEY, data BLOB)",
                "create table meta (key TEXT PRIMARY KEY, value TEXT)",
            )
        },
        values={"blobs": ("id", "data"), "meta": ("key", "value")},
    )
    color = ("#2f6f62", "#86c9ba")

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

    def file_ends(self) -> tuple[str, ...]:
        return ("store.db", ".jsonl")

    def keeps_file(self, unit: Unit) -> bool:
        return unit.kind == "transcript"

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a store and its ``meta.json``; none for a transcript."""
        return self._reader(unit.root).raw_rows(unit)

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        return self._reader(unit.root).raw_records(unit)

    def row_keys(self, place: str) -> tuple[str, ...]:
        from backscroll.sources.cursor_graph import row_keys  # start-up: not needed to list units

        return row_keys(place)

    def result_call_ids(self, record: bytes) -> list[str]:
        from backscroll.sources.cursor_graph import result_call_ids

        return result_call_ids(record)

    def close(self) -> None:
        self._readers.clear()

    def _reader(self, root: str) -> RootReader:
        from backscroll.sources.cursor_cli.reader import RootReader  # start-up: not needed without a change

        return self._readers.setdefault(root, RootReader(root))

    # Capabilities, imported on first use

    def resume(self) -> ResumeCommands:
        from backscroll.sources.cursor_cli import resume

        return resume

    def backup(self) -> Backup:
        from backscroll.sources.cursor_cli import backup

        return backup

    def writer(self) -> SessionWriter:
        from backscroll.sources.cursor_cli import writing

        return writing

    def companion_moves(self) -> CompanionMoves:
        from backscroll.sources.cursor_cli import writing

        return writing
