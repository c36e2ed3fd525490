"""Split a message, as sent to the model, into prompt, texts, thinking, tool calls and results.

A prompt is the text that the user typed, without the context that the tool adds for the model.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.model.message import Attachment, Message, Origin, Role, TimeSource, ToolCall
from backscroll.model.stream import RecordCounts, ToolResult
from backscroll.readers import lenient_json, timestamps
from backscroll.readers.json_outline import safe_name
from backscroll.readers.lenient_json import text_in
from backscroll.sources.cursor_graph.tool_calls import (
    RESULT_WITHOUT_ID,
    UNKNOWN_TOOL,
    CallTracker,
    as_created,
    call_id,
    call_params,
    cursor_options,
    parse_attachment,
    parse_edits,
    parse_outcome,
)

NO_CONTENT_REASON = "has no recognized content"
_CALL_TYPES = ("tool-call", "tool_call", "tool_use")
_RESULT_TYPES = ("tool-result", "tool_result")
_THINKING_TYPES = ("reasoning", "thinking")
_REDACTED_TYPES = ("redacted-reasoning", "redacted_thinking")
_TEXT_TYPES = ("text", "input_text", "output_text")


class RecordInfo(Struct, frozen=True):
    """The fields that all messages of one record share."""

    id: str
    origin: Origin
    timestamp: datetime | None = None
    timestamp_source: TimeSource | None = None
    model: str | None = None


class Prompt(Struct, frozen=True):
    """The parsed parts of a user message."""

    text: str  # as typed; empty if the user typed nothing
    at: datetime | None  # from the context, with a resolution of one minute
    attachments: tuple[Attachment, ...] = ()
    is_tagged: bool = False  # the typed text is in <user_query> tags

    @property
    def is_context(self) -> bool:
        """Whether the message has only context: no typed text, no attachment."""
        return not self.text and not self.attachments


def decode_message(data: bytes) -> dict[str, Any] | None:
    """Decode a JSON object; None if the data is anything else."""
    try:
        value = msgspec.json.decode(data)
    except lenient_json.FAILURES:
        try:
            value = lenient_json.load(data)
        except lenient_json.FAILURES:
            return None
    return value if isinstance(value, dict) else None


def message_parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a message: of its text, its list of parts, and its ``tool_calls``."""
    content = message.get("content")
    parts: list[dict[str, Any]] = []
    is_single_result = message.get("tool_call_id") or isinstance(content, str)
    if message.get("role") == "tool" and is_single_result:
        fields = {"toolCallId": call_id(message), "toolName": message.get("name"), "result": content}
        return [{"type": "tool-result", **fields}]
    if isinstance(content, str):
        parts.append({"type": "text", "text": content})
    elif isinstance(content, list):
        parts += [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    elif isinstance(content, dict):
        parts.append(content)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            parts.append(
                {
                    "type": "tool-call",
                    "toolCallId": call.get("id"),
                    "toolName": function.get("name"),
                    "args": function.get("arguments"),
                }
            )
    return [part for part in parts if isinstance(part, dict)]


def call_ids(message: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        id
        for part in message_parts(message)
        if part.get("type") in _CALL_TYPES and (id := call_id(part)) is not None
    )


def is_summary(message: dict[str, Any]) -> bool:
    """Return whether this message is a summary that replaces older messages."""
    return cursor_options(message).get("isSummary") is True


def user_prompt(message: dict[str, Any]) -> Prompt:
    """Return the text that the user typed, and the attachments."""
    prompt = parse_prompt(message_text(message))
    attached = tuple(
        found for part in message_parts(message) if (found := parse_attachment(part)) is not None
    )
    if not attached:
        return prompt
    # An image part replaces a placeholder in the text, which has no size and type.
    in_text = prompt.attachments if any(each.path for each in prompt.attachments) else ()
    return msgspec.structs.replace(prompt, attachments=attached + in_text[len(attached) :])


def model_name(message: dict[str, Any]) -> str | None:
    """Return the model that is named in a part of the message or in the message itself."""
    for record in (*message_parts(message), message):
        name = cursor_options(record).get("modelName")
        if isinstance(name, str) and name and name != "default":
            return name
    return None


def parse_parts(
    message: dict[str, Any],
    info: RecordInfo,
    *,
    calls: CallTracker,
    counts: RecordCounts,
    first_index: int = 0,
) -> Iterator[Message | ToolResult]:
    """Parse the parts of an assistant, tool or unknown message, in order.

    ``first_index`` is the number of messages that were already built from the record.
    """
    text_role: Role = "assistant" if message.get("role") in ("assistant", "tool") else "system"
    parts = message_parts(message)
    # The tool's report is a field of the message without a call id, so it is used for a single result only.
    is_single = sum(part.get("type") in _RESULT_TYPES for part in parts) == 1
    report = cursor_options(message).get("highLevelToolCallResult") if is_single else None
    index = first_index
    for part in parts:
        kind = part.get("type")
        item: Message | ToolResult | None
        part_info = info if not index else msgspec.structs.replace(info, id=f"{info.id}.{index}")
        if kind in _CALL_TYPES:
            item = _parse_call(part, part_info, calls, record_id=info.id)
        elif kind in _RESULT_TYPES:
            item = _parse_result(part, part_info, calls, report)
        elif kind in _THINKING_TYPES or kind in _REDACTED_TYPES:
            thinking = _part_text(part) or ""
            redacted = None if thinking.strip() else "redacted"
            item = build_message(part_info, "thinking", thinking, kind=redacted)
        elif (text := _part_text(part)) is not None:
            item = build_message(part_info, text_role, text) if text.strip() else None
            if kind not in _TEXT_TYPES:
                counts.add_unknown(f"part type {safe_name(kind)}")
        elif (attached := parse_attachment(part)) is not None:
            item = build_message(part_info, text_role, "", attachments=(attached,))
        else:
            counts.add_unknown(f"part type {safe_name(kind)}")
            found = text_in(part)
            item = build_message(part_info, text_role, found, kind="unknown block") if found else None
        if item is not None:
            index += isinstance(item, Message)
            yield item


def _parse_call(part: dict[str, Any], info: RecordInfo, calls: CallTracker, *, record_id: str) -> Message:
    name = _tool_name(part)
    params = call_params(part)
    edits = parse_edits(name, params)
    id = calls.add_call(call_id(part), record_id, edits)
    # The result decides whether the edits were made. Without results, all calls count as successful.
    tool = ToolCall(id, name, params, edits=() if calls.has_results else edits)
    return build_message(info, "tool", "", tool=tool)


def _parse_result(
    part: dict[str, Any], info: RecordInfo, calls: CallTracker, report: Any
) -> Message | ToolResult | None:
    """Parse a result. If its call is missing, return a message; None if it repeats the last result."""
    outcome = parse_outcome(part, report)
    id = call_id(part)
    call = calls.add_result(id, outcome.text)
    if call is not None:
        edits = call.edits if outcome.status == "completed" else ()
        return ToolResult(
            tool_call_id=call.id,
            result=outcome.text,
            origin=info.origin,
            status=outcome.status,
            decision=outcome.decision,
            timestamp=info.timestamp,
            edits=as_created(edits) if outcome.is_new_file else edits,
            attachments=outcome.attachments,
        )
    if calls.is_repeated_result(id, outcome.text):
        return None
    unique_id = calls.add_call(id, info.id)
    calls.add_result(id, outcome.text)
    tool = ToolCall(
        unique_id, _tool_name(part), result=outcome.text, status=outcome.status, decision=outcome.decision
    )
    kind = RESULT_WITHOUT_ID if id is None else None
    return build_message(info, "tool", "", kind=kind, tool=tool, attachments=outcome.attachments)


def _tool_name(part: dict[str, Any]) -> str:
    name = part.get("toolName") or part.get("name")
    return name if isinstance(name, str) and name else UNKNOWN_TOOL


def _part_text(part: dict[str, Any]) -> str | None:
    text = part.get("text")
    if text is None:
        text = part.get("thinking")
    return text if isinstance(text, str) else None


def without_prompt_parts(message: dict[str, Any]) -> dict[str, Any]:
    """Return a user message without text and images. In some versions, tool results remain."""
    remaining = [
        part for part in message_parts(message) if _part_text(part) is None and parse_attachment(part) is None
    ]
    return {**message, "role": "tool", "content": remaining, "tool_calls": None}


def part_texts(message: dict[str, Any]) -> set[str]:
    """Return the text or thinking of each part."""
    return {text.strip() for part in message_parts(message) if (text := _part_text(part)) and text.strip()}


def message_text(message: dict[str, Any]) -> str:
    """Return the text and thinking of all parts."""
    texts = (text for part in message_parts(message) if (text := _part_text(part)) is not None)
    return "\n".join(texts).strip()


def build_message(
    info: RecordInfo,
    role: Role,
    content: str,
    *,
    kind: str | None = None,
    tool: ToolCall | None = None,
    attachments: tuple[Attachment, ...] = (),
) -> Message:
    """Build a message with the common fields of its record."""
    return Message(
        id=info.id,
        role=role,
        content=content,
        origin=info.origin,
        kind=kind,
        timestamp=info.timestamp,
        timestamp_source=info.timestamp_source,
        model=info.model,
        tool=tool,
        attachments=attachments,
    )


# Text that the user typed, and context

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_GREEDY_QUERY = re.compile(r"<user_query>(.*)</user_query>", re.DOTALL)
_UNCLOSED_QUERY = re.compile(r"<user_query>\s*(.*)", re.DOTALL)
_TIMESTAMP = re.compile(r"<timestamp>(.*?)</timestamp>", re.DOTALL)
_IMAGES = re.compile(r"<image_files>(.*?)</image_files>", re.DOTALL)
_IMAGE_PATH = re.compile(r"^\s*(?:\d+\.|[-*])?\s*(\S.*?\.\w{2,5})\s*$", re.MULTILINE)
_WORKSPACE_PATH = re.compile(r"^\s*Workspace Path:\s*(\S.*?)\s*$", re.MULTILINE)
_IMAGE_PLACEHOLDER = re.compile(r"^\s*\[Image\]\s*$", re.MULTILINE)

# Blocks that the tool adds for the model.
_CONTEXT_TAGS = (
    "additional_data",
    "agent_requestable_workspace_rules",
    "agent_skills",
    "agent_transcripts",
    "always_applied_workspace_rules",
    "attached_files",
    "available_skills",
    "cursor_rules_context",
    "custom_instructions",
    "environment_details",
    "external_links",
    "git_status",
    "image_files",
    "manually_attached_skills",
    "mcp_instructions",
    "mcp_file_system",
    "memories",
    "open_and_recently_viewed_files",
    "project_layout",
    "rules",
    "system_reminder",
    "system-reminder",
    "task_notification",
    "terminal_files_information",
    "timestamp",
    "user_info",
    "user_rules",
    "workspace_rules",
)
_CONTEXT = re.compile(rf"<({'|'.join(_CONTEXT_TAGS)})\b[^>]*>.*?</\1>", re.DOTALL)

# Prompts that the tool writes itself: a subagent or background task has finished, or a fork starts.
_INJECTED = re.compile(
    r"\s*(?:<(?:task|subagent|background)[\w-]*>"
    r"|(?:The |A )?(?:subagent|background (?:task|shell|agent|command))\b.{0,120}?"
    r"\b(?:completed|finished|failed|exited|result)"
    r"|You are (?:now )?(?:a|the) (?:forked )?subagent\b"
    r"|The (?:previous|last) (?:turn|response|request) was interrupted\b)",
    re.IGNORECASE,
)


def parse_prompt(raw: str) -> Prompt:
    """Return the typed text of a user message. Without tags, it is the text outside of context blocks."""
    stamp = _TIMESTAMP.search(raw)
    at = timestamps.from_english(stamp[1]) if stamp else None
    images = [
        Attachment("image", name=re.split(r"[\\/]", path)[-1], path=path)
        for block in _IMAGES.findall(raw)
        for path in _IMAGE_PATH.findall(block)
    ]
    queries = _tagged_queries(raw)
    outside = raw if not queries else _GREEDY_QUERY.sub("", raw)
    text, placeholder_count = _IMAGE_PLACEHOLDER.subn("", _CONTEXT.sub("", outside))
    images += [Attachment("image")] * max(0, placeholder_count - len(images))
    if queries:
        return Prompt("\n\n".join(dict.fromkeys(queries)), at, tuple(images), is_tagged=True)
    return Prompt(text.replace("<user_query>", "").replace("</user_query>", "").strip(), at, tuple(images))


def _tagged_queries(raw: str) -> list[str]:
    """Return the texts in <user_query> tags.

    With one opening tag, the text ends at the last closing tag, because the typed text may quote the tags.
    """
    pattern = _GREEDY_QUERY if raw.count("<user_query>") == 1 else _QUERY
    queries = [query.strip() for query in pattern.findall(raw) if query.strip()]
    if not queries and "</user_query>" not in raw and (unclosed := _UNCLOSED_QUERY.search(raw)):
        queries = [unclosed[1]]
    return queries


def is_injected(text: str) -> bool:
    """Return whether the tool wrote this prompt instead of the user."""
    return _INJECTED.match(text) is not None


def workspace_folders(context: str) -> list[str]:
    """Return the workspace paths in the context."""
    return list(_WORKSPACE_PATH.findall(context))
