"""Payloads of events: what the archive keeps of them.

The hook program records an event as it was received. The archive keeps its small fields, and the number of
edited lines. Contents of files, outputs of tools, the environment and e-mail addresses are removed.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from backscroll.readers import lenient_json

MAX_BODY_BYTES = 64 * 1024  # of a larger one, only essential fields are kept
MAX_STRING_CHARS = 1000  # of a field
MAX_TEXT_CHARS = 16_000  # of a prompt, and of an answer that is in no transcript
MAX_DEPTH = 6
MAX_MEMBERS = 60  # of an object or a list

_PROMPT = "prompt"
_ANSWERS = ("last_assistant_message", "text")
_ESSENTIAL = {
    *("session_id", "conversation_id", "hook_event_name", "cursor_version", "tool_name", "tool_use_id"),
    *("cwd", "prompt"),
}
# Contents of files, outputs of tools and the environment. Only their length is kept.
_BODIES = {
    *("content", "contents", "originalFile", "file_text", "structuredPatch", "edits", "old_line", "new_line"),
    *("old_string", "new_string", "oldString", "newString", "old_source", "new_source", "gitDiff", "patch"),
    *("stdout", "stderr", "output", "tool_output", "result_json", "compact_summary", "base64", "data"),
    *("env", "environment"),
}


def parse_payload(data: bytes) -> dict[str, Any] | None:
    """Return ``payload``, ``edits`` and ``omitted`` of an event; None if its payload is not a JSON object.

    Documents that a strict parser rejects are repaired: tools write invalid UTF-8 and lone surrogates.
    """
    payload = _decode(data)
    if isinstance(payload, dict):
        return _reduce(payload)
    # Until November 2026, the hook program itself reduced the payload: {…},"edits":[…],"omitted":{…}
    record = _decode(b'{"payload":%b}' % data)
    if not isinstance(record, dict) or not isinstance(record.get("payload"), dict):
        return None
    body = _reduce(record["payload"])
    edits, omitted = record.get("edits"), record.get("omitted")
    body["edits"] = _objects(edits) if isinstance(edits, list) else []
    body["omitted"] |= omitted if isinstance(omitted, dict) else {}
    return body


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except lenient_json.FAILURES:
        pass
    try:
        return lenient_json.load(data)
    except lenient_json.FAILURES:
        return None


def _reduce(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the small fields of a payload, its edits in lines, and the sizes of the removed fields."""
    kept: dict[str, Any] = {}
    omitted: dict[str, int] = {}
    transcript = payload.get("transcript_path")
    is_in_transcript = isinstance(transcript, str) and bool(transcript) and os.path.exists(transcript)  # noqa: PTH110
    for name, value in payload.items():
        if name in _ANSWERS and is_in_transcript:
            omitted[name] = _length(value)
        elif (name == _PROMPT or name in _ANSWERS) and isinstance(value, str):
            kept[name] = value[:MAX_TEXT_CHARS]
            if len(value) > MAX_TEXT_CHARS:
                omitted[name] = len(value) - MAX_TEXT_CHARS
        elif (small := _small(name, value, name, 0, omitted)) is not None:
            kept[name] = small
    body = {"payload": kept, "edits": _edits(payload), "omitted": omitted}
    size = len(msgspec.json.encode(body))
    if size <= MAX_BODY_BYTES:
        return body
    essential = {name: value for name, value in kept.items() if name in _ESSENTIAL}
    return {"payload": essential, "edits": [], "omitted": {"": size}}


def _small(name: str, value: Any, path: str, depth: int, omitted: dict[str, int]) -> Any:
    """Return a value without large and private parts; None if nothing is left."""
    if "email" in name.lower():
        return None
    if name in _BODIES and value is not None and not isinstance(value, bool | int | float):
        omitted[path] = _length(value)
        return None
    if isinstance(value, str):
        if len(value) > MAX_STRING_CHARS:
            omitted[path] = len(value)
            return None
        return None if _is_email(value) else value
    if isinstance(value, dict | list):
        if depth >= MAX_DEPTH or len(value) > MAX_MEMBERS:
            omitted[path] = _length(value)
            return None
        if isinstance(value, list):
            items = [_small(name, item, f"{path}[]", depth + 1, omitted) for item in value]
            return [item for item in items if item is not None]
        members = {
            key[:MAX_STRING_CHARS]: _small(key, item, f"{path}.{key}"[:200], depth + 1, omitted)
            for key, item in value.items()
        }
        return {key: item for key, item in members.items() if item is not None}
    return value


def _is_email(value: str) -> bool:
    name, at, host = value.strip(" <>").partition("@")
    return bool(name and at) and "." in host and not (set(name) | set(host)) & set(" \t\n/@:")


def _length(value: Any) -> int:
    """Return the characters of a text, or the number of elements."""
    return len(value) if isinstance(value, str | list | dict) else 1


# Lines of edits -----------------------------------------------------------------------------------


def _edits(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Return path, added and removed lines of each edit that a payload reports as done."""
    response = payload.get("tool_response")
    if isinstance(response, dict) and isinstance(response.get("filePath"), str):
        return _patched(response)
    edits, path = payload.get("edits"), payload.get("file_path")
    if isinstance(edits, list) and isinstance(path, str):
        changes = [_changed_lines(edit.get("old_string"), edit.get("new_string")) for edit in _objects(edits)]
        counts = {"added": sum(added for added, _ in changes), "removed": sum(gone for _, gone in changes)}
        return [{"path": path, **counts}]
    return []


def _patched(response: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the edit in the result of a tool that writes a file."""
    patch, content = response.get("structuredPatch"), response.get("content")
    is_new = response.get("type") == "create"
    added = removed = 0
    if isinstance(patch, list) and patch:
        for hunk in _objects(patch):
            lines = hunk.get("lines")
            marks = [line[:1] for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
            added += marks.count("+")
            removed += marks.count("-")
    elif isinstance(content, str) and is_new:
        added = content.count("\n") + (bool(content) and not content.endswith("\n"))
    else:
        return []
    kind = "create" if is_new else "update"
    return [{"path": response["filePath"], "kind": kind, "added": added, "removed": removed}]


def _objects(values: list[Any]) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)]


def _changed_lines(old: Any, new: Any) -> tuple[int, int]:
    """Return added and removed lines: all lines between the common start and the common end."""
    before = old.split("\n") if isinstance(old, str) and old else []
    after = new.split("\n") if isinstance(new, str) and new else []
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and before[start] == after[start]:
        start += 1
    end = 0
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return len(after) - start - end, len(before) - start - end
