"""User lines: few were typed by a person, most answer a tool call."""

from typing import Any

from backscroll.model import Answer, Attachment, Edit, Link
from backscroll.sources.claude_code import results, talk
from backscroll.sources.claude_code.blocks import attachment, blocks_of, result_text
from backscroll.sources.claude_code.branches import CAVEAT, COMMAND, META, TALK
from backscroll.sources.claude_code.lines import Block, Line, LineOrigin, text
from backscroll.sources.claude_code.said import Said

__all__ = ["answer", "tell"]


def tell(said: Said) -> None:
    """Tell what a user line answers and says."""
    texts, attachments, answers = _opened(said.message().content)
    kind = _injected(said.value, texts[0]) if texts else None
    parts = talk.parts(texts) if kind is None else [talk.Part(kind, "\n".join(texts))]
    said.enter(_flags(said.value, parts))
    for block in answers:
        answer(block, said)
    if attachments and not parts:
        parts = [talk.Part(None, "")]
    human = any(part.kind is None for part in parts)
    for part in parts:
        if part.kind is None:
            _prompt(part.content, said, attachments)
            attachments = ()
        else:
            said.say("system", part.content, kind=part.kind, attachments=() if human else attachments)


def _opened(content: Any) -> tuple[list[str], tuple[Attachment, ...], list[Block]]:
    """A line's words, what came along, and the tool results in it."""
    if isinstance(content, str):
        return [content], (), []
    blocks = blocks_of(content)
    return (
        [b.text for b in blocks if b.type != "tool_result" and isinstance(b.text, str)],
        tuple(found for b in blocks if (found := attachment(b)) is not None),
        [b for b in blocks if b.type == "tool_result"],
    )


def _prompt(words: str, said: Said, attachments: tuple[Attachment, ...]) -> None:
    if words and said.repeats("prompt", words):
        return
    said.transcript.delivered(words)
    kind = None
    if said.is_agent_root:
        said.transcript.kept.agents.began(said.agent_id or "", words, said.at)
        kind = "task"
    said.say("user", words, kind=kind, attachments=attachments)


def _injected(value: Line, first: str) -> str | None:
    """Why a user line was not typed by a person, as far as its flags tell."""
    if value.is_compact_summary is True or first.startswith(talk.COMPACTION_START):
        return "compaction"
    origin = value.origin.kind if isinstance(value.origin, LineOrigin) else None
    if origin in ("peer", "coordinator"):
        return "peer"  # they also say isMeta, and are worth more than a reminder
    if value.is_meta is True:
        return "caveat" if talk.is_caveat(first) else "meta"
    if origin == "task-notification":
        return "notification"
    if origin == "auto-continuation":
        return "continuation"
    if value.is_visible_in_transcript_only is True:
        return "transcript only"
    if value.prompt_source == "system":
        return "meta"
    if value.interrupted_message_id is not None:
        return "interruption"
    return None


def _flags(value: Line, parts: list[talk.Part]) -> int:
    flags = TALK
    if value.is_meta is True or value.team_name is not None:
        flags |= META
    if parts and parts[0].kind == "caveat":
        flags |= CAVEAT
    if parts and all(part.kind in ("command", "command output") for part in parts):
        flags |= COMMAND
    return flags


def answer(block: Block, said: Said) -> None:
    """Tell what came of a call."""
    call = text(block.tool_use_id)
    if call is None:
        return
    transcript = said.transcript
    value = said.value
    result, attachments = result_text(block.content)
    if result.startswith("<persisted-output>"):
        result = results.spilled(result, transcript.results_folder)
    denial = text(value.tool_denial_kind)
    status, decision = results.outcome(result, is_error=block.is_error is True, denial=denial)
    edits: tuple[Edit, ...] = ()
    pending = transcript.kept.pending.pop(call, None)
    if pending is not None:
        said.answers = pending.node
        if pending.params is not None and status == "completed":
            edits, decision = results.edits(pending.name, pending.params, value.tool_use_result)
        if pending.name in results.AGENT_TOOLS:
            _agent_ended(call, said)
    transcript.emit(
        Answer(
            tool_call_id=call,
            result=result,
            origin=said.origin,
            record_id=said.id,
            status=status,
            decision=decision,
            timestamp=said.at,
            edits=edits,
            attachments=attachments,
        )
    )


def _agent_ended(call: str, said: Said) -> None:
    found = results.agent_result(said.value.tool_use_result)
    agent_id = said.transcript.kept.agents.ended(call, found) if found is not None else None
    if agent_id is not None:
        said.transcript.link(
            Link(agent_id=agent_id, tool_call_id=call, evidence="result of the call", strength=2)
        )
