"""Parse the arguments of a tool call in the conversation graph, and its result as readable text.

`cursor.session.tool_calls` parses the tool calls of bubbles.
"""

import re
from typing import Any

import msgspec

from backscroll.model import Attachment, Decision, Status
from backscroll.readers import lenient_json

__all__ = [
    "UNKNOWN_TOOL",
    "ToolOutcome",
    "call_params",
    "cursor_options",
    "decode_nested_json",
    "is_new_file",
    "parse_attachment",
    "parse_outcome",
]

UNKNOWN_TOOL = "unknown"  # name of the tool in a call or result without a name

_WRAPPED_VALUE_KEYS = ("value", "content", "text", "output")  # in objects like {"type": …, "value": …}
_MAX_NESTING_DEPTH = 4
_NEW_FILE = re.compile(r"\b(?:created|new file)\b", re.IGNORECASE)


class ToolOutcome(msgspec.Struct, frozen=True):
    """Result and status of a tool call."""

    text: str
    status: Status
    attachments: tuple[Attachment, ...] = ()
    decision: Decision | None = None
    is_new_file: bool = False  # the call created a file


def cursor_options(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that Cursor adds to a message or part and does not send to the model."""
    options = record.get("providerOptions")
    cursor = options.get("cursor") if isinstance(options, dict) else None
    return cursor if isinstance(cursor, dict) else {}


def decode_nested_json(value: Any) -> Any:
    """Decode JSON in a string, up to two levels. Return any other value unchanged."""
    for _ in range(2):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            break
        try:
            value = lenient_json.load(value)
        except lenient_json.FAILURES:
            break
    return value


def call_params(part: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call, from the key that this version uses.

    Arguments that are not an object are returned under the key ``raw``.
    """
    raw = cursor_options(part).get("rawToolCallArgs")
    fallback: Any = None
    for value in (part.get("args"), part.get("input"), part.get("arguments"), raw):
        decoded = decode_nested_json(value)
        if isinstance(decoded, dict) and decoded:
            return {str(key): item for key, item in decoded.items()}
        if fallback is None and decoded not in (None, "", {}, []):
            fallback = decoded
    return {} if fallback is None else {"raw": fallback}


def parse_outcome(part: dict[str, Any], report: Any = None) -> ToolOutcome:
    """Parse a tool-result part. Its value is text, an object, a list of blocks, or a wrapper of these.

    ``report`` is the message's ``highLevelToolCallResult``.
    """
    attachments: list[Attachment] = []
    text = ""
    failed = part.get("isError") is True or part.get("is_error") is True
    for key in ("result", "output", "experimental_content", "content"):
        value = part.get(key)
        if value is None:
            continue
        if isinstance(value, dict) and str(value.get("type", "")).startswith("error"):
            failed = True
        text = text or value_text(value, attachments)
    fields = report if isinstance(report, dict) else {}
    output = fields.get("output")
    output_fields = output if isinstance(output, dict) else {}
    status: Status = "failed" if failed else _reported_status(fields, output_fields)
    return ToolOutcome(
        text or (value_text(output, attachments) if output else ""),
        status,
        tuple(dict.fromkeys(attachments)),
        "rejected" if status == "cancelled" else None,
        is_new_file(text, output_fields.get("success")),
    )


def _reported_status(report: dict[str, Any], output: dict[str, Any]) -> Status:
    """Return the status in a tool's report: ``{"output": {"success": …}, "isError": …}``."""
    if "rejected" in output:
        return "cancelled"
    flags = [flag for flag in (report.get("isError"), output.get("isError")) if isinstance(flag, bool)]
    if flags:
        return "failed" if any(flags) else "completed"
    return "failed" if any(name in output for name in ("error", "failure")) else "completed"


def is_new_file(text: str, success: Any = None) -> bool:
    """Return whether a call created a file, from the tool's report, else from the text of the result."""
    if isinstance(success, dict) and isinstance(success.get("afterFullFileContent"), str):
        return not success.get("beforeFullFileContent")
    return _NEW_FILE.search(text[:500]) is not None


def value_text(value: Any, attachments: list[Attachment], *, depth: int = 0) -> str:
    """Convert a value to text. Images and files are added to ``attachments`` instead."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if (
        isinstance(value, list)
        and depth < _MAX_NESTING_DEPTH
        and any(isinstance(block, dict) for block in value)
    ):
        return "\n".join(filter(None, (value_text(block, attachments, depth=depth + 1) for block in value)))
    if isinstance(value, dict) and depth < _MAX_NESTING_DEPTH:
        if (attachment := parse_attachment(value)) is not None:
            attachments.append(attachment)
            return ""
        if isinstance(value.get("type"), str):
            for key in _WRAPPED_VALUE_KEYS:
                if value.get(key) is not None:
                    return value_text(value[key], attachments, depth=depth + 1)
    return format_json(value)


def format_json(value: Any) -> str:
    """Return a value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def parse_attachment(part: dict[str, Any]) -> Attachment | None:
    """Return name, type and size of an image or file; None for any other part."""
    kind = part.get("type")
    if kind not in ("image", "image_url", "image-data", "file", "file-data", "media", "image-url"):
        return None
    media = part.get("mimeType") or part.get("mediaType") or part.get("media_type")
    data = next((part[key] for key in ("image", "data", "file", "url", "image_url") if part.get(key)), None)
    if isinstance(data, dict) and isinstance(data.get("url"), str):
        data = data["url"]
    name = part.get("filename") or part.get("name")
    is_image = str(kind).startswith("image") or str(media).startswith("image/")
    if isinstance(data, str) and data.startswith("data:"):
        head, _, data = data.partition(",")
        media = media or head[5:].partition(";")[0]
    is_link = isinstance(data, str) and data.startswith(("http://", "https://", "file://", "/"))
    return Attachment(
        "image" if is_image else "file",
        name=name if isinstance(name, str) else None,
        media_type=media if isinstance(media, str) and media else None,
        size=None if is_link else _byte_count(data),
        path=data if is_link and isinstance(data, str) else None,
    )


def _byte_count(data: Any) -> int | None:
    """Return the size of attached data, without decoding it."""
    match data:
        case str() if data:
            return len(data) * 3 // 4 - data[-2:].count("=")
        case {"type": "Buffer", "data": list(values)}:
            return len(values)
        case dict() if data and all(key.isdigit() for key in list(data)[:8]):
            return len(data)
        case list():
            return len(data)
    return None
