"""What has no conversation: sessions never begun, and the list of prompts typed anywhere."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from backscroll.model import Closing, Item, Opening, Origin, Problem, RecordCounts
from backscroll.readers import lenient_json, timestamps
from backscroll.readers.json_outline import safe_name
from backscroll.sources.cursor_cli import workspace
from backscroll.sources.cursor_cli.locations import SOURCE
from backscroll.sources.cursor_cli.metadata import Sidecar, read_sidecar

__all__ = ["KNOWN_SCHEMA", "read_draft", "read_prompts", "store_name"]

KNOWN_SCHEMA = 1


def store_name(folder: Path) -> str:
    """Which of the tool's stores a session's folder belongs to."""
    return "acp" if folder.parent.name == "acp-sessions" else "store"


def read_draft(path: Path) -> Iterator[Item]:
    """A session that was opened and in which nothing was ever said."""
    tally = RecordCounts()
    sidecar = read_sidecar(path)
    folder = path.parent
    yield Opening(source=SOURCE, id=folder.name, store=store_name(folder))
    if sidecar.fault is not None:
        yield Problem(Origin(str(path), "file"), *sidecar.fault)
        tally.count("meta.json", "problems")
    else:
        tally.count("meta.json", "ignored")
    count_unknown_schema(sidecar, tally)
    created = timestamps.from_value(sidecar.fields.get("createdAtMs"))
    written = _written_at(path)
    title = sidecar.text("title")
    yield Closing(
        title=title,
        title_source="meta.json" if title else None,
        workspace=workspace.store_workspace(sidecar.text("cwd"), (), (), folder_hash=folder.parent.name),
        created_at=created or written,
        created_at_source="stored" if created else "file" if written else None,
        updated_at=timestamps.from_value(sidecar.fields.get("updatedAtMs")) or written,
        visibility="draft",
        metadata={"window": f"cli:{folder.parent.name}"},
    )
    yield tally


def _written_at(path: Path) -> datetime | None:
    try:
        return timestamps.from_value(path.stat().st_mtime)
    except OSError:
        return None


def count_unknown_schema(sidecar: Sidecar, tally: RecordCounts) -> None:
    """Say it when the file is of a version nobody here knows."""
    version = sidecar.fields.get("schemaVersion")
    if version is not None and version != KNOWN_SCHEMA:
        tally.add_unknown(f"meta.json schemaVersion {safe_name(version)}")


def read_prompts(path: Path) -> Iterator[Item]:
    """Prompts without a session and without a time: counted, for nothing can be told of them."""
    tally = RecordCounts()
    origin = Origin(str(path), "file")
    try:
        prompts = lenient_json.load(path.read_bytes())
    except OSError as error:
        yield Problem(origin, "unreadable-file", f"cannot be opened: {error.strerror}")
        prompts = []
    except lenient_json.FAILURES:
        yield Problem(origin, "not-json", "is not JSON")
        tally.count("prompt list", "problems")
        prompts = []
    if isinstance(prompts, list):
        tally.count("prompt without a session", "ignored", len(prompts))
    else:
        yield Problem(origin, "unexpected-shape", "is not a list")
        tally.count("prompt list", "problems")
    yield tally
