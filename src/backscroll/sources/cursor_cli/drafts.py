"""Read history without a conversation: drafts of sessions, and prompt lists."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from backscroll.model import Closing, Item, Opening, Origin, Problem, RecordCounts
from backscroll.readers import lenient_json, timestamps
from backscroll.readers.json_outline import safe_name
from backscroll.readers.read_faults import read_fault
from backscroll.sources.cursor_cli import workspace
from backscroll.sources.cursor_cli.locations import SOURCE
from backscroll.sources.cursor_cli.metadata import Sidecar, read_sidecar

__all__ = ["count_unknown_schema", "read_draft", "read_prompts", "store_name"]

_KNOWN_SCHEMA_VERSION = 1


def store_name(folder: Path) -> str:
    """Return the store that a session's folder belongs to."""
    return "acp" if folder.parent.name == "acp-sessions" else "store"


def read_draft(path: Path) -> Iterator[Item]:
    """Read a session that was opened and has no messages."""
    counts = RecordCounts()
    sidecar = read_sidecar(path)
    folder = path.parent
    yield Opening(source=SOURCE, id=folder.name, store=store_name(folder))
    if sidecar.fault is not None:
        yield Problem(Origin(str(path), "file"), *sidecar.fault)
        counts.count("meta.json", "problems")
    else:
        counts.count("meta.json", "ignored")
    count_unknown_schema(sidecar, counts)
    created_at = timestamps.from_value(sidecar.fields.get("createdAtMs"))
    modified_at = _modified_at(path)
    title = sidecar.text("title")
    yield Closing(
        title=title,
        title_source="meta.json" if title else None,
        workspace=workspace.store_workspace(sidecar.text("cwd"), (), (), folder_name=folder.parent.name),
        created_at=created_at or modified_at,
        created_at_source="stored" if created_at else "file" if modified_at else None,
        updated_at=timestamps.from_value(sidecar.fields.get("updatedAtMs")) or modified_at,
        visibility="draft",
        metadata={"window": f"cli:{folder.parent.name}"},
    )
    yield counts


def _modified_at(path: Path) -> datetime | None:
    try:
        return timestamps.from_value(path.stat().st_mtime)
    except OSError:
        return None


def count_unknown_schema(sidecar: Sidecar, counts: RecordCounts) -> None:
    """Count an unknown schema version of ``meta.json``."""
    version = sidecar.fields.get("schemaVersion")
    if version is not None and version != _KNOWN_SCHEMA_VERSION:
        counts.add_unknown(f"meta.json schemaVersion {safe_name(version)}")


def read_prompts(path: Path) -> Iterator[Item]:
    """Count the prompts of a list. They have no session and no time, so they yield no messages."""
    counts = RecordCounts()
    origin = Origin(str(path), "file")
    try:
        prompts = lenient_json.load(path.read_bytes())
    except OSError as error:
        yield Problem(origin, *read_fault(error))
        prompts = []
    except lenient_json.FAILURES:
        yield Problem(origin, "not-json", "is not JSON")
        counts.count("prompt list", "problems")
        prompts = []
    if isinstance(prompts, list):
        counts.count("prompt without a session", "ignored", len(prompts))
    else:
        yield Problem(origin, "unexpected-shape", "is not a list")
        counts.count("prompt list", "problems")
    yield counts
