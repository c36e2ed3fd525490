"""Accounts: what one unit tells of one session, and which of them a session is taken from."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.codec import decompress
from backscroll.model import STORES, Closing
from backscroll.model.session import best_title

__all__ = [
    "Account",
    "accounts_of",
    "agents_of",
    "completed",
    "is_gone",
    "left_behind",
    "other_sessions",
    "told_by",
]

_TITLE = 100  # characters
_decoder = msgspec.msgpack.Decoder(Closing)
_QUERY = (
    "select f.id, f.source, f.store, f.external_id, f.closing, f.message_count, f.preview, u.modified_at,"
    " u.is_gone, f.status <> 'current', u.path, f.is_subagent"
    " from fragment f join unit u on u.id = f.unit_id where length(f.closing)"
)


class Account(msgspec.Struct):
    """What one unit tells of a session."""

    number: int
    source: str
    store: str
    id: str
    closing: Closing
    messages: int
    preview: str | None
    modified_at: int | None  # milliseconds
    is_gone: bool
    is_former: bool  # what the unit told before it was rewritten
    path: str
    is_agent: bool = False


def _account(row: tuple[Any, ...]) -> Account:
    number, source, store, id_, closing, messages, preview, modified_at, gone, former, path, agent = row
    return Account(
        number,
        source,
        store,
        id_,
        _closing(closing),
        messages,
        preview,
        modified_at,
        is_gone=bool(gone),
        is_former=bool(former),
        path=path,
        is_agent=bool(agent),
    )


def _closing(body: bytes) -> Closing:
    return _decoder.decode(decompress(body))


def accounts_of(db: sqlite3.Connection, session: SessionKey) -> list[Account]:
    """Every account of a session, the one its content is taken from first."""
    rows = db.execute(
        f"{_QUERY} and f.external_id = ? and f.platform = ?"
        " and (not f.is_subagent or coalesce(f.parent_external_id, f.inferred_parent_external_id) is null)",
        [session.id, session.platform],
    )
    return sorted(map(_account, rows), key=_rank)


def other_sessions(db: sqlite3.Connection, accounts: Iterable[int]) -> dict[int, set[str]]:
    """Of these accounts of sessions, the ids of others that their lines name, where they name any."""
    found: dict[int, set[str]] = {}
    for number in accounts:
        row = db.execute(
            "select closing from fragment where id = ? and length(closing)"
            " and (not is_subagent or coalesce(parent_external_id, inferred_parent_external_id) is null)",
            [number],
        ).fetchone()
        ids = _closing(row[0]).metadata.get("other_session_ids") if row is not None else None
        if ids:
            found[number] = set(ids)
    return found


def agents_of(db: sqlite3.Connection, session: SessionKey) -> dict[str, list[Account]]:
    """The accounts of every subagent that has a unit of its own."""
    rows = db.execute(
        f"{_QUERY} and coalesce(f.parent_external_id, f.inferred_parent_external_id) = ?"
        " and f.platform = ? and f.is_subagent = 1",
        [session.id, session.platform],
    )
    found: dict[str, list[Account]] = {}
    for account in sorted(map(_account, rows), key=_rank):
        found.setdefault(account.id, []).append(account)
    return found


def _rank(account: Account) -> tuple[bool, int, bool, bool, float, str, int]:
    updated = account.closing.updated_at
    newest = -updated.timestamp() if updated is not None else 0.0
    store = STORES.index(account.store)
    is_past = account.is_former, account.is_gone  # what is there decides over what was
    return not account.messages, store, *is_past, newest, account.path, account.number


def told_by(accounts: Sequence[Account]) -> list[Account]:
    """The accounts that content is taken from: the best one, and other files of the same kind."""
    return [account for account in accounts if account.store == accounts[0].store] if accounts else []


def is_gone(told: Sequence[Account]) -> bool:
    """Whether none of the units that content is from has it any more."""
    full = [account for account in told if account.messages] or told
    return all(account.is_gone or account.is_former for account in full)


def completed(accounts: Sequence[Account]) -> Closing:
    """The best account's closing, with what it leaves open taken from the others."""
    best = accounts[0].closing
    if len(accounts) == 1:
        return best
    filled: dict[str, Any] = {}
    titled = best_title(one.closing for one in accounts)
    if titled is not None:
        filled |= {"title": titled.title, "title_source": titled.title_source}
    for name in ("workspace", "created_at", "updated_at", "git_branch", "version"):
        if _says(best, name):
            continue
        known = next((one.closing for one in accounts if _says(one.closing, name)), None)
        if known is not None:
            source = f"{name}_source"  # how it is known
            filled |= {each: getattr(known, each) for each in (name, source) if hasattr(known, each)}
    if best.visibility == "hidden":
        # What one file tells now is nobody's to look for, but another's, or what it told before, is.
        told = (one.closing.visibility for one in told_by(accounts) if one.messages)
        filled["visibility"] = next((seen for seen in told if seen in ("listed", "archived")), "hidden")
    for note in (one.closing for one in accounts[1:] if one.store == "notes" and not one.is_former):
        filled["metadata"] = note.metadata | filled.get("metadata", best.metadata)
        if note.visibility == "archived" and best.visibility == "listed":
            filled["visibility"] = "archived"
    return msgspec.structs.replace(best, **filled)


def _says(closing: Closing, name: str) -> bool:
    """Whether something is known from what a unit says; the time of its file is only better than nothing."""
    return getattr(closing, name) is not None and not (
        name == "created_at" and closing.created_at_source == "file"
    )


def left_behind(agents: Iterable[Sequence[Account]]) -> Closing:
    """What the subagents of a session tell of it, when nothing else is left of it."""
    groups = sorted(agents, key=lambda group: (str(completed(group).created_at or "~"), group[0].id))
    told = [completed(group) for group in groups]
    created = [one.created_at for one in told if one.created_at is not None]
    updated = [one.updated_at for one in told if one.updated_at is not None]
    return Closing(
        title=next(filter(None, map(_called, groups)), None),
        title_source="subagent",
        workspace=next((one.workspace for one in told if one.workspace is not None), None),
        created_at=min(created, default=None),
        created_at_source="neighbour" if created else None,
        updated_at=max(updated, default=None),
        git_branch=next((one.git_branch for one in told if one.git_branch), None),
        version=next((one.version for one in told if one.version), None),
        completeness="lossy",
        reasons=("only its subagents are left",),
        visibility="listed" if any(one.visibility == "listed" for one in told) else "hidden",
    )


def _called(group: Sequence[Account]) -> str | None:
    """What a subagent is called: its title, what it was described as, or how its task begins."""
    closing = completed(group)
    described = (agent.description for agent in closing.agents if agent.agent_id == group[0].id)
    return closing.title or next(described, None) or " ".join((group[0].preview or "").split())[:_TITLE]
