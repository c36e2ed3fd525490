"""Pages of messages."""

from collections.abc import Collection, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.mcp.call import Call
from backscroll.mcp.quoting import indent
from backscroll.model import Message, SessionSummary
from backscroll.model.sanitize import one_line, sanitize
from backscroll.render.json import message_document

__all__ = ["Page", "page_lines", "page_notes", "page_of"]

MAX_PAGE_CHARS = 60_000
TOOL_SHARE = 4  # tool calls get a quarter of the characters of text
_FIELDS = (
    "position", "role", "kind", "content", "timestamp", "model", "agent_id", "is_active", "tool_name",
    "tool_params", "tool_result", "status", "decision", "attachments", "copied_from",
)  # fmt: skip


class Page(Struct, frozen=True):
    """Messages as documents, and the start of the next page."""

    items: list[dict[str, Any]]
    next_from: int | None
    start: int
    extent: int  # number of messages of all roles and branches


def page_of(
    call: Call,
    summary: SessionSummary,
    *,
    start: int,
    count: int,
    max_chars: int,
    from_char: int,
    roles: Collection[str],
    everything: bool = False,
) -> Page:
    """Return up to `count` messages with these roles that fit on a page.

    Include abandoned branches only with `everything`.
    """
    call.learn(summary)
    items: list[dict[str, Any]] = []
    extent = call.history.transcript.count(summary)
    room = MAX_PAGE_CHARS
    wide = max_chars if count == 1 else max_chars // TOOL_SHARE
    for position, message in _select(call, summary, range(start, extent), roles, everything):
        clean = call.message(message, summary.ref, position)
        item = _item(clean, position, max_chars=max_chars, wide=wide, from_char=from_char)
        size = len(msgspec.json.encode(item))
        if items and (size > room or len(items) == count):
            return Page(items, position, start, extent)
        items.append(item)
        room -= size
    return Page(items, None, start, extent)


def _select(
    call: Call, summary: SessionSummary, places: range, roles: Collection[str], everything: bool
) -> Iterator[tuple[int, Message]]:
    messages = call.history.transcript.messages(summary, places.start) if places else iter(())
    for position, message in zip(places, messages, strict=False):
        call.step(position - places.start, len(places))
        if message.role in roles and (message.is_active or everything):
            yield position, message


def _item(message: Message, position: int, *, max_chars: int, wide: int, from_char: int) -> dict[str, Any]:
    whole = message_document(message, position)
    item = {name: whole[name] for name in _FIELDS}
    item["is_active"] = None  # always true here, so it is omitted
    params = msgspec.json.encode(item["tool_params"]).decode() if item["tool_params"] else ""
    left = 0
    if len(params) > wide:
        item["tool_params"] = params[from_char : from_char + wide]
        left += max(len(params) - from_char - wide, 0)
    for name, most in (("content", max_chars), ("tool_result", wide)):
        text = item[name]
        if text is not None:
            shown = sanitize(text[from_char : from_char + most])
            left += max(len(text) - from_char - most, 0)
            item[name] = shown
    item["content"] = item["content"] or None
    item["cut_chars"] = left or None
    return item


def page_lines(page: Page) -> Iterator[str]:
    """Yield the page as lines for a model: position, role, text, and how to read what was cut."""
    for item in page.items:
        at = f" {item['timestamp'][:16].replace('T', ' ')}" if item["timestamp"] else ""
        kind = f" ({one_line(item['kind'], 60)})" if item["kind"] else ""
        if item["tool_name"]:
            yield f"[{item['position']}] {item['role']}{kind}{at}: {_call(item)}"
            if item["tool_result"]:
                yield f"    → {indent(item['tool_result'])}"
        else:
            yield f"[{item['position']}] {item['role']}{kind}{at}: {indent(item['content'] or '')}"
        if item["cut_chars"]:
            alone = f"from={item['position']}, count=1, with max_chars or from_char"
            yield f"[{item['position']}] … {item['cut_chars']:,} more characters: {alone}"


def page_notes(page: Page) -> tuple[str, ...]:
    """Return how to get the next page, or why this one is empty."""
    if page.next_from is not None:
        return (f"More messages: from={page.next_from}",)
    if page.items:
        return ()
    if page.start >= page.extent:
        return (f"No such position. Positions go from 0 to {page.extent - 1:,}.",)
    return (f"No message with these roles from position {page.start:,} on.",)


def _call(item: dict[str, Any]) -> str:
    params = item["tool_params"]
    text = params if isinstance(params, str) else msgspec.json.encode(params).decode() if params else ""
    status = "" if item["status"] in (None, "completed") else f" ({item['status']})"
    return f"{one_line(item['tool_name'], 60)}{status} {indent(text)}".rstrip()
