"""The records of the graph, parsed without their schema: the root, its turns and their steps.

docs/formats/cursor-cli.md lists the fields.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.model.stream import TrackedFile
from backscroll.model.text import pluralize
from backscroll.readers.protobuf import Record
from backscroll.sources.cursor_graph.blobs import BlobLoader, blob_id

_LINK_START = b"\x0a\x20"  # field 1, 32 bytes
_NEWEST_KNOWN_FIELD = 39  # of the root
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
        self.embedded = _embedded_message(data, record)
        self.old_turns = _ids(record, 2)
        self.todos = _ids(record, 3)
        self.pending = [message_ref(value) for value in record.all(4)]
        if self.embedded is not None:
            self.fault = None
            self.pending.append(self.embedded)
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


def linked_messages(data: bytes, blobs: BlobLoader) -> list[MessageRef]:
    """Return the references of a blob that links to messages; none if it is not such a blob.

    These blobs have the same format as a root. No store of 2025 or 2026 that was seen nests them.
    """
    if not data.startswith(_LINK_START):
        return []
    state = ConversationState(data)
    if state.fault is not None or not any(ref.data is None and ref.id in blobs for ref in state.messages):
        return []
    return state.messages + ([state.embedded] if state.embedded is not None else [])


def _embedded_message(data: bytes, record: Record) -> MessageRef | None:
    """Return the JSON message that follows the references of a root without a tag of its own."""
    if record.group_start is None or data[record.group_start : record.group_start + 1] != b"{":
        return None
    tail = data[record.group_start :]
    return MessageRef(sha256(tail).hexdigest(), tail) if _is_json_object(tail.rstrip(b"\0\r\n ")) else None


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


# Turns as the window of the tool shows them: the typed prompt and its steps

_TOOL_NAMES = {  # by field number
    1: "Shell",
    3: "Delete",
    4: "Glob",
    5: "Grep",
    8: "Read",
    9: "TodoWrite",
    12: "Edit",
    13: "LS",
    14: "ReadLints",
    15: "CallMcpTool",
    16: "SemanticSearch",
    17: "CreatePlan",
    18: "WebSearch",
    19: "Task",
    23: "AskQuestion",
    24: "Fetch",
    25: "SwitchMode",
    28: "GenerateImage",
    37: "WebFetch",
    42: "Await",
}
_CALL_ID_FIELD, _STARTED_FIELD, _COMPLETED_FIELD = 57, 59, 60
_MAX_NESTING_DEPTH = 6
_MAX_UNTIMED_CALLS = 50  # if this many calls have no time, the remaining calls have none either


class StepCall(Struct, frozen=True):
    """The tool call of a step. Keys of arguments are field numbers, because the names are not stored."""

    id: str | None
    name: str
    params: dict[str, Any]
    result: Any  # None if there is none
    started_ms: int | None
    completed_ms: int | None


class Step(Struct, frozen=True):
    """One step of a turn: text, thinking or a call; none of them if the step could not be parsed."""

    id: str
    text: str | None = None
    thinking: str | None = None
    call: StepCall | None = None
    timestamp_ms: int | None = None
    unknown_field: int | None = None  # field of a step with an unknown type


class Turn(Struct, frozen=True):
    """A turn. Its steps are loaded by `read_steps`."""

    id: str
    user_id: str | None = None
    text: str = ""
    timestamp_ms: int | None = None
    is_simulated: bool = False
    step_ids: tuple[str, ...] = ()
    output: str | None = None  # of a shell command that the user ran; then `text` is the command
    has_context: bool = False  # the prompt has attachments


def read_turns(ids: Iterable[str], blobs: BlobLoader) -> Iterator[Turn]:
    """Return the turns in order. A missing one is empty and listed in `blobs.missing`."""
    turns = [(id, Record(data or b"")) for id, data in blobs.each(ids)]
    user_values = [_user_value(turn) for _, turn in turns]
    user_records = {
        id: Record(data)
        for id, data in blobs.each(list(filter(None, (blob_id(value or b"") for value in user_values))))
        if data is not None
    }
    for (id, record), value in zip(turns, user_values, strict=True):
        shell = record.record(2) if value is None else None
        if shell is not None and blob_id(record.bytes(2) or b"") is None:
            command, output = shell.bytes(1) or b"", shell.bytes(2)
            yield Turn(id, text=_resolve_text(command, blobs), output=_resolve_text(output or b"", blobs))
            continue
        agent = _agent_turn(record)
        step_ids = tuple(step for each in agent.all(2) if (step := blob_id(each)) is not None)
        user_id = blob_id(value or b"")
        user = user_records.get(user_id or "") or (Record(value) if value and user_id is None else None)
        if user is None:
            yield Turn(id, user_id, step_ids=step_ids)
            continue
        yield Turn(
            id,
            user_id,
            _user_text(user, blobs),
            user.number(25),
            bool(user.number(5)),
            step_ids,
            has_context=bool(user.bytes(3)),
        )


def _agent_turn(record: Record) -> Record:
    """Return the turn without its wrapper. Turns of 2025 have no wrapper."""
    wrapped = record.bytes(1)
    if wrapped is None or blob_id(wrapped) is not None:
        return record
    return record.record(1) or record


def _user_value(record: Record) -> bytes | None:
    return _agent_turn(record).bytes(1) if record.bytes(1) is not None else None


def _user_text(user: Record, blobs: BlobLoader) -> str:
    text_id = blob_id(user.bytes(18) or b"")
    if text_id is not None and not user.text(1):
        return (blobs.get(text_id) or b"").decode("utf-8", "replace")
    return user.text(1) or ""


def _resolve_text(value: bytes, blobs: BlobLoader) -> str:
    """Return the text of a value: text, a record with the text in field 1, or the id of such a blob."""
    id = blob_id(value)
    if id is not None and id in blobs:
        value = blobs.get(id) or b""
    record = Record(value)
    if value and record.fault is None and (texts := record.texts(1)):
        return "\n".join(texts)
    return value.decode("utf-8", "replace")


def read_steps(turn: Turn, blobs: BlobLoader) -> Iterator[Step]:
    """Return the steps of a turn in order. Missing ones are omitted."""
    for id, data in blobs.each(turn.step_ids):
        if data is not None:
            yield _parse_step(id, Record(data))


def read_call_times(turns: Iterable[Turn], blobs: BlobLoader) -> dict[str, int]:
    """Return the start times of calls by call id. Newer versions store them for all calls, older for none."""
    found: dict[str, int] = {}
    untimed = 0
    for _, data in blobs.each(id for turn in turns for id in turn.step_ids):
        call = Record(data).record(2) if data is not None else None
        if call is None:
            continue
        id, started_ms = call.text(_CALL_ID_FIELD), call.number(_STARTED_FIELD)
        if id and started_ms is not None:
            found[id] = started_ms
        untimed += started_ms is None
        if untimed >= _MAX_UNTIMED_CALLS and not found:
            break
    return found


def _parse_step(id: str, record: Record) -> Step:
    if (answer := record.record(1)) is not None:
        return Step(id, text=answer.text(1) or "", timestamp_ms=answer.number(2))
    if (call := record.record(2)) is not None:
        return Step(id, call=_parse_call(call), timestamp_ms=call.number(_STARTED_FIELD))
    if (thinking := record.record(3)) is not None:
        return Step(id, thinking=thinking.text(1) or "")
    return Step(id, unknown_field=next(iter(sorted(record.numbers)), None))


def _parse_call(record: Record) -> StepCall:
    tool_field = next((field.number for field in record.fields if field.number < _CALL_ID_FIELD), 0)
    body = record.record(tool_field)
    args, result = (body.record(1), body.bytes(2)) if body else (None, None)
    return StepCall(
        record.text(_CALL_ID_FIELD) or None,
        _TOOL_NAMES.get(tool_field, f"tool {tool_field}"),
        _record_as_dict(args) if args is not None and args.fault is None else {},
        None if result is None else _decode_value(result, 0),
        record.number(_STARTED_FIELD),
        record.number(_COMPLETED_FIELD),
    )


def _record_as_dict(record: Record, depth: int = 0) -> dict[str, Any]:
    """Return the fields of a record by field number. A repeated field becomes a list."""
    fields: dict[str, Any] = {}
    for number in sorted(record.numbers):
        values = [
            _decode_value(field.value, depth) if isinstance(field.value, bytes) else field.value
            for field in record.fields
            if field.number == number
        ]
        fields[str(number)] = values[0] if len(values) == 1 else values
    return fields


def _decode_value(value: bytes, depth: int) -> Any:
    """Decode bytes without a schema: as text, else as a record, else as their size."""
    text = value.decode("utf-8", "replace")
    is_text = "\ufffd" not in text and all(char.isprintable() or char in "\n\r\t" for char in text[:200])
    # A newline is also the first byte of a record with text in field 1.
    if is_text and not value.startswith(b"\n"):
        return text
    record = Record(value, depth=depth)
    if record.fault is None and depth < _MAX_NESTING_DEPTH:
        return _record_as_dict(record, depth + 1)
    return text if is_text else f"({pluralize(len(value), 'byte')})"
