"""Parse Claude Code's files by unit kind."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from backscroll.model import Checkpoint, Item, Origin, Problem, RecordCounts, Unit
from backscroll.readers import jsonl
from backscroll.sources.claude_code import desktop, legacy_session, prompt_log
from backscroll.sources.claude_code.folders import STORE
from backscroll.sources.claude_code.transcript.line_types import STARTS
from backscroll.sources.claude_code.transcript.reader import Transcript

__all__ = ["raw_records", "read"]

_anything = msgspec.json.Decoder(dict[str, msgspec.Raw])
_generic = msgspec.json.Decoder(dict[str, Any])


def read(unit: Unit, since: Checkpoint | None) -> Iterator[Item]:
    """Parse transcripts and the prompt log from their checkpoint on, other files from the start."""
    try:
        match unit.kind:
            case _ if unit.key or unit.kind == STORE:
                yield from legacy_session.read(unit)
            case "session" | "agent":
                yield from Transcript(unit, since).items()
            case "prompts":
                yield from prompt_log.read(unit, since)
            case "notes":
                yield from desktop.read(unit)
            case "unnamed":
                yield from _refuse(unit)
            case "closed":
                os.scandir(unit.path).close()
                yield RecordCounts()
            case _:
                yield from _count(unit)
    except OSError as error:
        yield Problem(
            Origin(unit.path, "file"), "unreadable-file", f"cannot be read: {error.strerror or error}"
        )
        yield RecordCounts()


def raw_records(unit: Unit) -> Iterator[tuple[str, Any]]:
    """Yield every line with its type and, if there is one, its subtype."""
    if unit.kind == "notes":
        return  # they can contain names and addresses
    if unit.key or unit.kind == STORE:
        yield from legacy_session.raw_records(unit)
        return
    try:
        for line in jsonl.lines(Path(unit.path), _generic, starts=STARTS):
            for record in line.values:
                yield _kind(record, unit.kind), record
    except OSError:
        return


def _kind(record: dict[str, Any], unit_kind: str) -> str:
    if unit_kind == "prompts":
        return "prompt"
    parts = [record.get("type"), record.get("subtype")]
    for holder in ("attachment", "data"):
        inner = record.get(holder)
        parts.append(inner.get("type") if isinstance(inner, dict) else None)
    return "/".join(part for part in parts if isinstance(part, str)) or "(no type)"


def _refuse(unit: Unit) -> Iterator[Item]:
    """Yield a problem for a file name that cannot be stored."""
    yield Problem(
        Origin(unit.path, "file"), "invalid-file-name", "its name is not UTF-8: rename it, and it is read"
    )
    tally = RecordCounts()
    tally.count("file without a name", "problems")
    yield tally


def _count(unit: Unit) -> Iterator[Item]:
    """Count the lines of a run log, or of a file that is not a session."""
    tally = RecordCounts()
    kind = "run log" if unit.kind == "journal" else "line of a file that is no session"
    for line in jsonl.lines(Path(unit.path), _anything, starts=STARTS):
        if line.fault is not None:
            yield Problem(Origin(unit.path, f"line {line.number}"), *line.fault)
            tally.count(kind, "problems")
        elif not line.is_blank:
            tally.count(kind, "ignored")
    yield tally
