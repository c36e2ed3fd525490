"""Properties of sessions and their counts, for the filters of a list."""

import sqlite3
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from backscroll.archive.query.filters import where_clause
from backscroll.archive.query.session_cache import DataVersion
from backscroll.model import Filter
from backscroll.model.session import FacetValue, SessionFacets

__all__ = ["Facets", "SessionProperties"]

MAX_SELECTED_PROPERTIES = 1000  # for more sessions, the properties of all are read
MAX_VALUES = 200  # of one property, the most frequent ones

_SOURCES = "select source, source, count(*) from conversations where {0} group by 1"
_WORKSPACES = (
    "select coalesce(json_extract(metadata, '$.workspace_authority') || ':', '') || workspace_path,"
    " workspace_name, count(*) from conversations where {0} and workspace_path is not null"
    " group by workspace_hash"
)
_BRANCHES = (
    "select git_branch, git_branch, count(*) from conversations"
    " where {0} and git_branch is not null group by 1"
)
_MODELS = (
    "select m.value, m.value, count(distinct number) from conversations, json_each(models) m"
    " where {0} group by 1"
)
_TAGS = (
    "select name, name, count(*) from tag join conversations using (platform, external_id)"
    " where {0} group by 1"
)


class SessionProperties(NamedTuple):
    """Source, workspace and models of a session or subagent."""

    source: str
    workspace_hash: str | None
    models: tuple[str, ...]


# Subagents have ids that no session has, and belong to the workspace of their session.
_PROPERTIES = (
    "select number, source, workspace_hash, models from conversations{0} union all"
    " select s.id, s.source, c.workspace_hash, iif(s.model is null, '[]', json_array(s.model))"
    " from subagent s join conversations c on c.external_id = s.parent_external_id"
    " and c.platform = s.platform{1}"
)
_IN_IDS = " where {0} in (select value from json_each(:ids))"
_SOME_PROPERTIES = _PROPERTIES.format(_IN_IDS.format("number"), _IN_IDS.format("s.id"))


class Facets:
    """Queries for the properties of sessions."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._version = DataVersion(db)
        self._properties: dict[int, SessionProperties] | None = None

    def of_sessions(self, filter_: Filter) -> SessionFacets:
        """Return how many sessions each value of each filter would list, with the other filters unchanged."""
        db = self._db
        return SessionFacets(
            sources=_values(db, _SOURCES, replace(filter_, source=None)),
            workspaces=_values(db, _WORKSPACES, replace(filter_, workspace=None)),
            branches=_values(db, _BRANCHES, replace(filter_, branch=None)),
            models=_values(db, _MODELS, replace(filter_, model=None)),
            tags=_values(db, _TAGS, replace(filter_, tags=())),
            edited=_count(db, replace(filter_, has_edits=True)),
            gone=_count(db, replace(filter_, is_gone=True)),
            starred=_count(db, replace(filter_, is_starred=True)),
        )

    def properties(self, ids: Collection[int]) -> Mapping[int, SessionProperties]:
        """Return source, workspace and models of sessions and subagents by id, perhaps also of others."""
        if self._version.has_changed():
            self._properties = None
        if self._properties is None:
            if len(ids) <= MAX_SELECTED_PROPERTIES:
                return _read_properties(self._db, ids)
            self._properties = _read_properties(self._db)
        return self._properties


def _read_properties(
    db: sqlite3.Connection, ids: Collection[int] | None = None
) -> dict[int, SessionProperties]:
    """Return the properties of these or all sessions and subagents, by id. Equal ones are the same object."""
    if ids is None:
        rows = _execute(db, _PROPERTIES.format("", ""), {})
    else:
        rows = _execute(db, _SOME_PROPERTIES, {"ids": msgspec.json.encode(list(ids)).decode()})
    known: dict[tuple[str, str | None, str], SessionProperties] = {}
    found: dict[int, SessionProperties] = {}
    for id_, *key in rows:
        source, workspace_hash, models = key
        properties = known.get((source, workspace_hash, models))
        if properties is None:
            names = tuple(msgspec.json.decode(models, type=list[str]))
            properties = SessionProperties(source, workspace_hash, names)
            known[source, workspace_hash, models] = properties
        found[id_] = properties
    return found


def _values(db: sqlite3.Connection, query: str, filter_: Filter) -> tuple[FacetValue, ...]:
    condition, parameters = where_clause(db, filter_)
    rows = _execute(db, f"{query.format(condition)} order by 3 desc, 1 limit {MAX_VALUES}", parameters)
    return tuple(FacetValue(value, label or value, count) for value, label, count in rows)


def _count(db: sqlite3.Connection, filter_: Filter) -> int:
    condition, parameters = where_clause(db, filter_)
    return int(_execute(db, f"select count(*) from conversations where {condition}", parameters)[0][0])  # noqa: S608


def _execute(db: sqlite3.Connection, query: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    return db.execute(query, parameters).fetchall()
