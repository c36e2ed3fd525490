"""Parse user lines. Most contain the result of a tool call; few were typed by the user."""

from typing import Any

from backscroll.model import Attachment, Decision, Edit, SubagentLink, ToolResult
from backscroll.readers.text_values import text_in
from backscroll.sources.claude_code.transcript import commands, tool_results, user_text
from backscroll.sources.claude_code.transcript.branches import (
    CAVEAT,
    COMMAND,
    COMMAND_INPUT,
    DIALOG,
    META,
)
from backscroll.sources.claude_code.transcript.checkpoint import EarlyResult
from backscroll.sources.claude_code.transcript.content_blocks import (
    blocks_of,
    fallback_result_text,
    result_text,
    to_attachment,
)
from backscroll.sources.claude_code.transcript.line_context import LineContext
from backscroll.sources.claude_code.transcript.line_structs import (
    Block,
    Line,
    LineOrigin,
    ToolUseResult,
    as_text,
)
from backscroll.sources.claude_code.transcript.subagents.agents import parse_report

__all__ = ["add_report", "add_tool_result", "apply_early_result", "parse"]

_OUTPUT_KINDS = frozenset({"command output", "shell output"})
_COMMAND_KINDS = frozenset({"command", "shell"}) | _OUTPUT_KINDS


def parse(context: LineContext) -> None:
    """Emit the tool results and messages of a user line."""
    content = context.message().content
    context.transcript.state.last_prompt = None
    if isinstance(content, list) and len(content) == 1:
        block = content[0]
        if isinstance(block, Block) and block.type == "tool_result":  # the common case
            context.add_to_tree(_flags(context.value, []))
            add_tool_result(block, context)
            return
    texts, attachments, results, unknown = _split_content(content)
    kind = _injected_kind(context.value, texts[0] if texts else "") if texts or attachments else None
    is_unconfirmed = False
    if kind is None and commands.is_typed(context.value):
        parts = user_text.split_typed(texts)
    elif kind is None:
        parts, is_unconfirmed = commands.classify(user_text.split_parts(texts), context)
    else:
        parts = [user_text.Part(kind, "\n".join(texts))]
    context.add_to_tree(_flags(context.value, parts))
    if context.transcript.state.commands.unconfirmed and parts:
        _confirm_command(parts[0], context)
    stopped_id = as_text(context.value.interrupted_message_id)
    if stopped_id is not None and parts and parts[0].kind == "interruption":
        _confirm_stopped_calls(stopped_id, context)
    for block in results:
        add_tool_result(block, context, () if parts else attachments)
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


def add_report(text: str, context: LineContext) -> bool:
    """Emit the report of a subagent in the background. Return False if the text has none."""
    report = parse_report(text)
    if report is not None:
        context.transcript.state.agents.add_report(report)
        context.add_message("system", report.text, kind="report")
    return report is not None


def _confirm_command(part: user_text.Part, context: LineContext) -> None:
    """Make a command above this line a prompt if this line belongs to its model turn."""
    if part.kind == "interruption" or context.value.turn_origin is not None:
        commands.confirm_above(context)
    elif part.kind == "meta":
        commands.confirm_parent(context, part.content)


_UnknownBlock = tuple[int, str | None]  # index and type


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


def _injected_kind(value: Line, first_text: str) -> str | None:
    """Return the kind of a line that is known not to be typed by the user; None for other lines."""
    if value.is_compact_summary is True:
        return "compaction"
    if first_text.lstrip().startswith(user_text.COMPACTION_START) and not commands.is_typed(value):
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


def _flags(value: Line, parts: list[user_text.Part]) -> int:
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


def add_tool_result(block: Block, context: LineContext, attachments: tuple[Attachment, ...] = ()) -> None:
    """Emit a tool result. ``attachments`` are other blocks of the same message."""
    transcript = context.transcript
    value = context.value
    call_id = as_text(block.tool_use_id) or f"record {context.id}"
    content = block.content
    is_error = block.is_error is True
    result_attachments: tuple[Attachment, ...] = ()
    if isinstance(content, str):
        result = content
    else:
        found = result_text(content)
        if found is None:
            found = fallback_result_text(_decode_content(context, block)), ()
        result, result_attachments = found
        is_error = is_error or _is_error_type(content)
    if result.startswith("<persisted-output>"):
        result = tool_results.load_spilled_result(result, transcript.results_folder)
    status, decision = tool_results.parse_outcome(result, value, is_error=is_error)
    edits: tuple[Edit, ...] = ()
    pending = transcript.state.take_pending(call_id)
    if pending is not None:
        context.call_node = pending.node
        if pending.params is not None:
            proposed = transcript.proposals.pop(call_id, ())
            if status == "completed":
                edits, decision = tool_results.completed_edits(
                    pending.name, pending.params, value.tool_use_result, proposed
                )
        if pending.name in tool_results.AGENT_TOOLS:
            _add_agent_totals(call_id, value.tool_use_result, context)
        elif pending.name == "Bash":
            edits = tool_results.shell_edits(value.tool_use_result)
        elif pending.name in commands.COMMAND_TOOLS:
            transcript.state.commands.add_result(context.id)
        if decision == "rejected" and value.permission_decision is None:
            early = EarlyResult(result, status, b"", context.origin, context.id, context.at)
            transcript.state.keep_rejection(call_id, pending.node, early)
    else:
        early = EarlyResult(
            result, status, context.raw_result(), context.origin, context.id, context.at, decision
        )
        transcript.state.keep_early_result(call_id, early)
    context.has_tool_result = True
    transcript.emit(
        ToolResult(
            tool_call_id=call_id,
            result=result,
            origin=context.origin,
            record_id=context.id,
            status=status,
            decision=decision,
            timestamp=context.at,
            edits=edits,
            attachments=result_attachments + attachments,
        )
    )
    if decision == "rejected":
        _add_dialog_text(tool_results.feedback(result, value), "feedback", context)
    elif pending is not None and pending.name == tool_results.QUESTION_TOOL:
        _add_dialog_text(tool_results.typed_answers(value.tool_use_result), "answer", context)


def _add_dialog_text(text: str | None, kind: str, context: LineContext) -> None:
    """Emit text that the user typed into a dialog. The result of the call also contains it."""
    if text is not None and not context.is_repeat(kind, text):
        context.add_message("user", text, kind=kind)


def _confirm_stopped_calls(response_id: str, context: LineContext) -> None:
    """Emit the results of calls again that were running when the user stopped a response.

    Since 2.1.212 they have the same text and denial kind as calls that the user rejected.
    """
    tree, state = context.transcript.tree, context.transcript.state
    response = tree.response_indexes.get(response_id)
    for call_id, (node, early) in state.rejections.items():
        if tree.responses[node] == response:
            _emit_early_result(call_id, early, context)
    state.rejections.clear()


def _is_error_type(content: Any) -> bool:
    """Return whether the result of a server tool has an error type."""
    kind = as_text(content.type) if isinstance(content, Block) else None
    return kind is not None and kind.endswith("_error")


def _decode_content(context: LineContext, block: Block) -> Any:
    """Return the content of a result as decoded JSON, for forms that the types do not cover."""
    message = context.full_record().get("message")
    blocks = message.get("content") if isinstance(message, dict) else None
    for found in blocks if isinstance(blocks, list) else [blocks]:
        if isinstance(found, dict) and found.get("tool_use_id") == block.tool_use_id:
            return found.get("content")
    return None


def apply_early_result(call_id: str, early: EarlyResult, context: LineContext) -> None:
    """Emit a result again with the call that was written after it."""
    state = context.transcript.state
    pending = state.take_pending(call_id)
    if pending is None:
        return
    context.transcript.tree.follow(early.record_id, pending.node)
    edits: tuple[Edit, ...] = ()
    decision = early.decision
    structured = tool_results.decode_result(early.raw)
    proposed = context.transcript.proposals.pop(call_id, ())
    if pending.params is not None and early.status == "completed":
        edits, decision = tool_results.completed_edits(pending.name, pending.params, structured, proposed)
    if pending.name in tool_results.AGENT_TOOLS:
        _add_agent_totals(call_id, structured, context)
    elif pending.name == "Bash":
        edits = tool_results.shell_edits(structured)
    _emit_early_result(call_id, early, context, decision=decision, edits=edits)


def _emit_early_result(
    call_id: str,
    early: EarlyResult,
    context: LineContext,
    *,
    decision: Decision | None = None,
    edits: tuple[Edit, ...] = (),
) -> None:
    context.transcript.emit(
        ToolResult(
            tool_call_id=call_id,
            result=early.result,
            origin=early.origin,
            record_id=early.record_id,
            status=early.status,
            decision=decision,
            timestamp=early.at,
            edits=edits,
        )
    )


def _add_agent_totals(call_id: str, result: Any, context: LineContext) -> None:
    if not isinstance(result, ToolUseResult):
        return
    agent_id = context.transcript.state.agents.add_totals(call_id, result)
    if agent_id is not None:
        context.transcript.link(
            SubagentLink(agent_id=agent_id, tool_call_id=call_id, evidence="result of the call", strength=2)
        )
