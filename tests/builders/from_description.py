"""Tool folders built from JSON descriptions, so that a diff shows the content of an example.

A description is a JSON object::

    {"mtime": 1790000000000,
     "files": {
       "User/globalStorage/state.vscdb": {
         "journal": "wal", "user_version": 1,
         "tables": {"cursorDiskKV": [["composerData:1", {"$json": {…}}], …],
                    "composerHeaders": {"columns": ["composerId TEXT PRIMARY KEY", …], "rows": […]}}},
       "User/workspaceStorage/1/workspace.json": {"json": {…}},
       "projects/p/agent-transcripts/1.jsonl": {"lines": [{…}, "a line as it is"]}}}

A file has ``tables``, ``json``, ``lines`` or ``text``. A table with the default columns
is a list of rows. These objects can replace any value:

- ``{"$json": value}``: the value as JSON text
- ``{"$bytes": value}``: the value's text as a BLOB
- ``{"$hex": value}``: the value's text as hexadecimal digits
- ``{"$blob": name}``: the bytes of a blob described under ``blobs``
- ``{"$id": name}``: the SHA-256 of a blob, as hex digits
- ``{"$join": [value, …]}``: concatenated texts, for example a key that contains an id
- ``{"$state": name}``: a blob as the editor stores a root: ``~`` and base64

A blob is ``{"json": value}`` or a protobuf message, ``{"fields": [[number, value], …]}``.
In a message, a nested ``{"fields": …}`` is a message and ``{"$id": name}`` is the
32 bytes of the hash.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from backscroll.testing import database, protobuf

_KEY_VALUE_COLUMNS = ("key TEXT UNIQUE ON CONFLICT REPLACE", "value BLOB")
_DEFAULT_COLUMNS = {
    "ItemTable": _KEY_VALUE_COLUMNS,
    "cursorDiskKV": _KEY_VALUE_COLUMNS,
    "blobs": ("id TEXT PRIMARY KEY", "data BLOB"),
    "meta": ("key TEXT PRIMARY KEY", "value TEXT"),
}


def build_file(description: Path, root: Path) -> Path:
    """Write the files of a description file below the root. Return the root."""
    return build(json.loads(description.read_text(encoding="utf-8")), root)


def build(description: Mapping[str, Any], root: Path) -> Path:
    """Write the files of a description below the root, all with one modification time. Return the root."""
    blobs = _Blobs(description.get("blobs", {}))
    mtime = description.get("mtime", 1790000000000)
    for name, content in description["files"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match content:
            case {"tables": tables}:
                _write_database(path, tables, content, blobs)
            case {"json": value}:
                path.write_text(_dumps(blobs.resolve(value)), encoding="utf-8")
            case {"lines": lines}:
                text = "".join(f"{line if isinstance(line, str) else _dumps(line)}\n" for line in lines)
                path.write_text(text, encoding="utf-8")
            case {"text": str(text)}:
                path.write_text(text, encoding="utf-8")
            case _:
                raise ValueError(f"{name} has none of tables, json, lines and text.")
        database.set_mtime(path, mtime)
    return root


def _write_database(
    path: Path, tables: Mapping[str, Any], options: Mapping[str, Any], blobs: "_Blobs"
) -> None:
    schema = f"pragma user_version = {int(options.get('user_version', 0))};\n"
    rows = []
    for name, table in tables.items():
        columns = table["columns"] if isinstance(table, dict) else _DEFAULT_COLUMNS[name]
        described_rows = table["rows"] if isinstance(table, dict) else table
        schema += f"create table {name} ({', '.join(columns)});\n"
        values = [[blobs.resolve(cell) for cell in row] for row in described_rows]
        rows.append(database.insert_statement(name, [column.split()[0] for column in columns], values))
    database.write(
        path, schema, rows, journal=options.get("journal", "delete"), rows_in=options.get("leave", "main")
    )


class _Blobs:
    """Blobs by name. A blob can refer to other blobs, but not to itself."""

    def __init__(self, descriptions: Mapping[str, Any]) -> None:
        self._descriptions = descriptions
        self._encoded: dict[str, bytes] = {}

    def data(self, name: str) -> bytes:
        if name not in self._encoded:
            match self._descriptions[name]:
                case {"json": value}:
                    self._encoded[name] = _dumps(self.resolve(value)).encode()
                case {"fields": fields}:
                    self._encoded[name] = self._encode_message(fields)
                case other:
                    raise ValueError(f"Blob {name} has neither json nor fields: {other}")
        return self._encoded[name]

    def resolve(self, value: Any) -> Any:
        """Return a value with every ``$`` object replaced."""
        match value:
            case {"$json": inner}:
                return _dumps(self.resolve(inner))
            case {"$bytes": inner}:
                return _text(self.resolve(inner)).encode()
            case {"$hex": inner}:
                return _text(self.resolve(inner)).encode().hex()
            case {"$blob": str(name)}:
                return self.data(name)
            case {"$id": str(name)}:
                return sha256(self.data(name)).hexdigest()
            case {"$join": list(parts)}:
                return "".join(_text(self.resolve(part)) for part in parts)
            case {"$state": str(name)}:
                return f"~{b64encode(self.data(name)).decode()}"
            case dict():
                return {key: self.resolve(inner) for key, inner in value.items()}
            case list():
                return [self.resolve(inner) for inner in value]
        return value

    def _encode_message(self, fields: list[Any]) -> bytes:
        return protobuf.encode_message(*((number, self._field_value(value)) for number, value in fields))

    def _field_value(self, value: Any) -> int | str | bytes:
        match value:
            case {"fields": fields}:
                return self._encode_message(fields)
            case {"$id": str(name)}:
                return sha256(self.data(name)).digest()
            case int() | str():
                return value
            case {"$json": _}:
                return _text(self.resolve(value))
        raise ValueError(f"Not a field of a message: {value}")


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _dumps(value)
