"""Write the rows of subagents."""

import sqlite3
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from backscroll.archive.derive.fragments import Fragment, are_gone, content_fragments, merged_closing
from backscroll.archive.derive.session_totals import SessionTotals
from backscroll.archive.session_key import FIRST_SUBAGENT_ID, SessionKey
from backscroll.archive.timestamps import from_ms
from backscroll.model import Agent, Closing
from backscroll.model.dates import iso

__all__ = ["is_listed", "subagent_id", "write_inlined_subagents", "write_subagents"]

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

_LAST_TIMES = (
    "select s.text, max(m.at) from message m join string s on s.id = m.agent_string_id"
    " where m.fragment_id in (select value from json_each(?)) and m.at is not null group by s.text"
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


def subagent_id(session: SessionKey, agent_id: str) -> int:
    """Return the id of a subagent's row: the same after every derive, and above all session numbers."""
    digest = blake2b(f"{session.platform} {session.id} {agent_id}".encode(), digest_size=8).digest()
    return FIRST_SUBAGENT_ID | int.from_bytes(digest, "big") >> 8


def is_listed(db: sqlite3.Connection, agent_id: str, closing: Closing) -> bool:
    """Return whether a subagent is listed. One that looks like a warm-up is listed if a call started it."""
    if closing.visibility != "hidden":
        return True
    return closing.is_unlinked and _find_evidence(db, agent_id) is not None


def write_subagents(
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
        values = _merged(in_session.get(agent_id), own)
        values |= {
            "model": next(iter(counted.models), None) or values["model"],
            "total_tokens": counted.tokens if counted.tokens is not None else values["total_tokens"],
            "total_tool_use_count": values["total_tool_use_count"] or len(counted.tools),
            "started_at": iso(closing.created_at or counted.first_at),
            "updated_at": iso(closing.updated_at or counted.last_at),
            "title": closing.title or values["description"],
            "message_count": counted.all_messages,
            "completeness": closing.completeness,
            "visibility": "listed" if is_listed(db, agent_id, closing) else closing.visibility,
            "is_gone": are_gone(content_fragments(fragments)),
        }
        if (evidence := _find_evidence(db, agent_id)) is not None:
            values |= {"tool_call_id": evidence[0], "evidence": evidence[1]}
        _insert(db, session, agent_id, fragments[0].source, values)


def write_inlined_subagents(
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
    last_times = {agent_id: from_ms(at) for agent_id, at in db.execute(_LAST_TIMES, ids)}
    models = dict(db.execute(_INLINED_MODELS, ids))
    tokens = dict(db.execute(_INLINED_TOKENS, ids))
    for agent in agents:
        values = _merged(agent, None)
        values |= {
            "model": models.get(agent.agent_id) or values["model"],
            "total_tokens": tokens.get(agent.agent_id, values["total_tokens"]),
            "started_at": iso(agent.started_at),
            "updated_at": iso(last_times.get(agent.agent_id) or agent.started_at),
            "title": agent.description,
            "message_count": message_counts[agent.agent_id],
            "visibility": "hidden" if agent.is_hidden else "listed",
        }
        _insert(db, session, agent.agent_id, content[0].source, values)


def _find_evidence(db: sqlite3.Connection, agent_id: str) -> tuple[str, str] | None:
    """Return the call that started a subagent and the evidence for it; None if no call is known."""
    row: tuple[str, str] | None = db.execute(
        "select tool_call_id, evidence from subagent_evidence where agent_id = ?"
        " order by strength, tool_call_id limit 1",
        [agent_id],
    ).fetchone()
    return row


def _merged(in_session: Agent | None, own: Agent | None) -> dict[str, Any]:
    """Merge what the session and the subagent's own unit contain. The session takes precedence."""
    agents = [agent for agent in (in_session, own) if agent is not None]
    return {
        name: next((value for agent in agents if (value := getattr(agent, name)) is not None), None)
        for name in _MERGED_FIELDS
    }


def _insert(
    db: sqlite3.Connection, session: SessionKey, agent_id: str, source: str, values: dict[str, Any]
) -> None:
    row = {
        "id": subagent_id(session, agent_id),
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
