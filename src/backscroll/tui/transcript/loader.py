"""Load a session as blocks: a first screen at once, then growing batches."""

from collections.abc import Callable, Iterator
from itertools import islice

from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.tui.transcript.blocks import Block, BlockBuilder, Body, Location, header_block, message_body

__all__ = ["load_blocks", "load_body"]

FIRST_BATCH_SIZE = 60  # blocks; more than a screen shows
MAX_BATCH_SIZE = 2000

TakeBatch = Callable[[SessionSummary, list[Block]], bool]  # returns whether to continue


def load_blocks(
    history: History, ref: str, take_batch: TakeBatch, *, with_call_bodies: bool = False
) -> SessionSummary:
    """Pass the blocks of a session to `take_batch` until it returns False. Return the session.

    The ref of a subagent loads the session that it belongs to. Raises `SessionNotFoundError` if there is no
    such session.
    """
    summary = history.find(ref)
    if summary.parent_ref is not None:
        summary = history.find(summary.parent_ref)
    blocks = _blocks(history, summary, with_call_bodies=with_call_bodies)
    size = FIRST_BATCH_SIZE
    while batch := list(islice(blocks, size)):
        if not take_batch(summary, batch):
            break
        size = min(size * 2, MAX_BATCH_SIZE)
    return summary


def _blocks(history: History, summary: SessionSummary, *, with_call_bodies: bool) -> Iterator[Block]:
    yield header_block(summary)
    builder = BlockBuilder(summary, with_call_bodies=with_call_bodies)
    for item in history.transcript.read(summary):
        if (block := builder.build(item)) is not None:
            yield block


def load_body(history: History, location: Location) -> Body | None:
    """Return the body of one message, or None if the message no longer exists."""
    ref, position = location
    for message in history.transcript.messages(history.find(ref), position):
        return message_body(message)
    return None
