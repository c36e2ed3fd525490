"""Edit lines of transcripts: single fields, the paths of folders, and the ids of a copy.

Only the edited fields change; all other bytes of a line stay as they are. Message text, tool inputs, tool
results and signatures are never edited.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from backscroll.sources.claude_code.locations import is_id

_DECODER = json.JSONDecoder(strict=False)
_KEY = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*', re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)

# State lines, and the members with paths.
_PATH_MEMBERS = {
    "worktree-state": ("worktreeSession",),
    "relocated": ("relocatedCwd",),
    "file-history-snapshot": ("snapshot",),
    "file-history-delta": ("trackingPath", "backup"),
}

# State lines that describe the conversation. Others describe a process, a remote session, or costs that the
# tool would count twice; the tool's own forks have none of them.
_COPIED_STATES = frozenset(
    {
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "content-replacement",
        "custom-title",
        "file-history-delta",
        "file-history-snapshot",
        "fork-context-ref",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "relocated",
        "result",
        "started",
        "summary",
        "tag",
    }
)
# Members with the uuid of a line, or a list of them, or an object with some.
_UUID_MEMBERS = (
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "sourceToolAssistantUUID",
    "leafUuid",
    "messageId",
    "snapshotMessageId",
    "parentLastUuid",
    "refusedUserMessageUuid",
    "retractedMessageUuids",
    "supersedesUuids",
    "summarizedTurnPromptUuids",
    "compactMetadata",
)
_SESSION_MEMBERS = ("sessionId", "parentSessionId")
# Teams and plan files belong to the original. The tool's own forks remove these members, too.
_REMOVED_MEMBERS = ("teamName", "agentName", "slug")
_NO_LINE = "00000000-0000-0000-0000-000000000000"  # leafUuid after a rewind to the start


# Fields


class Field(NamedTuple):
    """A member of an object: its value, and where it is in the text."""

    value: Any
    key_start: int  # with the comma before it
    start: int  # of the value
    end: int


def fields_of(text: str) -> dict[str, Field]:
    """Return the members of the object in a text. Raises `ValueError` if it is not a JSON object.

    Of a repeated key, the last member is returned, as a JSON parser does.
    """
    found: dict[str, Field] = {}
    position = len(text) - len(text.lstrip())
    if text[position : position + 1] != "{":
        raise ValueError("not a JSON object")
    position += 1
    while (key := _KEY.match(text, position)) is not None:
        value, end = _DECODER.raw_decode(text, key.end())
        found[json.loads(key[1], strict=False)] = Field(value, position, key.end(), end)
        position = end
    if text[position:].strip() != "}":
        raise ValueError("not a single JSON object")
    return found


def edit_object(text: str, fields: Mapping[str, Field], changes: Mapping[str, str | None]) -> str:
    """Replace members by new JSON texts. None removes a member; a member that does not exist is added."""
    parts: list[str] = []
    position = 0
    for name, field in sorted(fields.items(), key=lambda item: item[1].start):
        if name not in changes:
            continue
        new = changes[name]
        parts.append(text[position : field.key_start if new is None else field.start])
        parts.append(new or "")
        position = field.end
    rest = text[position:]
    added = [f"{encode_text(name)}:{new}" for name, new in changes.items() if name not in fields and new]
    if added:
        end = rest.rindex("}")
        rest = f"{rest[:end]},{','.join(added)}{rest[end:]}"
    return _without_leading_comma("".join(parts) + rest)


def encode_text(value: str) -> str:
    """Return a string as JSON, as JavaScript writes it."""
    return json.dumps(value, ensure_ascii=False)


def _map_strings(text: str, replaced: Callable[[str], str | None]) -> str:
    """Replace whole strings, keys and values alike, in a JSON text. ``replaced`` returns None to keep one."""

    def new(found: re.Match[str]) -> str:
        value = replaced(json.loads(found[0], strict=False))
        return found[0] if value is None else encode_text(value)

    return _STRING.sub(new, text)


def _without_leading_comma(text: str) -> str:
    """Remove the comma that is left if the first member was removed."""
    return re.sub(r"^(\s*\{)\s*,", r"\1", text)


# Paths


class PathMap:
    """The path of a folder, and what replaces it in the fields that record where work was done.

    These are ``cwd`` of each line and the paths in state lines. The model has seen none of them. A path
    changes only on a component boundary.
    """

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
                after = _map_strings(before, self.path)
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


# Ids


class Fork:
    """Copies the lines of a session under a new id. The same line always gives the same copy.

    As in the tool's own forks, each line gets a new uuid and names the line that it was copied from, so that
    readers count a copied response once.
    """

    def __init__(self, old_id: str, new_id: str, paths: PathMap | None) -> None:
        self._old_id = old_id
        self._new_id = new_id
        self._namespace = UUID(new_id)
        self._paths = paths

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the copies of lines. Damaged lines are dropped: they cannot be given new ids."""
        for line in lines:
            try:
                yield self._line(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            except ValueError:
                continue

    def _line(self, text: str) -> str:
        fields = fields_of(text)
        kind = fields["type"].value if "type" in fields else None
        if "uuid" not in fields and kind not in _COPIED_STATES:
            return ""
        changes = self._paths.changes(text, fields) if self._paths is not None else {}
        for name in _UUID_MEMBERS:
            if (field := fields.get(name)) is not None:
                changes[name] = _map_strings(text[field.start : field.end], self._new_uuid)
        if (snapshot := fields.get("snapshot")) is not None and isinstance(snapshot.value, dict):
            inner = changes.get("snapshot") or text[snapshot.start : snapshot.end]
            changes["snapshot"] = self._snapshot(inner)
        for name in _SESSION_MEMBERS:
            if name in fields and fields[name].value == self._old_id:
                changes[name] = encode_text(self._new_id)
        changes |= {name: None for name in _REMOVED_MEMBERS if name in fields and "uuid" in fields}
        if "uuid" in fields:
            origin = {"sessionId": self._old_id, "messageUuid": fields["uuid"].value}
            changes["forkedFrom"] = json.dumps(origin, separators=(",", ":"))
        return edit_object(text, fields, changes)

    def _snapshot(self, text: str) -> str:
        fields = fields_of(text)
        if (field := fields.get("messageId")) is None:
            return text
        new = _map_strings(text[field.start : field.end], self._new_uuid)
        return edit_object(text, fields, {"messageId": new})

    def _new_uuid(self, value: str) -> str | None:
        """Return the uuid of a copied line; None if the value is not the uuid of a line."""
        is_line = is_id(value) and value != _NO_LINE
        return str(uuid5(self._namespace, value)) if is_line else None
