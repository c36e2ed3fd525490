"""Parse one bubble into messages: thinking, text, tool call and error are separate messages."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model import Attachment, Message, Origin, Role, SubagentLink, TokenUsage, ToolCall
from backscroll.sources.cursor.database.decode import as_int, as_list, as_map, as_text, decode_each, unwrap
from backscroll.sources.cursor.database.record_types import Bubble, BubbleHeader, CodeBlock
from backscroll.sources.cursor.session import timestamps, tool_calls
from backscroll.sources.cursor.session.attachments import attached_paths, parse_attachments
from backscroll.sources.cursor.session.code_proposals import CodeProposals
from backscroll.sources.cursor.session.edits import target_path
from backscroll.sources.cursor.session.tool_results import error_text
from backscroll.sources.cursor.uri import file_path

__all__ = ["AUTO_MODELS", "BubbleParser", "document_text", "role_of"]

AUTO_MODELS = ("", "default", "auto", "Auto")  # names that stand for no particular model
_USER_TYPES, _ASSISTANT_TYPES = (1, "user"), (2, "ai", "assistant")
_MAX_DOCUMENT_DEPTH = 64  # nested nodes of an editor document
_MAX_KIND_CHARS = 40


class MessageDraft(Struct):
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
        images: Callable[[], Mapping[str, Path]],
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
        time = timestamps.bubble_timestamp(
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
    ) -> list[MessageDraft]:
        drafts: list[MessageDraft] = []
        code_blocks = decode_each(bubble.code_blocks, CodeBlock)[0] if len(bubble.code_blocks) > 2 else []
        attachments = parse_attachments(bubble.context, bubble.images, self._images)
        if thinking := _thinking_text(bubble):
            drafts.append(MessageDraft("thinking", thinking))
        text = _text(bubble)
        if not text and call is None and role != "user":
            text = _code_text(code_blocks)
        # Without text, only images make a user message; other attachments are of an unsent input box.
        if text or (role == "user" and any(item.kind == "image" for item in attachments)):
            kind = "simulated" if role == "user" and bubble.is_simulated_msg is True else None
            drafts.append(MessageDraft(role, text, kind, None, attachments))
        blocks = self._proposals.for_bubble(bubble_id, code_blocks)
        if call is not None:
            drafts.append(self._draft_call(tool_calls.parse_call(call, blocks, self._proposals)))
        elif role != "user":
            for block in blocks:
                drafts.append(
                    self._draft_call(tool_calls.parse_proposal(block, self._proposals), kind="code block")
                )
        if bubble.error_details and (error := error_text(bubble.error_details).strip()):
            drafts.append(MessageDraft("error", error))
        if self._collects_files:
            self._collect_paths(bubble, code_blocks)
        return drafts

    def _draft_call(self, parsed: tool_calls.ParsedCall, kind: str | None = None) -> MessageDraft:
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
        return MessageDraft("tool", "", kind, call, (), parsed.cwd)

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
        for path in (*attached_paths(bubble.context), *(file_path(block.uri) for block in code_blocks)):
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
