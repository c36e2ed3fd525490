"""Parse assistant lines: thinking, text and tool calls, one message per block.

Since 2.1.30 every line has one block of a response; earlier lines have up to six. Lines of one response
share its id and need not be adjacent.
"""

from typing import Any

from backscroll.model import Role, ToolCall, UsageReport
from backscroll.readers.text_values import text_in
from backscroll.sources.claude_code.transcript import commands, tool_results, user_lines
from backscroll.sources.claude_code.transcript.branches import DIALOG
from backscroll.sources.claude_code.transcript.content_blocks import blocks_of, to_attachment
from backscroll.sources.claude_code.transcript.line_context import LineContext
from backscroll.sources.claude_code.transcript.line_structs import Block, as_text, parse_params, parse_usage
from backscroll.sources.claude_code.transcript.subagents.agents import Pending

__all__ = ["parse"]

_SYNTHETIC_MODEL = "<synthetic>"  # the text is from the tool, not from a model
_NO_RESPONSE = "No response requested."  # after a resume, in place of an answer; the model is synthetic
_NO_CONTENT = "(no content)"  # in place of an empty answer, with the name of the model
_LIMIT_REACHED_PREFIX = "Claude AI usage limit reached"
_OTHER_CALL_TYPES = frozenset({"server_tool_use", "mcp_tool_use"})


def parse(context: LineContext) -> None:
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
        commands.confirm_above(context)
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
            role = _role(text, context)
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
        user_lines.add_tool_result(block, context)
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


def _role(text: str, context: LineContext) -> Role:
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
    state.pending[id_] = Pending(name, context.node, tool_results.edit_params(params) if is_edit else None)
    if is_edit:
        context.transcript.proposals[id_] = edits
    state.answered.pop(id_, None)
    if state.early and (early := state.take_early_result(id_)) is not None:
        user_lines.apply_early_result(id_, early, context)


def _model_name(model: Any) -> str:
    if isinstance(model, dict):
        model = model.get("model")
    return model if isinstance(model, str) else "?"
