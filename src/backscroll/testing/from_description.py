"""Whole tool folders from readable descriptions, so that an example can be looked at in a diff.

A description is a JSON object::

    {"mtime": 1790000000000,
     "files": {
       "User/globalStorage/state.vscdb": {
         "journal": "wal", "user_version": 1,
         "tables": {"cursorDiskKV": [["composerData:1", {"$json": {…}}], …],
                    "composerHeaders": {"columns": ["composerId TEXT PRIMARY KEY", …], "rows": […]}}},
       "User/workspaceStorage/1/workspace.json": {"json": {…}},
       "projects/p/agent-transcripts/1.jsonl": {"lines": [{…}, "a line as it is"]}}}

A file is ``tables``, ``json``, ``lines`` or ``text``; a table whose columns never
changed is just its rows. In place of any value may stand:

- ``{"$json": value}``: the value as JSON text
- ``{"$bytes": value}``: its text as bytes, where a cell is to be a BLOB
- ``{"$hex": value}``: its text as hexadecimal digits
- ``{"$blob": name}``: the bytes of a blob described under ``blobs``
- ``{"$id": name}``: its SHA-256, as hex digits
- ``{"$join": [value, …]}``: texts put together, as in a key that holds an id
- ``{"$state": name}``: its bytes as the editor keeps a root: ``~`` and base64

A blob is ``{"json": value}`` or ``{"fields": [[number, value], …]}``, a protobuf
message; there a nested ``{"fields": …}`` is a message, and ``{"$id": name}`` is
the 32 bytes themselves.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from backscroll.testing import database, protobuf

__all__ = ["build", "build_file"]

_KEY_VALUE = ("key TEXT UNIQUE ON CONFLICT REPLACE", "value BLOB")
_COLUMNS = {
    "ItemTable": _KEY_VALUE,
    "cursorDiskKV": _KEY_VALUE,
    "blobs": ("id TEXT PRIMARY KEY", "data BLOB"),
    "meta": ("key TEXT PRIMARY KEY", "value TEXT"),
}


def build_file(description: Path, root: Path) -> Path:
    """Build what a description file describes. Returns the root."""
    return build(json.loads(description.read_text(encoding="utf-8")), root)


def build(description: Mapping[str, Any], root: Path) -> Path:
    """Write every file of a description below the root, with one modification time. Returns the root."""
    blobs = _Blobs(description.get("blobs", {}))
    mtime = description.get("mtime", 1790000000000)
    for name, content in description["files"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match content:
            case {"tables": tables}:
                _write_database(path, tables, content, blobs)
            case {"json": value}:
                path.write_text(_dumps(blobs.filled(value)), encoding="utf-8")
            case {"lines": lines}:
                text = "".join(f"{line if isinstance(line, str) else _dumps(line)}\n" for line in lines)
                path.write_text(text, encoding="utf-8")
            case {"text": str(text)}:
                path.write_text(text, encoding="utf-8")
            case _:
                raise ValueError(f"{name} is neither tables, json, lines nor text")
        database.stamp(path, mtime)
    return root


def _write_database(
    path: Path, tables: Mapping[str, Any], options: Mapping[str, Any], blobs: "_Blobs"
) -> None:
    schema = f"pragma user_version = {int(options.get('user_version', 0))};\n"
    rows = []
    for name, table in tables.items():
        declared = table["columns"] if isinstance(table, dict) else _COLUMNS[name]
        listed = table["rows"] if isinstance(table, dict) else table
        schema += f"create table {name} ({', '.join(declared)});\n"
        values = [[blobs.filled(cell) for cell in row] for row in listed]
        rows.append(database.statements(name, [column.split()[0] for column in declared], values))
    database.write(
        path, schema, rows, journal=options.get("journal", "delete"), leave=options.get("leave", "main")
    )


class _Blobs:
    """Blobs by name; a blob may name others, never itself."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        self._described = described
        self._made: dict[str, bytes] = {}

    def data(self, name: str) -> bytes:
        if name not in self._made:
            match self._described[name]:
                case {"json": value}:
                    self._made[name] = _dumps(self.filled(value)).encode()
                case {"fields": fields}:
                    self._made[name] = self._encoded(fields)
                case other:
                    raise ValueError(f"blob {name} is neither json nor fields: {other}")
        return self._made[name]

    def filled(self, value: Any) -> Any:
        """A value with everything in it replaced that stands for something else."""
        match value:
            case {"$json": inner}:
                return _dumps(self.filled(inner))
            case {"$bytes": inner}:
                return _text(self.filled(inner)).encode()
            case {"$hex": inner}:
                return _text(self.filled(inner)).encode().hex()
            case {"$blob": str(name)}:
                return self.data(name)
            case {"$id": str(name)}:
                return sha256(self.data(name)).hexdigest()
            case {"$join": list(parts)}:
                return "".join(_text(self.filled(part)) for part in parts)
            case {"$state": str(name)}:
                return f"~{b64encode(self.data(name)).decode()}"
            case dict():
                return {key: self.filled(inner) for key, inner in value.items()}
            case list():
                return [self.filled(inner) for inner in value]
        return value

    def _encoded(self, fields: list[Any]) -> bytes:
        return protobuf.message(*((number, self._field(value)) for number, value in fields))

    def _field(self, value: Any) -> int | str | bytes:
        match value:
            case {"fields": fields}:
                return self._encoded(fields)
            case {"$id": str(name)}:
                return sha256(self.data(name)).digest()
            case int() | str():
                return value
            case {"$json": _}:
                return _text(self.filled(value))
        raise ValueError(f"no field of a message: {value}")


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _dumps(value)
