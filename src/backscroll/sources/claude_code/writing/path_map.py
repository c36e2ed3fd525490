"""Replace the path of a folder in the fields that record where work was done.

These are ``cwd`` of each line and the paths in state lines. The model has seen none of them. Text, tool
inputs and tool results keep the old paths.
"""

from collections.abc import Mapping

from backscroll.sources.claude_code.writing.raw_fields import (
    Field,
    edit_object,
    encode_text,
    fields_of,
    map_strings,
)

__all__ = ["PathMap"]

# State lines, and the members with paths.
_PATH_MEMBERS = {
    "worktree-state": ("worktreeSession",),
    "relocated": ("relocatedCwd",),
    "file-history-snapshot": ("snapshot",),
    "file-history-delta": ("trackingPath", "backup"),
}


class PathMap:
    """The path of a folder, and what replaces it. A path changes only on a component boundary."""

    def __init__(self, old: str, new: str) -> None:
        self._old = old.rstrip("/\\") or old
        self._new = new.rstrip("/\\") or new

    def path(self, path: str) -> str | None:
        """Return the new path; None if the path is not the folder and not below it."""
        if path == self._old:
            return self._new
        rest = path[len(self._old) :]
        return self._new + rest if path.startswith(self._old) and rest[0] in "/\\" else None

    def changes(self, text: str, fields: Mapping[str, Field]) -> dict[str, str | None]:
        """Return the members of a line that change, as JSON texts."""
        found: dict[str, str | None] = {}
        cwd = fields.get("cwd")
        if cwd is not None and isinstance(cwd.value, str) and (new := self.path(cwd.value)) is not None:
            found["cwd"] = encode_text(new)
        kind = fields.get("type")
        for name in _PATH_MEMBERS.get(kind.value, ()) if kind is not None and _is_text(kind) else ():
            if (field := fields.get(name)) is not None:
                before = text[field.start : field.end]
                after = map_strings(before, self.path)
                if after != before:
                    found[name] = after
        return found

    def line(self, line: bytes) -> bytes:
        """Return a line with the new paths. A line that is not a JSON object stays as it is."""
        try:
            text = line.decode("utf-8", "surrogateescape")
            fields = fields_of(text)
        except ValueError:
            return line
        changes = self.changes(text, fields)
        if not changes:
            return line
        return edit_object(text, fields, changes).encode("utf-8", "surrogateescape")


def _is_text(field: Field) -> bool:
    return isinstance(field.value, str)
