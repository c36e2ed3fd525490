"""Write the rows of sessions (`conversations`) and Cursor windows, which other programs read."""

import sqlite3
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

import msgspec

from backscroll.archive.derive.counters import FragmentCounts, count_fragment
from backscroll.archive.derive.cursor_windows import mark_windows_changed
from backscroll.archive.derive.fragments import (
    MAX_TITLE_CHARS,
    Fragment,
    are_gone,
    closing_from_subagents,
    content_fragments,
    first_preview,
    merged_closing,
    session_fragments,
    subagent_fragments,
)
from backscroll.archive.derive.idle_sessions import LIVE_TIMEOUT
from backscroll.archive.derive.index_changes import index_fields, queue_changes
from backscroll.archive.derive.rollups import RollupWriter
from backscroll.archive.derive.session_totals import SessionTotals
from backscroll.archive.derive.subagent_rows import is_listed, write_inlined_subagents, write_subagents
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.strings import StringLookup
from backscroll.archive.timestamps import from_ms
from backscroll.archive.undone_copies import is_undone_copy
from backscroll.model import Agent, Closing, workspace_hash
from backscroll.model.dates import iso
from backscroll.model.stream.closing import OWN_TITLES

__all__ = ["conversation_id", "delete_empty_session", "write_sessions"]

_NAMESPACE = UUID("6f0c1b52-8f0e-5d0b-9a53-0b6d2f6f7a11")


def conversation_id(platform: str, external_id: str) -> str:
    """Return `conversations.id`, which is the same in every archive."""
    return str(uuid5(_NAMESPACE, f"{platform}:{external_id}"))


def write_sessions(db: sqlite3.Connection, sessions: Collection[SessionKey], now: datetime) -> None:
    """Write the rows of sessions and of their subagents from their fragments."""
    strings, rollups = StringLookup(db), RollupWriter(db)
    mark_windows_changed(db, sessions)
    for session in sorted(sessions):  # numbers must not depend on the order of a set
        before = index_fields(db, session)
        _write_session(db, strings, rollups, session, now)
        queue_changes(db, session, before)
    rollups.flush()
    mark_windows_changed(db, sessions)


def delete_empty_session(db: sqlite3.Connection, session: SessionKey) -> None:
    """Delete the rows of a session after its last fragment was deleted.

    If fragments remain, mark them to be derived instead.
    """
    remaining = session_fragments(db, session)
    remaining += [fragment for group in subagent_fragments(db, session).values() for fragment in group]
    db.executemany(
        "update fragment set is_derived = 0 where id = ?", [(fragment.id,) for fragment in remaining]
    )
    row = "select 1 from conversations where external_id = ? and platform = ?"
    if not remaining and db.execute(row, [session.id, session.platform]).fetchone():
        write_sessions(db, [session], datetime.now(UTC))


def _write_session(
    db: sqlite3.Connection, strings: StringLookup, rollups: RollupWriter, session: SessionKey, now: datetime
) -> None:
    key = [session.id, session.platform]
    fragments = session_fragments(db, session)
    subagents = subagent_fragments(db, session)
    db.execute("delete from subagent where parent_external_id = ? and platform = ?", key)
    if not fragments and not subagents:
        db.execute("delete from conversations where external_id = ? and platform = ?", key)
        return
    content = content_fragments(fragments)
    closing = merged_closing(fragments) if fragments else closing_from_subagents(subagents.values())
    fragments = fragments or [fragment for group in subagents.values() for fragment in group]
    own = _count(db, rollups, content)
    subagent_counts = {id_: _count(db, rollups, content_fragments(group)) for id_, group in subagents.items()}
    agent_id = session.id if content and content[0].is_subagent else None
    totals = SessionTotals(strings, own, subagent_counts.values(), agent_id=agent_id)
    _count_reported_tokens(rollups, [one for one in fragments if one not in content], totals)
    inlined = [
        agent for fragment in content for agent in fragment.closing.agents if agent.agent_id in totals.inlined
    ]
    values = _session_values(db, session, fragments, content, closing, totals, now)
    values["agent_ids"] = _json(_agent_ids(db, subagents, inlined))
    columns, marks = ", ".join(values), ", ".join("?" * len(values))
    db.execute(
        f"insert or replace into conversations ({columns}) values ({marks})",  # noqa: S608 - names are ours
        list(values.values()),
    )
    subagent_totals = {id_: SessionTotals(strings, counts) for id_, counts in subagent_counts.items()}
    write_subagents(db, session, subagents, content, subagent_totals)
    if content:
        others = [agent for agent in inlined if agent.agent_id not in subagents]
        counts = {agent.agent_id: totals.messages_of(agent.agent_id) for agent in others}
        write_inlined_subagents(db, session, content, others, counts)
    if values["visibility"] != closing.visibility:  # an undone copy is hidden with its subagents
        db.execute(
            "update subagent set visibility = ? where parent_external_id = ? and platform = ?",
            [values["visibility"], *key],
        )


def _count_reported_tokens(rollups: RollupWriter, others: Sequence[Fragment], totals: SessionTotals) -> None:
    """Add the tokens that only hooks report, unless the content of the session has token counts."""
    for fragment in others:
        if fragment.store != "usage":
            continue
        if totals.has_own_tokens:
            rollups.delete_tokens(fragment.id)
        elif (tokens := rollups.write_tokens(fragment.id)[0]) is not None:
            totals.tokens = (totals.tokens or 0) + tokens


def _count(
    db: sqlite3.Connection, rollups: RollupWriter, fragments: Sequence[Fragment]
) -> list[FragmentCounts]:
    """Count the fragments of a session or subagent. A message counts in the first that contains it.

    The best fragment decides whether tokens count: a verdict may be newer than the other fragments.
    """
    ids = [fragment.id for fragment in fragments]
    return [
        count_fragment(
            db,
            rollups,
            fragment.id,
            ids[:order],
            ids[order + 1 :],
            is_subagent=fragment.is_subagent,
            is_discarded=fragments[0].closing.is_discarded,
        )
        for order, fragment in enumerate(fragments)
    ]


def _session_values(
    db: sqlite3.Connection,
    session: SessionKey,
    fragments: list[Fragment],
    content: list[Fragment],
    closing: Closing,
    totals: SessionTotals,
    now: datetime,
) -> dict[str, Any]:
    """Return the columns of `conversations` except `agent_ids`."""
    started, started_source = _started(closing, totals, fragments)
    updated = max(filter(None, (closing.updated_at, totals.last_at)), default=started)
    preview = first_preview(fragments) if content else None
    title, title_source = _title(db, closing, content, preview)
    workspace = closing.workspace
    hash_ = (
        workspace_hash(workspace.path, authority=workspace.authority) if workspace else workspace_hash(None)
    )
    metadata = {
        **closing.metadata,
        "started_at_source": started_source,
        "title_source": title_source,
        "stores": list(dict.fromkeys(f"{fragment.source}/{fragment.store}" for fragment in fragments)),
        "reasons": list(closing.reasons),
        "workspace_evidence": workspace.evidence if workspace else None,
        "workspace_authority": workspace.authority if workspace else None,
        "are_tokens_unknown": totals.tokens is None,
        "are_tokens_at_least": totals.is_lower_bound,
    }
    is_gone = are_gone(content)
    is_hidden = is_gone and is_undone_copy(db, session)
    return {
        "id": conversation_id(session.platform, session.id),
        "session_id": _window_id(db, session, closing, hash_, started, updated),
        "external_id": session.id,
        "platform": session.platform,
        "workspace_hash": hash_,
        "workspace_name": workspace.name if workspace else None,
        "started_at": iso(started),
        "ended_at": _ended_at(closing, updated, now),
        "context": _json({"cwd": workspace.path if workspace else None, "git_branch": closing.git_branch}),
        "metadata": _json(
            {name: value for name, value in metadata.items() if value not in (None, [], False, "")}
        ),
        "tool_sequence": _json(totals.tools),
        "acceptance_decisions": _json(totals.decisions),
        "interaction_count": totals.interactions,
        "acceptance_rate": totals.acceptance_rate,
        "total_tokens": totals.tokens,
        "total_changes": totals.changes,
        "number": _session_number(db, session),
        "source": fragments[0].source,
        "title": title,
        "workspace_path": workspace.path if workspace else None,
        "updated_at": iso(updated),
        "message_count": totals.message_count,
        "first_message_preview": preview,
        "git_branch": closing.git_branch,
        "models": _json(totals.models),
        "version": closing.version,
        "completeness": closing.completeness,
        "visibility": "hidden" if is_hidden else closing.visibility,
        "is_gone": is_gone,
    }


def _ended_at(closing: Closing, updated: datetime, now: datetime) -> str | None:
    """Return the end of a session; None while it is live. A hook may have reported the end."""
    reported = closing.metadata.get("hook_ended_at")
    if isinstance(reported, str) and reported >= (iso(updated) or ""):
        return reported
    return None if now - updated < LIVE_TIMEOUT else iso(updated)


def _started(closing: Closing, totals: SessionTotals, fragments: list[Fragment]) -> tuple[datetime, str]:
    """Return the start time of a session and its source. The schema requires a time."""
    if closing.created_at is not None:
        return closing.created_at, closing.created_at_source or "stored"
    if totals.first_at is not None:
        return totals.first_at, "neighbour"
    modified_at = next((fragment.modified_at for fragment in fragments if fragment.modified_at), 0)
    return from_ms(modified_at), "file"


def _title(
    db: sqlite3.Connection, closing: Closing, content: list[Fragment], preview: str | None
) -> tuple[str | None, str | None]:
    """Return the session's own title, a title from another file, or its first words, with the source."""
    if closing.title and closing.title_source in OWN_TITLES:
        return closing.title, closing.title_source
    for fragment in content:
        row = db.execute(
            "select h.title, m.at from message m join title_hint h on h.record_hash = m.record_hash"
            " where m.fragment_id = :id and m.copied_from_string_id is null"
            " union all select h.title, 1e18 from last_record l"
            " join title_hint h on h.record_hash = l.record_hash where l.fragment_id = :id"
            " order by 2 desc, 1 desc limit 1",
            {"id": fragment.id},
        ).fetchone()
        if row is not None:
            return row[0], "summary"
    if closing.title or not preview:
        return closing.title, closing.title_source
    line = " ".join(preview.split())
    if len(line) > MAX_TITLE_CHARS:
        line = line[: MAX_TITLE_CHARS - 1].rstrip() + "…"
    return line, "first message"


def _agent_ids(
    db: sqlite3.Connection, subagents: dict[str, list[Fragment]], inlined: list[Agent]
) -> list[str]:
    found = [id_ for id_, group in subagents.items() if is_listed(db, id_, group[0].closing)]
    return list(dict.fromkeys([*found, *(agent.agent_id for agent in inlined if not agent.is_hidden)]))


def _session_number(db: sqlite3.Connection, session: SessionKey) -> int:
    known = db.execute(
        "select number from conversations where external_id = ? and platform = ?",
        [session.id, session.platform],
    ).fetchone()
    if known is not None:
        return int(known[0])
    return int(db.execute("select coalesce(max(number), 0) + 1 from conversations").fetchone()[0])


def _window_id(
    db: sqlite3.Connection,
    session: SessionKey,
    closing: Closing,
    hash_: str,
    started: datetime,
    updated: datetime,
) -> str | None:
    """Return the id of a Cursor session's window, which is that of its workspace storage or folder."""
    if session.platform != "cursor":
        return None
    workspace = closing.workspace
    external_id = closing.metadata.get("window")
    if not isinstance(external_id, str):
        external_id = (
            f"workspace:{workspace.storage_ids[0] if workspace and workspace.storage_ids else hash_}"
        )
    id_ = conversation_id(session.platform, external_id)
    db.execute(
        "insert into cursor_sessions (id, external_session_id, workspace_hash, workspace_name,"
        " workspace_path, started_at, ended_at) values (?, ?, ?, ?, ?, ?, ?) on conflict (id) do nothing",
        [
            id_,
            external_id,
            hash_,
            workspace.name if workspace else None,
            workspace.path if workspace else None,
            iso(started),
            iso(updated),
        ],
    )
    return id_


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
