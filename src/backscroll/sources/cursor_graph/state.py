"""The root record of a conversation: ``ConversationStateStructure``, parsed without its schema.

docs/formats/cursor-cli.md lists the fields.
"""

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.model.stream import TrackedFile
from backscroll.readers.protobuf import Record
from backscroll.sources.cursor_graph.blobs import blob_id

_NEWEST_KNOWN_FIELD = 39
_MODES = {1: "agent", 2: "ask", 3: "plan", 4: "debug", 5: "triage", 6: "project", 7: "multitask", 8: "custom"}


class MessageRef(Struct, frozen=True):
    """Reference to a message: the id of its blob, or the message itself."""

    id: str
    data: bytes | None = None  # JSON of a message that is stored in the root


class TurnTiming(Struct, frozen=True):
    """Start and duration of a turn."""

    timestamp_ms: int | None
    duration_ms: int | None


class NestedSubagent(Struct, frozen=True):
    """The conversation of a subagent, stored in its parent's root or in a separate blob."""

    key: str
    data: bytes | None  # root of the subagent's conversation
    blob: str | None
    created_ms: int | None = None
    kind: str | None = None
    last_used_ms: int | None = None

    def resolved(self, data: bytes) -> "NestedSubagent":
        """Return the subagent with the content of its blob: its root, or a record that contains the root."""
        record = Record(data)
        inner = record.bytes(1)
        if inner is None or blob_id(inner) is not None:
            return NestedSubagent(self.key, data, None)
        return _nested_subagent(self.key, record, inner)


class ConversationState:
    """The fields of a root. If the root is damaged, the fields before the damage."""

    def __init__(self, data: bytes, *, depth: int = 0) -> None:
        record = Record(data, depth=depth)
        self._record = record
        self.fault = record.fault
        self.messages = [message_ref(value) for value in record.all(1)]
        self.old_turns = _ids(record, 2)
        self.todos = _ids(record, 3)
        self.pending = [message_ref(value) for value in record.all(4)]
        self.summary = _id(record, 6)
        self.plan = _id(record, 7)
        self.turns = _ids(record, 8)
        self.workspace_uris = record.texts(9)
        archives = _ids(record, 13)
        # Older versions store one archive in field 11; field 13 may repeat it.
        self.archives = [id for id in _ids(record, 11) if id not in archives] + archives
        self.timings = [TurnTiming(timing.number(2), timing.number(1)) for timing in record.records(14)]
        self.started_ms = record.number(26)
        self.branch = record.text(19) or None

    @property
    def unknown_fields(self) -> list[int]:
        return sorted(field for field in self._record.numbers if field > _NEWEST_KNOWN_FIELD)

    @property
    def is_empty(self) -> bool:
        return not (self.messages or self.turns or self.old_turns or self.pending)

    def nested_subagents(self) -> list[NestedSubagent]:
        found: list[NestedSubagent] = []
        for entry in self._record.records(16):
            value = entry.record(2)
            if value is not None:
                found.append(_nested_subagent(entry.text(1) or "", value, value.bytes(1)))
        for entry in self._record.records(31):
            id = blob_id(entry.bytes(2) or b"")
            if id is not None:
                found.append(NestedSubagent(entry.text(1) or "", None, id))
        return found

    def tracked_files(self) -> tuple[TrackedFile, ...]:
        """Return the files with stored versions: paths and blob ids, no content."""
        files: dict[str, TrackedFile] = {}
        for entry in self._record.records(12):
            path = entry.text(1)
            if path:
                files[path] = TrackedFile(path, backup=blob_id(entry.bytes(2) or b""))
        for entry in self._record.records(15):
            path, value = entry.text(1), entry.record(2)
            if path:
                initial = (value.bytes(2) if value else None) or b""
                files[path] = TrackedFile(path, backup=blob_id(initial))
        return tuple(files.values())

    def facts(self) -> dict[str, Any]:
        """Return the metadata fields that have a value."""
        record = self._record
        usage = record.record(5)
        context_tokens = {"used": usage.number(1), "max": usage.number(2)} if usage else {}
        repos = [
            {"path": repo.text(1), "branch": repo.text(2)} for repo in record.records(21) if repo.text(1)
        ]
        mode = record.number(10)
        facts = {
            "mode": _MODES.get(mode, str(mode)) if mode else None,
            "time_zone": record.text(27),
            "compactions": record.number(17),
            "read_paths": record.texts(18),
            "tracked_repos": repos,
            "context_tokens": {key: value for key, value in context_tokens.items() if value},
            "workspace_uris": self.workspace_uris,
        }
        return {key: value for key, value in facts.items() if value}


def _nested_subagent(key: str, record: Record, root: bytes | None) -> NestedSubagent:
    return NestedSubagent(key, root, None, record.number(2), record.text(4) or None, record.number(3))


def message_ref(value: bytes) -> MessageRef:
    """Return a reference to a message. A value of 32 bytes is a blob id, unless it is a JSON object."""
    id = blob_id(value)
    return (
        MessageRef(sha256(value).hexdigest(), value)
        if id is None or _is_json_object(value)
        else MessageRef(id)
    )


def _is_json_object(value: bytes) -> bool:
    if value[:1] != b"{" or value[-1:] != b"}":
        return False
    try:
        msgspec.json.decode(value)
    except msgspec.MsgspecError:
        return False
    return True


def _ids(record: Record, field: int) -> list[str]:
    return [id for value in record.all(field) if (id := blob_id(value)) is not None]


def _id(record: Record, field: int) -> str | None:
    return blob_id(record.bytes(field) or b"")
