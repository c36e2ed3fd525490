"""Turns as the tool's window shows them: the typed prompt and its steps."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from backscroll.model.text import pluralize
from backscroll.readers.protobuf import Record
from backscroll.sources.cursor_graph.blobs import BlobLoader, blob_id

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
