"""A tool record as a call: its name, its arguments, what came of it and what it changed."""

from typing import Any, NamedTuple

from backscroll.model import Edit, Status, ToolCall
from backscroll.sources.cursor.database.decode import as_map, as_text, storable, unwrap
from backscroll.sources.cursor.database.record_types import CodeBlock
from backscroll.sources.cursor.session import decisions
from backscroll.sources.cursor.session import edits as edit
from backscroll.sources.cursor.session.code_proposals import CodeProposals
from backscroll.sources.cursor.session.decisions import DecisionEvidence
from backscroll.sources.cursor.session.tool_results import failure, readable

__all__ = ["ParsedCall", "call", "is_call", "proposed_code"]

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
_CODE_STATUSES: dict[str, Status] = {
    "accepted": "completed",
    "rejected": "cancelled",
    "cancelled": "cancelled",
    "generating": "pending",
    "applying": "pending",
}
_PROPOSAL_KEYS = ("codeblockId", "codeBlockId", "diffId")
_CHILD_KEYS = ("subagentComposerId", "composerId", "subagentId", "agentId")


class ParsedCall(NamedTuple):
    call: ToolCall
    verdict: DecisionEvidence | None
    cwd: str | None = None
    child: str | None = None  # the session it started


def is_call(record: Any) -> bool:
    """Whether a record tells of a call; most of those on bubbles of 2025 are empty shells."""
    return isinstance(record, dict) and bool(record.get("name") or record.get("tool"))


def call(record: dict[str, Any], blocks: list[CodeBlock], proposals: CodeProposals) -> ParsedCall:
    """Everything one tool record tells. ``blocks`` is the code proposed in the same bubble."""
    name = str(record.get("name") or f"tool {record.get('tool')}")
    params = _arguments(record)
    answer = unwrap(record.get("result"))
    status = _status(record, answer)
    extra = as_map(record.get("additionalData"))
    ids = _named(_PROPOSAL_KEYS, extra)
    found = None
    if ids or blocks:
        if not blocks:
            blocks = [block for each in ids if (block := proposals.by_id(each))]
        ids += [each for block in blocks if (each := as_text(block.diff_id))]
        found = next(
            (fates for each in ids if (fates := decisions.from_hunk_fates(proposals.hunk_fates(each)))), None
        )
        found = found or decisions.from_code_blocks(blocks)
    found = found or decisions.from_tool_record(record, answer)
    return ParsedCall(
        ToolCall(
            id=as_text(record.get("toolCallId")) or None,
            name=name,
            params=params,
            result=_result(record, answer, status),
            status=status,
            decision=found.decision if found else None,
            edits=() if status == "failed" else _edits(name, params, answer, ids, proposals),
        ),
        found,
        cwd=as_text(params.get("cwd")) or None,
        child=next(iter(_named(_CHILD_KEYS, extra)), None),
    )


def _named(keys: tuple[str, ...], extra: dict[str, Any]) -> list[str]:
    """The texts under some keys, of which nearly every call has none."""
    return [text for key in keys if key in extra and (text := as_text(extra[key]))] if extra else []


def _arguments(record: dict[str, Any]) -> dict[str, Any]:
    """What the model wrote, else the editor's normalised form, else the text that could not be read."""
    left = ""
    for value in (record.get("rawArgs"), record.get("params")):
        found = unwrap(value)
        if isinstance(found, dict) and found:
            return storable(found)  # type: ignore[no-any-return]
        if isinstance(found, list) and found:
            return {"items": storable(found)}
        if isinstance(found, str) and found.strip():
            left = left or found
    return {"raw": left} if left else {}


def _status(record: dict[str, Any], answer: Any) -> Status:
    known = _STATUSES.get(as_text(record.get("status")).lower())
    if known is None:
        known = _STATUSES.get(as_text(as_map(record.get("additionalData")).get("status")).lower())
    if known == "completed":
        fields = as_map(answer)
        if fields.get("applyFailed"):
            return "failed"
        if fields.get("rejected") is True:
            return "cancelled"
    if known is not None:
        return known
    if record.get("error"):
        return "failed"
    return "pending" if record.get("result") is None else "completed"


def _result(record: dict[str, Any], answer: Any, status: Status) -> str | None:
    text = readable(answer)
    error = record.get("error")
    told = failure(error).strip() if error else ""
    if told and told not in (text or ""):
        return f"{text}\n{told}" if text else told
    if text is None and status in ("completed", "failed"):
        return ""
    return text if text or status != "pending" else None


def _edits(
    name: str, params: dict[str, Any], answer: Any, ids: list[str], proposals: CodeProposals
) -> tuple[Edit, ...]:
    """The change by the best record of it: the answer, the stored diff, the arguments."""
    is_editing = edit.is_editing(name)
    if not is_editing and not ids and not as_map(answer).get("diff"):
        return ()
    path = edit.target(params)
    if found := edit.from_answer(path, answer):
        return found
    for each in ids:
        record = proposals.diff(each)
        if (
            record
            and path
            and (found := edit.from_code_diff(path, unwrap(record.decode("utf-8", "replace"))))
        ):
            return found
    return edit.from_params(name, path, params) if is_editing else ()


def proposed_code(block: CodeBlock, proposals: CodeProposals) -> ParsedCall:
    """Code in an answer that the editor offered to apply: before tools, this was how files were changed."""
    path = edit.target({"uri": block.uri}) if block.uri is not None else ""
    status = as_text(block.status)
    found = decisions.from_code_blocks([block])
    diff = as_text(block.diff_id)
    record = proposals.diff(diff) if diff else None
    if fates := decisions.from_hunk_fates(proposals.hunk_fates(diff) if diff else None):
        found = fates
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
            status=_CODE_STATUSES.get(status, "completed"),
            decision=found.decision if found else None,
            edits=edits or edit.from_code(path, text),
        ),
        found,
    )
