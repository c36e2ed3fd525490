"""Metadata of a session: the ``meta`` table of its store and ``meta.json`` beside it."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from backscroll.model.problem import Fault
from backscroll.model.stream import RecordCounts
from backscroll.readers import lenient_json
from backscroll.readers.json_outline import safe_name
from backscroll.readers.read_faults import read_fault
from backscroll.readers.sqlite import as_bytes
from backscroll.sources.secret_fields import is_secret

COPY_KEY = "copiedFrom"  # written by Backscroll: which session this is a copy of, and its root then
KNOWN_KEYS = {
    "agentId",
    "approvalMode",
    COPY_KEY,
    "createdAt",
    "currentPlanUri",
    "isRunEverything",
    "lastUsedModel",
    "latestRootBlobId",
    "mode",
    "name",
    "subagentInfo",
}
_NON_TEXT_KEYS = {COPY_KEY, "createdAt", "isRunEverything", "subagentInfo"}
_HEX = re.compile(rb"[0-9a-fA-F]+")
_SCALAR_FIELD = re.compile(r'"(\w+)"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+|true|false)')
_MAX_SIDECAR_BYTES = 1024 * 1024
_KNOWN_SCHEMA_VERSION = 1  # of meta.json


class StoreMetadata(Struct, frozen=True):
    """Metadata from the ``meta`` table, without secrets."""

    fields: dict[str, Any]
    unknown: tuple[str, ...] = ()
    fault: Fault | None = None

    def text(self, key: str) -> str | None:
        value = self.fields.get(key)
        return value if isinstance(value, str) and value else None

    @property
    def subagent(self) -> dict[str, Any]:
        info = self.fields.get("subagentInfo")
        return info if isinstance(info, dict) else {}

    def subagent_text(self, key: str) -> str | None:
        """Return a text field of ``subagentInfo``."""
        value = self.subagent.get(key)
        return value if isinstance(value, str) and value else None


class Sidecar(Struct, frozen=True):
    """Content of ``meta.json``, without secrets."""

    fields: dict[str, Any] = {}
    fault: Fault | None = None

    def text(self, key: str) -> str | None:
        value = self.fields.get(key)
        return value if isinstance(value, str) and value else None


def read_meta(rows: Iterable[tuple[Any, Any]]) -> StoreMetadata:
    """Parse the rows of ``meta``: hex-encoded JSON, plain JSON, or one row per field."""
    fields: dict[str, Any] = {}
    fault: Fault | None = None
    for raw_key, raw_value in rows:
        key, value = (as_bytes(raw_key) or b"").decode("utf-8", "replace"), as_bytes(raw_value)
        if key in KNOWN_KEYS:
            fields.setdefault(key, _field_value(value, is_text=key not in _NON_TEXT_KEYS))
            continue
        if is_secret(key) or value is None:
            continue
        loaded, json_fault = _parse_object(value)
        fields = {**fields, **loaded}
        fault = fault or json_fault
    known = {name: value for name, value in fields.items() if name in KNOWN_KEYS}
    unknown = sorted(name for name in fields if name not in KNOWN_KEYS and not is_secret(name))
    return StoreMetadata(known, tuple(unknown), fault)


def _parse_object(value: bytes) -> tuple[dict[str, Any], Fault | None]:
    """Parse a JSON object. If it is truncated or damaged, return its scalar fields."""
    text = decode_hex_text(value)
    try:
        loaded = lenient_json.load(text)
    except lenient_json.FAILURES:
        fields = _SCALAR_FIELD.findall(lenient_json.clean_text(text))
        return {key: _scalar(scalar) for key, scalar in fields}, Fault("not-json", "is not complete JSON")
    return (loaded, None) if isinstance(loaded, dict) else ({}, Fault("unexpected-shape", "is not an object"))


def is_hex(value: bytes) -> bool:
    """Return whether text is hex-encoded, as in newer versions."""
    return _HEX.fullmatch(value.strip()) is not None


def decode_hex_text(value: bytes) -> bytes:
    """Decode hex-encoded text, without an extra digit at the end. Return other text unchanged."""
    if not is_hex(value):
        return value
    digits = value.strip()
    return bytes.fromhex(digits[: len(digits) // 2 * 2].decode())


def _scalar(text: str) -> Any:
    try:
        return lenient_json.load(text)
    except lenient_json.FAILURES:
        return None


def _field_value(value: bytes | None, *, is_text: bool) -> Any:
    """Decode a field in its own row: JSON, else text. A text field stays text, even if it looks like JSON."""
    if value is None:
        return None
    try:
        loaded = lenient_json.load(value)
    except lenient_json.FAILURES:
        return lenient_json.clean_text(value)
    return (
        loaded if not is_text or isinstance(loaded, str) or loaded is None else lenient_json.clean_text(value)
    )


def read_sidecar(path: Path) -> Sidecar:
    """Read ``meta.json``. A missing file is not a fault, an invalid one is."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_SIDECAR_BYTES)
    except FileNotFoundError:
        return Sidecar()
    except OSError as error:
        return Sidecar(fault=read_fault(error))
    try:
        loaded = lenient_json.load(data)
    except lenient_json.FAILURES:
        return Sidecar(fault=Fault("not-json", "is not JSON"))
    if not isinstance(loaded, dict):
        return Sidecar(fault=Fault("unexpected-shape", "is not an object"))
    return Sidecar({key: value for key, value in loaded.items() if not is_secret(key)})


def count_unknown_schema(sidecar: Sidecar, counts: RecordCounts) -> None:
    """Count an unknown schema version of ``meta.json``."""
    version = sidecar.fields.get("schemaVersion")
    if version is not None and version != _KNOWN_SCHEMA_VERSION:
        counts.add_unknown(f"meta.json schemaVersion {safe_name(version)}")
