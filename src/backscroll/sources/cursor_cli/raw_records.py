"""Decode the raw records of a unit, so that their structure can be printed for a bug report."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from backscroll.errors import DatabaseNotFoundError, DatabaseUnreadableError
from backscroll.readers import jsonl, lenient_json
from backscroll.readers.json_outline import safe_name
from backscroll.readers.protobuf import Record
from backscroll.readers.sqlite.connection import Database
from backscroll.sources.cursor_cli.blob_rows import fetch_blobs, scan_store
from backscroll.sources.cursor_cli.metadata import read_meta, read_sidecar
from backscroll.sources.cursor_graph.blobs import BlobLoader
from backscroll.sources.cursor_graph.message_parts import decode_message

__all__ = ["read_raw_records"]

_DECODER = msgspec.json.Decoder(dict[str, Any])


def read_raw_records(path: Path) -> Iterator[tuple[str, Any]]:
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
