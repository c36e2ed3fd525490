"""Assistant lines: what was thought, said and asked for, one message a block.

Since 2.1.30 every line holds one block of a response; earlier ones hold up to
six. Lines of one response share its id and need not be neighbours.
"""

from typing import Any

from backscroll.model import Role, ToolCall, UsageReport
from backscroll.readers.text_values import text_in
from backscroll.sources.claude_code.transcript import tool_results, user_lines
from backscroll.sources.claude_code.transcript.branches import TALK
from backscroll.sources.claude_code.transcript.content_blocks import attachment, blocks_of
from backscroll.sources.claude_code.transcript.line_context import Said
from backscroll.sources.claude_code.transcript.line_types import Block, params, text, usage
from backscroll.sources.claude_code.transcript.subagents import Pending

__all__ = ["tell"]

_SYNTHETIC = "<synthetic>"  # the program's own words, not a model's
_LIMIT_REACHED = "Claude AI usage limit reached"
_OTHER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})


def tell(said: Said) -> None:
    """Tell the messages of an assistant line."""
    message, transcript = said.message(), said.transcript
    model, stopped = message.model, message.stop_reason
    known = transcript.kept.model
    said.response = text(message.id)
    if stopped is not None:
        said.stop_reason = transcript.same(stopped)
    if model != _SYNTHETIC:
        said.model = known if model == known else transcript.same(model)
        said.usage = usage(message.usage, finished=stopped is not None, cost=said.value.cost_usd)
    said.enter(TALK)
    content = message.content
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], Block):
        _tell_block(content[0], 0, said)  # as it is in nearly all
    else:
        for number, block in enumerate(blocks_of(content)):
            _tell_block(block, number, said)
    if said.usage is not None:  # nothing but white space was said, and yet it cost something
        if said.response is None:
            said.say("assistant", "", kind="empty")
        else:
            transcript.emit(UsageReport(said.response, said.usage, said.origin))
    dead = said.value.supersedes_uuids
    if dead is not None and isinstance(dead, list):
        transcript.tree.dead.update(id_ for id_ in dead if isinstance(id_, str))


def _tell_block(block: Block, number: int, said: Said) -> None:
    kind = block.type
    if kind == "tool_use":
        _call(block, said)
    elif kind == "text":
        words = block.text if isinstance(block.text, str) else text_in(said.block(number))
        if words.strip() and not said.repeats("text", words):
            said.say(_role(words, said), words)
    elif kind == "thinking":
        words = block.thinking if isinstance(block.thinking, str) else text_in(said.block(number))
        if not words.strip():
            # Empty but signed is how most thinking is kept since 2026.
            said.say("thinking", "", kind="signed" if len(block.signature) > 2 else "empty")
        elif not said.repeats("thinking", words):
            said.say("thinking", words)
    else:
        _tell_rare(block, number, said)


def _tell_rare(block: Block, number: int, said: Said) -> None:
    kind = text(block.type)
    if kind in _OTHER_CALLS:
        _call(block, said)
    elif kind == "redacted_thinking":
        said.say("thinking", "", kind="redacted")
    elif kind is not None and kind.endswith("tool_result"):
        user_lines.answer(block, said)
    elif kind == "fallback":
        said.say("system", f"{_model(block.from_)} → {_model(block.to)}", kind="fallback")
    elif (found := attachment(block)) is not None:
        said.say("assistant", "", attachments=(found,))
    else:
        said.transcript.tally.add_unknown(f"content block {kind}")
        words = text(block.text) or f"[{kind}]\n{text_in(said.block(number))}".strip()
        said.say("assistant", words, kind="unknown block")


def _role(words: str, said: Said) -> Role:
    if said.value.is_api_error_message is True or words.startswith(_LIMIT_REACHED):
        return "error"
    if said.model is None and (words.startswith("API Error") or len(said.value.error) > len(b"null")):
        return "error"
    return "assistant"


def _call(block: Block, said: Said) -> None:
    name = said.transcript.same(block.name) or "unknown"
    id_ = text(block.id)
    asked = block.input if isinstance(block.input, dict) else params(block.input)
    is_edit = name in tool_results.EDIT_TOOLS
    edits = tool_results.proposed(name, asked) if is_edit else ()
    said.say("tool", "", tool=ToolCall(id_, name, asked, edits=edits))
    if id_ is None:
        return
    kept = said.transcript.kept
    if said.is_known and id_ in kept.answered:
        return
    if name in tool_results.AGENT_TOOLS:
        kept.agents.asked(id_, asked, said.at)
    kept.pending[id_] = Pending(name, said.node, tool_results.change_asked(asked) if is_edit else None)
    if is_edit:
        said.transcript.proposals[id_] = edits
    kept.answered.pop(id_, None)
    if kept.early and (early := kept.take_early(id_)) is not None:
        user_lines.settle(id_, early, said)


def _model(found: Any) -> str:
    if isinstance(found, dict):
        found = found.get("model")
    return found if isinstance(found, str) else "?"
