"""The rows that make up a stored session, as they lie there: what is kept to be written back one day."""

from binascii import hexlify
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from backscroll.model import RawRow
from backscroll.readers import lenient_json
from backscroll.readers.sqlite import Database, as_bytes
from backscroll.sources.cursor_cli.blob_rows import StoreIndex, fetch_blobs, fetch_stored_blobs, scan_store
from backscroll.sources.cursor_cli.metadata import KNOWN_KEYS, decode_hex_text, is_hex, read_meta
from backscroll.sources.cursor_graph import BlobLoader, ConversationState
from backscroll.sources.cursor_graph.blobs import batch_by_size
from backscroll.sources.cursor_graph.reachable import StoredBlob, reachable_blobs
from backscroll.sources.secret_fields import blank, is_secret

__all__ = ["file_row", "store_rows"]

_VOLATILE_KEYS = ("lastUsedModel", "latestRootBlobId", "mode")
_MAX_FILE_BYTES = 1024 * 1024


def store_rows(path: Path, root: Path) -> Iterator[RawRow]:
    """Metadata, and the blobs that the root leads to; of a store without a root to trust, all blobs."""
    with Database(path) as database:
        rows = database.read(scan_store)
        for raw_key, raw_value in rows.meta:
            yield from _meta_row((as_bytes(raw_key) or b"").decode("utf-8", "replace"), as_bytes(raw_value))
        yield from file_row(path.with_name("meta.json"), root)

        def stored(ids: list[str]) -> Iterator[tuple[str, StoredBlob]]:
            for some in batch_by_size(ids, rows.sizes):
                yield from fetch_stored_blobs(database, some, rows).items()

        for id, blob in reachable_blobs(_start_ids(database, rows), stored):
            yield RawRow(table="blobs", key=id, value=blob.data, is_text=blob.is_text)


def _start_ids(database: Database, rows: StoreIndex) -> list[str]:
    named = (read_meta(rows.meta).text("latestRootBlobId") or "").lower()
    blobs = BlobLoader(lambda ids: fetch_blobs(database, ids, rows), sizes=rows.sizes)
    data = blobs.get(named) if named in rows.sizes else None
    if data is None or named in blobs.altered:
        return list(rows.sizes)
    state = ConversationState(data)
    return [named] if state.fault is None and not state.is_empty else list(rows.sizes)


def _meta_row(key: str, value: bytes | None) -> Iterator[RawRow]:
    """A row of metadata; one that is a secret by its name is not told."""
    if is_secret(key) and key not in KNOWN_KEYS:
        return
    if value is None or key in KNOWN_KEYS:
        yield RawRow(table="meta", key=key, value=value, volatile=("",))
        return
    text = decode_hex_text(value)
    told, blanked = _without_secrets(text)
    if blanked and is_hex(value):
        digits = value.strip()
        told = hexlify(told) + (digits[-1:] if len(digits) % 2 else b"")
    yield RawRow(
        table="meta", key=key, value=told if blanked else value, blanked=blanked, volatile=_VOLATILE_KEYS
    )


def file_row(path: Path, root: Path) -> Iterator[RawRow]:
    """The file beside a store, or in its place while nothing has been said."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES)
        name = path.relative_to(root).as_posix()
    except (OSError, ValueError):
        return
    told, blanked = _without_secrets(data)
    yield RawRow(path=name, table="", key="", value=told, blanked=blanked, volatile=("updatedAtMs",))


def _without_secrets(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """An object without the values of fields that may be secrets, and their names."""
    told, blanked = blank(text)
    if not is_secret(text.decode("utf-8", "replace")):
        return told, blanked
    try:
        document = lenient_json.load(told)
    except lenient_json.FAILURES:
        return told, blanked
    names = [
        name for name, value in _fields(document) if value and is_secret(name) and name not in KNOWN_KEYS
    ]
    if not names:
        return told, blanked
    plain = {name: "" if name in names else value for name, value in document.items()}
    return msgspec.json.encode(plain), (*blanked, *names)


def _fields(document: Any) -> list[tuple[str, Any]]:
    return list(document.items()) if isinstance(document, dict) else []
