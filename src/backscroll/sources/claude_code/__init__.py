"""Claude Code: a JSONL file per session under ``~/.claude/projects``.

docs/formats/claude-code.md describes the format and the versions seen.
"""

from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from backscroll.config import Machine
from backscroll.model import Item, Mark, Origin, Problem, Retention, Row, Tally, Unit
from backscroll.readers import jsonl
from backscroll.sources.claude_code import places, prompts
from backscroll.sources.claude_code.lines import STARTS
from backscroll.sources.claude_code.retention import retention
from backscroll.sources.claude_code.transcript import Transcript

__all__ = ["ClaudeCode"]

_anything = msgspec.json.Decoder(dict[str, msgspec.Raw])
_generic = msgspec.json.Decoder(dict[str, Any])


class ClaudeCode:
    """Transcripts, subagents' transcripts and the log of prompts."""

    name = places.NAME
    platform = "claude_code"

    def roots(self, machine: Machine) -> list[Path]:
        return places.roots(machine)

    def units(self, root: Path) -> Iterator[Unit]:
        return places.units(root)

    def units_at(self, root: Path, paths: Collection[str]) -> list[Unit]:
        return places.units_at(root, paths)

    def signs(self, root: Path) -> None:
        """Nothing but a look at every file tells whether one of them grew."""

    def watched(self, root: Path) -> list[Path]:
        return places.watched(root)

    def read(self, unit: Unit, since: Mark | None = None) -> Iterator[Item]:
        """A transcript from its mark on; the other files anew each time."""
        try:
            match unit.kind:
                case "session" | "agent":
                    yield from Transcript(unit, since).items()
                case "prompts":
                    yield from prompts.read(unit)
                case _:
                    yield from _count(unit)
        except OSError as error:
            yield Problem(Origin(unit.path, "file"), f"cannot be read: {error.strerror or error}")
            yield Tally()

    def rows(self, unit: Unit) -> Iterator[Row]:
        """There are no databases; files are kept whole."""
        return iter(())

    def documents(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Every line, by type and, where there is one, by subtype."""
        try:
            for line in jsonl.lines(Path(unit.path), _generic, starts=STARTS):
                for record in line.values:
                    yield _kind(record, unit.kind), record
        except OSError:
            return

    def retention(self, root: Path, now: datetime) -> Retention | None:
        return retention(root, now)

    def close(self) -> None:
        """Nothing stays open."""


def _kind(record: dict[str, Any], unit_kind: str) -> str:
    if unit_kind == "prompts":
        return "prompt"
    parts = [record.get("type"), record.get("subtype")]
    for holder in ("attachment", "data"):
        inner = record.get(holder)
        parts.append(inner.get("type") if isinstance(inner, dict) else None)
    return "/".join(part for part in parts if isinstance(part, str)) or "(no type)"


def _count(unit: Unit) -> Iterator[Item]:
    """A run log, or a file that is no session by its name: counted, not told."""
    tally = Tally()
    kind = "run log" if unit.kind == "journal" else "line of a file that is no session"
    for line in jsonl.lines(Path(unit.path), _anything, starts=STARTS):
        if line.fault is not None:
            yield Problem(Origin(unit.path, f"line {line.number}"), line.fault)
            tally.count(kind, "problems")
        elif not line.is_blank:
            tally.count(kind, "silent")
    yield tally
