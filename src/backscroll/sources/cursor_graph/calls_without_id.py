"""Join tool calls and results that have no ids, if the match is unambiguous."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from backscroll.model import Item, Message, ToolCall, ToolResult, record_id_of
from backscroll.sources.cursor_graph.edits import as_created, parse_edits
from backscroll.sources.cursor_graph.tool_calls import UNKNOWN_TOOL, is_new_file

__all__ = ["RESULT_WITHOUT_ID", "join_results"]

RESULT_WITHOUT_ID = "result without an id"  # temporary kind of a message with a result to be joined

T = TypeVar("T", bound=Item)


def join_results(items: Iterable[T]) -> Iterator[T]:
    """Return the items, with results without an id joined to their calls.

    The calls of a record are joined with the results that directly follow it: per tool and in order,
    if there are as many results as calls. Other results remain separate messages.
    """
    buffer: list[T] = []  # starts with the first call without an id in a record
    for item in items:
        if buffer and not (
            isinstance(item, ToolResult) or _is_result(item) or _is_same_record(item, buffer[0])
        ):
            yield from _join_buffered(buffer)
            buffer = []
        if buffer or _is_open_call(item):
            buffer.append(item)
        else:
            yield _without_temporary_kind(item)
    yield from _join_buffered(buffer)


def _is_open_call(item: Item) -> bool:
    if not isinstance(item, Message) or item.tool is None or item.kind is not None:
        return False
    return item.tool.id is None and item.tool.result is None


def _is_result(item: Item) -> bool:
    return isinstance(item, Message) and item.kind == RESULT_WITHOUT_ID


def _is_same_record(item: Item, other: Item) -> bool:
    return (
        isinstance(item, Message)
        and isinstance(other, Message)
        and record_id_of(item.id) == record_id_of(other.id)
    )


def _join_buffered(buffer: list[T]) -> Iterator[T]:
    result_by_call = dict(_match_results(buffer))
    joined_results = set(result_by_call.values())
    for index, item in enumerate(buffer):
        if index in result_by_call:
            yield _with_result(item, buffer[result_by_call[index]])
        elif index not in joined_results:
            yield _without_temporary_kind(item)


def _match_results(buffer: list[T]) -> list[tuple[int, int]]:
    """Return pairs of indexes, of a call and of its result, for all unambiguous matches."""
    calls: dict[str, list[int]] = {}
    results: dict[str, list[int]] = {}
    for index, item in enumerate(buffer):
        if isinstance(item, Message) and item.tool is not None and (_is_open_call(item) or _is_result(item)):
            (calls if _is_open_call(item) else results).setdefault(item.tool.name, []).append(index)
    if results.keys() == {UNKNOWN_TOOL}:  # results without tool names are matched by order only
        calls = {UNKNOWN_TOOL: sorted(index for indexes in calls.values() for index in indexes)}
    pairs: list[tuple[int, int]] = []
    for name, call_indexes in calls.items():
        result_indexes = results.get(name, [])
        if len(result_indexes) == len(call_indexes):
            matched = list(zip(call_indexes, result_indexes, strict=True))
            pairs += matched if all(call < result for call, result in matched) else []
    return pairs


def _with_result(item: T, result_item: Item) -> T:
    if not isinstance(item, Message) or not isinstance(result_item, Message):
        return item
    call, result = item.tool, result_item.tool
    if call is None or result is None:
        return item
    edits = parse_edits(call.name, call.params) if result.status == "completed" else ()
    tool = ToolCall(
        None,
        call.name,
        call.params,
        result.result,
        result.status,
        result.decision,
        as_created(edits) if is_new_file(result.result or "") else edits,
    )
    return replace(item, tool=tool, attachments=(*item.attachments, *result_item.attachments))


def _without_temporary_kind(item: T) -> T:
    if isinstance(item, Message) and item.kind == RESULT_WITHOUT_ID:
        return replace(item, kind=None)
    return item
