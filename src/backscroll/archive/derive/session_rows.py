"""Write the rows of sessions (`conversations`), which other programs read, and of subagents.

The values come from the `Closing` that a source yields; its docstring says the way of a new field.

Sessions and subagents that changed are queued for the index, each from the first position that changed. A
session that only grew is indexed from where it grew. A change that concerns earlier messages, or a field that
all of its documents contain, has it indexed from the start.
"""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID, uuid5

import msgspec

from backscroll.archive.connection import from_ms
from backscroll.archive.derive.copies import is_undone_copy
from backscroll.archive.derive.counts import FragmentCounts, RollupWriter, SessionTotals, count_fragment
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
from backscroll.archive.derive.windows import LIVE_TIMEOUT, WINDOW_PLATFORM, mark_windows_changed
from backscroll.archive.session_key import FIRST_SUBAGENT_ID, PARENT, SessionKey
from backscroll.archive.storage.strings import StringLookup
from backscroll.model.dates import iso
from backscroll.model.store import HOOK_USAGE, store_rank
from backscroll.model.stream import OWN_TITLES, Agent, Closing
from backscroll.model.workspace import workspace_hash

_NAMESPACE = UUID("6f0c1b52-8f0e-5d0b-9a53-0b6d2f6f7a11")
_MERGED_FIELDS = (
    "tool_call_id",
    "parent_agent_id",
    "prompt",
    "model",
    "kind",
    "description",
    "total_duration_ms",
    "total_tokens",
    "total_tool_use_count",
)
_INLINED_TOTALS = (
    "select s.text, min(m.at), max(m.at), sum(m.is_active and m.tool_string_id is not null)"
    " from message m join string s on s.id = m.agent_string_id"
    " where m.fragment_id in (select value from json_each(?)) group by s.text"
)
# In ascending order: the last row of a subagent is its most frequent model.
_INLINED_MODELS = (
    "select agent.text, model.text from message m join string agent on agent.id = m.agent_string_id"
    " join string model on model.id = m.model_string_id"
    " where m.fragment_id in (select value from json_each(?)) group by 1, 2 order by count(*), 2 desc"
)
# Responses that another session produced count there, as in the total of the session.
_INLINED_TOKENS = (
    "select (select s.text from message m indexed by message_record join string s on s.id = m.agent_string_id"
    "  where m.record_hash = r.record_hash and m.fragment_id = r.fragment_id limit 1),"
    " sum(coalesce(r.input_tokens, 0) + coalesce(r.output_tokens, 0)"
    "  + coalesce(r.cache_creation_tokens, 0) + coalesce(r.cache_read_tokens, 0))"
    " from response r where r.fragment_id in (select value from json_each(?)) and r.is_subagent"
    " and r.is_copy is not 1 group by 1"
)


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


def conversation_id(platform: str, external_id: str) -> str:
    """Return `conversations.id`, which is the same in every archive."""
    return str(uuid5(_NAMESPACE, f"{platform}:{external_id}"))


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
    _write_subagents(db, session, subagents, content, subagent_totals)
    if content:
        others = [agent for agent in inlined if agent.agent_id not in subagents]
        counts = {agent.agent_id: totals.messages_of(agent.agent_id) for agent in others}
        _write_inlined_subagents(db, session, content, others, counts)
    if values["visibility"] != closing.visibility:  # an undone copy is hidden with its subagents
        db.execute(
            "update subagent set visibility = ? where parent_external_id = ? and platform = ?",
            [values["visibility"], *key],
        )


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


def _count_reported_tokens(rollups: RollupWriter, others: Sequence[Fragment], totals: SessionTotals) -> None:
    """Add the tokens that only hooks report, unless the content of the session has token counts."""
    for fragment in others:
        if fragment.store != HOOK_USAGE.name:
            continue
        if totals.has_own_tokens:
            rollups.delete_tokens(fragment.id)
        elif (tokens := rollups.write_tokens(fragment.id)[0]) is not None:
            totals.tokens = (totals.tokens or 0) + tokens


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


def _started(closing: Closing, totals: SessionTotals, fragments: list[Fragment]) -> tuple[datetime, str]:
    """Return the start time of a session and its source. The schema requires a time."""
    if closing.created_at is not None:
        return closing.created_at, closing.created_at_source or "stored"
    if totals.first_at is not None:
        return totals.first_at, "neighbour"
    modified_at = next((fragment.modified_at for fragment in fragments if fragment.modified_at), 0)
    return from_ms(modified_at), "file"


def _ended_at(closing: Closing, updated: datetime, now: datetime) -> str | None:
    """Return the end of a session; None while it is live. A hook may have reported the end."""
    reported = closing.metadata.get("hook_ended_at")
    if isinstance(reported, str) and reported >= (iso(updated) or ""):
        return reported
    return None if now - updated < LIVE_TIMEOUT else iso(updated)


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
    found = [id_ for id_, group in subagents.items() if _is_listed_subagent(db, id_, group[0].closing)]
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
    if session.platform != WINDOW_PLATFORM:
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


def _write_subagents(
    db: sqlite3.Connection,
    session: SessionKey,
    subagents: Mapping[str, Sequence[Fragment]],
    content: Sequence[Fragment],
    totals: Mapping[str, SessionTotals],
) -> None:
    """Write the subagents that have units of their own. `content` are the fragments of the session."""
    in_session = {agent.agent_id: agent for fragment in content for agent in fragment.closing.agents}
    for agent_id, fragments in subagents.items():
        closing = merged_closing(fragments)
        own = next((agent for agent in closing.agents if agent.agent_id == agent_id), None)
        counted = totals[agent_id]
        values = _merged_fields(in_session.get(agent_id), own)
        values |= {
            "model": next(iter(counted.models), None) or values["model"],
            "total_tokens": counted.tokens if counted.tokens is not None else values["total_tokens"],
            "total_duration_ms": values["total_duration_ms"] or counted.duration_ms,
            "total_tool_use_count": values["total_tool_use_count"] or len(counted.tools),
            "started_at": iso(closing.created_at or counted.first_at),
            "updated_at": iso(closing.updated_at or counted.last_at),
            "title": closing.title or values["description"],
            "message_count": counted.all_messages,
            "completeness": closing.completeness,
            "visibility": "listed" if _is_listed_subagent(db, agent_id, closing) else closing.visibility,
            "is_gone": are_gone(content_fragments(fragments)),
        }
        if (evidence := _find_evidence(db, agent_id)) is not None:
            values |= {"tool_call_id": evidence[0], "evidence": evidence[1]}
        _insert_subagent(db, session, agent_id, fragments[0].source, values)


def _write_inlined_subagents(
    db: sqlite3.Connection,
    session: SessionKey,
    content: Sequence[Fragment],
    agents: Sequence[Agent],
    message_counts: Mapping[str, int],
) -> None:
    """Write the subagents that are inlined in the session's own units. `content` are its fragments."""
    if not agents:
        return
    ids = [msgspec.json.encode([fragment.id for fragment in content]).decode()]
    totals = {agent_id: total for agent_id, *total in db.execute(_INLINED_TOTALS, ids)}
    models = dict(db.execute(_INLINED_MODELS, ids))
    tokens = dict(db.execute(_INLINED_TOKENS, ids))
    for agent in agents:
        values = _merged_fields(agent, None)
        first_at, last_at, calls = totals.get(agent.agent_id, (None, None, 0))
        values |= {
            "total_duration_ms": values["total_duration_ms"] or (last_at and last_at - first_at),
            "total_tool_use_count": values["total_tool_use_count"] or calls,
            "model": models.get(agent.agent_id) or values["model"],
            "total_tokens": tokens.get(agent.agent_id, values["total_tokens"]),
            "started_at": iso(agent.started_at),
            "updated_at": iso(from_ms(last_at) if last_at is not None else agent.started_at),
            "title": agent.description,
            "message_count": message_counts[agent.agent_id],
            "visibility": "hidden" if agent.is_hidden else "listed",
        }
        _insert_subagent(db, session, agent.agent_id, content[0].source, values)


def _is_listed_subagent(db: sqlite3.Connection, agent_id: str, closing: Closing) -> bool:
    """Return whether a subagent is listed. One that looks like a warm-up is listed if a call started it."""
    if closing.visibility != "hidden":
        return True
    return closing.is_unlinked and _find_evidence(db, agent_id) is not None


def _find_evidence(db: sqlite3.Connection, agent_id: str) -> tuple[str, str] | None:
    """Return the call that started a subagent and the evidence for it; None if no call is known."""
    row: tuple[str, str] | None = db.execute(
        "select tool_call_id, evidence from subagent_evidence where agent_id = ?"
        " order by strength, tool_call_id limit 1",
        [agent_id],
    ).fetchone()
    return row


def _merged_fields(in_session: Agent | None, own: Agent | None) -> dict[str, Any]:
    """Merge what the session and the subagent's own unit contain. The session takes precedence."""
    agents = [agent for agent in (in_session, own) if agent is not None]
    return {
        name: next((value for agent in agents if (value := getattr(agent, name)) is not None), None)
        for name in _MERGED_FIELDS
    }


def _insert_subagent(
    db: sqlite3.Connection, session: SessionKey, agent_id: str, source: str, values: dict[str, Any]
) -> None:
    row = {
        "id": _subagent_id(session, agent_id),
        "platform": session.platform,
        "agent_id": agent_id,
        "parent_external_id": session.id,
        "source": source,
        **values,
    }
    columns, marks = ", ".join(row), ", ".join("?" * len(row))
    db.execute(
        f"insert or replace into subagent ({columns}) values ({marks})",  # noqa: S608 - names are ours
        list(row.values()),
    )


def _subagent_id(session: SessionKey, agent_id: str) -> int:
    """Return the id of a subagent's row: the same after every derive, and above all session numbers."""
    digest = blake2b(f"{session.platform} {session.id} {agent_id}".encode(), digest_size=8).digest()
    return FIRST_SUBAGENT_ID | int.from_bytes(digest, "big") >> 8


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


_AgentId = str | None  # of a subagent; None for the session itself
_QUEUE = (
    "insert into index_queue (session_number, first_position) values (?, ?)"
    " on conflict (session_number) do update"
    " set first_position = min(first_position, excluded.first_position), revision = revision + 1"
)
_CHANGES = (
    "select f.external_id, f.store, f.message_count, c.compared_count, r.position"
    " from fragment f left join changed c on c.fragment_id = f.id"
    " left join recopied r on r.fragment_id = f.id where f.platform = :platform and "
)


class _Fields(NamedTuple):
    """Fields that every document of a session or subagent contains."""

    agent_id: str | None
    source: str
    title: str | None
    workspace_hash: str | None
    workspace_name: str | None
    git_branch: str | None


class _Change(NamedTuple):
    """A fragment and the first positions that are new or have another owner."""

    store: str
    message_count: int
    first_new: int | None
    first_recopied: int | None

    @property
    def rank(self) -> tuple[bool, int]:
        """Rank of the store, as in `fragments`."""
        return not self.message_count, store_rank(self.store)


IndexFields = dict[int, _Fields]  # by number of the session or id of the subagent


def track_copy_changes(db: sqlite3.Connection) -> None:
    """Record from now on at which positions the owner of a message changes."""
    db.execute("create temp table if not exists recopied (fragment_id integer primary key, position integer)")
    db.execute("delete from recopied")
    db.execute(
        "create temp trigger if not exists recopying after update of copied_from_string_id on main.message"
        " when new.copied_from_string_id is not old.copied_from_string_id begin"
        " insert into recopied values (new.fragment_id, new.position)"
        " on conflict (fragment_id) do update set position = min(position, excluded.position); end"
    )


def index_fields(db: sqlite3.Connection, session: SessionKey) -> IndexFields:
    """Return the fields that all documents of a session and of its subagents contain."""
    key = [session.id, session.platform]
    rows = db.execute(
        "select number, null, source, title, workspace_hash, workspace_name, git_branch"
        " from conversations where external_id = ? and platform = ?",
        key,
    )
    found = {session_id: _Fields(*values) for session_id, *values in rows}
    workspace = next((fields.workspace_hash for fields in found.values()), None)
    subagents = db.execute(
        "select id, agent_id, source, title from subagent where parent_external_id = ? and platform = ?", key
    )
    for id_, agent_id, source, title in subagents:
        found[id_] = _Fields(agent_id, source, title, workspace, None, None)
    return found


def queue_changes(db: sqlite3.Connection, session: SessionKey, before: IndexFields) -> None:
    """Queue a derived session and its subagents as far as they changed. Often nothing did."""
    after = index_fields(db, session)
    queued = {id_: 0 for id_ in {*before, *after} if before.get(id_) != after.get(id_)}
    unchanged = after.keys() - queued.keys()
    if unchanged:
        firsts = _first_changes(db, session)
        for id_ in unchanged:
            # A subagent without a fragment of its own is inlined in the session's.
            first = firsts.get(after[id_].agent_id, firsts[None] and 0)
            if first is not None:
                queued[id_] = first
    db.executemany(_QUEUE, queued.items())


def _first_changes(db: sqlite3.Connection, session: SessionKey) -> dict[_AgentId, int | None]:
    """Return the first changed position of a session and of each subagent; None if nothing changed."""
    key = {"id": session.id, "platform": session.platform}
    groups: dict[_AgentId, list[_Change]] = {None: []}
    own = f"f.external_id = :id and (not f.is_subagent or {PARENT} is null)"
    for _, *change in db.execute(_CHANGES + own, key):
        groups[None].append(_Change(*change))
    subagents = f"{PARENT} = :id and f.is_subagent = 1"
    for agent_id, *change in db.execute(_CHANGES + subagents, key):
        groups.setdefault(agent_id, []).append(_Change(*change))
    return {agent_id: _first_change(changes) for agent_id, changes in groups.items()}


def _first_change(changes: list[_Change]) -> int | None:
    """Return the first changed position. Fragments that do not provide content are ignored."""
    best = min((change.rank for change in changes), default=None)
    firsts = [
        _min_known((change.first_new, change.first_recopied))
        for change in changes
        if change.rank[1] == (best and best[1])
    ]
    # Merged fragments have other positions than each fragment alone.
    return _min_known(firsts) if len(firsts) == 1 else _min_known([first and 0 for first in firsts])


def _min_known(positions: Iterable[int | None]) -> int | None:
    return min((position for position in positions if position is not None), default=None)
