"""Tool calls of the conversation graph and of transcripts: arguments, results as text, and file edits.

A call and its result are separate records. `CallTracker` joins them by id, `join_results` those without ids.
`cursor.session.tool_calls` parses the tool calls of bubbles.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from backscroll.model.message import Attachment, Decision, Edit, Hunk, Message, Status, ToolCall, record_id_of
from backscroll.model.stream import Item, ToolResult
from backscroll.readers import lenient_json

UNKNOWN_TOOL = "unknown"  # name of the tool in a call or result without a name
RESULT_WITHOUT_ID = "result without an id"  # temporary kind of a message with a result to be joined
_WRAPPED_VALUE_KEYS = ("value", "content", "text", "output")  # in objects like {"type": …, "value": …}
_MAX_NESTING_DEPTH = 4
_NEW_FILE = re.compile(r"\b(?:created|new file)\b", re.IGNORECASE)
T = TypeVar("T", bound=Item)


class _ToolOutcome(Struct, frozen=True):
    """Result and status of a tool call."""

    text: str
    status: Status
    attachments: tuple[Attachment, ...] = ()
    decision: Decision | None = None
    is_new_file: bool = False  # the call created a file


def call_id(part: dict[str, Any]) -> str | None:
    """Return the call id of a part, under any of its known keys."""
    for key in ("toolCallId", "tool_call_id", "tool_use_id", "id"):
        value = part.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value:
            return value
    return None


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


def parse_outcome(part: dict[str, Any], report: Any = None) -> _ToolOutcome:
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
    return _ToolOutcome(
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
    return _format_json(value)


def _format_json(value: Any) -> str:
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


# Calls and their results


class _PendingCall(Struct, frozen=True):
    """A tool call without a result."""

    id: str  # unique in the session
    record_id: str  # the record that contains the call
    edits: tuple[Edit, ...] = ()  # if the call succeeds


class CallTracker:
    """The tool calls of one session, by the ids that its records use.

    Ids are not unique: some models restart numbering in every turn, others use one id for several calls of a
    message. A result belongs to the first pending call with its id. If a later record uses the id of a
    pending call, that call is no longer pending.

    `has_results` is false for records that do not contain the results of their calls.
    """

    def __init__(self, *, has_results: bool = True) -> None:
        self.has_results = has_results
        self._use_counts: dict[str, int] = {}
        self._pending: dict[str, list[_PendingCall]] = {}
        self._last_results: dict[str, int] = {}  # hash of the last result by call id

    def __contains__(self, id: object) -> bool:
        return id in self._use_counts

    def add_call(self, id: str | None, record_id: str, edits: tuple[Edit, ...] = ()) -> str | None:
        """Add a call. Return its id, numbered if an earlier call has the same; None if it has no id."""
        if id is None:
            return None
        self._use_counts[id] = self._use_counts.get(id, 0) + 1
        unique_id = id if self._use_counts[id] == 1 else f"{id}#{self._use_counts[id]}"
        same_record = [call for call in self._pending.get(id, ()) if call.record_id == record_id]
        self._pending[id] = [*same_record, _PendingCall(unique_id, record_id, edits)]
        return unique_id

    def add_result(self, id: str | None, text: str) -> _PendingCall | None:
        """Add a result. Return its call, which is no longer pending; None if no such call is pending."""
        pending = self._pending.get(id or "")
        if not pending:
            return None
        self._last_results[id or ""] = hash(text)
        return pending.pop(0)

    def is_repeated_result(self, id: str | None, text: str) -> bool:
        """Return whether the last result with this id had the same text."""
        return id is not None and self._last_results.get(id) == hash(text)


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


# File edits

_WRITE_TOOLS = {"write", "writefile", "createfile"}
_REPLACE_TOOLS = {
    "strreplace",
    "edit",
    "searchreplace",
    "multiedit",
    "editfile",
    "editnotebook",
    "multistrreplace",
}
_PATCH_TOOLS = {"applypatch", "patch"}
_DELETE_TOOLS = {"delete", "deletefile"}
_PATH_KEYS = (
    "path",
    "file_path",
    "filePath",
    "target_file",
    "targetFile",
    "target_notebook",
    "relativeWorkspacePath",
)
_OLD_TEXT_KEYS = ("old_string", "oldString", "old_str", "old_text")
_NEW_TEXT_KEYS = ("new_string", "newString", "new_str", "new_text")
_CONTENT_KEYS = ("contents", "content", "file_text", "fileText")
_PATCH_KEYS = ("patch", "input", "diff", "patch_text", "raw")
_Kind = Literal["create", "update", "delete"]
_SECTION_HEADERS: dict[str, _Kind] = {
    "*** Add File: ": "create",
    "*** Update File: ": "update",
    "*** Delete File: ": "delete",
}


def parse_edits(name: str, params: dict[str, Any]) -> tuple[Edit, ...]:
    """Return the edits that a call requests; none if the tool is unknown or does not edit files."""
    tool = "".join(char for char in name.lower() if char.isalnum())
    path = _first_text(params, _PATH_KEYS)
    if tool in _PATCH_TOOLS:
        return tuple(_parse_patch(_first_text(params, _PATCH_KEYS) or "", path))
    if path is None:
        return ()
    if tool in _DELETE_TOOLS:
        return (Edit(path, kind="delete"),)
    content = _first_text(params, _CONTENT_KEYS)
    if tool in _WRITE_TOOLS and content is not None:
        return (Edit(path, (Hunk(added=_split_lines(content)),)),)
    if tool in _REPLACE_TOOLS:
        replacements = params.get("edits")
        found = [_parse_hunk(each) for each in (replacements if isinstance(replacements, list) else [params])]
        hunks = tuple(hunk for hunk in found if hunk is not None)
        return (Edit(path, hunks),) if hunks else ()
    return ()


def as_created(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Mark edits as the creation of a file. An edit that removes lines is not marked: the file existed."""
    return tuple(
        replace(edit, kind="create") if edit.kind == "update" and not edit.removed else edit for edit in edits
    )


def _parse_hunk(replacement: Any) -> Hunk | None:
    if not isinstance(replacement, dict):
        return None
    old, new = _first_text(replacement, _OLD_TEXT_KEYS), _first_text(replacement, _NEW_TEXT_KEYS)
    if old is None and new is None:
        return None
    return Hunk(_split_lines(old or ""), _split_lines(new or ""))


def _first_text(params: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := params.get(key), str)), None)


def _split_lines(text: str) -> tuple[str, ...]:
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


class _PatchedFile:
    """Collects the changed lines of one file in a patch."""

    def __init__(self, path: str | None, kind: _Kind = "update") -> None:
        self._path = path
        self._kind = kind
        self._hunks: list[Hunk] = []
        self._removed: list[str] = []
        self._added: list[str] = []

    def add_line(self, line: str) -> None:
        if line.startswith("+"):
            self._added.append(line[1:])
            return
        if line.startswith("-"):
            self._removed.append(line[1:])
            return
        self._end_hunk()

    def _end_hunk(self) -> None:
        if self._removed or self._added:
            self._hunks.append(Hunk(tuple(self._removed), tuple(self._added)))
            self._removed, self._added = [], []

    def edit(self) -> Edit | None:
        self._end_hunk()
        if self._path is None or (not self._hunks and self._kind != "delete"):
            return None
        return Edit(self._path, tuple(self._hunks), self._kind)


def _parse_patch(patch: str, path: str | None) -> list[Edit]:
    """Parse a patch in the format of models (``*** Update File:``) or of diff."""
    files = [_PatchedFile(path)]
    lines = patch.split("\n")
    for index, line in enumerate(lines):
        next_line = lines[index + 1] if index + 1 < len(lines) else ""
        header = next((header for header in _SECTION_HEADERS if line.startswith(header)), None)
        if header is not None:
            files.append(_PatchedFile(line.removeprefix(header).strip(), _SECTION_HEADERS[header]))
        elif line.startswith("--- ") and next_line.startswith("+++ "):
            old, new = _diff_path(line), _diff_path(next_line)
            files.append(
                _PatchedFile(new or old, "delete" if new is None else "create" if old is None else "update")
            )
        elif not line.startswith("+++ ") or not lines[index - 1].startswith("--- "):
            files[-1].add_line(line)
    return [edit for file in files if (edit := file.edit()) is not None]


def _diff_path(line: str) -> str | None:
    path = line[4:].split("\t")[0].strip()
    return None if path == "/dev/null" else path.removeprefix("a/").removeprefix("b/")
