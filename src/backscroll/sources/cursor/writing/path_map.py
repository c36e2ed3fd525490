"""Replace the path of a folder in URIs and tool parameters, at the boundary of a path component.

Message text and everything that a model has seen stay unchanged.
"""

from typing import Any
from urllib.parse import quote, unquote

import msgspec
from msgspec import Raw

from backscroll.sources.cursor.database.decode import UndecodableError, decode

__all__ = ["PathMap"]

_PATH_PARAMETERS = (
    "relativeWorkspacePath",
    "targetFile",
    "filePath",
    "path",
    "cwd",
    "target_file",
    "file_path",
)
_URI_FIELDS = ("fsPath", "_fsPath", "path", "external", "_formatted")
_SAFE_CHARACTERS = "/-._~"  # as the editor writes URIs


class PathMap:
    """Maps paths below one folder to another folder."""

    def __init__(self, old: str, new: str) -> None:
        self._old = old.rstrip("/\\")
        self._new = new.rstrip("/\\")
        self._marks = tuple(
            text.encode()
            for text in {self._old, quote(self._old, safe=_SAFE_CHARACTERS), _escaped(self._old)}
        )

    def may_apply(self, value: bytes) -> bool:
        """Return whether a JSON value may contain the folder."""
        return any(mark in value for mark in self._marks)

    def path(self, text: str) -> str:
        """Map a path or a file URI. Other text is returned unchanged."""
        if text.startswith("file://"):
            path = unquote(text[len("file://") :])
            mapped = self.path(path)
            return "file://" + quote(mapped, safe=_SAFE_CHARACTERS) if mapped != path else text
        rest = text[len(self._old) :]
        if text.startswith(self._old) and (not rest or rest[0] in "/\\"):
            return self._new + rest
        return text

    def uri(self, document: Any) -> Any:
        """Map a URI: a text, or the editor's URI object."""
        return self._map_uris(document)

    def bubble(self, value: bytes) -> bytes:
        """Map the paths of a bubble: tool parameters, code blocks, context."""
        fields = _fields(value)
        if fields is None:
            return value
        tool = _fields(bytes(fields["toolFormerData"])) if "toolFormerData" in fields else None
        if tool is not None and "params" in tool:
            tool["params"] = self._parameters(tool["params"])
            fields["toolFormerData"] = Raw(msgspec.json.encode(tool))
        for name in ("codeBlocks", "context"):
            if name in fields:
                fields[name] = self._uris(fields[name])
        return _encoded(fields, value)

    def composer(self, fields: dict[str, Raw]) -> None:
        """Map the paths of a session's record, in place."""
        for name in ("context", "newlyCreatedFiles", "newlyCreatedFolders", "allAttachedFileCodeChunksUris"):
            if name in fields:
                fields[name] = self._uris(fields[name])
        for name in ("codeBlockData", "originalFileStates", "originalModelLines"):
            states = _fields(bytes(fields[name])) if name in fields else None
            if states is not None and self.may_apply(bytes(fields[name])):
                mapped = {self.path(uri): self._uris(state) for uri, state in states.items()}
                fields[name] = Raw(msgspec.json.encode(mapped))
        if "trackedGitRepos" in fields:
            fields["trackedGitRepos"] = self._mapped(fields["trackedGitRepos"], self._map_repos)

    def _parameters(self, raw: Raw) -> Raw:
        """Map the parameters of a tool call: an object, or JSON in a string."""
        data = bytes(raw)
        if not self.may_apply(data):
            return raw
        try:
            decoded = msgspec.json.decode(data)
            document = msgspec.json.decode(decoded) if isinstance(decoded, str) else decoded
        except msgspec.DecodeError:
            return raw
        if not isinstance(document, dict):
            return raw
        changed = {
            name: self.path(value) if name in _PATH_PARAMETERS and isinstance(value, str) else value
            for name, value in document.items()
        }
        if changed == document:
            return raw
        text = msgspec.json.encode(changed)
        return Raw(msgspec.json.encode(text.decode()) if isinstance(decoded, str) else text)

    def _uris(self, raw: Raw) -> Raw:
        return self._mapped(raw, self._map_uris)

    def _mapped(self, raw: Raw, change: Any) -> Raw:
        data = bytes(raw)
        if not self.may_apply(data):
            return raw
        try:
            document = msgspec.json.decode(data)
        except msgspec.DecodeError:
            return raw
        mapped = change(document)
        return Raw(msgspec.json.encode(mapped)) if mapped != document else raw

    def _map_uris(self, document: Any, *, is_uri: bool = True) -> Any:
        """Map URI objects and URI texts at any depth. Other texts stay unchanged."""
        if isinstance(document, str):
            return self.path(document) if is_uri else document
        if isinstance(document, list):
            return [self._map_uris(item, is_uri=is_uri) for item in document]
        if not isinstance(document, dict):
            return document
        has_path = "fsPath" in document or "_fsPath" in document or "scheme" in document
        return {
            name: self._map_uris(
                item, is_uri=name == "uri" or name.endswith("Uri") or (has_path and name in _URI_FIELDS)
            )
            for name, item in document.items()
        }

    def _map_repos(self, document: Any) -> Any:
        if isinstance(document, list):
            return [self._map_repos(item) for item in document]
        if isinstance(document, dict) and isinstance(document.get("repoPath"), str):
            return {**document, "repoPath": self.path(document["repoPath"])}
        return document


def _fields(value: bytes) -> dict[str, Raw] | None:
    """Return the undecoded fields of an object; None if it is not one."""
    if not value.lstrip().startswith(b"{"):
        return None
    try:
        return decode(value, dict[str, Raw])
    except UndecodableError:
        return None


def _encoded(fields: dict[str, Raw], value: bytes) -> bytes:
    """Encode fields again; the original value if they have not changed."""
    encoded = msgspec.json.encode(fields)
    unchanged = _fields(value)
    return value if unchanged is not None and msgspec.json.encode(unchanged) == encoded else encoded


def _escaped(text: str) -> str:
    """Return text as in JSON with escaped characters."""
    return "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in text)
