"""Messages that a compaction took out of the conversation, put back before those it left."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from backscroll.readers.protobuf import Record
from backscroll.sources.cursor_graph.blobs import BlobLoader, blob_id
from backscroll.sources.cursor_graph.state import MessageRef, message_ref

__all__ = ["CompactionArchive", "read_compaction_archives", "restore_compacted"]

_MAX_LEAD_MESSAGES = 4  # system prompt, context, rules, summary


class CompactionArchive(Struct, frozen=True):
    """What one compaction took out, and what it put in its place."""

    id: str
    entries: tuple[MessageRef, ...]
    summary: str
    summary_id: str | None


def read_compaction_archives(ids: Iterable[str], blobs: BlobLoader) -> list[CompactionArchive]:
    """The archives, oldest first. One that is missing is left out; `blobs` remembers it."""
    found: list[CompactionArchive] = []
    for id, data in blobs.each(dict.fromkeys(ids)):
        if data is not None:
            record = Record(data)
            entries = tuple(message_ref(value) for value in record.all(1))
            found.append(
                CompactionArchive(id, entries, record.text(2) or "", blob_id(record.bytes(4) or b""))
            )
    return found


def restore_compacted(archives: Sequence[CompactionArchive], kept: list[MessageRef]) -> list[MessageRef]:
    """Every message in order: what was archived, oldest first, then what is left.

    A compaction leaves the system prompt, the context and its summary, and may
    leave the last messages standing that it also archived; a later archive may
    begin with an earlier one. What overlaps is told once.
    """
    summaries = {archive.summary_id for archive in archives if archive.summary_id}
    whole: list[MessageRef] = []
    for part in (*(list(archive.entries) for archive in archives), kept):
        if not whole:
            whole += part
            continue
        same = _common(whole, part)  # every list begins with the same instructions
        summed = [place + 1 for place, entry in enumerate(part) if entry.id in summaries]
        leads = dict.fromkeys([*range(_MAX_LEAD_MESSAGES), same, same + 1, same + 2, *summed])
        lead = max(leads, key=lambda lead: _overlap(whole, part[lead:]))
        overlap = _overlap(whole, part[lead:])
        if not overlap:
            lead = summed[0] - 1 if summed else min(same, 1)
        whole += part[min(same, lead) : lead] + part[lead + overlap :]
    return whole


def _common(one: list[MessageRef], other: list[MessageRef]) -> int:
    """How many messages two lists have in common at their beginnings."""
    return next(
        (place for place, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
        min(len(one), len(other)),
    )


def _overlap(before: list[MessageRef], after: list[MessageRef]) -> int:
    """How many messages at the end of one list stand at the beginning of the other."""
    for size in range(min(len(before), len(after)), 0, -1):
        if before[-1] == after[size - 1] and before[-size:] == after[:size]:
            return size
    return 0
