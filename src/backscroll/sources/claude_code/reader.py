"""Parse a unit of Claude Code with the parser of its kind, and return its rows and records."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from backscroll.model.message import Origin
from backscroll.model.problem import Problem
from backscroll.model.store import Unit
from backscroll.model.stream import Checkpoint, Item, RawRow, RecordCounts
from backscroll.readers import jsonl
from backscroll.readers.files import is_utf8
from backscroll.sources.claude_code import desktop, legacy_db, prompt_log
from backscroll.sources.claude_code.locations import LEGACY_STORE, SUBAGENTS
from backscroll.sources.claude_code.transcript.line_structs import RECORD_START
from backscroll.sources.claude_code.transcript.reader import Transcript

_field_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_record_decoder = msgspec.json.Decoder(dict[str, Any])


class UnitReader:
    """Parses units, and returns their rows and records."""

    def parse(self, unit: Unit, since: Checkpoint | None) -> Iterator[Item]:
        """Parse transcripts and the prompt log from their checkpoint on, other files from the start."""
        match unit.kind:
            case _ if unit.key or unit.kind == LEGACY_STORE:
                return legacy_db.read(unit)
            case "session" | "agent":
                return Transcript(unit, since).items()
            case "prompts":
                return prompt_log.read(unit, since)
            case "notes":
                return desktop.read(unit)
        return _count_lines(unit)

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Yield every line with its type and, if there is one, its subtype."""
        if unit.kind == "notes":
            return  # metadata files can contain names and addresses
        if unit.key or unit.kind == LEGACY_STORE:
            yield from legacy_db.raw_records(unit)
            return
        try:
            for line in jsonl.lines(Path(unit.path), _record_decoder, starts=RECORD_START):
                for record in line.values:
                    yield _record_kind(record, unit.kind), record
        except OSError:
            return

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a session in the database of version 0.2."""
        return legacy_db.read_rows(Path(unit.path), unit.key)

    def side_paths(self, unit: Unit) -> Iterator[str]:
        """Yield the paths of the side files of a transcript that may exist.

        They are long tool results, tasks, workflow runs and versions of edited files. None of them is a
        message.
        """
        root, path = Path(unit.root), Path(unit.path)
        if unit.kind == "agent":
            yield str(path.with_name(f"{path.stem}.meta.json"))
        elif unit.kind == "session":
            folder = path.with_suffix("")
            yield str(folder / "custom-title.json")
            yield str(root / "todos" / f"{path.stem}.json")  # 0.2
            yield str(root / "todos" / f"{path.stem}-agent-{path.stem}.json")  # 1.0 to 2.1.15
            for one in (
                root / "tasks" / path.stem,
                folder / "tool-results",
                root / "file-history" / path.stem,
                folder / "workflows",
            ):
                yield from _list_files(str(one))
            for run in _list_files(str(folder / SUBAGENTS / "workflows")):
                yield from (name for name in _list_files(run) if name.endswith(f"{os.sep}journal.jsonl"))


def _record_kind(record: dict[str, Any], unit_kind: str) -> str:
    if unit_kind == "prompts":
        return "prompt"
    parts = [record.get("type"), record.get("subtype")]
    for name in ("attachment", "data"):
        nested = record.get(name)
        parts.append(nested.get("type") if isinstance(nested, dict) else None)
    return "/".join(part for part in parts if isinstance(part, str)) or "(no type)"


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


def _list_files(folder: str) -> list[str]:
    """Return the files in a folder, sorted by name; none if it does not exist or is a link."""
    try:
        if stat.S_ISLNK(os.lstat(folder).st_mode):
            return []
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if is_utf8(entry.name))
    except OSError:
        return []
