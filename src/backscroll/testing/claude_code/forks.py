"""The same conversation in a second file: resumed, forked, or gone astray."""

from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from random import Random
from uuid import UUID

from backscroll.testing.claude_code.blocks import Record
from backscroll.testing.claude_code.lines import stamp
from backscroll.testing.claude_code.transcript import Transcript

__all__ = ["fork", "point_back", "repeat", "resume", "stray"]


def resume(first: Transcript, *, restamp: bool = True, seed: int = 1) -> Transcript:
    """Go on in a new file, as versions up to 1.0 did: lines copied, uuids kept, ``sessionId`` rewritten.

    ``restamp`` gives the copies the time of copying, which most builds did.
    """
    second = _beside(first, seed)
    for record in _records(first):
        copy = _renamed(record, first.session_id, second.session_id)
        if restamp and "timestamp" in copy:
            second.now += timedelta(milliseconds=1)
            copy["timestamp"] = stamp(second.now)
        second.line(copy)
    second.leaf = first.leaf
    return second


def point_back(first: Transcript, *, seed: int = 1) -> Transcript:
    """Go on in a new file that holds no copy: its first line's parent is in the other file."""
    second = _beside(first, seed)
    second.leaf = first.leaf
    second.tool_ids, second.prompts, second.replies = [], [], []
    return second


def fork(first: Transcript, *, remap: bool = True, title: str | None = None, seed: int = 1) -> Transcript:
    """A fork in a new file (``--fork-session``): every line says where it comes from.

    With ``remap`` lines get new uuids, sidechains and progress are left out and
    their children re-linked, as the vendor's own library does it.
    """
    second = _beside(first, seed)
    new: dict[str, str | None] = {}
    for record in _records(first):
        uuid = record.get("uuid")
        if uuid is None:
            continue
        if remap and (record.get("isSidechain") or record["type"] == "progress"):
            new[uuid] = new.get(record["parentUuid"]) if record["parentUuid"] else None
            continue
        copy = _renamed(record, first.session_id, second.session_id)
        copy["forkedFrom"] = {"sessionId": first.session_id, "messageUuid": uuid}
        if remap:
            new[uuid] = second.new_uuid()
            copy |= {"uuid": new[uuid], "parentUuid": new.get(record["parentUuid"] or "")}
            if record.get("logicalParentUuid"):
                copy["logicalParentUuid"] = new.get(record["logicalParentUuid"])
            for field in ("slug", "sourceToolAssistantUUID", "teamName", "agentName"):
                copy.pop(field, None)
        second.line(copy)
    second.leaf = new.get(first.leaf or "") if remap else first.leaf
    if title is not None:
        second.custom_title(f"{title} (fork)")
    return second


def stray(into: Transcript, foreign: str, write: Callable[[Transcript], object]) -> Transcript:
    """Lines of another session appended to this file, which a faulty resume did."""
    own, into.session_id = into.session_id, foreign
    write(into)
    into.session_id = own
    return into


def repeat(session: Transcript, count: int) -> Transcript:
    """Write the last lines once more under new uuids, as 2.0 sometimes did with a whole exchange."""
    chain = [record for record in _records(session) if "uuid" in record][-count:]
    for record in chain:
        session.line(record | {"uuid": session.new_uuid(), "parentUuid": session.leaf})
        session.leaf = session.last
    return session


def _beside(first: Transcript, seed: int) -> Transcript:
    """An empty session in the same project, begun a day after."""
    own = Random(f"{first.session_id}:{seed}")
    second = Transcript(
        str(UUID(int=own.getrandbits(128), version=4)),
        version=first.version,
        cwd=first.cwd,
        branch=first.branch,
        start=first.now + timedelta(days=1),
        seed=seed,
        entrypoint=first.entrypoint,
        key=first.key,
    )
    second.tool_ids = list(first.tool_ids)
    second.prompts = list(first.prompts)
    second.replies = list(first.replies)
    return second


def _records(first: Transcript) -> list[Record]:
    return [deepcopy(record) for record in first.records if isinstance(record, dict)]


def _renamed(record: Record, old: str, new: str) -> Record:
    """The record with another session's id wherever it names its own."""
    for field in ("sessionId", "session_id"):
        if record.get(field) == old:
            record[field] = new
    inner = record.get("worktreeSession")
    if isinstance(inner, dict) and inner.get("sessionId") == old:
        inner["sessionId"] = new
    return record
