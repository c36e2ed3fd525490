"""One bubble as messages: thinking, text, tool call and error are each kept, none chosen over another."""

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
from backscroll.sources.cursor.session import attachments as attachment
from backscroll.sources.cursor.session import timestamps, tool_calls
from backscroll.sources.cursor.session.code_proposals import CodeProposals
from backscroll.sources.cursor.session.edits import target
from backscroll.sources.cursor.session.tool_results import failure
from backscroll.sources.cursor.uri import file_path

__all__ = ["AUTO", "BubbleParser", "document_text", "role_of"]

AUTO = ("", "default", "auto", "Auto")
_USER, _ASSISTANT = (1, "user"), (2, "ai", "assistant")
_DEEPEST = 64  # nodes within nodes of an editor document


class MessageDraft(Struct):
    """A message to be, before it has an id and a time."""

    role: Role
    content: str
    kind: str | None = None
    call: ToolCall | None = None
    attachments: tuple[Attachment, ...] = ()
    cwd: str | None = None


class BubbleParser:
    """Turns the bubbles of one session into messages, in the order in which they are said."""

    def __init__(
        self,
        *,
        path: str,
        agent_id: str | None,
        latest: datetime,
        proposals: CodeProposals,
        images: Callable[[], Mapping[str, Path]],
        model: str | None,
        is_auto: bool = True,  # the session as a whole was left to "Auto"
        collects_files: bool,
    ) -> None:
        self._path = path
        self._agent_id = agent_id
        self._latest = latest
        self._proposals = proposals
        self._images = images
        self._model = model
        self._seeks_files = collects_files
        self._is_auto = is_auto
        self._turn_model: str | None = None
        self._is_auto_turn = False
        self._calls: set[str] = set()
        self.decisions: Counter[str] = Counter()  # by evidence
        self.links: list[SubagentLink] = []
        self.files: dict[str, None] = {}  # named so far: signs of the workspace

    def parse(
        self,
        bubble: Bubble,
        bubble_id: str,
        place: str,
        *,
        header: BubbleHeader | None = None,
        record: Any = None,
        is_active: bool = True,
        kind: str | None = None,
    ) -> list[Message]:
        """The messages of one bubble; none of an empty shell. ``record`` is a tool call kept elsewhere."""
        role, odd = role_of(bubble.type, header)
        calls = bubble.tool_former_data
        is_call = calls is not None and tool_calls.is_call(calls)
        if not is_call:
            calls = record
            is_call = record is not None and tool_calls.is_call(record)
        model = self._model_of(bubble, role)
        pieces = self._pieces(bubble, bubble_id, role, calls if is_call else None)
        if not pieces:
            return []
        when = timestamps.bubble_timestamp(
            bubble.created_at, bubble.timestamp, bubble.timing_info, header, calls, self._latest
        )
        origin = Origin(self._path, place)
        usage = _usage(bubble)
        is_user = role == "user"
        messages = []
        for number, piece in enumerate(pieces):
            messages.append(
                Message(
                    id=f"{bubble_id}.{number}" if number else bubble_id,
                    role=piece.role,
                    content=piece.content,
                    origin=origin,
                    kind=kind or piece.kind or odd,
                    timestamp=when.at if when else None,
                    timestamp_source=when.source if when else None,
                    model=None if is_user else model,
                    response_id=None if is_user else bubble_id,
                    agent_id=self._agent_id,
                    is_active=is_active,
                    tool=piece.call,
                    attachments=piece.attachments,
                    cwd=piece.cwd,
                    usage=None if number else usage,
                )
            )
        return messages

    def _pieces(
        self, bubble: Bubble, bubble_id: str, role: Role, call: dict[str, Any] | None
    ) -> list[MessageDraft]:
        pieces: list[MessageDraft] = []
        shown = decode_each(bubble.code_blocks, CodeBlock)[0] if len(bubble.code_blocks) > 2 else []
        attached = attachment.attachments(bubble.context, bubble.images, self._images)
        if thought := _thoughts(bubble):
            pieces.append(MessageDraft("thinking", thought))
        text = _text(bubble)
        if not text and call is None and role != "user":
            text = _shown_code(shown)
        # Without a word, only pictures make a message of the user's: the rest is an input box left open.
        if text or (role == "user" and any(item.kind == "image" for item in attached)):
            kind = "simulated" if role == "user" and bubble.is_simulated_msg is True else None
            pieces.append(MessageDraft(role, text, kind, None, attached))
        blocks = self._proposals.for_bubble(bubble_id, shown)
        if call is not None:
            pieces.append(self._called(tool_calls.call(call, blocks, self._proposals)))
        elif role != "user":
            for block in blocks:
                pieces.append(
                    self._called(tool_calls.proposed_code(block, self._proposals), kind="code block")
                )
        if bubble.error_details and (told := failure(bubble.error_details).strip()):
            pieces.append(MessageDraft("error", told))
        if self._seeks_files:
            self._remember(bubble, shown)
        return pieces

    def _called(self, called: tool_calls.ParsedCall, kind: str | None = None) -> MessageDraft:
        call = called.call
        if call_id := call.id:
            if called.child:
                self.links.append(
                    SubagentLink(
                        agent_id=called.child, tool_call_id=call_id, evidence="additionalData", strength=1
                    )
                )
            if call_id in self._calls:
                # Another bubble has this id already: a second call in its own right, not its answer.
                call = replace(call, id=None)
            self._calls.add(call_id)
        if called.verdict:
            self.decisions[called.verdict.evidence] += 1
        if self._seeks_files and (path := target(call.params)):
            self.files.setdefault(path)
        return MessageDraft("tool", "", kind, call, (), called.cwd)

    def _model_of(self, bubble: Bubble, role: Role) -> str | None:
        """The bubble's own, else the one chosen for its turn, else the session's. "default" names none."""
        named = as_text(as_map(bubble.model_info).get("modelName")) if bubble.model_info else ""
        named = named or as_text(bubble.model_type)
        own = "" if named in AUTO else named
        if role == "user":
            self._turn_model = own or None
            self._is_auto_turn = bool(named) and not own
        if self._is_auto_turn and not self._is_auto:
            return own or None  # the session's model was chosen for another turn
        return own or self._turn_model or self._model

    def _remember(self, bubble: Bubble, shown: list[CodeBlock]) -> None:
        for uri in as_list(bubble.workspace_uris):
            if path := file_path(uri):
                self.files.setdefault(path.rstrip("/") + "/")
        for path in (*attachment.paths(bubble.context), *(file_path(block.uri) for block in shown)):
            if path:
                self.files.setdefault(path)


def role_of(value: Any, header: BubbleHeader | None = None) -> tuple[Role, str | None]:
    """Who speaks, and what to call a type that nobody knows."""
    if value == 2:  # nearly all are
        return "assistant", None
    listed = header.type if header is not None else None
    if value is None:
        value = listed
    if value in _USER:
        return "user", None
    if value is None or value in _ASSISTANT:
        return "assistant", None
    return "user" if listed in _USER else "assistant", f"type {value}"[:40]


def _text(bubble: Bubble) -> str:
    for value in (bubble.text, bubble.raw_text, bubble.content, bubble.message):
        if value and isinstance(value, str) and value.strip():
            return value
    return document_text(bubble.rich_text)


def document_text(value: Any) -> str:
    """The words of an editor document, of either of the two editors Cursor has had."""
    if not value:
        return ""
    document = unwrap(value)
    if isinstance(document, str):
        return document.strip()
    blocks: list[str] = []
    _walk(document, blocks, 0)
    return "".join(blocks).strip()


def _walk(node: Any, into: list[str], depth: int) -> None:
    if depth > _DEEPEST:
        return
    if isinstance(node, list):
        for item in node:
            _walk(item, into, depth + 1)
        return
    fields = as_map(node)
    kind = fields.get("type")
    if kind in ("linebreak", "hardBreak"):
        into.append("\n")
    if text := as_text(fields.get("text")):
        into.append(text)
    for name in ("root", "children", "content"):
        if name in fields:
            _walk(fields[name], into, depth + 1)
    if kind in ("paragraph", "heading", "listItem", "listitem", "codeBlock", "code") and into:
        into.append("\n")


def _thoughts(bubble: Bubble) -> str:
    """The reasoning, whichever way it was written down; its signature is left out."""
    if not bubble.thinking and not bubble.all_thinking_blocks:
        return ""
    found: list[str] = []
    for value in (bubble.thinking, *as_list(bubble.all_thinking_blocks)):
        if value is None:
            continue
        thought = unwrap(value) if isinstance(value, str) and value.lstrip()[:1] == "{" else value
        if isinstance(thought, dict):
            thought = thought.get("text") or thought.get("thinking")
        elif not isinstance(thought, str):
            thought = None
        if isinstance(thought, str) and thought.strip() and thought not in found:
            found.append(thought)
    return "\n\n".join(found)


def _shown_code(blocks: list[CodeBlock]) -> str:
    """Code that is the whole answer."""
    parts = []
    for block in blocks:
        text = unwrap(bytes(block.content).decode("utf-8", "replace"), levels=1)
        if isinstance(text, str) and text.strip():
            parts.append(f"```{as_text(block.language_id)}\n{text}\n```")
    return "\n\n".join(parts)


def _usage(bubble: Bubble) -> TokenUsage | None:
    """Tokens where they were counted; 0 is what builds write that do not count."""
    counted = bubble.token_count
    if isinstance(counted, dict) and (
        found := _tokens(counted.get("inputTokens"), counted.get("outputTokens"))
    ):
        return found
    counted = bubble.usage
    if isinstance(counted, dict):
        return _tokens(counted.get("input_tokens"), counted.get("output_tokens"))
    return None


def _tokens(into: Any, out: Any) -> TokenUsage | None:
    if not into and not out:
        return None
    read, written = as_int(into) or 0, as_int(out) or 0
    if read <= 0 and written <= 0:
        return None
    return TokenUsage(input_tokens=read if read > 0 else None, output_tokens=written if written > 0 else None)
