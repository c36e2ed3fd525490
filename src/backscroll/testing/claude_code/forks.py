"""Sessions that share lines with another session: resumed, forked or continued."""

from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from random import Random
from uuid import UUID

from backscroll.testing.claude_code.blocks import Record, text
from backscroll.testing.claude_code.lines import format_time
from backscroll.testing.claude_code.transcript import Transcript


def resume(first: Transcript, *, restamp: bool = True, seed: int = 1) -> Transcript:
    """Resume a session in a new file, as versions up to 1.0 did.

    The new file starts with a copy of all lines. They keep their uuids and get the new
    ``sessionId``. ``restamp`` sets their time to the time of copying, as most builds did.
    """
    second = _new_session(first, seed)
    for record in _records(first):
        copy = _replace_session_id(record, first.session_id, second.session_id)
        if restamp and "timestamp" in copy:
            second.now += timedelta(milliseconds=1)
            copy["timestamp"] = format_time(second.now)
        second.line(copy)
    second.leaf = first.leaf
    return second


def resume_with_new_ids(first: Transcript, *, seed: int = 1) -> Transcript:
    """Resume a session in a new file with new ids, as ``-p --resume`` did before 2.0.

    All copies have the time of copying. Responses keep the id of their message, not of their request.
    """
    second = _new_session(first, seed)
    _copy_conversation(first, second)
    return second


def repeat_conversation(session: Transcript) -> Transcript:
    """Write the conversation again below a new root, as ``--input-format stream-json`` did before 2.0."""
    last = session.leaf
    chain: list[Record] = []
    by_uuid = {record["uuid"]: record for record in _records(session) if "uuid" in record}
    while last is not None:
        chain.append(by_uuid[last])
        last = chain[-1]["parentUuid"]
    copied = Transcript(session.session_id)
    copied.records += reversed(chain)
    session.now += timedelta(seconds=1)
    _copy_conversation(copied, session)
    return session


def _copy_conversation(first: Transcript, second: Transcript) -> None:
    """Copy the user and assistant lines of a session with new ids, one after another."""
    second.leaf = None
    at = format_time(second.now)
    for record in _records(first):
        if record["type"] not in ("user", "assistant") or record["isSidechain"]:
            continue
        for field in ("requestId", "toolUseResult", "isMeta"):
            record.pop(field, None)
        content = record["message"]["content"]
        if second.release.is_at_least("1.0.0"):
            record.pop("costUSD", None)
            if isinstance(content, str):
                record["message"]["content"] = [text(content)]
        elif record["type"] == "assistant":
            record |= {"costUSD": 0, "durationMs": 0}
        ids = {"uuid": second.new_uuid(), "parentUuid": second.leaf, "sessionId": second.session_id}
        second.line(record | ids | {"timestamp": at})
        second.leaf = second.last_uuid


def continue_in_new_file(first: Transcript, *, seed: int = 1) -> Transcript:
    """Continue a session in a new file without copies. The parent of its first line is in the other file."""
    second = _new_session(first, seed)
    second.leaf = first.leaf
    second.tool_ids, second.prompts, second.replies = [], [], []
    return second


def fork(first: Transcript, *, remap: bool = True, title: str | None = None, seed: int = 1) -> Transcript:
    """Fork a session into a new file (``/branch``). Every line records its origin.

    With ``remap``, lines get new uuids. Sidechains and progress lines are omitted and
    their children get new parents, as in the vendor's own library.
    """
    second = _new_session(first, seed)
    new_uuids: dict[str, str | None] = {}
    for record in _records(first):
        uuid = record.get("uuid")
        if uuid is None:
            continue
        if remap and (record.get("isSidechain") or record["type"] == "progress"):
            new_uuids[uuid] = new_uuids.get(record["parentUuid"]) if record["parentUuid"] else None
            continue
        copy = _replace_session_id(record, first.session_id, second.session_id)
        copy["forkedFrom"] = {"sessionId": first.session_id, "messageUuid": uuid}
        if remap:
            new_uuids[uuid] = second.new_uuid()
            copy |= {"uuid": new_uuids[uuid], "parentUuid": new_uuids.get(record["parentUuid"] or "")}
            if record.get("logicalParentUuid"):
                copy["logicalParentUuid"] = new_uuids.get(record["logicalParentUuid"])
            for field in ("slug", "sourceToolAssistantUUID", "teamName", "agentName"):
                copy.pop(field, None)
        second.line(copy)
    second.leaf = new_uuids.get(first.leaf or "") if remap else first.leaf
    if title is not None:
        second.custom_title(f"{title} (fork)")
    return second


def fork_session(
    first: Transcript, prompt: str, *, is_interactive: bool = False, session_id: str | None = None
) -> Transcript:
    """Fork a session into a new file with ``--fork-session`` and a first prompt.

    The copied lines keep their uuids and times. No field records where they come from, except ``session_id``
    since 2.1.207. The new file begins with a queue operation, or with a file snapshot if it is interactive.
    """
    second = _new_session(first, 1, session_id)
    if is_interactive:
        second.records += [r for r in _records(first) if r["type"] == "file-history-snapshot"]
        second.snapshot(second.new_uuid(), {}, update=False)
    elif second.release.is_at_least("2.1.0"):
        second.queue("enqueue", prompt).queue("dequeue")
    else:
        second.queue("dequeue")
    for record in _records(first):
        if "uuid" not in record:
            continue
        content = record["message"]["content"] if record["type"] == "user" else None
        if isinstance(content, str) and not second.release.is_at_least("2.1.0"):
            record["message"]["content"] = [text(content)]  # and the line keeps its session id
        else:
            record["sessionId"] = second.session_id
        second.line(record)
    second.leaf = first.leaf
    return second.user(prompt)


def append_foreign_lines(
    session: Transcript, session_id: str, write: Callable[[Transcript], object]
) -> Transcript:
    """Append lines of another session to this file, as a faulty resume did."""
    own_id, session.session_id = session.session_id, session_id
    write(session)
    session.session_id = own_id
    return session


def repeat_lines(session: Transcript, count: int) -> Transcript:
    """Repeat the last linked lines with new uuids, as 2.0 sometimes did with a prompt and its response."""
    linked = [record for record in _records(session) if "uuid" in record][-count:]
    for record in linked:
        session.line(record | {"uuid": session.new_uuid(), "parentUuid": session.leaf})
        session.leaf = session.last_uuid
    return session


def _new_session(first: Transcript, seed: int, session_id: str | None = None) -> Transcript:
    """Return an empty session of the same project that starts a day later."""
    rng = Random(f"{first.session_id}:{seed}")
    second = Transcript(
        session_id or str(UUID(int=rng.getrandbits(128), version=4)),
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


def _records(session: Transcript) -> list[Record]:
    return [deepcopy(record) for record in session.records if isinstance(record, dict)]


def _replace_session_id(record: Record, old: str, new: str) -> Record:
    """Replace a session id in all fields of a record that contain it."""
    for field in ("sessionId", "session_id"):
        if record.get(field) == old:
            record[field] = new
    inner = record.get("worktreeSession")
    if isinstance(inner, dict) and inner.get("sessionId") == old:
        inner["sessionId"] = new
    return record
