"""The rows that other programs read: a conversation, its window and its subagents."""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any
from uuid import UUID, uuid5

import msgspec

from backscroll.archive.derive.counters import Counts, count
from backscroll.archive.derive.cursor_windows import note_windows
from backscroll.archive.derive.fragments import (
    Account,
    accounts_of,
    agents_of,
    completed,
    is_gone,
    left_behind,
    told_by,
)
from backscroll.archive.derive.index_changes import found_by, note_changes
from backscroll.archive.derive.live import LIVE
from backscroll.archive.derive.rollups import Quarters
from backscroll.archive.derive.session_totals import Figures
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.texts import Texts
from backscroll.model import Agent, Closing, workspace_hash
from backscroll.model.dates import iso
from backscroll.model.session import OWN_TITLES

__all__ = ["conversation_id", "subagent_number", "write_sessions", "write_vanished"]

_NAMESPACE = UUID("6f0c1b52-8f0e-5d0b-9a53-0b6d2f6f7a11")
_TITLE = 100


def conversation_id(platform: str, id_: str) -> str:
    """The same id in every archive."""
    return str(uuid5(_NAMESPACE, f"{platform}:{id_}"))


def subagent_number(session: SessionKey, agent_id: str) -> int:
    """A subagent's number, the same each time its row is made, and no session's."""
    digest = blake2b(f"{session.platform} {session.id} {agent_id}".encode(), digest_size=8).digest()
    return 1 << 60 | int.from_bytes(digest, "big") >> 8


def write_sessions(db: sqlite3.Connection, sessions: Collection[SessionKey], now: datetime) -> None:
    """Make the rows of sessions anew from their accounts."""
    texts, quarters = Texts(db), Quarters(db)
    note_windows(db, sessions)
    for session in sessions:
        before = found_by(db, session)
        _write(db, texts, quarters, session, now)
        note_changes(db, session, before)
    quarters.close()
    note_windows(db, sessions)


def write_vanished(db: sqlite3.Connection, session: SessionKey) -> None:
    """After an account went, take away the rows of what turned out to be no session, or no subagent of it."""
    key = [session.id, session.platform]
    left = [one.number for one in accounts_of(db, session)]
    left += [one.number for group in agents_of(db, session).values() for one in group]
    db.executemany("update fragment set is_derived = 0 where id = ?", [(number,) for number in left])
    own = "select 1 from conversations where external_id = ? and platform = ?"
    if not left and db.execute(own, key).fetchone():
        write_sessions(db, [session], datetime.now(UTC))


def _write(
    db: sqlite3.Connection, texts: Texts, quarters: Quarters, session: SessionKey, now: datetime
) -> None:
    accounts = accounts_of(db, session)
    agents = agents_of(db, session)
    if not accounts and not agents:
        key = [session.id, session.platform]
        db.execute("delete from conversations where external_id = ? and platform = ?", key)
        db.execute("delete from subagent where parent_external_id = ? and platform = ?", key)
        return
    told = told_by(accounts)
    closing = completed(accounts) if accounts else left_behind(agents.values())
    accounts = accounts or [one for group in agents.values() for one in group]
    own = _counted(db, quarters, told)
    helpers = {id_: _counted(db, quarters, told_by(group)) for id_, group in agents.items()}
    figures = Figures(texts, own, helpers.values(), agent=session.id if told and told[0].is_agent else None)
    started, started_source = _started(closing, figures, accounts)
    updated = max(filter(None, (closing.updated_at, figures.last_at)), default=started)
    preview = next((account.preview for account in accounts if account.preview and told), None)
    title, title_source = _title(db, closing, told, preview)
    inlined = [agent for one in told for agent in one.closing.agents if agent.agent_id in figures.inlined]
    workspace = closing.workspace
    hash_ = (
        workspace_hash(workspace.path, authority=workspace.authority) if workspace else workspace_hash(None)
    )
    metadata = {
        **closing.metadata,
        "started_at_source": started_source,
        "title_source": title_source,
        "stores": list(dict.fromkeys(f"{one.source}/{one.store}" for one in accounts)),
        "reasons": list(closing.reasons),
        "workspace_evidence": workspace.evidence if workspace else None,
        "workspace_authority": workspace.authority if workspace else None,
        "are_tokens_unknown": figures.tokens is None,
        "are_tokens_at_least": figures.is_at_least,
    }
    values: dict[str, Any] = {
        "id": conversation_id(session.platform, session.id),
        "session_id": _window(db, session, closing, hash_, started, updated),
        "external_id": session.id,
        "platform": session.platform,
        "workspace_hash": hash_,
        "workspace_name": workspace.name if workspace else None,
        "started_at": iso(started),
        "ended_at": None if now - updated < LIVE else iso(updated),
        "context": _json({"cwd": workspace.path if workspace else None, "git_branch": closing.git_branch}),
        "metadata": _json(
            {name: value for name, value in metadata.items() if value not in (None, [], False, "")}
        ),
        "tool_sequence": _json(figures.tools),
        "acceptance_decisions": _json(figures.decisions),
        "interaction_count": figures.interactions,
        "acceptance_rate": figures.acceptance_rate,
        "total_tokens": figures.tokens,
        "total_changes": figures.changes,
        "number": _number(db, session),
        "source": accounts[0].source,
        "title": title,
        "workspace_path": workspace.path if workspace else None,
        "updated_at": iso(updated),
        "message_count": figures.messages,
        "first_message_preview": preview,
        "git_branch": closing.git_branch,
        "models": _json(figures.models),
        "version": closing.version,
        "agent_ids": _json(_agent_ids(agents, inlined)),
        "completeness": closing.completeness,
        "visibility": closing.visibility,
        "is_gone": is_gone(told),
    }
    _replace(db, "conversations", values)
    db.execute(
        "delete from subagent where parent_external_id = ? and platform = ?", [session.id, session.platform]
    )
    _write_agents(db, session, agents, told, {id_: Figures(texts, one) for id_, one in helpers.items()})
    _write_inlined(
        db,
        session,
        told,
        [(one, figures.spoken(one.agent_id)) for one in inlined if one.agent_id not in agents],
    )


def _counted(db: sqlite3.Connection, quarters: Quarters, told: Sequence[Account]) -> list[Counts]:
    """What the accounts of a session, or of a subagent, come to; what one before tells counts there."""
    numbers = [one.number for one in told]
    return [
        count(db, quarters, one.number, numbers[:place], is_agent=one.is_agent)
        for place, one in enumerate(told)
    ]


def _replace(db: sqlite3.Connection, table: str, values: dict[str, Any]) -> None:
    columns, marks = ", ".join(values), ", ".join("?" * len(values))
    db.execute(f"insert or replace into {table} ({columns}) values ({marks})", list(values.values()))  # noqa: S608


def _started(closing: Closing, figures: Figures, accounts: list[Account]) -> tuple[datetime, str]:
    """When a session began, and how that is known; the schema demands a time."""
    if closing.created_at is not None:
        return closing.created_at, closing.created_at_source or "stored"
    if figures.first_at is not None:
        return figures.first_at, "neighbour"
    modified = next((one.modified_at for one in accounts if one.modified_at), None)
    return datetime.fromtimestamp((modified or 0) / 1000, UTC), "file"


def _title(
    db: sqlite3.Connection, closing: Closing, told: list[Account], preview: str | None
) -> tuple[str | None, str | None]:
    """The session's own title, else one that another file gives it, else its first words."""
    if closing.title and closing.title_source in OWN_TITLES:
        return closing.title, closing.title_source
    for account in told:
        row = db.execute(
            "select h.title from message m join title_hint h on h.record_hash = m.record_hash"
            " where m.fragment_id = ? and m.copied_from_string_id is null"
            " order by m.at desc, h.title desc limit 1",
            [account.number],
        ).fetchone()
        if row is not None:
            return row[0], "summary"
    if closing.title or not preview:
        return closing.title, closing.title_source
    line = " ".join(preview.split())
    return (line if len(line) <= _TITLE else line[: _TITLE - 1].rstrip() + "…"), "first message"


def _agent_ids(agents: dict[str, list[Account]], inlined: list[Agent]) -> list[str]:
    found = [id_ for id_, group in agents.items() if group[0].closing.visibility != "hidden"]
    return list(dict.fromkeys([*found, *(agent.agent_id for agent in inlined if not agent.is_hidden)]))


def _number(db: sqlite3.Connection, session: SessionKey) -> int:
    known = db.execute(
        "select number from conversations where external_id = ? and platform = ?",
        [session.id, session.platform],
    ).fetchone()
    if known is not None:
        return int(known[0])
    return int(db.execute("select coalesce(max(number), 0) + 1 from conversations").fetchone()[0])


def _window(
    db: sqlite3.Connection,
    session: SessionKey,
    closing: Closing,
    hash_: str,
    started: datetime,
    updated: datetime,
) -> str | None:
    """The window a Cursor session belongs to: the one its workspace storage or folder stands for."""
    if session.platform != "cursor":
        return None
    workspace = closing.workspace
    named = closing.metadata.get("window")
    if not isinstance(named, str):
        named = f"workspace:{workspace.storage_ids[0] if workspace and workspace.storage_ids else hash_}"
    id_ = conversation_id(session.platform, named)
    db.execute(
        "insert into cursor_sessions (id, external_session_id, workspace_hash, workspace_name,"
        " workspace_path, started_at, ended_at) values (?, ?, ?, ?, ?, ?, ?) on conflict (id) do nothing",
        [
            id_,
            named,
            hash_,
            workspace.name if workspace else None,
            workspace.path if workspace else None,
            iso(started),
            iso(updated),
        ],
    )
    return id_


def _write_agents(
    db: sqlite3.Connection,
    session: SessionKey,
    agents: dict[str, list[Account]],
    told: list[Account],
    counted: Mapping[str, Figures],
) -> None:
    """Write subagents that have a unit of their own."""
    seen = {agent.agent_id: agent for one in told for agent in one.closing.agents}
    for agent_id, group in agents.items():
        closing = completed(group)
        own = next((agent for agent in closing.agents if agent.agent_id == agent_id), None)
        figures = counted[agent_id]
        link = db.execute(
            "select tool_call_id, evidence from subagent_evidence where agent_id = ?"
            " order by strength, tool_call_id limit 1",
            [agent_id],
        ).fetchone()
        values = _merged(seen.get(agent_id), own)
        values |= {
            "model": values["model"] or next(iter(figures.models), None),
            "total_tokens": figures.tokens if figures.tokens is not None else values["total_tokens"],
            "total_tool_use_count": values["total_tool_use_count"] or len(figures.tools),
            "started_at": iso(closing.created_at or figures.first_at),
            "updated_at": iso(closing.updated_at or figures.last_at),
            "title": closing.title or values["description"],
            "message_count": figures.all_spoken,
            "completeness": closing.completeness,
            "visibility": closing.visibility,
            "is_gone": is_gone(told_by(group)),
        }
        if link is not None:
            values |= {"tool_call_id": link[0], "evidence": link[1]}
            if closing.is_unlinked:
                values["visibility"] = "listed"
        _insert_agent(db, session, agent_id, group[0].source, values)


def _write_inlined(
    db: sqlite3.Connection, session: SessionKey, told: list[Account], inlined: list[tuple[Agent, int]]
) -> None:
    """Write subagents that are told in the session's own files, with how many messages each has."""
    for agent, spoken in inlined:
        values = _merged(agent, None)
        values |= {
            "started_at": iso(agent.started_at),
            "title": agent.description,
            "message_count": spoken,
            "visibility": "hidden" if agent.is_hidden else "listed",
        }
        _insert_agent(db, session, agent.agent_id, told[0].source, values)


def _merged(told: Agent | None, own: Agent | None) -> dict[str, Any]:
    """What the parent and the agent's own unit know of it; the parent's word goes first."""
    names = (
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
    views = [agent for agent in (told, own) if agent is not None]
    return {name: next((v for one in views if (v := getattr(one, name)) is not None), None) for name in names}


def _insert_agent(
    db: sqlite3.Connection, session: SessionKey, agent_id: str, source: str, values: dict[str, Any]
) -> None:
    key = {
        "platform": session.platform,
        "agent_id": agent_id,
        "parent_external_id": session.id,
        "source": source,
    }
    number = subagent_number(session, agent_id)
    _replace(db, "subagent", {"id": number} | key | values)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
