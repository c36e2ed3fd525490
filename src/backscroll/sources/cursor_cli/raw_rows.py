"""The original rows of a session, which the archive keeps so that the session can be restored."""

from binascii import hexlify
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from backscroll.model import RawRow
from backscroll.readers import lenient_json
from backscroll.readers.sqlite.connection import Database, as_bytes
from backscroll.sources.cursor_cli.blob_rows import StoreIndex, fetch_blobs, fetch_stored_blobs, scan_store
from backscroll.sources.cursor_cli.metadata import KNOWN_KEYS, decode_hex_text, is_hex, read_meta
from backscroll.sources.cursor_graph.blobs import BlobLoader, batch_by_size
from backscroll.sources.cursor_graph.reachable import StoredBlob, reachable_blobs
from backscroll.sources.cursor_graph.state import ConversationState
from backscroll.sources.secret_fields import blank, is_secret

__all__ = ["file_row", "meta_row", "store_rows"]

_VOLATILE_KEYS = ("lastUsedModel", "latestRootBlobId", "mode")
_MAX_FILE_BYTES = 1024 * 1024


def store_rows(path: Path, root: Path) -> Iterator[RawRow]:
    """Return the metadata and the blobs that the root refers to; without a valid root, all blobs."""
    with Database(path) as database:
        index = database.read(scan_store)
        for raw_key, raw_value in index.meta:
            yield from meta_row((as_bytes(raw_key) or b"").decode("utf-8", "replace"), as_bytes(raw_value))
        yield from file_row(path.with_name("meta.json"), root)

        def fetch(ids: list[str]) -> Iterator[tuple[str, StoredBlob]]:
            for batch in batch_by_size(ids, index.sizes):
                yield from fetch_stored_blobs(database, batch, index).items()

        for id, blob in reachable_blobs(_start_ids(database, index), fetch):
            yield RawRow(table="blobs", key=id, value=blob.data, is_text=blob.is_text)


def _start_ids(database: Database, index: StoreIndex) -> list[str]:
    root_id = (read_meta(index.meta).text("latestRootBlobId") or "").lower()
    blobs = BlobLoader(lambda ids: fetch_blobs(database, ids, index), sizes=index.sizes)
    data = blobs.get(root_id) if root_id in index.sizes else None
    if data is None or root_id in blobs.altered:
        return list(index.sizes)
    state = ConversationState(data)
    return [root_id] if state.fault is None and not state.is_empty else list(index.sizes)


def meta_row(key: str, value: bytes | None) -> Iterator[RawRow]:
    """Return a row of metadata, unless its key names a secret."""
    if is_secret(key) and key not in KNOWN_KEYS:
        return
    if value is None or key in KNOWN_KEYS:
        yield RawRow(table="meta", key=key, value=value, volatile=("",))
        return
    text = decode_hex_text(value)
    redacted, blanked = _without_secrets(text)
    if blanked and is_hex(value):
        digits = value.strip()
        redacted = hexlify(redacted) + (digits[-1:] if len(digits) % 2 else b"")
    yield RawRow(
        table="meta", key=key, value=redacted if blanked else value, blanked=blanked, volatile=_VOLATILE_KEYS
    )


def file_row(path: Path, root: Path) -> Iterator[RawRow]:
    """Return a ``meta.json``: beside a store, or alone if the session is a draft."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES)
        name = path.relative_to(root).as_posix()
    except (OSError, ValueError):
        return
    redacted, blanked = _without_secrets(data)
    yield RawRow(path=name, table="", key="", value=redacted, blanked=blanked, volatile=("updatedAtMs",))


def _without_secrets(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Blank the fields of an object that may be secrets. Return the object and the names of these fields."""
    redacted, blanked = blank(text)
    if not is_secret(text.decode("utf-8", "replace")):
        return redacted, blanked
    try:
        document = lenient_json.load(redacted)
    except lenient_json.FAILURES:
        return redacted, blanked
    names = [
        name for name, value in _fields(document) if value and is_secret(name) and name not in KNOWN_KEYS
    ]
    if not names:
        return redacted, blanked
    without_names = {name: "" if name in names else value for name, value in document.items()}
    return msgspec.json.encode(without_names), (*blanked, *names)


def _fields(document: Any) -> list[tuple[str, Any]]:
    return list(document.items()) if isinstance(document, dict) else []
