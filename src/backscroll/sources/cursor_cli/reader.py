"""Parse the units of one root: stores, drafts, transcripts and prompt lists."""

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from backscroll.errors import DatabaseNotFoundError, DatabaseUnreadableError
from backscroll.model.message import Origin
from backscroll.model.problem import Problem
from backscroll.model.store import Unit
from backscroll.model.stream import Closing, Item, Opening, RawRow, RecordCounts
from backscroll.readers import jsonl, lenient_json, timestamps
from backscroll.readers.json_outline import safe_name
from backscroll.readers.protobuf import Record
from backscroll.readers.read_faults import read_fault, read_log_without_database, read_unlisted_folder
from backscroll.readers.sqlite import Database
from backscroll.sources.cursor_cli import locations, workspace
from backscroll.sources.cursor_cli.metadata import count_unknown_schema, read_meta, read_sidecar
from backscroll.sources.cursor_cli.store_reader import read_store
from backscroll.sources.cursor_cli.store_rows import fetch_blobs, file_row, scan_store, store_rows
from backscroll.sources.cursor_cli.transcripts import RootCatalog, read_transcript
from backscroll.sources.cursor_graph.blobs import BlobLoader
from backscroll.sources.cursor_graph.message_parts import decode_message
from backscroll.sources.protocols import LOG, UNREADABLE

_DECODER = msgspec.json.Decoder(dict[str, Any])


class RootReader:
    """Reads the units below one root."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._catalog = RootCatalog(self._root)

    def read(self, unit: Unit) -> Iterator[Item]:
        """Parse a unit."""
        path = Path(unit.path)
        match unit.kind:
            case "transcript":
                return read_transcript(path, self._catalog)
            case "prompts":
                return _read_prompts(path)
            case UNREADABLE.name:
                return read_unlisted_folder(unit)
            case LOG.name:
                return read_log_without_database(unit)
            case _ if path.name == "meta.json":
                return _read_draft(path)
        return read_store(path)

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a store and its ``meta.json``; none for a transcript."""
        path = Path(unit.path)
        match path.name:
            case "store.db":
                return store_rows(path, self._root)
            case "meta.json":
                return file_row(path, self._root)
        return iter(())

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Return the decoded records of a unit with their types."""
        return _read_raw_records(Path(unit.path))


def _read_draft(path: Path) -> Iterator[Item]:
    """Read a session that was opened and has no messages."""
    counts = RecordCounts()
    sidecar = read_sidecar(path)
    folder = path.parent
    yield Opening(source=locations.SOURCE, id=folder.name, store=locations.store_name(folder))
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


def _read_prompts(path: Path) -> Iterator[Item]:
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


def _read_raw_records(path: Path) -> Iterator[tuple[str, Any]]:
    """Return each record with its type, without secrets. Unreadable records are omitted."""
    match path.name:
        case "store.db":
            yield from _store_records(path)
        case "meta.json":
            yield "meta.json", read_sidecar(path).fields
        case "prompt_history.json":
            try:
                yield "prompt_history.json", lenient_json.load(path.read_bytes())
            except (OSError, *lenient_json.FAILURES):
                return
        case _ if path.suffix == ".jsonl":
            try:
                for line in jsonl.lines(path, _DECODER):
                    for record in line.values:
                        yield f"transcript/{safe_name(record.get('role') or record.get('type'))}", record
            except OSError:
                return


def _store_records(path: Path) -> Iterator[tuple[str, Any]]:
    with Database(path) as database:
        try:
            index = database.read(scan_store)
            meta = read_meta(index.meta)
            yield "meta", {**dict.fromkeys(meta.unknown), **meta.fields}
            yield "meta.json", read_sidecar(path.with_name("meta.json")).fields
            blobs = BlobLoader(lambda ids: fetch_blobs(database, ids, index), sizes=index.sizes)
            for id, data in blobs.each(index.sizes):
                message = decode_message(data) if data is not None and data[:1] == b"{" else None
                if message is not None:
                    yield f"blob/{safe_name(message.get('role'))}", message
                elif data is not None and id == meta.text("latestRootBlobId"):
                    yield "blob/root", {f"field_{number}": None for number in Record(data).numbers}
        except (DatabaseNotFoundError, DatabaseUnreadableError, sqlite3.Error):
            return
