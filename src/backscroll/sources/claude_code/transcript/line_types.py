"""Types of a transcript line.

Every field accepts any JSON value, because the format changes weekly. Large values that are rarely needed
(image data, signatures) stay undecoded, as a view into the line.
"""

import re
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, Struct

from backscroll.model import TokenUsage
from backscroll.readers import lenient_json

__all__ = [
    "MAX_COUNT",
    "STARTS",
    "ApiMessage",
    "Attached",
    "Block",
    "ForkedFrom",
    "ImageData",
    "Line",
    "LineOrigin",
    "Patch",
    "Progress",
    "RawResult",
    "ToolUseResult",
    "count_value",
    "decoder",
    "is_record",
    "params",
    "text",
    "usage",
]

# Any JSON value but an object.
_Plain: TypeAlias = list[Any] | str | int | float | bool | None

# Possible start of a record after a damaged one on the same line.
STARTS = re.compile(r'\{"(?:parentUuid|type|uuid)"')

_NOTHING = Raw(b"")
_COUNTS = (int, int, int, int)


class ImageData(Struct, gc=False):
    """The ``source`` of an image or document block. Its data is measured, not decoded."""

    type: Any = None
    media_type: Any = None
    data: Raw = _NOTHING
    url: Any = None
    file_id: Any = None


class Block(Struct, gc=False):
    """Content block. The type decides which fields are set."""

    type: Any = None
    text: Any = None
    thinking: Any = None
    signature: Raw = _NOTHING
    data: Raw = _NOTHING
    id: Any = None
    name: Any = None
    input: Any = None
    tool_use_id: Any = None
    content: "list[Block | _Plain] | Block | str | int | float | bool | None" = None
    is_error: Any = None
    source: ImageData | _Plain = None
    title: Any = None
    tool_name: Any = None
    # "from" is a keyword
    from_: Any = msgspec.field(default=None, name="from")
    to: Any = None


class Usage(Struct, gc=False):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation: dict[str, Any] | _Plain = None
    speed: Any = None


class ApiMessage(Struct, gc=False):
    """The ``message`` of a user or assistant line."""

    id: Any = None
    role: Any = None
    model: Any = None
    content: list[Block | _Plain] | Block | str | int | float | bool | None = None
    stop_reason: Any = None
    usage: Usage | _Plain = None


class Patch(Struct, rename="camel", gc=False):
    """Hunk of a changed file in unified diff format."""

    old_start: Any = None
    new_start: Any = None
    lines: Any = None


class ToolUseResult(Struct, rename="camel", gc=False):
    """Fields of the structured tool result that edits and subagents need."""

    type: Any = None
    file_path: Any = None
    notebook_path: Any = msgspec.field(default=None, name="notebook_path")
    structured_patch: list[Patch | _Plain] | dict[str, Any] | str | int | float | bool | None = None
    user_modified: Any = None
    agent_id: Any = None
    total_duration_ms: Any = None
    total_tokens: Any = None
    total_tool_use_count: Any = None
    resolved_model: Any = None


class Attached(Struct, gc=False):
    """Attachment, only its type."""

    type: Any = None


class Progress(Struct, rename="camel", gc=False):
    """Progress of a subagent, only its ids."""

    type: Any = None
    agent_id: Any = None


class LineOrigin(Struct, gc=False):
    kind: Any = None


class ForkedFrom(Struct, gc=False):
    session_id: Any = msgspec.field(default=None, name="sessionId")
    message_uuid: Any = msgspec.field(default=None, name="messageUuid")


class Line(Struct, rename="camel", gc=False):
    """Fields of a line of the tree. Other lines use only the type."""

    parent_uuid: Any = None
    is_sidechain: Any = None
    type: Any = None
    message: ApiMessage | _Plain = None
    uuid: Any = None
    timestamp: Any = None
    cwd: Any = None
    session_id: Any = None
    version: Any = None
    git_branch: Any = None
    agent_id: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    is_visible_in_transcript_only: Any = None
    origin: LineOrigin | _Plain = None
    prompt_source: Any = None
    tool_use_result: ToolUseResult | _Plain = None
    tool_denial_kind: Any = None
    is_api_error_message: Any = None
    error: Raw = _NOTHING
    entrypoint: Any = None
    slug: Any = None
    team_name: Any = None
    forked_from: ForkedFrom | _Plain = None
    supersedes_uuids: Any = None
    retracted_message_uuids: Any = None
    subtype: Any = None
    content: Any = None
    session_kind: Any = None
    cost_usd: Any = msgspec.field(default=None, name="costUSD")
    attachment: Attached | _Plain = None
    data: Progress | _Plain = None
    parent_tool_use_id: Any = msgspec.field(default=None, name="parentToolUseID")


class RawResult(Struct, rename="camel", gc=False):
    """The structured tool result of a line as JSON."""

    tool_use_result: Raw = _NOTHING


decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def text(value: Any) -> str | None:
    """Return the value if it is a non-empty string."""
    return value if isinstance(value, str) and value else None


def is_record(found: dict[str, Any]) -> bool:
    """Return whether an object after a damaged one is a record, not a part of the damaged one."""
    if not isinstance(found.get("type"), str):
        return False
    # A progress line contains a subagent's line without the two fields that link a line to its session.
    if isinstance(found.get("uuid"), str):
        return "parentUuid" in found or "sessionId" in found
    return any(isinstance(found.get(name), str) for name in ("sessionId", "leafUuid", "messageId"))


def usage(found: Any, *, finished: bool, cost: Any = None) -> TokenUsage | None:
    """Return the tokens that a line reports for its response. An unfinished response has a lower bound."""
    if not isinstance(found, Usage):
        return TokenUsage() if finished else None
    given, made = found.input_tokens, found.output_tokens
    created, cached = found.cache_creation_input_tokens, found.cache_read_input_tokens
    if (type(given), type(made), type(created), type(cached)) != _COUNTS or not (
        0 <= given | made | created | cached < MAX_COUNT
    ):
        given, made, created, cached = map(count_value, (given, made, created, cached))
    nested = found.cache_creation
    hour = None
    if isinstance(nested, dict):
        # Versions before 2.1.152 sometimes write 0 here and the real count in the nested object.
        brief, hour = nested.get("ephemeral_5m_input_tokens"), nested.get("ephemeral_1h_input_tokens")
        if type(brief) is int and type(hour) is int and len(nested) == 2 and 0 <= brief | hour < MAX_COUNT:
            below = brief + hour
        else:
            below = sum(count_value(value) or 0 for value in nested.values())
            hour = count_value(hour)
        if created is None or below > created:
            created = below
    speed = found.speed
    return TokenUsage(
        given,
        made,
        created,
        cached,
        hour,
        not finished,
        None if speed is None or speed == "standard" else text(speed),
        None if cost is None else _price(cost),
    )


def _price(cost: Any) -> float | None:
    return float(cost) if isinstance(cost, int | float) and 0 <= cost < 1e9 else None


def params(found: Any) -> dict[str, Any]:
    """Return the tool input as an object. Before 2.1.92 it may be JSON in a string."""
    if isinstance(found, str):
        try:
            found = lenient_json.load(found)
        except lenient_json.FAILURES:
            return {"raw": found}
    if isinstance(found, dict):
        return found
    return {} if found is None else {"value": found}


MAX_COUNT = 2**53  # larger values are not counts


def count_value(value: Any) -> int | None:
    """Return the value if it is a valid count."""
    if type(value) is int:
        return value if 0 <= value < MAX_COUNT else None
    return int(value) if isinstance(value, float) and 0 <= value < MAX_COUNT else None
