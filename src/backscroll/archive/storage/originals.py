"""Where a session was read, and what of it can be written back."""

import sqlite3

import msgspec

from backscroll.archive.session_key import SessionKey
from backscroll.archive.write.reparse import Original
from backscroll.model import STORES, SessionSummary
from backscroll.model.tool import Resumable, Store

__all__ = ["files_of", "resumable"]


def resumable(db: sqlite3.Connection, summary: SessionSummary) -> Resumable:
    """What the tool that held a session is asked to continue."""
    session = SessionKey(summary.platform, summary.id)
    row = db.execute(
        "select metadata from conversations where platform = ? and external_id = ?", [*session]
    ).fetchone()
    metadata = msgspec.json.decode(row[0]) if row is not None else {}
    folders = metadata.get("cwds")
    return Resumable(
        id=summary.id,
        title=summary.original_title or summary.title,
        folder=summary.workspace_path,
        authority=metadata.get("workspace_authority"),
        folders=tuple(folders) if isinstance(folders, list) else (),
        stores=_stores(db, session),
    )


def _stores(db: sqlite3.Connection, session: SessionKey) -> tuple[Store, ...]:
    rows = db.execute(
        "select distinct u.source, u.root, u.path, a.store, u.is_gone from account a"
        " join unit u on u.number = a.unit where a.platform = ? and a.id = ?"
        " and (not a.is_agent or coalesce(a.parent_id, a.found_parent) is null)",
        [*session],
    )
    found = [Store(source, root, path, kind, bool(gone)) for source, root, path, kind, gone in rows]
    return tuple(sorted(found, key=lambda one: (STORES.index(one.kind), one.is_gone, one.path)))


def files_of(db: sqlite3.Connection, summary: SessionSummary) -> list[Original]:
    """The files that tell of nothing but a session and its subagents, as far as they are kept."""
    rows = db.execute(
        "select distinct u.number, u.source, u.platform, u.root, u.path, u.size, u.modified_at, u.key,"
        " u.fingerprint, u.is_gone from account a join unit u on u.number = a.unit"
        " where u.kind <> 'prompts' and a.platform = :platform"
        " and (a.id = :id and not a.is_agent or coalesce(a.parent_id, a.found_parent) = :id)"
        " and exists (select 1 from raw r where r.unit = u.number) order by u.path",
        {"platform": summary.platform, "id": summary.id},
    )
    return [Original(*row) for row in rows]
