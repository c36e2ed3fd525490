"""Parse user lines. Few were typed by the user; most have the result of a tool call."""

from typing import Any

from backscroll.model import Attachment, Edit, SubagentLink, ToolResult
from backscroll.readers.text_values import text_in
from backscroll.sources.claude_code.transcript import tool_results, user_text
from backscroll.sources.claude_code.transcript.branches import CAVEAT, COMMAND, META, TALK
from backscroll.sources.claude_code.transcript.checkpoint import EarlyResult
from backscroll.sources.claude_code.transcript.content_blocks import (
    attachment,
    blocks_of,
    odd_result_text,
    result_text,
)
from backscroll.sources.claude_code.transcript.line_context import LineContext
from backscroll.sources.claude_code.transcript.line_types import Block, Line, LineOrigin, ToolUseResult, text

__all__ = ["add_tool_result", "apply_early_result", "parse"]

_COMMANDS = frozenset({"command", "command output", "shell", "shell output"})


def parse(context: LineContext) -> None:
    """Emit the tool results and messages of a user line."""
    content = context.message().content
    if isinstance(content, list) and len(content) == 1:
        only = content[0]
        if isinstance(only, Block) and only.type == "tool_result":  # the common case
            context.add_to_tree(_flags(context.value, []))
            add_tool_result(only, context)
            return
    texts, attachments, results, unknown = _split_content(content)
    kind = _injected(context.value, texts[0] if texts else "") if texts or attachments else None
    parts = user_text.parts(texts) if kind is None else [user_text.Part(kind, "\n".join(texts))]
    context.add_to_tree(_flags(context.value, parts))
    for block in results:
        add_tool_result(block, context, () if parts else attachments)
    if attachments and not parts and not results:
        parts = [user_text.Part(None, "")]
    human = any(part.kind is None for part in parts)
    for part in parts:
        if part.kind is None:
            _prompt(part.content, context, attachments)
            attachments = ()
        else:
            if part.kind == "command":
                context.transcript.mark_delivered(part.content)
            elif part.kind == "shell":
                context.transcript.mark_delivered(part.content.replace("! ", "!", 1))
            context.add_message(
                "system", part.content, kind=part.kind, attachments=() if human else attachments
            )
    for number, kind in unknown:
        words = text_in(context.raw_block(number))
        if kind is None and not words:
            continue
        context.transcript.tally.add_unknown(f"content block {kind}")
        context.add_message("system", f"[{kind}]\n{words}".strip(), kind="unknown block")


_Unknown = tuple[int, str | None]  # position and type of a block of unknown type


def _split_content(content: Any) -> tuple[list[str], tuple[Attachment, ...], list[Block], list[_Unknown]]:
    """Return the texts, attachments, tool results and unknown blocks of a message."""
    if isinstance(content, str):
        return [content], (), [], []
    texts: list[str] = []
    attachments: list[Attachment] = []
    results: list[Block] = []
    unknown: list[_Unknown] = []
    for number, block in enumerate(blocks_of(content)):
        kind = text(block.type)
        if kind is not None and kind.endswith("tool_result"):
            results.append(block)
        elif (found := attachment(block)) is not None:
            attachments.append(found)
        elif isinstance(block.text, str):
            texts.append(block.text)
        else:
            unknown.append((number, kind if kind != "text" else None))
    return texts, tuple(attachments), results, unknown


def _prompt(words: str, context: LineContext, attachments: tuple[Attachment, ...]) -> None:
    if words and context.is_repeat("prompt", words):
        return
    context.transcript.mark_delivered(words)
    kind = None
    if context.is_agent_root:
        context.transcript.state.agents.add_start(context.agent_id or "", words, context.at)
        kind = "task"
    context.add_message("user", words, kind=kind, attachments=attachments)


def _injected(value: Line, first: str) -> str | None:
    """Return the kind of a line that the user did not type, as far as its flags show it."""
    if value.is_compact_summary is True or first.lstrip().startswith(user_text.COMPACTION_START):
        return "compaction"
    origin = value.origin.kind if isinstance(value.origin, LineOrigin) else None
    if origin in ("peer", "coordinator"):
        return "peer"  # before isMeta, which these lines also have
    if value.is_meta is True:
        return "caveat" if user_text.is_caveat(first) else "meta"
    if origin == "task-notification":
        return "notification"
    if origin == "auto-continuation":
        return "continuation"
    if value.is_visible_in_transcript_only is True:
        return "transcript only"
    if value.prompt_source == "system":
        return "meta"
    return None


def _flags(value: Line, parts: list[user_text.Part]) -> int:
    flags = TALK
    if value.is_meta is True or value.team_name is not None:
        flags |= META
    if parts and parts[0].kind == "caveat":
        flags |= CAVEAT
    if parts and all(part.kind in _COMMANDS for part in parts):
        flags |= COMMAND
    return flags


def add_tool_result(block: Block, context: LineContext, attachments: tuple[Attachment, ...] = ()) -> None:
    """Emit a tool result. ``attachments`` are blocks of the same message."""
    transcript = context.transcript
    value = context.value
    call = text(block.tool_use_id) or f"record {context.id}"
    content = block.content
    is_error = block.is_error is True
    own: tuple[Attachment, ...] = ()
    if isinstance(content, str):
        result = content
    else:
        found = result_text(content)
        result, own = found if found is not None else (odd_result_text(_content(context, block)), ())
        is_error = is_error or _is_error(content)
    if result.startswith("<persisted-output>"):
        result = tool_results.load_spilled(result, transcript.results_folder)
    denial = None if value.tool_denial_kind is None else text(value.tool_denial_kind)
    status, decision = tool_results.outcome(result, is_error=is_error, denial=denial)
    edits: tuple[Edit, ...] = ()
    pending = transcript.state.take_pending(call)
    if pending is not None:
        context.call_node = pending.node
        if pending.params is not None:
            asked = transcript.proposals.pop(call, ())
            if status == "completed":
                edits, decision = tool_results.edits(
                    pending.name, pending.params, value.tool_use_result, asked
                )
        if pending.name in tool_results.AGENT_TOOLS:
            _agent_ended(call, value.tool_use_result, context)
    else:
        early = EarlyResult(result, status, context.raw_result(), context.origin, context.id, context.at)
        transcript.state.keep_early_result(call, early)
    context.has_tool_result = True
    transcript.emit(
        ToolResult(
            tool_call_id=call,
            result=result,
            origin=context.origin,
            record_id=context.id,
            status=status,
            decision=decision,
            timestamp=context.at,
            edits=edits,
            attachments=own + attachments,
        )
    )


def _is_error(content: Any) -> bool:
    """Return whether the type of a server tool's result is an error."""
    kind = text(content.type) if isinstance(content, Block) else None
    return kind is not None and kind.endswith("_error")


def _content(context: LineContext, block: Block) -> Any:
    """Return the content of a result as decoded JSON, for forms that the types do not cover."""
    message = context.full_record().get("message")
    blocks = message.get("content") if isinstance(message, dict) else None
    for found in blocks if isinstance(blocks, list) else [blocks]:
        if isinstance(found, dict) and found.get("tool_use_id") == block.tool_use_id:
            return found.get("content")
    return None


def apply_early_result(call: str, early: EarlyResult, context: LineContext) -> None:
    """Parse a result again that was written before its call."""
    state = context.transcript.state
    pending = state.take_pending(call)
    if pending is None:
        return
    context.transcript.tree.tie(early.record_id, pending.node)
    edits: tuple[Edit, ...] = ()
    decision = None
    structured = tool_results.decode_result(early.raw)
    asked = context.transcript.proposals.pop(call, ())
    if pending.params is not None and early.status == "completed":
        edits, decision = tool_results.edits(pending.name, pending.params, structured, asked)
    if pending.name in tool_results.AGENT_TOOLS:
        _agent_ended(call, structured, context)
    context.transcript.emit(
        ToolResult(
            tool_call_id=call,
            result=early.result,
            origin=early.origin,
            record_id=early.record_id,
            status=early.status,
            decision=decision,
            timestamp=early.at,
            edits=edits,
        )
    )


def _agent_ended(call: str, found: Any, context: LineContext) -> None:
    if not isinstance(found, ToolUseResult):
        return
    agent_id = context.transcript.state.agents.add_totals(call, found)
    if agent_id is not None:
        context.transcript.link(
            SubagentLink(agent_id=agent_id, tool_call_id=call, evidence="result of the call", strength=2)
        )
