"""Structs that a transcript line is decoded to, and conversions of their values.

Every field accepts any JSON value, because the format changes weekly. Large values that are rarely needed
(image data, signatures) stay undecoded, as a view into the line.
"""

import re
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, Struct

from backscroll.model.message import Attachment, TokenUsage
from backscroll.readers import lenient_json

# Any JSON value but an object.
_NonObject: TypeAlias = list[Any] | str | int | float | bool | None

# Possible start of a record after a damaged one on the same line.
RECORD_START = re.compile(r'\{"(?:parentUuid|type|uuid)"')

_EMPTY = Raw(b"")
_MAX_COUNT = 2**53  # larger values are not counts
_MAX_COST_USD = 1e9  # larger values are not costs
MAX_DEPTH = 24  # nested levels of a result in an unknown form
_FOUR_INTS = (int, int, int, int)


class ImageData(Struct, gc=False):
    """The ``source`` of an image or document block. Its data is measured, not decoded."""

    type: Any = None
    media_type: Any = None
    data: Raw = _EMPTY
    url: Any = None
    file_id: Any = None


class Block(Struct, gc=False):
    """Content block. Its type determines which fields are set."""

    type: Any = None
    text: Any = None
    thinking: Any = None
    signature: Raw = _EMPTY
    data: Raw = _EMPTY
    id: Any = None
    name: Any = None
    input: Any = None
    tool_use_id: Any = None
    content: "list[Block | _NonObject] | Block | str | int | float | bool | None" = None
    is_error: Any = None
    source: ImageData | _NonObject = None
    title: Any = None
    tool_name: Any = None
    from_: Any = msgspec.field(default=None, name="from")  # "from" is a keyword
    to: Any = None


class Usage(Struct, gc=False):
    input_tokens: Any = None
    output_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation: dict[str, Any] | _NonObject = None
    speed: Any = None


class ApiMessage(Struct, gc=False):
    """The ``message`` of a user or assistant line."""

    id: Any = None
    role: Any = None
    model: Any = None
    content: list[Block | _NonObject] | Block | str | int | float | bool | None = None
    stop_reason: Any = None
    usage: Usage | _NonObject = None


class Patch(Struct, rename="camel", gc=False):
    """Hunk of a changed file in unified diff format."""

    old_start: Any = None
    new_start: Any = None
    lines: Any = None


class ShellEdit(Struct, rename="camel", gc=False):
    """File that a shell command changed."""

    file_path: Any = None
    hunks: list[Patch | _NonObject] | dict[str, Any] | str | int | float | bool | None = None
    created: Any = None
    deleted: Any = None


class ShellEdits(Struct, rename="camel", gc=False):
    """Files that a shell command changed. Only the first ones have hunks."""

    files: list[ShellEdit | _NonObject] | dict[str, Any] | str | int | float | bool | None = None
    changed_files: Any = None


class ToolUseResult(Struct, rename="camel", gc=False):
    """Fields of the structured tool result that edits, subagents and dialogs need."""

    type: Any = None
    file_path: Any = None
    notebook_path: Any = msgspec.field(default=None, name="notebook_path")
    structured_patch: list[Patch | _NonObject] | dict[str, Any] | str | int | float | bool | None = None
    user_modified: Any = None
    agent_id: Any = None
    total_duration_ms: Any = None
    total_tokens: Any = None
    total_tool_use_count: Any = None
    resolved_model: Any = None
    questions: Any = None
    answers: Any = None
    annotations: Any = None
    bash_edit_diff: ShellEdits | _NonObject = None


class PermissionDecision(Struct, gc=False):
    """Who allowed or denied a tool call (since 2.1.325)."""

    decision: Any = None
    source: Any = None


class Attached(Struct, gc=False):
    """Type of an attachment. Its other fields are not decoded."""

    type: Any = None


class Progress(Struct, rename="camel", gc=False):
    """Content of a progress line. In that of a subagent, the message is a line without its links."""

    type: Any = None
    agent_id: Any = None
    message: Raw = _EMPTY


class LineOrigin(Struct, gc=False):
    kind: Any = None


class ForkedFrom(Struct, gc=False):
    session_id: Any = msgspec.field(default=None, name="sessionId")


class Line(Struct, rename="camel", gc=False):
    """Fields of a line of the tree. Of other lines, only a few fields are used."""

    parent_uuid: Any = None
    is_sidechain: Any = None
    type: Any = None
    message: ApiMessage | _NonObject = None
    uuid: Any = None
    timestamp: Any = None
    cwd: Any = None
    session_id: Any = None
    original_session_id: Any = msgspec.field(default=None, name="session_id")
    version: Any = None
    git_branch: Any = None
    agent_id: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    is_visible_in_transcript_only: Any = None
    origin: LineOrigin | _NonObject = None
    prompt_source: Any = None
    turn_origin: Any = None
    source_tool_use_id: Any = msgspec.field(default=None, name="sourceToolUseID")
    tool_use_result: ToolUseResult | _NonObject = None
    tool_denial_kind: Any = None
    permission_decision: PermissionDecision | _NonObject = None
    user_feedback: Any = None
    interrupted_message_id: Any = None
    is_api_error_message: Any = None
    error: Raw = _EMPTY
    entrypoint: Any = None
    slug: Any = None
    team_name: Any = None
    forked_from: ForkedFrom | _NonObject = None
    supersedes_uuids: Any = None
    retracted_message_uuids: Any = None
    subtype: Any = None
    content: Any = None
    session_kind: Any = None
    cost_usd: Any = msgspec.field(default=None, name="costUSD")
    attachment: Attached | _NonObject = None
    data: Progress | _NonObject = None
    parent_tool_use_id: Any = msgspec.field(default=None, name="parentToolUseID")
    request_id: Any = None
    request_ref: Any = None
    id: Any = None  # of a request


class RawResult(Struct, rename="camel", gc=False):
    """The structured tool result of a line as JSON."""

    tool_use_result: Raw = _EMPTY


decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def is_record(record: dict[str, Any]) -> bool:
    """Return whether an object found in a damaged line is a record, not a part of one."""
    if not isinstance(record.get("type"), str):
        return False
    # A progress line contains a subagent's line without the two fields that link a line to its session.
    if isinstance(record.get("uuid"), str):
        return "parentUuid" in record or "sessionId" in record
    return any(isinstance(record.get(name), str) for name in ("sessionId", "leafUuid", "messageId"))


def as_text(value: Any) -> str | None:
    """Return the value if it is a non-empty string."""
    return value if isinstance(value, str) and value else None


def as_count(value: Any) -> int | None:
    """Return the value if it is a valid count."""
    if type(value) is int:
        return value if 0 <= value < _MAX_COUNT else None
    return int(value) if isinstance(value, float) and 0 <= value < _MAX_COUNT else None


def as_cost(cost: Any) -> float | None:
    """Return the value if it is a valid number of dollars."""
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    return float(cost) if is_number and 0 <= cost < _MAX_COST_USD else None


def parse_usage(usage: Any, *, finished: bool, cost: Any = None) -> TokenUsage | None:
    """Return the tokens that a line reports for its response. If unfinished, these are lower bounds."""
    if not isinstance(usage, Usage):
        return TokenUsage() if finished else None
    input_, output = usage.input_tokens, usage.output_tokens
    created, cached = usage.cache_creation_input_tokens, usage.cache_read_input_tokens
    if (type(input_), type(output), type(created), type(cached)) != _FOUR_INTS or not (
        0 <= input_ | output | created | cached < _MAX_COUNT
    ):
        input_, output, created, cached = map(as_count, (input_, output, created, cached))
    nested = usage.cache_creation
    hour = None
    if isinstance(nested, dict):
        # Versions before 2.1.152 sometimes write 0 as the total and the real counts in the nested object.
        minutes, hour = nested.get("ephemeral_5m_input_tokens"), nested.get("ephemeral_1h_input_tokens")
        if (
            type(minutes) is int
            and type(hour) is int
            and len(nested) == 2
            and 0 <= minutes | hour < _MAX_COUNT
        ):
            nested_total = minutes + hour
        else:
            nested_total = sum(as_count(value) or 0 for value in nested.values())
            hour = as_count(hour)
        if created is None or nested_total > created:
            created = nested_total
    speed = usage.speed
    return TokenUsage(
        input_,
        output,
        created,
        cached,
        hour,
        not finished,
        None if speed is None or speed == "standard" else as_text(speed),
        None if cost is None else as_cost(cost),
    )


def parse_params(value: Any) -> dict[str, Any]:
    """Return the input of a tool call as an object. Versions before 2.1.92 can store it as a JSON string."""
    if isinstance(value, str):
        try:
            value = lenient_json.load(value)
        except lenient_json.FAILURES:
            return {"raw": value}
    if isinstance(value, dict):
        return value
    return {} if value is None else {"value": value}


# Content blocks as text and attachments


def blocks_of(content: Any) -> list[Block]:
    """Return content in any form as a list of blocks. A string is a text block."""
    match content:
        case str():
            return [Block(type="text", text=content)]
        case list():
            return [
                item if isinstance(item, Block) else Block(type="text", text=_as_string(item))
                for item in content
                if item is not None
            ]
        case Block():
            return [content]
        case None:
            return []
    return [Block(type="text", text=_as_string(content))]


def _as_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except lenient_json.FAILURES:
        return "[nested too deeply]"


def to_attachment(block: Block) -> Attachment | None:
    """Return the type and size of an image or document block as an attachment."""
    if block.type not in ("image", "document"):
        return None
    source = block.source
    if not isinstance(source, ImageData):
        return Attachment(block.type, name=as_text(block.title))
    encoded = max(len(source.data) - 2, 0)  # without quotes
    size = encoded * 3 // 4 if source.type == "base64" else encoded
    return Attachment(
        block.type,
        name=as_text(block.title),
        media_type=as_text(source.media_type),
        size=size or None,
        path=as_text(source.url),
    )


def result_text(content: Any) -> tuple[str, tuple[Attachment, ...]] | None:
    """Return the text and the attachments of a tool result; None if its form is unknown."""
    texts: list[str] = []
    attachments: list[Attachment] = []
    for block in blocks_of(content):
        if isinstance(block.text, str):
            texts.append(block.text)
        elif (found := to_attachment(block)) is not None:
            attachments.append(found)
        elif block.type == "tool_reference":
            texts.append(f"[tool {as_text(block.tool_name) or '?'}]")
        else:
            return None
    return "\n".join(texts), tuple(attachments)


def fallback_result_text(content: Any, depth: int = 0) -> str:
    """Return the texts of a tool result in an unknown form, else its JSON."""
    if content is None:
        return ""
    if depth > MAX_DEPTH or not isinstance(content, list | dict):
        return _as_string(content)
    if isinstance(content, list):
        return "\n".join(fallback_result_text(item, depth + 1) for item in content if item is not None)
    for name in ("text", "content", "resource"):
        inner = content.get(name)
        if inner and (isinstance(inner, str) or name != "text"):
            return fallback_result_text(inner, depth + 1)
    if content.get("type") in ("image", "document"):
        return ""
    found = [as_text(content.get(name)) for name in ("title", "url", "error_code")]  # a search result
    return "\n".join(filter(None, found)) or _as_string(content)
