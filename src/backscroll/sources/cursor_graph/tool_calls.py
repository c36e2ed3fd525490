"""What a tool was asked for, and what it answered as text a person can read."""

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

UNKNOWN_TOOL = "unknown"  # the tool of a call or an answer that does not say it

_ENVELOPES = ("value", "content", "text", "output")  # of {"type": …, "value": …} and its relatives
_MAX_DEPTH = 4
_NEW_FILE = re.compile(r"\b(?:created|new file)\b", re.IGNORECASE)


class ToolOutcome(msgspec.Struct, frozen=True):
    """What came of a call."""

    text: str
    status: Status
    attachments: tuple[Attachment, ...] = ()
    decision: Decision | None = None
    is_new_file: bool = False  # the answer says that what was written was not there before


def cursor_options(holder: dict[str, Any]) -> dict[str, Any]:
    """What the tool itself notes on a message or a part of one, beside what the model sees."""
    options = holder.get("providerOptions")
    cursor = options.get("cursor") if isinstance(options, dict) else None
    return cursor if isinstance(cursor, dict) else {}


def decode_nested_json(value: Any) -> Any:
    """JSON within a JSON string, up to twice; anything else as it is."""
    for _ in range(2):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            break
        try:
            value = lenient_json.load(value)
        except lenient_json.FAILURES:
            break
    return value


def call_params(part: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call, wherever this version keeps them; what is no object is kept under ``raw``."""
    raw = cursor_options(part).get("rawToolCallArgs")
    kept: Any = None
    for value in (part.get("args"), part.get("input"), part.get("arguments"), raw):
        plain = decode_nested_json(value)
        if isinstance(plain, dict) and plain:
            return {str(key): item for key, item in plain.items()}
        if kept is None and plain not in (None, "", {}, []):
            kept = plain
    return {} if kept is None else {"raw": kept}


def parse_outcome(part: dict[str, Any], note: Any = None) -> ToolOutcome:
    """The answer in a tool-result part: text, object, list of blocks, or an envelope around one of them.

    ``note`` is the tool's own account of the call, where the message carries one.
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
    noted = note if isinstance(note, dict) else {}
    output = noted.get("output")
    told = output if isinstance(output, dict) else {}
    status: Status = "failed" if failed else _status(noted, told)
    return ToolOutcome(
        text or (value_text(output, attachments) if output else ""),
        status,
        tuple(dict.fromkeys(attachments)),
        "rejected" if status == "cancelled" else None,
        is_new_file(text, told.get("success")),
    )


def _status(note: dict[str, Any], output: dict[str, Any]) -> Status:
    """How a call ended by the tool's own account: ``{"output": {"success": …}, "isError": …}``."""
    if "rejected" in output:
        return "cancelled"
    said = [flag for flag in (note.get("isError"), output.get("isError")) if isinstance(flag, bool)]
    if said:
        return "failed" if any(said) else "completed"
    return "failed" if any(name in output for name in ("error", "failure")) else "completed"


def is_new_file(text: str, success: Any = None) -> bool:
    """Whether a call that said this, and of which the tool says this, made a file that was not there."""
    if isinstance(success, dict) and isinstance(success.get("afterFullFileContent"), str):
        return not success.get("beforeFullFileContent")
    return _NEW_FILE.search(text[:500]) is not None


def value_text(value: Any, attachments: list[Attachment], *, depth: int = 0) -> str:
    """A value as text. Pictures and files in it are added to ``attachments`` and named, not spelled out."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and depth < _MAX_DEPTH and any(isinstance(block, dict) for block in value):
        return "\n".join(filter(None, (value_text(block, attachments, depth=depth + 1) for block in value)))
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        if (attachment := parse_attachment(value)) is not None:
            attachments.append(attachment)
            return ""
        if isinstance(value.get("type"), str):
            for key in _ENVELOPES:
                if value.get(key) is not None:
                    return value_text(value[key], attachments, depth=depth + 1)
    return format_json(value)


def format_json(value: Any) -> str:
    """A value as JSON laid out for reading."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def parse_attachment(part: dict[str, Any]) -> Attachment | None:
    """A picture or file as its name, type and size; None for any other part."""
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
    """How many bytes were attached, without decoding them."""
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
