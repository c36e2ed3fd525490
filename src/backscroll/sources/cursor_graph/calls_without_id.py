"""Calls and answers that have no id: joined where nothing else can be meant."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from backscroll.model import Item, Message, ToolCall, ToolResult, record_id_of
from backscroll.sources.cursor_graph.edits import as_created, parse_edits
from backscroll.sources.cursor_graph.tool_calls import UNKNOWN_TOOL, is_new_file

__all__ = ["RESULT_WITHOUT_ID", "join_results"]

RESULT_WITHOUT_ID = "answer without an id"  # the kind of a message that may turn out to be a call's answer

T = TypeVar("T", bound=Item)


def join_results(items: Iterable[T]) -> Iterator[T]:
    """The same, with what came of calls without an id put into them.

    The calls of one record are answered by what follows it at once, tool by tool and in order, when there
    are as many answers as calls. All others stay messages of their own.
    """
    held: list[T] = []  # from the first message of a record with such a call on
    for item in items:
        if held and not (isinstance(item, ToolResult) or _is_answer(item) or _is_beside(item, held[0])):
            yield from _settled(held)
            held = []
        if held or _waits(item):
            held.append(item)
        else:
            yield _plain(item)
    yield from _settled(held)


def _waits(item: Item) -> bool:
    if not isinstance(item, Message) or item.tool is None or item.kind is not None:
        return False
    return item.tool.id is None and item.tool.result is None


def _is_answer(item: Item) -> bool:
    return isinstance(item, Message) and item.kind == RESULT_WITHOUT_ID


def _is_beside(item: Item, other: Item) -> bool:
    """Whether two messages are out of one record."""
    return (
        isinstance(item, Message)
        and isinstance(other, Message)
        and record_id_of(item.id) == record_id_of(other.id)
    )


def _settled(held: list[T]) -> Iterator[T]:
    answers = {answer: call for call, answer in _pairs(held)}
    calls = {call: answer for answer, call in answers.items()}
    for place, item in enumerate(held):
        if place in calls:
            yield _answered(item, held[calls[place]])
        elif place not in answers:
            yield _plain(item)


def _pairs(held: list[T]) -> list[tuple[int, int]]:
    """The places of calls and of their answers, as far as there is no doubt."""
    calls: dict[str, list[int]] = {}
    answers: dict[str, list[int]] = {}
    for place, item in enumerate(held):
        if isinstance(item, Message) and item.tool is not None and (_waits(item) or _is_answer(item)):
            (calls if _waits(item) else answers).setdefault(item.tool.name, []).append(place)
    if answers.keys() == {UNKNOWN_TOOL}:  # then only their order tells which tool they are of
        calls = {UNKNOWN_TOOL: sorted(place for places in calls.values() for place in places)}
    pairs: list[tuple[int, int]] = []
    for name, places in calls.items():
        there = answers.get(name, [])
        if len(there) == len(places):
            found = list(zip(places, there, strict=True))
            pairs += found if all(call < answer for call, answer in found) else []
    return pairs


def _answered(item: T, answer: Item) -> T:
    if not isinstance(item, Message) or not isinstance(answer, Message):
        return item
    call, told = item.tool, answer.tool
    if call is None or told is None:
        return item
    edits = parse_edits(call.name, call.params) if told.status == "completed" else ()
    tool = ToolCall(
        None,
        call.name,
        call.params,
        told.result,
        told.status,
        told.decision,
        as_created(edits) if is_new_file(told.result or "") else edits,
    )
    return replace(item, tool=tool, attachments=(*item.attachments, *answer.attachments))


def _plain(item: T) -> T:
    """An answer that stays a message of its own is like any other."""
    if isinstance(item, Message) and item.kind == RESULT_WITHOUT_ID:
        return replace(item, kind=None)
    return item
