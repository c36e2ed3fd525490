"""Parse a tool record of a bubble into a call: name, arguments, result, decision and edits.

`cursor_graph.tool_calls` parses the calls of the conversation graph.
"""

from typing import Any, NamedTuple

from backscroll.model import Edit, Status, ToolCall
from backscroll.sources.cursor.database.decode import as_map, as_text, make_encodable, unwrap
from backscroll.sources.cursor.database.record_types import CodeBlock
from backscroll.sources.cursor.session import decisions
from backscroll.sources.cursor.session import edits as edit
from backscroll.sources.cursor.session.code_proposals import CodeProposals
from backscroll.sources.cursor.session.decisions import DecisionEvidence
from backscroll.sources.cursor.session.tool_results import error_text, result_text

__all__ = ["ParsedCall", "is_call", "parse_call", "parse_proposal"]

_STATUSES: dict[str, Status] = {
    "loading": "pending",
    "running": "pending",
    "pending": "pending",
    "completed": "completed",
    "success": "completed",
    "error": "failed",
    "failed": "failed",
    "cancelled": "cancelled",
    "canceled": "cancelled",
    "rejected": "cancelled",
    "aborted": "cancelled",
}
_CODE_BLOCK_STATUSES: dict[str, Status] = {
    "accepted": "completed",
    "rejected": "cancelled",
    "cancelled": "cancelled",
    "generating": "pending",
    "applying": "pending",
}
_PROPOSAL_KEYS = ("codeblockId", "codeBlockId", "diffId")
_SUBAGENT_KEYS = ("subagentComposerId", "composerId", "subagentId", "agentId")


class ParsedCall(NamedTuple):
    """Tool call, and facts that are not part of it."""

    call: ToolCall
    decision: DecisionEvidence | None
    cwd: str | None = None
    subagent_id: str | None = None  # the session that the call started


def is_call(record: Any) -> bool:
    """Return whether a record is a call. Most records on bubbles of 2025 are empty."""
    return isinstance(record, dict) and bool(record.get("name") or record.get("tool"))


def parse_call(record: dict[str, Any], blocks: list[CodeBlock], proposals: CodeProposals) -> ParsedCall:
    """Parse a tool record. ``blocks`` is the code proposed in the same bubble."""
    name = str(record.get("name") or f"tool {record.get('tool')}")
    params = _arguments(record)
    result = unwrap(record.get("result"))
    status = _status(record, result)
    extra = as_map(record.get("additionalData"))
    proposal_ids = _texts_of_keys(_PROPOSAL_KEYS, extra)
    decision = None
    if proposal_ids or blocks:
        if not blocks:
            blocks = [block for proposal_id in proposal_ids if (block := proposals.by_id(proposal_id))]
        proposal_ids += [proposal_id for block in blocks if (proposal_id := as_text(block.diff_id))]
        decision = next(
            (
                hunk_decision
                for proposal_id in proposal_ids
                if (hunk_decision := decisions.from_hunk_fates(proposals.hunk_fates(proposal_id)))
            ),
            None,
        )
        decision = decision or decisions.from_code_blocks(blocks)
    decision = decision or decisions.from_tool_record(record, result)
    return ParsedCall(
        ToolCall(
            id=as_text(record.get("toolCallId")) or None,
            name=name,
            params=params,
            result=_call_result(record, result, status),
            status=status,
            decision=decision.decision if decision else None,
            edits=() if status == "failed" else _find_edits(name, params, result, proposal_ids, proposals),
        ),
        decision,
        cwd=as_text(params.get("cwd")) or None,
        subagent_id=next(iter(_texts_of_keys(_SUBAGENT_KEYS, extra)), None),
    )


def _texts_of_keys(keys: tuple[str, ...], extra: dict[str, Any]) -> list[str]:
    """Return the texts of some keys. Nearly every call has none of them."""
    return [text for key in keys if key in extra and (text := as_text(extra[key]))] if extra else []


def _arguments(record: dict[str, Any]) -> dict[str, Any]:
    """Return the model's arguments, else the editor's normalized ones, else the undecodable text."""
    undecodable = ""
    for value in (record.get("rawArgs"), record.get("params")):
        decoded = unwrap(value)
        if isinstance(decoded, dict) and decoded:
            return make_encodable(decoded)  # type: ignore[no-any-return]
        if isinstance(decoded, list) and decoded:
            return {"items": make_encodable(decoded)}
        if isinstance(decoded, str) and decoded.strip():
            undecodable = undecodable or decoded
    return {"raw": undecodable} if undecodable else {}


def _status(record: dict[str, Any], result: Any) -> Status:
    status = _STATUSES.get(as_text(record.get("status")).lower())
    if status is None:
        status = _STATUSES.get(as_text(as_map(record.get("additionalData")).get("status")).lower())
    if status == "completed":
        fields = as_map(result)
        if fields.get("applyFailed"):
            return "failed"
        if fields.get("rejected") is True:
            return "cancelled"
    if status is not None:
        return status
    if record.get("error"):
        return "failed"
    return "pending" if record.get("result") is None else "completed"


def _call_result(record: dict[str, Any], result: Any, status: Status) -> str | None:
    text = result_text(result)
    error = record.get("error")
    message = error_text(error).strip() if error else ""
    if message and message not in (text or ""):
        return f"{text}\n{message}" if text else message
    if text is None and status in ("completed", "failed"):
        return ""
    return text if text or status != "pending" else None


def _find_edits(
    name: str, params: dict[str, Any], result: Any, proposal_ids: list[str], proposals: CodeProposals
) -> tuple[Edit, ...]:
    """Return the edits from the best record: the result, else the stored diff, else the arguments."""
    is_edit = edit.is_edit_tool(name)
    if not is_edit and not proposal_ids and not as_map(result).get("diff"):
        return ()
    path = edit.target_path(params)
    if edits := edit.from_result(path, result):
        return edits
    for proposal_id in proposal_ids:
        record = proposals.diff(proposal_id)
        if (
            record
            and path
            and (edits := edit.from_code_diff(path, unwrap(record.decode("utf-8", "replace"))))
        ):
            return edits
    return edit.from_params(name, path, params) if is_edit else ()


def parse_proposal(block: CodeBlock, proposals: CodeProposals) -> ParsedCall:
    """Return a proposed code block as a call. Before tools existed, files were edited this way."""
    path = edit.target_path({"uri": block.uri}) if block.uri is not None else ""
    status = as_text(block.status)
    decision = decisions.from_code_blocks([block])
    diff_id = as_text(block.diff_id)
    record = proposals.diff(diff_id) if diff_id else None
    if hunk_decision := decisions.from_hunk_fates(proposals.hunk_fates(diff_id) if diff_id else None):
        decision = hunk_decision
    edits = edit.from_code_diff(path, unwrap(record.decode("utf-8", "replace"))) if record else ()
    text = as_text(unwrap(bytes(block.content).decode("utf-8", "replace"), levels=1))
    params: dict[str, Any] = {"path": path}
    if language := as_text(block.language_id):
        params["language"] = language
    return ParsedCall(
        ToolCall(
            id=None,
            name="code_block",
            params=params,
            result="",
            status=_CODE_BLOCK_STATUSES.get(status, "completed"),
            decision=decision.decision if decision else None,
            edits=edits or edit.from_code(path, text),
        ),
        decision,
    )
