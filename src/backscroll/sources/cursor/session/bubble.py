"""Parse one bubble into messages: thinking, text, tool call and error are separate messages."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

from msgspec import Raw, Struct
from msgspec.structs import replace

from backscroll.model.message import Attachment, Message, Origin, Role, TimeSource, TokenUsage, ToolCall
from backscroll.model.stream import SubagentLink
from backscroll.sources.cursor.database.decode import (
    UndecodableError,
    as_int,
    as_list,
    as_map,
    as_text,
    decode,
    decode_each,
    parse_time,
    unwrap,
)
from backscroll.sources.cursor.database.records import Bubble, BubbleHeader, CodeBlock
from backscroll.sources.cursor.session import tool_calls
from backscroll.sources.cursor.session.tool_calls import CodeProposals, error_text, target_path
from backscroll.sources.cursor.uri import file_path

AUTO_MODELS = ("", "default", "auto", "Auto")  # names that stand for no particular model
_USER_TYPES, _ASSISTANT_TYPES = (1, "user"), (2, "ai", "assistant")
_MAX_DOCUMENT_DEPTH = 64  # nested nodes of an editor document
_MAX_KIND_CHARS = 40
_YEAR_2000_MS = 946_684_800_000
_ImageFinder = Callable[[], Mapping[str, Path]]


class _MessageDraft(Struct):
    """Message before it has an id and a time."""

    role: Role
    content: str
    kind: str | None = None
    call: ToolCall | None = None
    attachments: tuple[Attachment, ...] = ()
    cwd: str | None = None


class BubbleParser:
    """Parses the bubbles of one session, in order."""

    def __init__(
        self,
        *,
        path: str,
        agent_id: str | None,
        latest: datetime,
        proposals: CodeProposals,
        images: _ImageFinder,
        model: str | None,
        is_auto: bool = True,  # the session's model is "Auto"
        collects_files: bool,
    ) -> None:
        self._path = path
        self._agent_id = agent_id
        self._latest = latest
        self._proposals = proposals
        self._images = images
        self._model = model
        self._collects_files = collects_files
        self._is_auto = is_auto
        self._turn_model: str | None = None
        self._is_auto_turn = False
        self._call_ids: set[str] = set()
        self.decisions: Counter[str] = Counter()  # by evidence
        self.links: list[SubagentLink] = []
        self.files: dict[str, None] = {}  # ordered set of paths, evidence of the workspace

    def parse(
        self,
        bubble: Bubble,
        bubble_id: str,
        location: str,
        *,
        header: BubbleHeader | None = None,
        record: Any = None,
        is_active: bool = True,
        kind: str | None = None,
    ) -> list[Message]:
        """Return the messages of a bubble; none if it is empty. ``record`` is a separately stored call."""
        role, unknown_type = role_of(bubble.type, header)
        call = bubble.tool_former_data
        is_call = call is not None and tool_calls.is_call(call)
        if not is_call:
            call = record
            is_call = record is not None and tool_calls.is_call(record)
        model = self._bubble_model(bubble, role)
        drafts = self._build_drafts(bubble, bubble_id, role, call if is_call else None)
        if not drafts:
            return []
        time = bubble_timestamp(
            bubble.created_at, bubble.timestamp, bubble.timing_info, header, call, self._latest
        )
        origin = Origin(self._path, location)
        usage = _usage(bubble)
        is_user = role == "user"
        messages = []
        for index, draft in enumerate(drafts):
            messages.append(
                Message(
                    id=f"{bubble_id}.{index}" if index else bubble_id,
                    role=draft.role,
                    content=draft.content,
                    origin=origin,
                    kind=kind or draft.kind or unknown_type,
                    timestamp=time.at if time else None,
                    timestamp_source=time.source if time else None,
                    model=None if is_user else model,
                    response_id=None if is_user else bubble_id,
                    agent_id=self._agent_id,
                    is_active=is_active,
                    tool=draft.call,
                    attachments=draft.attachments,
                    cwd=draft.cwd,
                    usage=None if index else usage,
                )
            )
        return messages

    def _build_drafts(
        self, bubble: Bubble, bubble_id: str, role: Role, call: dict[str, Any] | None
    ) -> list[_MessageDraft]:
        drafts: list[_MessageDraft] = []
        code_blocks = decode_each(bubble.code_blocks, CodeBlock)[0] if len(bubble.code_blocks) > 2 else []
        attachments = _parse_attachments(bubble.context, bubble.images, self._images)
        if thinking := _thinking_text(bubble):
            drafts.append(_MessageDraft("thinking", thinking))
        text = _text(bubble)
        if not text and call is None and role != "user":
            text = _code_text(code_blocks)
        # Without text, only images make a user message; other attachments are of an unsent input box.
        if text or (role == "user" and any(item.kind == "image" for item in attachments)):
            kind = "simulated" if role == "user" and bubble.is_simulated_msg is True else None
            drafts.append(_MessageDraft(role, text, kind, None, attachments))
        blocks = self._proposals.for_bubble(bubble_id, code_blocks)
        if call is not None:
            drafts.append(self._draft_call(tool_calls.parse_call(call, blocks, self._proposals)))
        elif role != "user":
            for block in blocks:
                drafts.append(
                    self._draft_call(tool_calls.parse_proposal(block, self._proposals), kind="code block")
                )
        if bubble.error_details and (error := error_text(bubble.error_details).strip()):
            drafts.append(_MessageDraft("error", error))
        if self._collects_files:
            self._collect_paths(bubble, code_blocks)
        return drafts

    def _draft_call(self, parsed: tool_calls.ParsedCall, kind: str | None = None) -> _MessageDraft:
        call = parsed.call
        if call_id := call.id:
            if parsed.subagent_id:
                self.links.append(
                    SubagentLink(
                        agent_id=parsed.subagent_id,
                        tool_call_id=call_id,
                        evidence="additionalData",
                        strength=1,
                    )
                )
            if call_id in self._call_ids:
                # An earlier bubble has the same id. This is a separate call, not the result of that one.
                call = replace(call, id=None)
            self._call_ids.add(call_id)
        if parsed.decision:
            self.decisions[parsed.decision.evidence] += 1
        if self._collects_files and (path := target_path(call.params)):
            self.files.setdefault(path)
        return _MessageDraft("tool", "", kind, call, (), parsed.cwd)

    def _bubble_model(self, bubble: Bubble, role: Role) -> str | None:
        """Return the model of the bubble, else of its turn, else of the session. "default" is not a model."""
        name = as_text(as_map(bubble.model_info).get("modelName")) if bubble.model_info else ""
        name = name or as_text(bubble.model_type)
        own_model = "" if name in AUTO_MODELS else name
        if role == "user":
            self._turn_model = own_model or None
            self._is_auto_turn = bool(name) and not own_model
        if self._is_auto_turn and not self._is_auto:
            return own_model or None  # the session's model is that of another turn
        return own_model or self._turn_model or self._model

    def _collect_paths(self, bubble: Bubble, code_blocks: list[CodeBlock]) -> None:
        for uri in as_list(bubble.workspace_uris):
            if path := file_path(uri):
                self.files.setdefault(path.rstrip("/") + "/")
        for path in (*_attached_paths(bubble.context), *(file_path(block.uri) for block in code_blocks)):
            if path:
                self.files.setdefault(path)


def role_of(value: Any, header: BubbleHeader | None = None) -> tuple[Role, str | None]:
    """Return the role of a bubble type, and a message kind for an unknown type."""
    if value == 2:  # the most frequent type
        return "assistant", None
    header_type = header.type if header is not None else None
    if value is None:
        value = header_type
    if value in _USER_TYPES:
        return "user", None
    if value is None or value in _ASSISTANT_TYPES:
        return "assistant", None
    return "user" if header_type in _USER_TYPES else "assistant", f"type {value}"[:_MAX_KIND_CHARS]


def _text(bubble: Bubble) -> str:
    for value in (bubble.text, bubble.raw_text, bubble.content, bubble.message):
        if value and isinstance(value, str) and value.strip():
            return value
    return document_text(bubble.rich_text)


def document_text(value: Any) -> str:
    """Return the text of an editor document, in the format of either of Cursor's two text editors."""
    if not value:
        return ""
    document = unwrap(value)
    if isinstance(document, str):
        return document.strip()
    texts: list[str] = []
    _append_text(document, texts, 0)
    return "".join(texts).strip()


def _append_text(node: Any, texts: list[str], depth: int) -> None:
    if depth > _MAX_DOCUMENT_DEPTH:
        return
    if isinstance(node, list):
        for item in node:
            _append_text(item, texts, depth + 1)
        return
    fields = as_map(node)
    kind = fields.get("type")
    if kind in ("linebreak", "hardBreak"):
        texts.append("\n")
    if text := as_text(fields.get("text")):
        texts.append(text)
    for name in ("root", "children", "content"):
        if name in fields:
            _append_text(fields[name], texts, depth + 1)
    if kind in ("paragraph", "heading", "listItem", "listitem", "codeBlock", "code") and texts:
        texts.append("\n")


def _thinking_text(bubble: Bubble) -> str:
    """Return the thinking text from any of its formats, without the signature."""
    if not bubble.thinking and not bubble.all_thinking_blocks:
        return ""
    texts: list[str] = []
    for value in (bubble.thinking, *as_list(bubble.all_thinking_blocks)):
        if value is None:
            continue
        thinking = unwrap(value) if isinstance(value, str) and value.lstrip()[:1] == "{" else value
        if isinstance(thinking, dict):
            thinking = thinking.get("text") or thinking.get("thinking")
        elif not isinstance(thinking, str):
            thinking = None
        if isinstance(thinking, str) and thinking.strip() and thinking not in texts:
            texts.append(thinking)
    return "\n\n".join(texts)


def _code_text(blocks: list[CodeBlock]) -> str:
    """Return the code blocks of an answer without other text."""
    parts = []
    for block in blocks:
        text = unwrap(bytes(block.content).decode("utf-8", "replace"), levels=1)
        if isinstance(text, str) and text.strip():
            parts.append(f"```{as_text(block.language_id)}\n{text}\n```")
    return "\n\n".join(parts)


def _usage(bubble: Bubble) -> TokenUsage | None:
    """Return the token counts. Builds that do not count store 0, which is None here."""
    counts = bubble.token_count
    if isinstance(counts, dict) and (
        found := _token_usage(counts.get("inputTokens"), counts.get("outputTokens"))
    ):
        return found
    counts = bubble.usage
    if isinstance(counts, dict):
        return _token_usage(counts.get("input_tokens"), counts.get("output_tokens"))
    return None


def _token_usage(input_count: Any, output_count: Any) -> TokenUsage | None:
    if not input_count and not output_count:
        return None
    input_tokens, output_tokens = as_int(input_count) or 0, as_int(output_count) or 0
    if input_tokens <= 0 and output_tokens <= 0:
        return None
    return TokenUsage(
        input_tokens=input_tokens if input_tokens > 0 else None,
        output_tokens=output_tokens if output_tokens > 0 else None,
    )


# Time of a bubble


class _Timestamp(NamedTuple):
    """Time and its source."""

    at: datetime
    source: TimeSource


def bubble_timestamp(
    created_at: Any, timestamp: Any, timing: Any, header: Any, tool: Any, latest: datetime
) -> _Timestamp | None:
    """Return the time of a bubble from its best source; None if it has no time of its own."""
    if at := parse_time(created_at, latest) or parse_time(timestamp, latest):
        return _Timestamp(at, "stored")
    if header is not None and (at := parse_time(header.created_at, latest)):
        return _Timestamp(at, "header")
    times = as_map(timing)
    for name in ("clientStartTime", "clientRpcSendTime", "clientSettleTime", "clientEndTime"):
        if at := _parse_wall_clock(times.get(name), latest):
            return _Timestamp(at, "timing")
    if header is not None and (at := _parse_wall_clock(header.started_at_ms, latest)):
        return _Timestamp(at, "header")
    additional = as_map(as_map(tool).get("additionalData"))
    if at := _parse_wall_clock(additional.get("startedAtMs"), latest):
        return _Timestamp(at, "timing")
    return None


def _parse_wall_clock(milliseconds: Any, latest: datetime) -> datetime | None:
    """Parse milliseconds since 1970. Small values are of a clock that started with the window."""
    if not isinstance(milliseconds, int | float) or not milliseconds >= _YEAR_2000_MS:
        return None
    return parse_time(milliseconds, latest)


# Attachments: files, selections, images, links, rules

# Lists in the context of a message, and the kind of their items.
_ATTACHMENT_KINDS = {
    "fileSelections": "file",
    "folderSelections": "folder",
    "selections": "selection",
    "terminalSelections": "terminal",
    "terminalFiles": "terminal",
    "selectedDocs": "document",
    "selectedDocuments": "document",
    "externalLinks": "link",
    "cursorRules": "rule",
    "cursorCommands": "command",
    "selectedCommits": "commit",
    "selectedPullRequests": "pull request",
    "gitPRDiffSelections": "diff",
    "composers": "session",
    "quotes": "quote",
    "notepads": "notepad",
    "selectedImages": "image",
    "selectedVideos": "video",
    "subagentSelections": "agent",
    "browserSelections": "page",
    "uiElementSelections": "page",
    "consoleLogs": "console",
    "gitDiff": "diff",
    "gitDiffFromBranchToMain": "diff",
    "diffHistory": "diff",
    "extraContext": "context",
}
_NAME_KEYS = ("name", "filename", "title", "label", "message", "url", "sha", "commandName", "rawText", "text")
_MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
}
_MAX_NAME_CHARS = 200
_EMPTY_VALUES = (b"", b"{}", b"[]", b"null")


class _Image(Struct):
    """Image inside the record. Its data is a JSON object from byte position to byte value."""

    uuid: Any = None
    path: Any = None
    data: Raw = Raw()


def _parse_attachments(context: Raw, images: Raw, find_images: _ImageFinder) -> tuple[Attachment, ...]:
    """Return all attachments without duplicates. ``find_images`` returns the existing image files."""
    if len(context) <= 2 and len(images) <= 2:
        return ()
    found: dict[tuple[str, str], Attachment] = {}
    for uuid, attachment in _inline_images(images):
        found[("image", uuid or str(len(found)))] = attachment
    if len(context) > 2 and bytes(memoryview(context)[:5]) not in _EMPTY_VALUES:
        for key, attachment in _parse_context(context, find_images):
            known = found.get(key)
            if known is None or (known.path is None and attachment.path is not None):
                found[key] = attachment if known is None else _merge_image(known, attachment)
    return tuple(found.values())


def _merge_image(inline: Attachment, named: Attachment) -> Attachment:
    return Attachment("image", named.name, named.media_type, inline.size or named.size, named.path)


def _inline_images(images: Raw) -> Iterator[tuple[str, Attachment]]:
    """Return the images in the record with their UUIDs. The number of colons is the size in bytes."""
    if bytes(memoryview(images)[:5]) in _EMPTY_VALUES:
        return
    for image in decode_each(images, _Image)[0]:
        data = bytes(image.data)
        size = data.count(b":") if data.startswith(b"{") else None
        media_type = "image/png" if data.startswith(b'{"0":137,"1":80') else None
        path = as_text(image.path)
        yield (
            as_text(image.uuid).lower(),
            Attachment(
                "image", _file_name(path) or None, media_type or _media_type(path), size or None, path or None
            ),
        )


def _parse_context(context: Raw, find_images: _ImageFinder) -> Iterator[tuple[tuple[str, str], Attachment]]:
    try:
        fields = as_map(decode(context, object))
    except UndecodableError:
        return
    mentions = as_map(fields.get("mentions"))
    for name, kind in _ATTACHMENT_KINDS.items():
        items = as_list(fields.get(name))
        for item in items:
            yield _parse_item(kind, item, find_images)
        if not items and (mentioned := mentions.get(name)):
            yield from _parse_mentions(kind, mentioned)


def _parse_mentions(kind: str, mentioned: Any) -> Iterator[tuple[tuple[str, str], Attachment]]:
    """Return attachments that are only mentioned, by URI or UUID."""
    for name in as_map(mentioned):
        path = file_path(name)
        yield (
            (kind, path or name),
            Attachment(kind, _file_name(path) or name[:_MAX_NAME_CHARS], path=path or None),
        )
    for index, _ in enumerate(as_list(mentioned)):
        yield (kind, str(index)), Attachment(kind)


def _parse_item(kind: str, item: Any, find_images: _ImageFinder) -> tuple[tuple[str, str], Attachment]:
    fields = as_map(item)
    path = _item_path(fields) or next(
        (text for key in ("path", "relativePath", "fileName") if (text := as_text(fields.get(key)))), ""
    )
    name = as_text(item) if isinstance(item, str) else _file_name(path)
    if not name:
        name = next((text for key in _NAME_KEYS if (text := as_text(fields.get(key)).strip())), "")
    name = name.partition("\n")[0][:_MAX_NAME_CHARS]
    size = None
    key = path or name
    if kind == "image":
        key = as_text(fields.get("uuid")).lower() or key
        file = find_images().get(key)
        size = _size(file) if file else None
    if kind in ("selection", "terminal", "quote"):
        text = as_text(fields.get("rawText")) or as_text(fields.get("text"))
        size = len(text.encode("utf-8", "replace")) or None
        key = f"{key}:{fields.get('range')}"
    elif kind == "file" and (content := as_text(fields.get("content"))):
        size = len(content.encode("utf-8", "replace"))
    return (kind, key), Attachment(kind, name or None, _media_type(path), size, path or None)


def _item_path(fields: dict[str, Any]) -> str:
    """Return the absolute path of an attachment; empty if it has none. Some builds name only the file."""
    return file_path(fields.get("uri")) or file_path(fields.get("fileName"))


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _file_name(path: str) -> str:
    if "\\" in path:
        return PureWindowsPath(path).name
    return PurePosixPath(path).name


def _media_type(path: str) -> str | None:
    return _MEDIA_TYPES.get(PurePosixPath(path).suffix.lower()) if path else None


def _attached_paths(context: Raw) -> Iterator[str]:
    """Return the paths of attached files, folders and selections, which are evidence of the workspace."""
    if bytes(memoryview(context)[:5]) in _EMPTY_VALUES:
        return
    try:
        fields = as_map(decode(context, object))
    except UndecodableError:
        return
    for name in ("fileSelections", "folderSelections", "selections"):
        for item in as_list(fields.get(name)):
            if path := _item_path(as_map(item)):
                yield path
