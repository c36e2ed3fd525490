"""Claude Code: a JSONL file per session under ``~/.claude/projects``.

docs/formats/claude-code.md describes the format and the versions seen.

locations    find the roots, and list the units below them
reader       read a unit with the parser of its kind; metadata files of Claude Desktop; side files
transcript/  transcripts of sessions and subagents; new record types are added there
prompt_log   the prompts that the user typed in all projects
legacy_db    the database of version 0.2
workspace    the workspace of a session, and the project folder of a workspace
retention    predict which sessions the tool deletes
resume       the command that resumes a session, and the process that has it open
hooks        the settings file that registers hooks, and their events
backup       files and rows of a backup, of all or some sessions, and how they are restored
writer       plan to restore, move or copy a session
moved_lines  replace fields, paths and ids in the lines of transcripts; which record types a copy keeps
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.model.store import HOOK_EVENTS, SESSION, StoreKind, UnitKind
from backscroll.sources.claude_code import locations
from backscroll.sources.claude_code.locations import LEGACY_STORE, NAME, Folder, list_all_folders
from backscroll.sources.protocols import UNREADABLE, DatabaseSchema, RecordLookup, string_values
from backscroll.sources.session_files import UNNAMED, SessionFiles

if TYPE_CHECKING:
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model.mcp_client import McpClient
    from backscroll.model.store import Unit
    from backscroll.model.stream import Checkpoint, Item, RawRow
    from backscroll.sources.capabilities import (
        Backup,
        Hooks,
        ProcessLookup,
        ResumeCommands,
        RetentionPolicy,
        SessionWriter,
    )
    from backscroll.sources.claude_code.reader import UnitReader


class ClaudeCode(SessionFiles, RecordLookup):
    """History of Claude Code: transcripts of sessions and subagents, and the prompt log."""

    name = NAME
    platform = "claude_code"
    stores = (
        StoreKind("lines"),
        StoreKind("progress", "copy"),  # progress lines of a subagent in the file of its parent
        StoreKind("prompts", "prompts"),
        StoreKind("notes", "notes"),
        HOOK_EVENTS,
    )
    unit_kinds = (
        SESSION,
        UnitKind("agent"),
        UnitKind("prompts", is_single=False, is_prompt_log=True),
        UnitKind("notes"),
        UnitKind("journal", is_single=False),
        UnitKind("other", is_single=False),
        UnitKind(LEGACY_STORE, is_single=False),
        UNNAMED,
        UNREADABLE,
    )
    schema = DatabaseSchema(  # of version 0.2
        tables={
            "base_messages": "uuid TEXT PRIMARY KEY",
            "user_messages": "uuid TEXT PRIMARY KEY",
            "assistant_messages": "uuid TEXT PRIMARY KEY",
            "conversation_summaries": "leaf_uuid TEXT PRIMARY KEY",
        }
    )
    color = ("#a1431a", "#f0996a")

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

    def parse(self, unit: Unit, since: Checkpoint | None) -> Iterator[Item]:
        """Parse transcripts and the prompt log from their checkpoint on, other files from the start."""
        return self._reader.parse(unit, since)

    def file_ends(self) -> tuple[str, ...]:
        return (".jsonl", locations.LEGACY_DATABASE)

    def keeps_file(self, unit: Unit) -> bool:
        return unit.kind in locations.LINE_KINDS and not unit.key

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a session in the database of version 0.2, or the side files of a transcript."""
        return self._reader.raw_rows(unit) if unit.key else super().raw_rows(unit)

    def side_paths(self, unit: Unit) -> Iterator[str]:
        return self._reader.side_paths(unit)

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

    # Capabilities, imported on first use

    def resume(self) -> ResumeCommands:
        from backscroll.sources.claude_code import resume

        return resume

    def processes(self) -> ProcessLookup:
        from backscroll.sources.claude_code import resume

        return resume

    def retention(self) -> RetentionPolicy:
        from backscroll.sources.claude_code import retention

        return retention

    def backup(self) -> Backup:
        from backscroll.sources.claude_code import backup

        return backup

    def writer(self) -> SessionWriter:
        from backscroll.sources.claude_code import writer

        return writer

    def hooks(self) -> Hooks:
        from backscroll.sources.claude_code import hooks

        return hooks

    def mcp_clients(self, machine: Machine) -> tuple[McpClient, ...]:
        from backscroll.model.mcp_client import McpClient

        settings = machine.folder("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"
        desktop = locations.desktop_folder(machine) / "claude_desktop_config.json"
        return (
            McpClient(self.name, "Claude Code", settings, {"type": "stdio"}),
            McpClient("claude-desktop", "Claude Desktop", desktop),
        )
