"""What a session's store and the file beside it say about the session as a whole."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from backscroll.model import Fault
from backscroll.readers import lenient_json
from backscroll.readers.sqlite import as_bytes
from backscroll.sources.secret_fields import is_secret

__all__ = ["KNOWN_KEYS", "Sidecar", "StoreMetadata", "decode_hex_text", "is_hex", "read_meta", "read_sidecar"]

KNOWN_KEYS = {
    "agentId",
    "approvalMode",
    "createdAt",
    "currentPlanUri",
    "isRunEverything",
    "lastUsedModel",
    "latestRootBlobId",
    "mode",
    "name",
    "subagentInfo",
}
_NON_TEXT_KEYS = {"createdAt", "isRunEverything", "subagentInfo"}
_HEX = re.compile(rb"[0-9a-fA-F]+")
_SCALAR = re.compile(r'"(\w+)"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+|true|false)')
_MAX_SIDECAR_BYTES = 1024 * 1024


class StoreMetadata(Struct, frozen=True):
    """A store's own metadata, without its secrets."""

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

    def agent(self, key: str) -> str | None:
        """An id that the metadata of a subagent names."""
        value = self.subagent.get(key)
        return value if isinstance(value, str) and value else None


class Sidecar(Struct, frozen=True):
    """``meta.json``, as far as it is there."""

    fields: dict[str, Any] = {}
    fault: Fault | None = None
    is_there: bool = False

    def text(self, key: str) -> str | None:
        value = self.fields.get(key)
        return value if isinstance(value, str) and value else None


def read_meta(rows: Iterable[tuple[Any, Any]]) -> StoreMetadata:
    """The metadata in the rows of ``meta``: JSON in hex, plain JSON, or a row for each field."""
    fields: dict[str, Any] = {}
    fault: Fault | None = None
    for raw_key, raw_value in rows:
        key, value = (as_bytes(raw_key) or b"").decode("utf-8", "replace"), as_bytes(raw_value)
        if key in KNOWN_KEYS:
            fields.setdefault(key, _plain(value, is_text=key not in _NON_TEXT_KEYS))
            continue
        if is_secret(key) or value is None:
            continue
        loaded, problem = _document(value)
        fields = {**fields, **loaded}
        fault = fault or problem
    known = {name: value for name, value in fields.items() if name in KNOWN_KEYS}
    unknown = sorted(name for name in fields if name not in KNOWN_KEYS and not is_secret(name))
    return StoreMetadata(known, tuple(unknown), fault)


def _document(value: bytes) -> tuple[dict[str, Any], Fault | None]:
    """A whole object, or the plain fields of one that is cut or torn."""
    text = decode_hex_text(value)
    try:
        loaded = lenient_json.load(text)
    except lenient_json.FAILURES:
        spelled = lenient_json.clean_text(text)
        return {key: _scalar(found) for key, found in _SCALAR.findall(spelled)}, Fault(
            "not-json", "is not whole JSON"
        )
    return (loaded, None) if isinstance(loaded, dict) else ({}, Fault("unexpected-shape", "is not an object"))


def is_hex(value: bytes) -> bool:
    """Whether text is written as hexadecimal digits, as newer versions write it."""
    return _HEX.fullmatch(value.strip()) is not None


def decode_hex_text(value: bytes) -> bytes:
    """The text that digits stand for, or the text itself; a digit too many says nothing."""
    if not is_hex(value):
        return value
    digits = value.strip()
    return bytes.fromhex(digits[: len(digits) // 2 * 2].decode())


def _scalar(found: str) -> Any:
    try:
        return lenient_json.load(found)
    except lenient_json.FAILURES:
        return None


def _plain(value: bytes | None, *, is_text: bool) -> Any:
    """A field that has a row of its own: JSON where it is, text where it is not; a name may be a number."""
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
    """``meta.json`` beside a store. A missing one is silence, a broken one a fault."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_SIDECAR_BYTES)
    except FileNotFoundError:
        return Sidecar()
    except OSError as error:
        return Sidecar(fault=Fault("unreadable-file", f"cannot be opened: {error.strerror}"), is_there=True)
    try:
        loaded = lenient_json.load(data)
    except lenient_json.FAILURES:
        return Sidecar(fault=Fault("not-json", "is not JSON"), is_there=True)
    if not isinstance(loaded, dict):
        return Sidecar(fault=Fault("unexpected-shape", "is not an object"), is_there=True)
    return Sidecar({key: value for key, value in loaded.items() if not is_secret(key)}, is_there=True)
