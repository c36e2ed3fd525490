"""Whether the user took what the assistant proposed, and how that is known."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from backscroll.model import Decision
from backscroll.sources.cursor.database.decode import Undecodable, as_map, as_text, decode, unwrap
from backscroll.sources.cursor.database.record_types import CodeBlock

__all__ = ["Verdict", "of_code", "of_fates", "of_tool"]

_FATES = {"accepted": True, "accept": True, "rejected": False, "reject": False}


class Verdict(NamedTuple):
    decision: Decision
    evidence: str


def of_code(blocks: list[CodeBlock]) -> Verdict | None:
    """The editor's own record of what became of proposed code, which no auto-run setting touches."""
    statuses = {as_text(block.status) for block in blocks}
    if statuses >= {"accepted", "rejected"}:
        return Verdict("modified", "codeBlockData")
    if "accepted" in statuses:
        return Verdict("accepted", "codeBlockData")
    if "rejected" in statuses:
        return Verdict("rejected", "codeBlockData")
    return None


def of_fates(record: bytes | None) -> Verdict | None:
    """The fates of single hunks: some taken and some not is a modified proposal."""
    if not record:
        return None
    try:
        fates = set(_fates(decode(record, object), 0))
    except Undecodable:
        return None
    if len(fates) == 2:
        return Verdict("modified", "codeBlockPartialInlineDiffFates")
    if fates:
        return Verdict("accepted" if True in fates else "rejected", "codeBlockPartialInlineDiffFates")
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


def of_tool(record: dict[str, Any], answer: Any) -> Verdict | None:
    """What the call itself says: the question that was asked, then the flag that auto-run sets too."""
    review = as_map(as_map(record.get("additionalData")).get("reviewData"))
    match as_text(review.get("selectedOption")):
        case "run" | "accept":
            return Verdict("accepted", "reviewData")
        case "skip" | "reject":
            return Verdict("rejected", "reviewData")
    if as_map(answer).get("rejected") is True or as_text(record.get("status")) == "rejected":
        return Verdict("rejected", "result")
    match as_text(unwrap(record.get("userDecision"))):
        case "accepted":
            return Verdict("accepted", "userDecision")
        case "rejected":
            return Verdict("rejected", "userDecision")
        case "modified" | "partially_accepted" | "partial":
            return Verdict("modified", "userDecision")
    return None
