"""Parse assistant lines: thinking, text and tool calls, one message per block.

Since 2.1.30 every line has one block of a response; earlier lines have up to six. Lines of one response
share its id and need not be adjacent.
"""

from typing import Any

from backscroll.model import Role, ToolCall, UsageReport
from backscroll.readers.text_values import text_in
from backscroll.sources.claude_code.transcript import tool_results, user_lines
from backscroll.sources.claude_code.transcript.branches import TALK
from backscroll.sources.claude_code.transcript.content_blocks import attachment, blocks_of
from backscroll.sources.claude_code.transcript.line_context import LineContext
from backscroll.sources.claude_code.transcript.line_types import Block, params, text, usage
from backscroll.sources.claude_code.transcript.subagents import Pending

__all__ = ["parse"]

_SYNTHETIC = "<synthetic>"  # written by the tool, not by a model
_LIMIT_REACHED = "Claude AI usage limit reached"
_OTHER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})


def parse(context: LineContext) -> None:
    """Emit the messages of an assistant line."""
    message, transcript = context.message(), context.transcript
    model, stopped = message.model, message.stop_reason
    known = transcript.state.model
    context.response = text(message.id)
    if stopped is not None:
        context.stop_reason = transcript.intern(stopped)
    if model != _SYNTHETIC:
        context.model = known if model == known else transcript.intern(model)
        context.usage = usage(message.usage, finished=stopped is not None, cost=context.value.cost_usd)
    context.add_to_tree(TALK)
    content = message.content
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], Block):
        _parse_block(content[0], 0, context)  # the common case
    else:
        for number, block in enumerate(blocks_of(content)):
            _parse_block(block, number, context)
    if context.usage is not None:  # only white space, but it has a cost
        if context.response is None:
            context.add_message("assistant", "", kind="empty")
        else:
            transcript.emit(UsageReport(context.response, context.usage, context.origin))
    dead = context.value.supersedes_uuids
    if dead is not None and isinstance(dead, list):
        transcript.tree.retracted_ids.update(id_ for id_ in dead if isinstance(id_, str))


def _parse_block(block: Block, number: int, context: LineContext) -> None:
    kind = block.type
    if kind == "tool_use":
        _call(block, context)
    elif kind == "text":
        words = block.text if isinstance(block.text, str) else text_in(context.raw_block(number))
        if words.strip() and not context.is_repeat("text", words):
            context.add_message(_role(words, context), words)
    elif kind == "thinking":
        words = block.thinking if isinstance(block.thinking, str) else text_in(context.raw_block(number))
        if not words.strip():
            # Since 2026 most thinking blocks are stored empty with a signature.
            context.add_message("thinking", "", kind="signed" if len(block.signature) > 2 else "empty")
        elif not context.is_repeat("thinking", words):
            context.add_message("thinking", words)
    else:
        _parse_rare_block(block, number, context)


def _parse_rare_block(block: Block, number: int, context: LineContext) -> None:
    kind = text(block.type)
    if kind in _OTHER_CALLS:
        _call(block, context)
    elif kind == "redacted_thinking":
        context.add_message("thinking", "", kind="redacted")
    elif kind is not None and kind.endswith("tool_result"):
        user_lines.add_tool_result(block, context)
    elif kind == "fallback":
        context.add_message("system", f"{_model(block.from_)} → {_model(block.to)}", kind="fallback")
    elif (found := attachment(block)) is not None:
        context.add_message("assistant", "", attachments=(found,))
    else:
        context.transcript.tally.add_unknown(f"content block {kind}")
        words = text(block.text) or f"[{kind}]\n{text_in(context.raw_block(number))}".strip()
        context.add_message("assistant", words, kind="unknown block")


def _role(words: str, context: LineContext) -> Role:
    if context.value.is_api_error_message is True or words.startswith(_LIMIT_REACHED):
        return "error"
    if context.model is None and (words.startswith("API Error") or len(context.value.error) > len(b"null")):
        return "error"
    return "assistant"


def _call(block: Block, context: LineContext) -> None:
    name = context.transcript.intern(block.name) or "unknown"
    id_ = text(block.id)
    asked = block.input if isinstance(block.input, dict) else params(block.input)
    is_edit = name in tool_results.EDIT_TOOLS
    edits = tool_results.proposed_edits(name, asked) if is_edit else ()
    context.add_message("tool", "", tool=ToolCall(id_, name, asked, edits=edits))
    if id_ is None:
        return
    state = context.transcript.state
    if context.is_known and id_ in state.answered:
        return
    if name in tool_results.AGENT_TOOLS:
        state.agents.add_call(id_, asked, context.at)
    state.pending[id_] = Pending(name, context.node, tool_results.edit_params(asked) if is_edit else None)
    if is_edit:
        context.transcript.proposals[id_] = edits
    state.answered.pop(id_, None)
    if state.early and (early := state.take_early_result(id_)) is not None:
        user_lines.apply_early_result(id_, early, context)


def _model(found: Any) -> str:
    if isinstance(found, dict):
        found = found.get("model")
    return found if isinstance(found, str) else "?"
