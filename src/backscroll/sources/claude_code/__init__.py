"""Claude Code: a JSONL file per session under ``~/.claude/projects``.

docs/formats/claude-code.md describes the format and the versions seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.sources.claude_code import locations
from backscroll.sources.claude_code.folders import Folder, every_folder

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from backscroll.config import Machine
    from backscroll.model import Checkpoint, Item, RawRow, Retention, Unit
    from backscroll.model.tool import Command, Refusal, Resumable

__all__ = ["ClaudeCode"]


class ClaudeCode:
    """Transcripts, subagents' transcripts and the log of prompts."""

    name = locations.NAME
    platform = "claude_code"

    def roots(self, machine: Machine) -> list[Path]:
        return locations.roots(machine)

    def units(self, root: Path) -> Iterator[Unit]:
        return locations.units(root)

    def folders(self, root: Path) -> Iterator[Folder]:
        return every_folder(str(root))

    def units_at(self, root: Path, paths: Collection[str]) -> list[Unit]:
        return locations.units_at(root, paths)

    def signs(self, root: Path) -> None:
        """Nothing but a look at every file tells whether one of them grew."""

    def watched(self, root: Path) -> list[Path]:
        return locations.watched(root)

    def read(self, unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
        """A transcript from its mark on; the other files anew each time."""
        from backscroll.sources.claude_code.reader import (
            read,
        )  # loaded by nobody who only looks what is there

        return read(unit, since)

    def rows(self, unit: Unit) -> Iterator[RawRow]:
        """Of the database of 0.2, a session's; files are kept whole."""
        if not unit.key:
            return iter(())
        from backscroll.sources.claude_code import legacy_db

        return legacy_db.rows(Path(unit.path), unit.key)

    def documents(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Every line, by type and, where there is one, by subtype."""
        from backscroll.sources.claude_code.reader import documents

        return documents(unit)

    def retention(
        self, root: Path, now: datetime, looks: Mapping[str, bytes | None] | None = None
    ) -> Retention | None:
        from backscroll.sources.claude_code.retention import retention

        return retention(root, now, looks)

    def resumption(self, session: Resumable, machine: Machine) -> Command | Refusal:
        from backscroll.sources.claude_code.resume import resumption

        return resumption(session, machine)

    def held_by(self, root: Path, session_id: str) -> int | None:
        """As the registry of running programs tells."""
        from backscroll.sources.claude_code.resume import held_by

        return held_by(root, session_id)

    def close(self) -> None:
        """Nothing stays open."""
