"""Turns as the tool's own window shows them: what was typed, then the steps that followed."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from backscroll.readers.protobuf import Record
from backscroll.sources.cursor_graph.blobs import BlobLoader, blob_id

__all__ = ["Step", "StepCall", "Turn", "read_call_times", "read_steps", "read_turns"]

_TOOLS = {
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
_CALL_ID, _STARTED, _COMPLETED = 57, 59, 60
_MAX_DEPTH = 6
_MAX_UNTIMED_CALLS = 50  # after as many without a time, the rest have none either


class StepCall(Struct, frozen=True):
    """A tool call as a step has it: typed records whose fields have numbers instead of names."""

    id: str | None
    name: str
    params: dict[str, Any]
    result: Any  # None when there is none
    started_ms: int | None
    completed_ms: int | None


class Step(Struct, frozen=True):
    """One step of a turn; one of the three is set, none when it could not be read."""

    id: str
    text: str | None = None
    thinking: str | None = None
    call: StepCall | None = None
    timestamp_ms: int | None = None
    unknown: int | None = None  # the field that says what it is, when nobody here knows it


class Turn(Struct, frozen=True):
    """A turn without its steps, which are fetched when they are wanted."""

    id: str
    user_id: str | None = None
    text: str = ""
    timestamp_ms: int | None = None
    is_simulated: bool = False
    step_ids: tuple[str, ...] = ()
    output: str | None = None  # of a command that the person ran, with `text` being the command
    has_context: bool = False  # something was attached


def read_turns(ids: Iterable[str], blobs: BlobLoader) -> Iterator[Turn]:
    """The turns in order. One whose blob is missing has nothing in it; `blobs` remembers it."""
    bare = [(id, Record(data or b"")) for id, data in blobs.each(ids)]
    users = [_user_value(turn) for _, turn in bare]
    found = {
        id: Record(data)
        for id, data in blobs.each(list(filter(None, (blob_id(value or b"") for value in users))))
        if data is not None
    }
    for (id, record), value in zip(bare, users, strict=True):
        shell = record.record(2) if value is None else None
        if shell is not None and blob_id(record.bytes(2) or b"") is None:
            command, output = shell.bytes(1) or b"", shell.bytes(2)
            yield Turn(id, text=_loose_text(command, blobs), output=_loose_text(output or b"", blobs))
            continue
        agent = _agent_turn(record)
        steps = tuple(step for each in agent.all(2) if (step := blob_id(each)) is not None)
        user_id = blob_id(value or b"")
        user = found.get(user_id or "") or (Record(value) if value and user_id is None else None)
        if user is None:
            yield Turn(id, user_id, step_ids=steps)
            continue
        yield Turn(
            id,
            user_id,
            _user_text(user, blobs),
            user.number(25),
            bool(user.number(5)),
            steps,
            has_context=bool(user.bytes(3)),
        )


def _agent_turn(record: Record) -> Record:
    """The turn within its wrapper; turns of 2025 have none."""
    wrapped = record.bytes(1)
    if wrapped is None or blob_id(wrapped) is not None:
        return record
    return record.record(1) or record


def _user_value(record: Record) -> bytes | None:
    return _agent_turn(record).bytes(1) if record.bytes(1) is not None else None


def _user_text(user: Record, blobs: BlobLoader) -> str:
    moved = blob_id(user.bytes(18) or b"")
    if moved is not None and not user.text(1):
        return (blobs.get(moved) or b"").decode("utf-8", "replace")
    return user.text(1) or ""


def _loose_text(value: bytes, blobs: BlobLoader) -> str:
    """Text, or a record whose first field is text, or the blob of either."""
    id = blob_id(value)
    if id is not None and id in blobs:
        value = blobs.get(id) or b""
    record = Record(value)
    if value and record.fault is None and (texts := record.texts(1)):
        return "\n".join(texts)
    return value.decode("utf-8", "replace")


def read_steps(turn: Turn, blobs: BlobLoader) -> Iterator[Step]:
    """What followed in a turn, in order."""
    for id, data in blobs.each(turn.step_ids):
        if data is not None:
            yield _step(id, Record(data))


def read_call_times(turns: Iterable[Turn], blobs: BlobLoader) -> dict[str, int]:
    """When calls were made, by their ids. Only newer versions say it, and those say it of every call."""
    found: dict[str, int] = {}
    untimed = 0
    for _, data in blobs.each(id for turn in turns for id in turn.step_ids):
        call = Record(data).record(2) if data is not None else None
        if call is None:
            continue
        id, started = call.text(_CALL_ID), call.number(_STARTED)
        if id and started is not None:
            found[id] = started
        untimed += started is None
        if untimed >= _MAX_UNTIMED_CALLS and not found:
            break
    return found


def _step(id: str, record: Record) -> Step:
    if (said := record.record(1)) is not None:
        return Step(id, text=said.text(1) or "", timestamp_ms=said.number(2))
    if (call := record.record(2)) is not None:
        return Step(id, call=_call(call), timestamp_ms=call.number(_STARTED))
    if (thought := record.record(3)) is not None:
        return Step(id, thinking=thought.text(1) or "")
    return Step(id, unknown=next(iter(sorted(record.numbers)), None))


def _call(record: Record) -> StepCall:
    number = next((field.number for field in record.fields if field.number < _CALL_ID), 0)
    body = record.record(number)
    args, result = (body.record(1), body.bytes(2)) if body else (None, None)
    return StepCall(
        record.text(_CALL_ID) or None,
        _TOOLS.get(number, f"tool {number}"),
        _spelled(args) if args is not None and args.fault is None else {},
        None if result is None else _plain(result, 0),
        record.number(_STARTED),
        record.number(_COMPLETED),
    )


def _spelled(record: Record, level: int = 0) -> dict[str, Any]:
    """A record as an object, its field numbers as keys; a repeated field becomes a list."""
    out: dict[str, Any] = {}
    for number in sorted(record.numbers):
        values = [
            _plain(field.value, level) if isinstance(field.value, bytes) else field.value
            for field in record.fields
            if field.number == number
        ]
        out[str(number)] = values[0] if len(values) == 1 else values
    return out


def _plain(value: bytes, level: int) -> Any:
    """Bytes without a schema: text where they are text, else a record, else only their number."""
    text = value.decode("utf-8", "replace")
    is_text = "\ufffd" not in text and all(
        letter.isprintable() or letter in "\n\r\t" for letter in text[:200]
    )
    # A newline is also how a record begins whose first field is text.
    if is_text and not value.startswith(b"\n"):
        return text
    record = Record(value, depth=level)
    if record.fault is None and level < _MAX_DEPTH:
        return _spelled(record, level + 1)
    return text if is_text else f"({len(value)} bytes)"
