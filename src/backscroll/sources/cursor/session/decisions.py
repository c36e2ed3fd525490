"""Whether the user took what the assistant proposed, and how that is known."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from backscroll.model import Decision
from backscroll.sources.cursor.database.decode import UndecodableError, as_map, as_text, decode, unwrap
from backscroll.sources.cursor.database.record_types import CodeBlock

__all__ = ["DecisionEvidence", "from_code_blocks", "from_hunk_fates", "from_tool_record"]

_FATES = {"accepted": True, "accept": True, "rejected": False, "reject": False}


class DecisionEvidence(NamedTuple):
    decision: Decision
    evidence: str


def from_code_blocks(blocks: list[CodeBlock]) -> DecisionEvidence | None:
    """The editor's own record of what became of proposed code, which no auto-run setting touches."""
    statuses = {as_text(block.status) for block in blocks}
    if statuses >= {"accepted", "rejected"}:
        return DecisionEvidence("modified", "codeBlockData")
    if "accepted" in statuses:
        return DecisionEvidence("accepted", "codeBlockData")
    if "rejected" in statuses:
        return DecisionEvidence("rejected", "codeBlockData")
    return None


def from_hunk_fates(record: bytes | None) -> DecisionEvidence | None:
    """The fates of single hunks: some taken and some not is a modified proposal."""
    if not record:
        return None
    try:
        fates = set(_fates(decode(record, object), 0))
    except UndecodableError:
        return None
    if len(fates) == 2:
        return DecisionEvidence("modified", "codeBlockPartialInlineDiffFates")
    if fates:
        return DecisionEvidence(
            "accepted" if True in fates else "rejected", "codeBlockPartialInlineDiffFates"
        )
    return None


def _fates(value: Any, depth: int) -> Iterator[bool]:
    if depth > 6:
        return
    if isinstance(value, str):
        if value in _FATES:
            yield _FATES[value]
    elif isinstance(value, list):
        for item in value:
            yield from _fates(item, depth + 1)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _fates(item, depth + 1)


def from_tool_record(record: dict[str, Any], answer: Any) -> DecisionEvidence | None:
    """What the call itself says: the question that was asked, then the flag that auto-run sets too."""
    review = as_map(as_map(record.get("additionalData")).get("reviewData"))
    match as_text(review.get("selectedOption")):
        case "run" | "accept":
            return DecisionEvidence("accepted", "reviewData")
        case "skip" | "reject":
            return DecisionEvidence("rejected", "reviewData")
    if as_map(answer).get("rejected") is True or as_text(record.get("status")) == "rejected":
        return DecisionEvidence("rejected", "result")
    match as_text(unwrap(record.get("userDecision"))):
        case "accepted":
            return DecisionEvidence("accepted", "userDecision")
        case "rejected":
            return DecisionEvidence("rejected", "userDecision")
        case "modified" | "partially_accepted" | "partial":
            return DecisionEvidence("modified", "userDecision")
    return None
