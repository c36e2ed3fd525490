"""Restore the messages that compactions removed from a conversation."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.readers.protobuf import Record
from backscroll.sources.cursor_graph.blobs import BlobLoader, blob_id
from backscroll.sources.cursor_graph.message_parts import message_text
from backscroll.sources.cursor_graph.state import MessageRef, message_ref

__all__ = [
    "CompactionArchive",
    "find_summaries",
    "insert_summaries",
    "read_compaction_archives",
    "restore_compacted",
]

_MAX_LEAD_MESSAGES = 4  # system prompt, context, rules, summary
_MIN_SUMMARY_CHARS = 24  # a message that contains a shorter text is not its summary


class CompactionArchive(Struct, frozen=True):
    """The messages that one compaction removed, and the summary that replaced them."""

    id: str
    entries: tuple[MessageRef, ...]
    summary: str
    summary_id: str | None


def read_compaction_archives(ids: Iterable[str], blobs: BlobLoader) -> list[CompactionArchive]:
    """Return the archives, oldest first. A missing one is omitted and listed in `blobs.missing`."""
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
    """Return all messages in order: archived ones, oldest first, then those still in the conversation.

    A compaction keeps the system prompt, the context and its summary. It may also keep the last messages
    that it archived, and a later archive may start with an earlier one. Duplicates are removed.
    """
    summary_ids = {archive.summary_id for archive in archives if archive.summary_id}
    restored: list[MessageRef] = []
    for entries in (*(list(archive.entries) for archive in archives), kept):
        if not restored:
            restored += entries
            continue
        common = _common_prefix_length(restored, entries)  # every list starts with the same instructions
        after_summaries = [index + 1 for index, entry in enumerate(entries) if entry.id in summary_ids]
        # The lead is the number of messages before the overlap. The best lead gives the longest overlap.
        leads = dict.fromkeys([*range(_MAX_LEAD_MESSAGES), common, common + 1, common + 2, *after_summaries])
        lead = max(leads, key=lambda lead: _overlap_length(restored, entries[lead:]))
        overlap = _overlap_length(restored, entries[lead:])
        if not overlap:
            lead = after_summaries[0] - 1 if after_summaries else min(common, 1)
        restored += entries[min(common, lead) : lead] + entries[lead + overlap :]
    return restored


def find_summaries(
    archives: Iterable[CompactionArchive], messages: Iterable[tuple[MessageRef, Any]]
) -> dict[str, CompactionArchive]:
    """Return the archives by the id of the message that has their summary.

    An archive names this message, or the text of a message contains its summary.
    """
    archives = [archive for archive in archives if archive.summary_id or archive.summary.strip()]
    found: dict[str, CompactionArchive] = {}
    for entry, message in messages if archives else ():
        for archive in archives:
            if isinstance(message, dict) and _has_summary(entry, message, archive):
                found[entry.id] = archive
    return found


def _has_summary(entry: MessageRef, message: dict[str, Any], archive: CompactionArchive) -> bool:
    if archive.summary_id:
        return entry.id == archive.summary_id
    if message.get("role") not in ("user", "system"):
        return False
    summary, text = archive.summary.strip(), message_text(message).strip()
    return summary == text or (len(summary) >= _MIN_SUMMARY_CHARS and summary in text)


def insert_summaries(
    archives: Iterable[CompactionArchive], messages: Sequence[MessageRef], found: dict[str, CompactionArchive]
) -> list[MessageRef]:
    """Return the messages with the summaries that no message has, each after the messages of its archive."""
    complete = list(messages)
    known = {archive.id for archive in found.values()}
    for archive in archives:
        if archive.id in known or not archive.summary.strip():
            continue
        last = next((entry for entry in reversed(archive.entries) if entry in complete), None)
        end = len(complete) - complete[::-1].index(last) if last is not None else min(1, len(complete))
        marked = {"providerOptions": {"cursor": {"isSummary": True}}}
        summary = {"role": "user", "content": archive.summary.strip()} | marked
        complete.insert(end, MessageRef(archive.id, msgspec.json.encode(summary)))
    return complete


def _common_prefix_length(first: list[MessageRef], second: list[MessageRef]) -> int:
    return next(
        (index for index, (left, right) in enumerate(zip(first, second, strict=False)) if left != right),
        min(len(first), len(second)),
    )


def _overlap_length(before: list[MessageRef], after: list[MessageRef]) -> int:
    """Return the length of the longest end of one list that is the start of the other."""
    for size in range(min(len(before), len(after)), 0, -1):
        if before[-1] == after[size - 1] and before[-size:] == after[:size]:
            return size
    return 0
