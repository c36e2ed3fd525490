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
        "select distinct u.source, u.root, u.path, f.store, u.is_gone from fragment f"
        " join unit u on u.id = f.unit_id where f.platform = ? and f.external_id = ?"
        " and (not f.is_subagent or coalesce(f.parent_external_id, f.inferred_parent_external_id) is null)",
        [*session],
    )
    found = [Store(source, root, path, kind, bool(gone)) for source, root, path, kind, gone in rows]
    return tuple(sorted(found, key=lambda one: (STORES.index(one.kind), one.is_gone, one.path)))


def files_of(db: sqlite3.Connection, summary: SessionSummary) -> list[Original]:
    """The files that tell of nothing but a session and its subagents, as far as they are kept."""
    rows = db.execute(
        "select distinct u.id, u.source, u.platform, u.root, u.path, u.size, u.modified_at, u.key,"
        " u.fingerprint, u.is_gone from fragment f join unit u on u.id = f.unit_id"
        " where u.kind <> 'prompts' and f.platform = :platform"
        " and (f.external_id = :id and not f.is_subagent"
        " or coalesce(f.parent_external_id, f.inferred_parent_external_id) = :id)"
        " and exists (select 1 from raw_segment r where r.unit_id = u.id) order by u.path",
        {"platform": summary.platform, "id": summary.id},
    )
    return [Original(*row) for row in rows]
