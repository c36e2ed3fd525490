"""Parse user and assistant lines, which have the messages of the conversation.

Most user lines contain the result of a tool call; few were typed by the user. An assistant line has thinking,
text and tool calls, one message per block. Since 2.1.30 every assistant line has one block of a response;
earlier lines have up to six. Lines of one response share its id and need not be adjacent.
"""

from typing import Any

from backscroll.model.message import Attachment, Role, ToolCall
from backscroll.model.stream import UsageReport
from backscroll.readers.lenient_json import text_in
from backscroll.sources.claude_code.transcript import tool_results, user_text
from backscroll.sources.claude_code.transcript.branches import CAVEAT, COMMAND, COMMAND_INPUT, DIALOG, META
from backscroll.sources.claude_code.transcript.line_structs import (
    Block,
    Line,
    LineOrigin,
    as_text,
    blocks_of,
    parse_params,
    parse_usage,
    to_attachment,
)
from backscroll.sources.claude_code.transcript.state import LineContext, PendingCall
from backscroll.sources.claude_code.transcript.subagents import parse_report

_SYNTHETIC_MODEL = "<synthetic>"  # the text is from the tool, not from a model
_NO_RESPONSE = "No response requested."  # after a resume, in place of an answer; the model is synthetic
_NO_CONTENT = "(no content)"  # in place of an empty answer, with the name of the model
_LIMIT_REACHED_PREFIX = "Claude AI usage limit reached"
_OTHER_CALL_TYPES = frozenset({"server_tool_use", "mcp_tool_use"})
_OUTPUT_KINDS = frozenset({"command output", "shell output"})
_COMMAND_KINDS = frozenset({"command", "shell"}) | _OUTPUT_KINDS

_UnknownBlock = tuple[int, str | None]  # index and type


# Assistant lines


def parse_assistant(context: LineContext) -> None:
    """Emit the messages of an assistant line."""
    message, transcript = context.message(), context.transcript
    model, stop_reason = message.model, message.stop_reason
    session_model = transcript.state.model
    transcript.state.last_prompt = None
    context.response = as_text(message.id)
    if stop_reason is not None:
        context.stop_reason = transcript.intern(stop_reason)
    if model != _SYNTHETIC_MODEL:
        context.model = session_model if model == session_model else transcript.intern(model)
        context.usage = parse_usage(
            message.usage, finished=stop_reason is not None, cost=context.value.cost_usd
        )
    context.add_to_tree(DIALOG)
    if transcript.state.commands.unconfirmed and (
        model != _SYNTHETIC_MODEL or context.value.is_api_error_message is True
    ):
        user_text.confirm_above(context)
    content = message.content
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], Block):
        _parse_block(content[0], 0, context)  # the common case
    else:
        for index, block in enumerate(blocks_of(content)):
            _parse_block(block, index, context)
    if context.usage is not None:  # the line has no message, but its response has a cost
        if context.response is None:
            context.add_message("assistant", "", kind="empty")
        else:
            transcript.emit(
                UsageReport(
                    context.response,
                    context.usage,
                    context.origin,
                    context.model,
                    context.at,
                    context.agent_id,
                )
            )
    superseded = context.value.supersedes_uuids
    if superseded is not None and isinstance(superseded, list):
        transcript.tree.retracted_ids.update(id_ for id_ in superseded if isinstance(id_, str))


def _parse_block(block: Block, index: int, context: LineContext) -> None:
    kind = block.type
    if kind == "tool_use":
        _add_tool_call(block, context)
    elif kind == "text":
        text = block.text if isinstance(block.text, str) else text_in(context.raw_block(index))
        if text.strip() and not context.is_repeat("text", text):
            role = _assistant_role(text, context)
            context.add_message(role, text, kind="notice" if role == "system" else None)
    elif kind == "thinking":
        text = block.thinking if isinstance(block.thinking, str) else text_in(context.raw_block(index))
        if not text.strip():
            # Since 2026 most thinking blocks are stored empty with a signature.
            context.add_message("thinking", "", kind="signed" if len(block.signature) > 2 else "empty")
        elif not context.is_repeat("thinking", text):
            context.add_message("thinking", text)
    else:
        _parse_rare_block(block, index, context)


def _parse_rare_block(block: Block, index: int, context: LineContext) -> None:
    kind = as_text(block.type)
    if kind in _OTHER_CALL_TYPES:
        _add_tool_call(block, context)
    elif kind == "redacted_thinking":
        context.add_message("thinking", "", kind="redacted")
    elif kind is not None and kind.endswith("tool_result"):
        tool_results.add_tool_result(block, context)
    elif kind == "fallback":
        context.add_message(
            "system", f"{_model_name(block.from_)} → {_model_name(block.to)}", kind="fallback"
        )
    elif (found := to_attachment(block)) is not None:
        context.add_message("assistant", "", attachments=(found,))
    else:
        context.transcript.counts.add_unknown(f"content block {kind}")
        text = as_text(block.text) or f"[{kind}]\n{text_in(context.raw_block(index))}".strip()
        context.add_message("assistant", text, kind="unknown block")


def _assistant_role(text: str, context: LineContext) -> Role:
    if context.value.is_api_error_message is True or text.startswith(_LIMIT_REACHED_PREFIX):
        return "error"
    if context.model is None and (text.startswith("API Error") or len(context.value.error) > len(b"null")):
        return "error"
    # Other text with the synthetic model can be part of an answer that the user interrupted (2.1.105).
    if text == _NO_CONTENT or (context.model is None and text == _NO_RESPONSE):
        return "system"
    return "assistant"


def _add_tool_call(block: Block, context: LineContext) -> None:
    name = context.transcript.intern(block.name) or "unknown"
    id_ = as_text(block.id)
    params = block.input if isinstance(block.input, dict) else parse_params(block.input)
    is_edit = name in tool_results.EDIT_TOOLS
    edits = tool_results.proposed_edits(name, params) if is_edit else ()
    context.add_message("tool", "", tool=ToolCall(id_, name, params, edits=edits))
    if id_ is None:
        return
    state = context.transcript.state
    if context.is_known and id_ in state.answered:
        return
    if name in tool_results.AGENT_TOOLS:
        state.agents.add_call(id_, params, context.at)
    state.pending[id_] = PendingCall(
        name, context.node, tool_results.edit_params(params) if is_edit else None
    )
    if is_edit:
        context.transcript.proposals[id_] = edits
    state.answered.pop(id_, None)
    if state.early and (early := state.take_early_result(id_)) is not None:
        tool_results.apply_early_result(id_, early, context)


def _model_name(model: Any) -> str:
    if isinstance(model, dict):
        model = model.get("model")
    return model if isinstance(model, str) else "?"


# User lines


def parse_user(context: LineContext) -> None:
    """Emit the tool results and messages of a user line."""
    content = context.message().content
    context.transcript.state.last_prompt = None
    if isinstance(content, list) and len(content) == 1:
        block = content[0]
        if isinstance(block, Block) and block.type == "tool_result":  # the common case
            context.add_to_tree(_user_flags(context.value, []))
            tool_results.add_tool_result(block, context)
            return
    texts, attachments, results, unknown = _split_content(content)
    kind = _injected_kind(context.value, texts[0] if texts else "") if texts or attachments else None
    is_unconfirmed = False
    if kind is None and user_text.is_typed(context.value):
        parts = user_text.split_typed(texts)
    elif kind is None:
        parts, is_unconfirmed = user_text.classify(user_text.split_parts(texts), context)
    else:
        parts = [user_text.Part(kind, "\n".join(texts))]
    context.add_to_tree(_user_flags(context.value, parts))
    if context.transcript.state.commands.unconfirmed and parts:
        _confirm_command(parts[0], context)
    stopped_id = as_text(context.value.interrupted_message_id)
    if stopped_id is not None and parts and parts[0].kind == "interruption":
        tool_results.confirm_stopped_calls(stopped_id, context)
    for block in results:
        tool_results.add_tool_result(block, context, () if parts else attachments)
    if attachments and not parts and not results:
        parts = [user_text.Part(None, "")]
    has_typed_part = any(part.kind is None for part in parts)
    for part in parts:
        if not part.content and part.kind in _OUTPUT_KINDS:
            continue  # of a command without output, such as /clear
        if part.kind is None:
            _add_prompt(part.content, context, attachments, kind="feedback" if results else None)
            attachments = ()
        elif part.kind == "notification" and add_report(part.content, context):
            continue
        else:
            if part.kind == "command":
                context.transcript.mark_delivered(part.content)
            elif part.kind == "shell":
                context.transcript.mark_delivered(part.content.replace("! ", "!", 1))
            elif part.kind == "command output" and context.transcript.state.queue.dequeued:
                context.transcript.emit_refused_commands()
            message = context.add_message(
                "system", part.content, kind=part.kind, attachments=() if has_typed_part else attachments
            )
            if is_unconfirmed and part.kind in ("command", "command output"):
                context.transcript.state.commands.add_unconfirmed(context.id, message)
    for index, kind in unknown:
        text = text_in(context.raw_block(index))
        if kind is None and not text:
            continue
        context.transcript.counts.add_unknown(f"content block {kind}")
        context.add_message("system", f"[{kind}]\n{text}".strip(), kind="unknown block")


def _split_content(
    content: Any,
) -> tuple[list[str], tuple[Attachment, ...], list[Block], list[_UnknownBlock]]:
    """Return the texts, attachments, tool results and unknown blocks of a message."""
    if isinstance(content, str):
        return [content], (), [], []
    texts: list[str] = []
    attachments: list[Attachment] = []
    results: list[Block] = []
    unknown: list[_UnknownBlock] = []
    for index, block in enumerate(blocks_of(content)):
        kind = as_text(block.type)
        if kind is not None and kind.endswith("tool_result"):
            results.append(block)
        elif (found := to_attachment(block)) is not None:
            attachments.append(found)
        elif isinstance(block.text, str):
            texts.append(block.text)
        else:
            unknown.append((index, kind if kind != "text" else None))
    return texts, tuple(attachments), results, unknown


def _injected_kind(value: Line, first_text: str) -> str | None:
    """Return the kind of a line that is known not to be typed by the user; None for other lines."""
    if value.is_compact_summary is True:
        return "compaction"
    if first_text.lstrip().startswith(user_text.COMPACTION_START) and not user_text.is_typed(value):
        return "compaction"
    origin = value.origin.kind if isinstance(value.origin, LineOrigin) else None
    if origin in ("peer", "coordinator"):
        return "peer"  # before isMeta, which these lines also have
    if value.is_meta is True:
        return "caveat" if user_text.is_caveat(first_text) else "meta"
    if origin == "task-notification":
        return "notification"
    if origin == "auto-continuation":
        return "continuation"
    if value.is_visible_in_transcript_only is True:
        return "transcript only"
    if value.prompt_source == "system":
        return "meta"
    return None


def _user_flags(value: Line, parts: list[user_text.Part]) -> int:
    flags = DIALOG
    if value.is_meta is True or value.team_name is not None:
        flags |= META
    if not parts:
        return flags
    first = parts[0].kind
    if first == "caveat":
        flags |= CAVEAT
    elif first == "meta" and parts[0].is_expanded:
        flags |= META
    if all(part.kind in _COMMAND_KINDS for part in parts):
        flags |= COMMAND | COMMAND_INPUT if first in ("command", "shell") else COMMAND
    return flags


def _confirm_command(part: user_text.Part, context: LineContext) -> None:
    """Make a command above this line a prompt if this line belongs to its model turn."""
    if part.kind == "interruption" or context.value.turn_origin is not None:
        user_text.confirm_above(context)
    elif part.kind == "meta":
        user_text.confirm_parent(context, part.content)


def _add_prompt(
    text: str, context: LineContext, attachments: tuple[Attachment, ...], kind: str | None = None
) -> None:
    if text and context.is_repeat("prompt", text):
        return
    context.transcript.mark_delivered(text)
    if context.is_agent_root:
        context.transcript.state.agents.set_start(context.agent_id or "", text, context.at)
        kind = "task"
    message = context.add_message("user", text, kind=kind, attachments=attachments)
    context.transcript.state.last_prompt = message


def add_report(text: str, context: LineContext) -> bool:
    """Emit the report of a subagent in the background. Return False if the text has none."""
    report = parse_report(text)
    if report is not None:
        context.transcript.state.agents.add_report(report)
        context.add_message("system", report.text, kind="report")
    return report is not None
