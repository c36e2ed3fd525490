"""Sessions as people ask for them: in pages, by ref, by number."""

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from backscroll.archive.annotations import with_annotations
from backscroll.archive.query.filters import condition
from backscroll.model import Filter, SessionSummary

__all__ = ["by_number", "count", "find", "numbered", "summaries", "titles"]

_COLUMNS = (
    "external_id, source, platform, title, workspace_path, workspace_name, message_count, started_at,"
    " updated_at, first_message_preview, git_branch, models, version, agent_ids, interaction_count,"
    " acceptance_rate, total_tokens, total_changes, completeness, is_gone"
)
_AGENTS = (
    "select agent_id as external_id, source, platform, title, (select p.workspace_path from conversations p"
    " where p.external_id = parent_external_id and p.platform = subagent.platform) as workspace_path,"
    " (select p.workspace_name from conversations p"
    " where p.external_id = parent_external_id and p.platform = subagent.platform) as workspace_name,"
    " message_count, started_at, updated_at, prompt as first_message_preview, null as git_branch,"
    " iif(model is null, '[]', json_array(model)) as models, null as version, '[]' as agent_ids,"
    " 0 as interaction_count, null as acceptance_rate, total_tokens, 0 as total_changes, completeness,"
    " is_gone, parent_external_id, id as number from subagent where visibility in ('listed', 'archived')"
)


def _source_table(condition: str, wanted: Filter) -> str:
    own = f"select {_COLUMNS}, null as parent_external_id, number from conversations where {condition}"  # noqa: S608
    if not wanted.with_subagents:
        return own
    return (
        f"{own} union all {_AGENTS} and exists (select 1 from conversations c where c.external_id ="  # noqa: S608
        f" subagent.parent_external_id and c.platform = subagent.platform and {condition})"
    )


def count(db: sqlite3.Connection, wanted: Filter) -> int:
    """How many sessions pass."""
    passing, values = condition(db, wanted)
    table = _source_table(passing, wanted)
    return int(db.execute(f"select count(*) from ({table})", values).fetchone()[0])  # noqa: S608


def summaries(db: sqlite3.Connection, wanted: Filter, *, limit: int, offset: int) -> list[SessionSummary]:
    """One page, newest first."""
    passing, values = condition(db, wanted)
    order = "updated_at desc, parent_external_id is not null, number desc, external_id"
    rows = db.execute(
        f"select * from ({_source_table(passing, wanted)}) order by {order} limit :limit offset :offset",  # noqa: S608
        {**values, "limit": limit, "offset": offset},
    )
    return with_annotations(db, [_summary(row, offset + place) for place, row in enumerate(rows, start=1)])


def _summary(row: tuple[Any, ...], index: int | None) -> SessionSummary:
    (
        id_, source, platform, title, path, name, messages, created, updated, preview, branch, models,
        version, agent_ids, interactions, rate, tokens, changes, completeness, gone, parent, *_,
    ) = row  # fmt: skip
    return SessionSummary(
        ref=f"{source}:{id_}",
        id=id_,
        index=index,
        source=source,
        platform=platform,
        title=title,
        workspace_path=path,
        workspace_name=name,
        message_count=messages,
        created_at=_moment(created),
        updated_at=_moment(updated),
        first_message_preview=preview,
        git_branch=branch,
        models=tuple(msgspec.json.decode(models, type=list[str])),
        version=version,
        agent_ids=tuple(msgspec.json.decode(agent_ids, type=list[str])),
        parent_ref=f"{source}:{parent}" if parent is not None else None,
        interaction_count=interactions,
        acceptance_rate=rate,
        total_tokens=tokens,
        total_changes=changes,
        completeness=completeness,
        is_gone=bool(gone),
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text is not None else None


def find(db: sqlite3.Connection, id_: str, *, limit: int = 20) -> list[SessionSummary]:
    """Sessions and subagents whose id begins so; an exact id alone when there is one."""
    everything = (
        f"select {_COLUMNS}, null as parent_external_id, number from conversations union all {_AGENTS}"  # noqa: S608
    )
    exact = db.execute(f"select * from ({everything}) where external_id = ?", [id_]).fetchall()  # noqa: S608
    if not exact:
        upper = id_[:-1] + chr(ord(id_[-1]) + 1) if id_ else ""
        exact = db.execute(
            f"select * from ({everything}) where external_id >= ? and external_id < ? limit ?",  # noqa: S608
            [id_, upper, limit],
        ).fetchall()
    return with_annotations(db, [_summary(row, None) for row in exact])


def by_number(db: sqlite3.Connection, number: int) -> SessionSummary | None:
    """The session or subagent that has this number."""
    return numbered(db, [number]).get(number)


def numbered(db: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, SessionSummary]:
    """The sessions and subagents that have these numbers, by number."""
    some = "in (select value from json_each(:numbers))"
    rows = db.execute(
        f"select {_COLUMNS}, null as parent_external_id, number from conversations where number {some}"  # noqa: S608
        f" union all {_AGENTS} and id {some}",
        {"numbers": msgspec.json.encode(list(numbers)).decode()},
    )
    found = rows.fetchall()
    summaries = with_annotations(db, [_summary(row, None) for row in found])
    return {row[-1]: summary for row, summary in zip(found, summaries, strict=True)}


def titles(db: sqlite3.Connection, numbers: Iterable[int]) -> list[tuple[int, str]]:
    """The tools' own titles of those sessions and subagents of these numbers that have one."""
    some = "in (select value from json_each(:numbers))"
    return db.execute(
        f"select number, title from conversations where title is not null and number {some}"  # noqa: S608
        f" union all select id, title from subagent where title is not null and id {some}",
        {"numbers": msgspec.json.encode(list(numbers)).decode()},
    ).fetchall()
