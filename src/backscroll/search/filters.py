"""Parts of a query that the index cannot evaluate: they are replaced by what the archive finds."""

from collections.abc import Sequence

from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.documents import make_filter
from backscroll.index.highlights import find_spans
from backscroll.index.query import (
    SESSION_FILTERS,
    Clause,
    Not,
    PlainTerm,
    Query,
    SessionIds,
    Term,
    replace_filters,
)
from backscroll.index.query import Filter as QueryFilter
from backscroll.index.store import Index
from backscroll.model.session import SessionSummary
from backscroll.search.matches import text_with_paths


def resolve_filters(archive: Archive, query: Query) -> Query:
    """Replace filters that only the archive can evaluate, like ``workspace:``, ``tag:`` and ``is:gone``."""

    def look_up(filter: QueryFilter) -> Sequence[PlainTerm] | None:
        if filter.name == "workspace":
            hashes = archive.sessions.workspace_hashes(filter.value, is_strict=False)
            return [QueryFilter("workspace", workspace_hash) for workspace_hash in hashes] or None
        by_archive = SESSION_FILTERS.get(f"{filter.name}:{filter.value}") or SESSION_FILTERS.get(filter.name)
        if by_archive is None:
            return None
        session_filter = replace(make_filter({by_archive.name: filter.value}), with_unlisted=True)
        matching, others = archive.sessions.matching_ids(session_filter)
        is_negated = len(others) < len(matching)  # the smaller set is faster
        return [SessionIds(frozenset(others if is_negated else matching), is_negated)]

    return replace_filters(query, look_up)


def exclude_sessions(archive: Archive, index: Index, query: Query) -> Query:
    """Return the query with excluded words replaced by the sessions that contain them anywhere."""

    def sessions_with(terms: Sequence[Term]) -> frozenset[int]:
        return _sessions_with(archive, index, Query((Clause(tuple(terms)),)))

    def alternative(term: Term) -> Term:
        if not isinstance(term, Not) or term.is_filter:
            return term
        return SessionIds(sessions_with(term.any_of), is_negated=True)

    excluded = [clause for clause in query.clauses if clause.is_negated and not clause.is_filter]
    clauses = [
        clause if clause.is_negated else Clause(tuple(map(alternative, clause.any_of)))
        for clause in query.clauses
        if clause not in excluded
    ]
    if excluded:
        sessions = SessionIds(sessions_with([term for clause in excluded for term in clause.any_of]))
        clauses.append(Clause((sessions,), is_negated=True))
    return replace(query, clauses=tuple(clauses))


def _sessions_with(archive: Archive, index: Index, query: Query) -> frozenset[int]:
    """Return the ids of the sessions with a match in any message, also in copies of other sessions."""
    found = set(index.count_by_session(query))
    checked: set[int] = set()
    copied_from = archive.sessions.with_copied_messages() if found else {}
    # Repeated, because a session can be a copy of a copy.
    while candidates := {id_ for id_, firsts in copied_from.items() if firsts & found} - found - checked:
        checked |= candidates
        summaries = archive.sessions.by_ids(candidates)
        found |= {id_ for id_, summary in summaries.items() if _copies_match(archive, summary, query)}
    return frozenset(found)


def _copies_match(archive: Archive, summary: SessionSummary, query: Query) -> bool:
    """Return whether a copied message matches. The index has these only in their first session."""
    return any(
        message.copied_from is not None and find_spans(text_with_paths(message), query).terms
        for message in archive.messages.without_usage(summary)
    )
