"""Queries for sessions, subagents and workspaces: list, find, count, and facets for the filters of a list.

The ids in this module are `conversations.number` and `subagent.id`, which never collide.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from backscroll.archive.annotations import with_annotations
from backscroll.archive.query.costs import with_costs
from backscroll.archive.query.workspaces import (
    KnownWorkspace,
    find_workspaces,
    glob_pattern,
    known_workspaces,
    like_pattern,
    matches_pattern,
    workspace_hashes,
)
from backscroll.archive.session_key import FIRST_SUBAGENT_ID, SessionKey
from backscroll.lru_cache import LRUCache
from backscroll.model.dates import iso
from backscroll.model.session import FacetValue, Filter, SessionFacets, SessionSummary, SortKey
from backscroll.model.workspace import WorkspaceSummary

if TYPE_CHECKING:
    from backscroll.archive.query.costs import Rates

MAX_CACHED_SESSIONS = 2000
MAX_SELECTED_PROPERTIES = 1000  # for more sessions, the properties of all are read
MAX_VALUES = 200  # of one property, the most frequent ones
_MAX_PREFIX_MATCHES = 20
CachedSession = tuple[SessionSummary, int | None]  # a session, and its fragment if it has only one
_COLUMNS = (
    "external_id", "source", "platform", "title", "workspace_path", "workspace_name", "message_count",
    "started_at", "updated_at", "first_message_preview", "git_branch", "models", "version", "agent_ids",
    "interaction_count", "acceptance_rate", "total_tokens", "total_changes", "completeness", "is_gone",
)  # fmt: skip
_FIELDS = [{"external_id": "id", "started_at": "created_at"}.get(name, name) for name in _COLUMNS]
_OF_PARENT = (
    "(select p.{0} from conversations p"
    " where p.external_id = parent_external_id and p.platform = subagent.platform)"
)
_SUBAGENT_VALUES = {  # of columns that the table of subagents does not have
    "external_id": "agent_id",
    "workspace_path": _OF_PARENT.format("workspace_path"),
    "workspace_name": _OF_PARENT.format("workspace_name"),
    "first_message_preview": "prompt",
    "git_branch": "null",
    "models": "iif(model is null, '[]', json_array(model))",
    "version": "null",
    "agent_ids": "'[]'",
    "interaction_count": "0",
    "acceptance_rate": "null",
    "total_changes": "0",
}
_SESSIONS = f"select {', '.join(_COLUMNS)}, null as parent_external_id, number from conversations"  # noqa: S608
_SUBAGENTS = (
    f"select {', '.join(f'{_SUBAGENT_VALUES.get(name, name)} as {name}' for name in _COLUMNS)},"  # noqa: S608
    " parent_external_id, id as number from subagent where visibility in ('listed', 'archived')"
)
_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode
_ORDER = "updated_at desc, parent_external_id is not null, number desc, external_id"
# A copied session has copies of its subagents, with the same ids and times.
_IS_COPIED_SUBAGENT = (
    "coalesce((select min(m.copied_from_string_id is not null) from fragment f"
    " join message m on m.fragment_id = f.id and m.position = 0"
    " where f.external_id = {id} and f.is_subagent and f.platform = {row}.platform"
    " and coalesce(f.parent_external_id, f.inferred_parent_external_id) = {row}.parent_external_id), 0)"
)
_OLDEST_SUBAGENT = (
    "first_value(a.id) over (partition by a.platform, a.agent_id order by a.started_at is null, a.started_at,"
    f" {_IS_COPIED_SUBAGENT.format(id='a.agent_id', row='a')}, a.parent_external_id)"
)
_USER_TITLE = (
    "(select t.title from user_title t where t.external_id = listed.external_id"
    " and t.platform = listed.platform and parent_external_id is null)"
)
_SORT_EXPRESSIONS: dict[SortKey, tuple[str, str]] = {  # and their usual direction
    "updated": ("updated_at", "desc"),
    "created": ("started_at", "desc"),
    "title": (f"casefold(coalesce({_USER_TITLE}, title))", "asc"),
    "workspace": ("casefold(workspace_name)", "asc"),
    "messages": ("message_count", "desc"),
    "prompts": ("interaction_count", "desc"),
    "tokens": ("total_tokens", "desc"),
    "lines": ("total_changes", "desc"),
}
_IN_IDS = "in (select value from json_each(:ids))"
_BY_IDS = f"{_SESSIONS} where number {_IN_IDS} union all {_SUBAGENTS} and id {_IN_IDS}"
# The inner query scans only an index, which is ten times as fast as a scan of the subagents.
_BY_EXTERNAL_ID = (
    f"{_SESSIONS} where external_id {{0}}"  # noqa: S608
    f" union all {_SUBAGENTS} and id in (select id from subagent where agent_id {{0}})"
)
_SESSION_IDS = (
    "select number, source, external_id from conversations where platform = :platform and external_id = :id"
    " union all select id, source, agent_id from subagent where platform = :platform"
    " and parent_external_id = :id and visibility in ('listed', 'archived')"
)
_SUBAGENT_IDS = (
    "with recursive below(id, source, agent_id) as ("
    "select id, source, agent_id from subagent where platform = :platform"
    " and parent_external_id = :id and agent_id = :agent and visibility in ('listed', 'archived')"
    " union select s.id, s.source, s.agent_id from below b join subagent s on s.parent_agent_id = b.agent_id"
    " where s.platform = :platform and s.parent_external_id = :id"
    " and s.visibility in ('listed', 'archived'))"
    " select id, source, agent_id from below"
)
_SOURCE_COUNTS = "select source, source, count(*) from conversations where {0} group by 1"
_WORKSPACE_COUNTS = (
    "select coalesce(json_extract(metadata, '$.workspace_authority') || ':', '') || workspace_path,"
    " workspace_name, count(*) from conversations where {0} and workspace_path is not null"
    " group by workspace_hash"
)
_BRANCH_COUNTS = (
    "select git_branch, git_branch, count(*) from conversations"
    " where {0} and git_branch is not null group by 1"
)
_MODEL_COUNTS = (
    "select m.value, m.value, count(distinct number) from conversations, json_each(models) m"
    " where {0} group by 1"
)
_TAG_COUNTS = (
    "select name, name, count(*) from tag join conversations using (platform, external_id)"
    " where {0} group by 1"
)
# Subagents have ids that no session has, and belong to the workspace of their session.
_PROPERTIES = (
    "select number, source, workspace_hash, models from conversations{0} union all"
    " select s.id, s.source, c.workspace_hash, iif(s.model is null, '[]', json_array(s.model))"
    " from subagent s join conversations c on c.external_id = s.parent_external_id"
    " and c.platform = s.platform{1}"
)
_SOME_PROPERTIES = _PROPERTIES.format(f" where number {_IN_IDS}", f" where s.id {_IN_IDS}")


class SessionQueries:
    """Find, list and count sessions and workspaces."""

    def __init__(self, db: sqlite3.Connection, rates: "Rates | None" = None) -> None:
        self._db = db
        self._rates = rates
        self.cache = SessionCache(db)

    def page(
        self,
        filter_: Filter,
        *,
        limit: int,
        offset: int,
        sort: SortKey = "updated",
        is_reversed: bool = False,
    ) -> list[SessionSummary]:
        """Return one page of sessions, newest first by default. Unknown values are last in any order."""
        condition, parameters = where_clause(self._db, filter_)
        if sort in ("title", "workspace"):
            add_casefold(self._db)
        rows = self._db.execute(
            f"select * from ({_filtered(condition, filter_)}) listed"  # noqa: S608
            f" order by {_order(sort, is_reversed=is_reversed)} limit :limit offset :offset",
            {**parameters, "limit": limit, "offset": offset},
        ).fetchall()
        if filter_ == Filter() and sort == "updated" and not is_reversed:
            # The complete list: counting saves 4 ms per 10,000 sessions.
            summaries = [_summary(row, index) for index, row in enumerate(rows, start=offset + 1)]
        else:
            summaries = self._indexed(rows)
        return self._completed(summaries)

    def count(self, filter_: Filter) -> int:
        """Return the number of sessions that match a filter."""
        condition, parameters = where_clause(self._db, filter_)
        query = f"select count(*) from ({_filtered(condition, filter_)})"  # noqa: S608
        return int(self._db.execute(query, parameters).fetchone()[0])

    def matching_ids(self, filter_: Filter) -> tuple[set[int], set[int]]:
        """Return the ids of the matching sessions and their subagents, and all other ids."""
        condition, parameters = where_clause(self._db, filter_)
        rows = self._db.execute(
            f"select number from conversations where {condition} union all select s.id from subagent s"  # noqa: S608
            " join conversations c on c.external_id = s.parent_external_id and c.platform = s.platform"
            f" where c.number in (select number from conversations where {condition})",
            parameters,
        )
        matching = {id_ for (id_,) in rows}
        rows = self._db.execute("select number from conversations union all select id from subagent")
        return matching, {id_ for (id_,) in rows} - matching

    def find(self, external_id: str) -> list[SessionSummary]:
        """Return the sessions and subagents with this id. If there are none, match the id as a prefix.

        Copies of a subagent come after the original.
        """
        order = f"{_IS_COPIED_SUBAGENT.format(id='listed.external_id', row='listed')}, parent_external_id"
        rows = self._db.execute(
            f"select * from ({_BY_EXTERNAL_ID.format('= :id')}) listed order by {order}",  # noqa: S608
            {"id": external_id},
        ).fetchall()
        if not rows:
            upper = external_id[:-1] + chr(ord(external_id[-1]) + 1) if external_id else ""
            in_range = _BY_EXTERNAL_ID.format("between :id and :upper")
            rows = self._db.execute(
                f"select * from ({in_range}) where external_id < :upper limit :limit",  # noqa: S608
                {"id": external_id, "upper": upper, "limit": _MAX_PREFIX_MATCHES},
            ).fetchall()
        return self._completed(self._indexed(rows))

    def by_id(self, id_: int) -> SessionSummary | None:
        """Return the session or subagent with this id."""
        rows = self._db.execute(_BY_IDS, _json_ids([id_])).fetchall()
        return next(iter(self._completed(self._indexed(rows))), None)

    def by_key(self, session: SessionKey) -> SessionSummary | None:
        """Return the session with this platform and id."""
        query = "select number from conversations where platform = ? and external_id = ?"
        row = self._db.execute(query, session).fetchone()
        return self.by_ids([row[0]]).get(row[0]) if row is not None else None

    def by_ids(self, ids: Iterable[int]) -> dict[int, SessionSummary]:
        """Return sessions and subagents by id, without their list indexes. Unknown ids are omitted."""
        return summaries_by_id(self._db, ids)

    def with_copied_messages(self) -> dict[int, set[int]]:
        """Return the ids of sessions with copied messages, each with the sessions that had them first."""
        return self.cache.first_sessions()

    def titles(self, ids: Iterable[int]) -> list[tuple[int, str]]:
        """Return ids and the tools' own titles, without user titles. Untitled sessions are omitted."""
        return self._db.execute(
            f"select number, title from conversations where title is not null and number {_IN_IDS}"  # noqa: S608
            f" union all select id, title from subagent where title is not null and id {_IN_IDS}",
            _json_ids(ids),
        ).fetchall()

    def list_indexes(self, ids: Iterable[int]) -> dict[int, int]:
        """Return the 1-based positions of sessions in the complete list, by id."""
        indexes = self.cache.list_indexes()
        return {id_: indexes[id_] for id_ in ids if id_ in indexes}

    def _completed(self, summaries: Sequence[SessionSummary]) -> list[SessionSummary]:
        """Return summaries with what the user added and, in an archive with prices, their costs."""
        summaries = with_annotations(self._db, summaries)
        return with_costs(self._db, self._rates, summaries) if self._rates is not None else summaries

    def _indexed(self, rows: Sequence[tuple[Any, ...]]) -> list[SessionSummary]:
        """Return rows as summaries with their list indexes. Subagents and unlisted sessions have none."""
        indexes = self.cache.list_indexes() if rows else {}
        return [_summary(row, indexes.get(row[-1])) for row in rows]

    def live(self) -> set[tuple[str, str]]:
        """Return platform and external id of the sessions that have not ended."""
        return set(self._db.execute("select platform, external_id from conversations where ended_at is null"))

    def subagents(self, summary: SessionSummary) -> list[tuple[SessionSummary, str | None]]:
        """Return the subagents of a session, oldest first, each with the id of the call that started it.

        For a subagent, return the subagents that it started itself. An unknown call id is None.
        """
        is_subagent = summary.parent_ref is not None
        rows = self._db.execute(
            "select id, tool_call_id from subagent"
            " where platform = :platform and parent_external_id = :parent"
            " and (:agent is null or parent_agent_id = :agent)"
            " and visibility in ('listed', 'archived') order by started_at is null, started_at, id",
            {
                "platform": summary.platform,
                "parent": summary.parent_ref.partition(":")[2] if summary.parent_ref else summary.id,
                "agent": summary.id if is_subagent else None,
            },
        ).fetchall()
        found = summaries_by_id(self._db, [id_ for id_, _ in rows])
        known = [(id_, call_id) for id_, call_id in rows if id_ in found]
        summaries = self._completed([found[id_] for id_, _ in known])
        return [(summary, call_id) for summary, (_, call_id) in zip(summaries, known, strict=True)]

    def subagent_totals(self, summary: SessionSummary) -> tuple[int | None, int | None]:
        """Return the duration in milliseconds and the number of tool calls of a subagent."""
        row = self._db.execute(
            "select total_duration_ms, total_tool_use_count from subagent"
            " where platform = ? and parent_external_id = ? and agent_id = ?",
            [summary.platform, (summary.parent_ref or "").partition(":")[2], summary.id],
        ).fetchone()
        return (row[0], row[1]) if row is not None else (None, None)

    def has_reported_usage(self, summary: SessionSummary) -> bool:
        """Return whether the tool reports totals for a session."""
        row = self._db.execute(
            "select 1 from fragment f join reported_usage r on r.fragment_id = f.id"
            " where f.external_id = ? and f.platform = ? and not f.is_subagent limit 1",
            [summary.id, summary.platform],
        ).fetchone()
        return row is not None

    def ids_with_subagents(self, summary: SessionSummary, *, with_parent: bool = False) -> dict[int, str]:
        """Return the ids of a session and its subagents, each with its ref.

        For a subagent, return its own id and those of the subagents below it. ``with_parent`` returns the
        session that started it and all subagents of that session instead.
        """
        platform, parent_ref = summary.platform, summary.parent_ref
        parent_id = parent_ref.partition(":")[2] if parent_ref is not None else summary.id
        is_whole = parent_ref is None or with_parent
        rows = self._db.execute(
            _SESSION_IDS if is_whole else _SUBAGENT_IDS,
            {"platform": platform, "id": parent_id, "agent": summary.id},
        )
        return {id_: f"{source}:{external_id}" for id_, source, external_id in rows}

    def parents_of(self, ids: Collection[int]) -> dict[int, int]:
        """Return the id of the session of each subagent among these ids."""
        subagents = [id_ for id_ in ids if id_ >= FIRST_SUBAGENT_ID]
        if not subagents:
            return {}
        rows = self._db.execute(
            "select s.id, c.number from json_each(?) j join subagent s on s.id = j.value"
            " join conversations c on c.external_id = s.parent_external_id and c.platform = s.platform",
            [msgspec.json.encode(subagents).decode()],
        )
        return dict(rows.fetchall())

    def workspaces(self) -> list[WorkspaceSummary]:
        """Return the workspaces of all listed sessions, last used first."""
        rows = self._db.execute(
            "select workspace_path, workspace_name, json_extract(metadata, '$.workspace_authority'),"
            " count(*), max(updated_at) from conversations where visibility in ('listed', 'archived')"
            " and workspace_path is not null group by workspace_hash order by 5 desc, 1"
        )
        return [
            WorkspaceSummary(
                path=path,
                name=name,
                host=authority or None,
                session_count=count,
                updated_at=datetime.fromisoformat(updated_at) if updated_at else None,
            )
            for path, name, authority, count, updated_at in rows
        ]

    def workspace_hashes(self, name: str, *, is_strict: bool = True) -> list[str]:
        """Return the hashes of the workspaces that a name refers to. See `find_workspaces`."""
        return find_workspaces(self.cache.workspaces(), name, is_strict=is_strict)

    def known_workspaces(self) -> list[KnownWorkspace]:
        """Return all workspaces of the archive, with the names that they can be found by."""
        return self.cache.workspaces()

    def workspace_hashes_by_id(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the workspace hashes of sessions and subagents, by id."""
        rows = self._db.execute(
            f"select number, workspace_hash from conversations where number {_IN_IDS}"  # noqa: S608
            " union all select s.id, c.workspace_hash from subagent s join conversations c"
            " on c.external_id = s.parent_external_id and c.platform = s.platform"
            f" where s.id {_IN_IDS}",
            _json_ids(ids),
        )
        return {id_: hash_ for id_, hash_ in rows if hash_ is not None}


def summaries_by_id(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, SessionSummary]:
    """Return sessions and subagents by id, without their list indexes. Unknown ids are omitted."""
    rows = db.execute(_BY_IDS, _json_ids(ids)).fetchall()
    summaries = with_annotations(db, [_summary(row, None) for row in rows])
    return {row[-1]: summary for row, summary in zip(rows, summaries, strict=True)}


def _filtered(condition: str, filter_: Filter) -> str:
    """Return a query for the sessions, and the subagents if requested, that match a condition.

    A resumed session repeats inlined subagents, with the same ids. Only the oldest of them is listed.
    """
    sessions = f"{_SESSIONS} where {condition}"
    if not filter_.with_subagents:
        return sessions
    id_ = "a.id" if filter_.with_unlisted else _OLDEST_SUBAGENT
    return (
        f"{sessions} union all {_SUBAGENTS} and id in (select {id_}"  # noqa: S608
        " from subagent a where a.visibility in ('listed', 'archived')"
        " and exists (select 1 from conversations c where c.external_id = a.parent_external_id"
        f" and c.platform = a.platform and {condition}))"
    )


def _order(sort: SortKey, *, is_reversed: bool) -> str:
    if sort == "updated" and not is_reversed:
        return _ORDER  # the order of an SQL index
    expression, direction = _SORT_EXPRESSIONS[sort]
    if is_reversed:
        direction = "asc" if direction == "desc" else "desc"
    return f"{expression} is null, {expression} {direction}, {_ORDER}"


def _json_ids(ids: Iterable[int]) -> dict[str, str]:
    return {"ids": msgspec.json.encode(list(ids)).decode()}


def _summary(row: tuple[Any, ...], index: int | None) -> SessionSummary:
    fields = dict(zip(_FIELDS, row, strict=False))
    parent_id, _ = row[len(_FIELDS) :]
    fields |= {
        "ref": f"{fields['source']}:{fields['id']}",
        "index": index,
        "parent_ref": f"{fields['source']}:{parent_id}" if parent_id is not None else None,
        "created_at": _datetime(fields["created_at"]),
        "updated_at": _datetime(fields["updated_at"]),
        "models": _decode_names(fields["models"]),
        "agent_ids": _decode_names(fields["agent_ids"]),
        "is_gone": bool(fields["is_gone"]),
    }
    return SessionSummary(**fields)


def _datetime(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text is not None else None


_MAX_TITLE_WORDS = 10
_TITLE = (
    "casefold(coalesce((select t.title from user_title t where t.external_id = conversations.external_id"
    " and t.platform = conversations.platform), title, first_message_preview, ''))"
)
_SESSION_OR_SUBAGENT = (
    "({0} or (external_id, platform) in (select parent_external_id, platform from subagent where {0}))"
)


def where_clause(
    db: sqlite3.Connection, filter_: Filter, *, with_subagent_times: bool = False
) -> tuple[str, dict[str, Any]]:
    """Return a filter as a condition on conversations, with its parameters.

    With `with_subagent_times`, `since` and `until` also match the times of a session's subagents. A subagent
    can continue in the background after the last message of its session.

    Raises `WorkspaceNotFoundError` if several workspace paths have the given end.
    """
    conditions: list[str] = []
    parameters: dict[str, Any] = {}
    time_condition = _SESSION_OR_SUBAGENT if with_subagent_times else "{}"
    if not filter_.with_unlisted:
        conditions.append("visibility in ('listed', 'archived')")
    if filter_.source is not None:
        conditions.append("source = :source")
        parameters["source"] = filter_.source
    for index, word in enumerate((filter_.title or "").split()[:_MAX_TITLE_WORDS]):
        if not index:
            add_casefold(db)
        conditions.append(f"instr({_TITLE}, :title{index})")
        parameters[f"title{index}"] = word.casefold()
    if filter_.workspace is not None:
        conditions.append("workspace_hash in (select value from json_each(:workspaces))")
        parameters["workspaces"] = msgspec.json.encode(workspace_hashes(db, filter_.workspace)).decode()
    if filter_.since is not None:
        conditions.append(time_condition.format("updated_at >= :since"))
        parameters["since"] = iso(filter_.since)
    if filter_.until is not None:
        conditions.append(time_condition.format("started_at < :until"))
        parameters["until"] = iso(filter_.until)
    if filter_.branch is not None:
        conditions.append("git_branch in (select value from json_each(:branches))")
        parameters["branches"] = msgspec.json.encode(_branches(db, filter_.branch)).decode()
    if filter_.model is not None:
        conditions.append(r"exists (select 1 from json_each(models) where value like :model escape '\')")
        parameters["model"] = like_pattern(filter_.model if "*" in filter_.model else f"*{filter_.model}*")
    if filter_.has_edits:
        conditions.append("total_changes > 0")
    if filter_.is_gone is not None:
        conditions.append("is_gone = :gone")
        parameters["gone"] = filter_.is_gone
    for index, tag in enumerate(filter_.tags):
        operator = "glob" if "*" in tag else "="
        conditions.append(
            "(external_id, platform) in"  # noqa: S608
            f" (select external_id, platform from tag where name {operator} :tag{index})"
        )
        parameters[f"tag{index}"] = glob_pattern(tag) if "*" in tag else tag
    if filter_.is_starred:
        conditions.append("(external_id, platform) in (select external_id, platform from star)")
    return " and ".join(conditions) or "1", parameters


def add_casefold(db: sqlite3.Connection) -> None:
    """Add the SQL function ``casefold``. The collation NOCASE ignores the case of ASCII letters only."""
    db.create_function("casefold", 1, _casefold, deterministic=True)


def _casefold(text: str | None) -> str | None:
    return text.casefold() if text is not None else None


def _branches(db: sqlite3.Connection, pattern: str) -> list[str]:
    """Return the branches that match. Python compares them, because SQLite folds the case of ASCII only."""
    pattern.encode()  # raises the same error as SQLite for lone surrogates
    rows = db.execute("select distinct git_branch from conversations where git_branch is not null")
    return [branch for (branch,) in rows if matches_pattern(branch.lower(), pattern.lower())]


class SessionProperties(NamedTuple):
    """Source, workspace and models of a session or subagent."""

    source: str
    workspace_hash: str | None
    models: tuple[str, ...]


class Facets:
    """Properties of sessions and their counts, for the filters of a list."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._version = DataVersion(db)
        self._properties: dict[int, SessionProperties] | None = None

    def of_sessions(self, filter_: Filter) -> SessionFacets:
        """Return how many sessions each value of each filter would list, with the other filters unchanged."""
        db = self._db
        return SessionFacets(
            sources=_facet_values(db, _SOURCE_COUNTS, replace(filter_, source=None)),
            workspaces=_facet_values(db, _WORKSPACE_COUNTS, replace(filter_, workspace=None)),
            branches=_facet_values(db, _BRANCH_COUNTS, replace(filter_, branch=None)),
            models=_facet_values(db, _MODEL_COUNTS, replace(filter_, model=None)),
            tags=_facet_values(db, _TAG_COUNTS, replace(filter_, tags=())),
            edited=_count_sessions(db, replace(filter_, has_edits=True)),
            gone=_count_sessions(db, replace(filter_, is_gone=True)),
            starred=_count_sessions(db, replace(filter_, is_starred=True)),
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
        rows = _execute(db, _SOME_PROPERTIES, _json_ids(ids))
    known: dict[tuple[str, str | None, str], SessionProperties] = {}
    found: dict[int, SessionProperties] = {}
    for id_, *key in rows:
        source, workspace_hash, models = key
        properties = known.get((source, workspace_hash, models))
        if properties is None:
            properties = SessionProperties(source, workspace_hash, _decode_names(models))
            known[source, workspace_hash, models] = properties
        found[id_] = properties
    return found


def _facet_values(db: sqlite3.Connection, query: str, filter_: Filter) -> tuple[FacetValue, ...]:
    condition, parameters = where_clause(db, filter_)
    rows = _execute(db, f"{query.format(condition)} order by 3 desc, 1 limit {MAX_VALUES}", parameters)
    return tuple(FacetValue(value, label or value, count) for value, label, count in rows)


def _count_sessions(db: sqlite3.Connection, filter_: Filter) -> int:
    condition, parameters = where_clause(db, filter_)
    return int(_execute(db, f"select count(*) from conversations where {condition}", parameters)[0][0])  # noqa: S608


def _execute(db: sqlite3.Connection, query: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    return db.execute(query, parameters).fetchall()


class DataVersion:
    """Detects changes of the archive, by this connection or another."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._version: tuple[int, int] | None = None

    def has_changed(self) -> bool:
        """Return whether the archive has changed since the last call. True on the first call."""
        # data_version changes with commits of other connections, total_changes with our own.
        (data_version,) = self._db.execute("pragma data_version").fetchone()
        version = data_version, self._db.total_changes
        if version == self._version:
            return False
        self._version = version
        return True


class SessionCache:
    """Cached sessions, list positions, copies and workspaces. Invalidated when the archive changes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._version = DataVersion(db)
        self._sessions: LRUCache[int, CachedSession] = LRUCache(MAX_CACHED_SESSIONS)
        self._list_indexes: dict[int, int] | None = None
        self._first_sessions: dict[int, set[int]] | None = None
        self._workspaces: list[KnownWorkspace] | None = None

    def sessions(
        self, ids: set[int], read: Callable[[set[int]], dict[int, CachedSession]]
    ) -> dict[int, CachedSession]:
        """Return the sessions with these ids. Call `read` for those that are not in the cache."""
        self._invalidate_if_changed()
        found = {id_: session for id_ in ids if (session := self._sessions.get(id_)) is not None}
        missing = ids - found.keys()
        if missing:
            for id_, session in read(missing).items():
                found[id_] = session
                self._sessions.put(id_, session)
        return found

    def list_indexes(self) -> dict[int, int]:
        """Return the 1-based positions of all sessions in the complete list, by id."""
        self._invalidate_if_changed()
        if self._list_indexes is None:
            (ids,) = self._db.execute(
                "select json_group_array(number) from (select number from conversations"
                " where visibility in ('listed', 'archived') order by updated_at desc, number desc)"
            ).fetchone()
            self._list_indexes = dict(zip(msgspec.json.decode(ids, type=list[int]), count(1), strict=False))
        return self._list_indexes

    def first_sessions(self) -> dict[int, set[int]]:
        """Return the sessions with copied messages, each with the sessions that had them first."""
        self._invalidate_if_changed()
        if self._first_sessions is None:
            self._first_sessions = _find_first_sessions(self._db)
        return self._first_sessions

    def workspaces(self) -> list[KnownWorkspace]:
        """Return all workspaces of the archive."""
        self._invalidate_if_changed()
        if self._workspaces is None:
            self._workspaces = known_workspaces(self._db)
        return self._workspaces

    def _invalidate_if_changed(self) -> None:
        if self._version.has_changed():
            self._sessions.clear()
            self._list_indexes = None
            self._first_sessions = None
            self._workspaces = None


def _find_first_sessions(db: sqlite3.Connection) -> dict[int, set[int]]:
    """Return the ids of all sessions with copied messages, each with the sessions that had them first.

    The index contains a copied message only in its first session.
    """
    rows = db.execute(
        "select coalesce(c.number, a.id), o.number, s.text, f.platform from (select distinct fragment_id,"
        " copied_from_string_id from message where copied_from_string_id is not null) m"
        " join fragment f on f.id = m.fragment_id join string s on s.id = m.copied_from_string_id"
        " left join conversations c on not f.is_subagent and c.external_id = f.external_id"
        " and c.platform = f.platform"
        " left join subagent a on f.is_subagent and a.agent_id = f.external_id and a.platform = f.platform"
        " and a.parent_external_id = coalesce(f.parent_external_id, f.inferred_parent_external_id)"
        " left join conversations o on o.external_id = s.text and o.platform = f.platform"
    )
    found: defaultdict[int, set[int]] = defaultdict(set)
    from_subagents: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for session_id, first_id, first, platform in rows:
        if session_id is None:
            continue
        if first_id is not None:
            found[session_id].add(first_id)
        else:
            from_subagents[first, platform].add(session_id)
    if from_subagents:  # one pass, because no index begins with the id of a subagent
        for first_id, *key in db.execute("select id, agent_id, platform from subagent"):
            for session_id in from_subagents.get((key[0], key[1]), ()):
                found[session_id].add(first_id)
    return dict(found)
