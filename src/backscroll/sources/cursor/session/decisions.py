"""Decision of the user on a proposal of the assistant, and the evidence for it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from backscroll.model import Decision
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, as_text, decode, unwrap
from backscroll.sources.cursor.database.record_types import CodeBlock

__all__ = ["DecisionEvidence", "from_code_blocks", "from_hunk_fates", "from_tool_record"]

_MAX_DEPTH = 6
_IS_ACCEPTED = {"accepted": True, "accept": True, "rejected": False, "reject": False}


class DecisionEvidence(NamedTuple):
    """Decision, and the name of the record that it comes from."""

    decision: Decision
    evidence: str


def from_code_blocks(blocks: list[CodeBlock]) -> DecisionEvidence | None:
    """Return the decision from the status of code blocks, which is independent of the auto-run setting."""
    statuses = {as_text(block.status) for block in blocks}
    if statuses >= {"accepted", "rejected"}:
        return DecisionEvidence("modified", "codeBlockData")
    if "accepted" in statuses:
        return DecisionEvidence("accepted", "codeBlockData")
    if "rejected" in statuses:
        return DecisionEvidence("rejected", "codeBlockData")
    return None


def from_hunk_fates(record: bytes | None) -> DecisionEvidence | None:
    """Return the decision from the fates of hunks. Accepted and rejected hunks mean a modified proposal."""
    if not record:
        return None
    try:
        fates = set(_find_fates(decode(record, object), 0))
    except UndecodableError:
        return None
    if len(fates) == 2:
        return DecisionEvidence("modified", "codeBlockPartialInlineDiffFates")
    if fates:
        return DecisionEvidence(
            "accepted" if True in fates else "rejected", "codeBlockPartialInlineDiffFates"
        )
    return None


def _find_fates(value: Any, depth: int) -> Iterator[bool]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        if value in _IS_ACCEPTED:
            yield _IS_ACCEPTED[value]
    elif isinstance(value, list):
        for item in value:
            yield from _find_fates(item, depth + 1)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _find_fates(item, depth + 1)


def from_tool_record(record: dict[str, Any], result: Any) -> DecisionEvidence | None:
    """Return the decision from a tool record: the user's answer, else a flag that auto-run sets too."""
    review = as_map(as_map(record.get("additionalData")).get("reviewData"))
    match as_text(review.get("selectedOption")):
        case "run" | "accept":
            return DecisionEvidence("accepted", "reviewData")
        case "skip" | "reject":
            return DecisionEvidence("rejected", "reviewData")
    if as_map(result).get("rejected") is True or as_text(record.get("status")) == "rejected":
        return DecisionEvidence("rejected", "result")
    match as_text(unwrap(record.get("userDecision"))):
        case "accepted":
            return DecisionEvidence("accepted", "userDecision")
        case "rejected":
            return DecisionEvidence("rejected", "userDecision")
        case "modified" | "partially_accepted" | "partial":
            return DecisionEvidence("modified", "userDecision")
    return None
