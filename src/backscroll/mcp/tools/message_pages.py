"""Pages of messages."""

from collections.abc import Collection, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.mcp.call import Call
from backscroll.mcp.quoting import indent
from backscroll.mcp.tools.arguments import MAX_MESSAGE_CHARS, MIN_MESSAGE_CHARS
from backscroll.mcp.tools.results import rename
from backscroll.model import Message, SessionSummary
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.json import message_document

__all__ = ["Page", "page_hints", "page_item", "page_lines", "read_page"]

MAX_PAGE_CHARS = 60_000
TOOL_CHARS_DIVISOR = 4  # tool calls get a quarter of the characters of text
_FIELDS = (
    "position", "role", "kind", "content", "timestamp", "model", "agent_ref", "tool_name", "tool_params",
    "tool_result", "status", "decision", "attachments", "copied_from",
)  # fmt: skip
_DECISIONS = {"rejected": "rejected by the user", "modified": "changed by the user"}


class Page(Struct, frozen=True):
    """Messages as documents, and the start of the next page."""

    items: list[dict[str, Any]]
    next_position: int | None
    start: int
    message_count: int  # of all roles and branches of the session
    from_char: int = 0  # where each text begins
    max_chars: int = MAX_MESSAGE_CHARS  # of each text
    tool_chars: int = MAX_MESSAGE_CHARS  # of each text of a tool call


def read_page(
    call: Call,
    summary: SessionSummary,
    *,
    start: int,
    count: int,
    max_chars: int,
    from_char: int,
    roles: Collection[str],
    with_inactive: bool = False,
) -> Page:
    """Return up to `count` messages with these roles that fit on a page.

    Messages of abandoned branches are included only `with_inactive`.
    """
    call.learn_secrets(summary)
    items: list[dict[str, Any]] = []
    message_count = call.history.transcript.count(summary)
    remaining_chars = MAX_PAGE_CHARS
    tool_chars = max_chars if count == 1 else max_chars // TOOL_CHARS_DIVISOR
    positions = range(start, message_count)
    for position, message in _select(call, summary, positions, roles=roles, with_inactive=with_inactive):
        redacted = call.redact_message(message, summary.ref, position)
        item = page_item(redacted, position, max_chars=max_chars, tool_chars=tool_chars, from_char=from_char)
        size = len(msgspec.json.encode(item))
        if items and (size > remaining_chars or len(items) == count):
            return Page(items, position, start, message_count, from_char, max_chars, tool_chars)
        items.append(item)
        remaining_chars -= size
    return Page(items, None, start, message_count, from_char, max_chars, tool_chars)


def _select(
    call: Call, summary: SessionSummary, positions: range, *, roles: Collection[str], with_inactive: bool
) -> Iterator[tuple[int, Message]]:
    messages = call.history.transcript.messages(summary, positions.start) if positions else iter(())
    for position, message in zip(positions, messages, strict=False):
        call.report_progress(position - positions.start, len(positions))
        if message.role in roles and (message.is_active or with_inactive):
            yield position, message


def page_item(
    message: Message, position: int, *, max_chars: int, tool_chars: int, from_char: int
) -> dict[str, Any]:
    """Return a message as a document, with texts cut to `max_chars` or `tool_chars`."""
    document = rename(message_document(message, position), {"agent_id": "agent_ref"})
    item = {name: document[name] for name in _FIELDS}
    params = msgspec.json.encode(item["tool_params"]).decode() if item["tool_params"] else ""
    cut_chars, full_chars = 0, len(params)
    if len(params) > tool_chars:
        item["tool_params"] = params[from_char : from_char + tool_chars]
        cut_chars += max(len(params) - from_char - tool_chars, 0)
    for name, limit in (("content", max_chars), ("tool_result", tool_chars)):
        text = item[name]
        if text is not None:
            item[name] = sanitize(text[from_char : from_char + limit])
            cut_chars += max(len(text) - from_char - limit, 0)
            full_chars = max(full_chars, len(text))
    item["content"] = item["content"] or None
    item["cut_chars"] = cut_chars or None
    item["full_chars"] = full_chars if cut_chars else None
    return item


def page_lines(page: Page) -> Iterator[str]:
    """Yield the page as lines for a model: position, role, text, and how to read the omitted rest."""
    for item in page.items:
        at = f" {item['timestamp'][:16].replace('T', ' ')}" if item["timestamp"] else ""
        kind = f" ({one_line(item['kind'], 60)})" if item["kind"] else ""
        if item["tool_name"]:
            yield f"[{item['position']}] {item['role']}{kind}{at}: {_tool_call_text(item)}"
            if item["tool_result"]:
                yield f"    → {indent(item['tool_result'])}"
        else:
            yield f"[{item['position']}] {item['role']}{kind}{at}: {indent(item['content'] or '')}"
        if item["attachments"]:
            yield f"    attached: {', '.join(map(_attachment_text, item['attachments']))}"
        if item["cut_chars"]:
            more = pluralize(item["cut_chars"], "more character")
            yield f"[{item['position']}] … {more}: {_arguments_for_rest(page, item)}"
        elif page.from_char and not (item["content"] or item["tool_result"]):
            yield f"[{item['position']}] has no text from character {page.from_char} on."


def _arguments_for_rest(page: Page, item: dict[str, Any]) -> str:
    """Return the arguments that show the rest of a message, or all of it if that is one call."""
    shown_until = page.from_char + (page.tool_chars if item["tool_name"] else page.max_chars)
    is_whole = not page.from_char and shown_until < MAX_MESSAGE_CHARS
    wanted = item["full_chars"] - (0 if is_whole else shown_until)
    max_chars = min(max(wanted, MIN_MESSAGE_CHARS), MAX_MESSAGE_CHARS)
    arguments = f"position={item['position']}, count=1, max_chars={max_chars}"
    return arguments if is_whole else f"{arguments}, from_char={shown_until}"


def page_hints(page: Page) -> tuple[str, ...]:
    """Return how to get the next page, or why this page is empty."""
    last = f"The last position is {page.message_count - 1}."
    if page.next_position is not None:
        return (f"Next page: position={page.next_position}. {last}",)
    if page.items:
        return ("End of the session.",)
    if page.start >= page.message_count:
        return (f"There is no position {page.start}. {last}",)
    return (f"No message with these roles from position {page.start} on. {last}",)


def _attachment_text(attachment: dict[str, Any]) -> str:
    name = attachment.get("path") or attachment.get("name") or attachment.get("media_type") or ""
    return one_line(f"{attachment['kind']} {name}".strip(), 300)


def _tool_call_text(item: dict[str, Any]) -> str:
    params = item["tool_params"]
    text = params if isinstance(params, str) else msgspec.json.encode(params).decode() if params else ""
    outcome = _DECISIONS.get(item["decision"] or "") or item["status"]
    status = "" if outcome in (None, "completed") else f" ({outcome})"
    return f"{one_line(item['tool_name'], 60)}{status} {indent(text)}".rstrip()
