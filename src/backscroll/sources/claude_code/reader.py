"""Parse a unit of Claude Code with the parser of its kind."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from backscroll.model import Checkpoint, Item, Origin, Problem, RawRow, RecordCounts, Unit
from backscroll.readers import jsonl
from backscroll.readers.read_faults import read_fault, read_unlisted_folder
from backscroll.sources.claude_code import desktop, legacy_db, legacy_session, prompt_log
from backscroll.sources.claude_code.folders import LEGACY_STORE
from backscroll.sources.claude_code.side_files import side_files
from backscroll.sources.claude_code.transcript.line_structs import RECORD_START
from backscroll.sources.claude_code.transcript.reader import Transcript

__all__ = ["UnitReader"]

_field_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_record_decoder = msgspec.json.Decoder(dict[str, Any])


class UnitReader:
    """Parses units, and returns their rows and records."""

    def read(self, unit: Unit, since: Checkpoint | None) -> Iterator[Item]:
        """Parse transcripts and the prompt log from their checkpoint on, other files from the start."""
        try:
            match unit.kind:
                case _ if unit.key or unit.kind == LEGACY_STORE:
                    yield from legacy_session.read(unit)
                case "session" | "agent":
                    yield from Transcript(unit, since).items()
                case "prompts":
                    yield from prompt_log.read(unit, since)
                case "notes":
                    yield from desktop.read(unit)
                case "unnamed":
                    yield from _report_file_name(unit)
                case "unreadable":
                    yield from read_unlisted_folder(unit)
                case _:
                    yield from _count_lines(unit)
        except OSError as error:
            yield Problem(Origin(unit.path, "file"), *read_fault(error))
            yield RecordCounts()

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Yield every line with its type and, if there is one, its subtype."""
        if unit.kind == "notes":
            return  # metadata files can contain names and addresses
        if unit.key or unit.kind == LEGACY_STORE:
            yield from legacy_session.raw_records(unit)
            return
        try:
            for line in jsonl.lines(Path(unit.path), _record_decoder, starts=RECORD_START):
                for record in line.values:
                    yield _record_kind(record, unit.kind), record
        except OSError:
            return

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a session in the database of version 0.2, or the side files of a transcript."""
        return legacy_db.read_rows(Path(unit.path), unit.key) if unit.key else side_files(unit)


def _record_kind(record: dict[str, Any], unit_kind: str) -> str:
    if unit_kind == "prompts":
        return "prompt"
    parts = [record.get("type"), record.get("subtype")]
    for name in ("attachment", "data"):
        nested = record.get(name)
        parts.append(nested.get("type") if isinstance(nested, dict) else None)
    return "/".join(part for part in parts if isinstance(part, str)) or "(no type)"


def _report_file_name(unit: Unit) -> Iterator[Item]:
    """Yield a problem for a file name that cannot be stored."""
    yield Problem(
        Origin(unit.path, "file"),
        "invalid-file-name",
        "its name is not UTF-8; rename it so that it can be read",
    )
    counts = RecordCounts()
    counts.count("file with an invalid name", "problems")
    yield counts


def _count_lines(unit: Unit) -> Iterator[Item]:
    """Count the lines of a run log, or of a file that is not a session."""
    counts = RecordCounts()
    kind = "run log" if unit.kind == "journal" else "line of a file that is not a session"
    for line in jsonl.lines(Path(unit.path), _field_decoder, starts=RECORD_START):
        if line.fault is not None:
            yield Problem(Origin(unit.path, f"line {line.number}"), *line.fault)
            counts.count(kind, "problems")
        elif not line.is_blank:
            counts.count(kind, "ignored")
    yield counts
