"""A session read piece by piece beside the screen: the first screen at once, the rest while it is read."""

from collections.abc import Callable, Iterator
from itertools import islice

from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.tui.transcript.blocks import Block, Place, Teller, body_of, front

__all__ = ["read_blocks", "read_body"]

_FIRST = 60  # blocks: more than a screen has lines
_LARGEST = 2000

Take = Callable[[SessionSummary, list[Block]], bool]


def read_blocks(history: History, ref: str, take: Take, *, is_full: bool = False) -> SessionSummary:
    """Hand over a session's blocks in growing batches, as long as somebody takes them.

    A subagent is read with the session that it belongs to. Raises `SessionNotFoundError` when there is none.
    """
    summary = history.find(ref)
    if summary.parent_ref is not None:
        summary = history.find(summary.parent_ref)
    blocks = _blocks(history, summary, is_full=is_full)
    size = _FIRST
    while batch := list(islice(blocks, size)):
        if not take(summary, batch):
            break
        size = min(size * 2, _LARGEST)
    return summary


def _blocks(history: History, summary: SessionSummary, *, is_full: bool) -> Iterator[Block]:
    yield front(summary)
    teller = Teller(summary, is_full=is_full)
    for event in history.transcript.read(summary):
        if (block := teller.tell(event)) is not None:
            yield block


def read_body(history: History, place: Place) -> Block | None:
    """The body of one message, as the only thing of a block; None when the message is no longer there."""
    ref, position = place
    for message in history.transcript.messages(history.find(ref), position):
        return Block("call", place, body=body_of(message))
    return None
