"""Word and pattern search over index and archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Literal

from backscroll.history.stores import Stores
from backscroll.index import Filter as QueryFilter
from backscroll.index import Index, Query, exact, parse, regex
from backscroll.index.query.parser import invalid_filters
from backscroll.index.results.highlights import find_spans
from backscroll.model import SearchResult, SessionSummary
from backscroll.model.export import SecretLocation
from backscroll.search.known_secrets import learn_named_secrets
from backscroll.search.search import (
    By,
    LearnSecrets,
    RedactText,
    find_positions,
    resolve_filters,
    search_pattern,
    search_words,
)

if TYPE_CHECKING:
    from backscroll.redact.redactor import Redactor

__all__ = [
    "find_in_session",
    "highlighter",
    "invalid_filters",
    "learn_secrets",
    "search_sessions",
]

_MAX_SCANNED_MESSAGES = 1000  # scanned for secrets if there is no index


def search_sessions(
    stores: Stores,
    query: str,
    *,
    limit: int,
    offset: int,
    by: By,
    context: int,
    pattern: Literal["words", "exact", "regex"],
    ignore_case: bool,
    filters: Mapping[str, str | Sequence[str]],
    since: datetime | None,
    until: datetime | None,
    progress: Callable[[int, int], None] | None,
    redactor: Redactor | None,
) -> SearchResult:
    """Return one page of matches."""
    archive = stores.archive
    workspace = filters.get("workspace", "*")
    if isinstance(workspace, str) and "*" not in workspace:
        archive.sessions.workspace_hashes(workspace)  # raises WorkspaceNotFoundError if it is ambiguous
    parsed = parse(query) if pattern == "words" else Query()
    conditions = [
        QueryFilter(name, value)
        for name, values in filters.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    parsed = resolve_filters(archive, parsed.with_filters(*conditions, since=since, until=until))
    redact, learn = _redaction(stores, redactor)

    def run(index: Index) -> SearchResult:
        if pattern == "words":
            return search_words(
                archive,
                index,
                parsed,
                limit=limit,
                offset=offset,
                by=by,
                context=context,
                redact=redact,
                learn_secrets=learn,
            )
        compiled = (exact if pattern == "exact" else regex)(query, ignores_case=ignore_case)
        return search_pattern(
            archive,
            index,
            compiled,
            parsed,
            limit=limit,
            offset=offset,
            by=by,
            context=context,
            redact=redact,
            learn_secrets=learn,
            progress=None if compiled.is_narrow else progress,
        )

    return stores.index.query(run)


def _redaction(stores: Stores, redactor: Redactor | None) -> tuple[RedactText | None, LearnSecrets | None]:
    if redactor is None:
        return None, None

    def redact(text: str, ref: str, position: int) -> str:
        return redactor.redact_text(text, SecretLocation(ref, position))

    def learn(sessions: set[int]) -> None:
        learn_named_secrets(stores.archive, stores.index.index, redactor, sessions)

    return redact, learn


def find_in_session(stores: Stores, summary: SessionSummary, query: str) -> list[tuple[str, int]]:
    """Return ref and position of the messages of a session and its subagents that match a query."""
    index = stores.index.index
    if not index.is_usable():
        return []
    return find_positions(stores.archive, index, resolve_filters(stores.archive, parse(query)), summary)


def learn_secrets(stores: Stores, redactor: Redactor, summary: SessionSummary) -> None:
    """Scan a session for named secrets, so that the redactor also replaces them where they have no name."""
    index = stores.index.index
    if not index.is_usable():
        redactor.scan(islice(stores.archive.messages.of_session(summary), _MAX_SCANNED_MESSAGES))
        return
    sessions = stores.archive.sessions.ids_with_subagents(summary)
    learn_named_secrets(stores.archive, index, redactor, sessions)


def highlighter(query: str) -> Callable[[str], list[tuple[int, int]]] | None:
    """Return a function that finds the words of a query in a text; None if the query has no words."""
    parsed = parse(query)
    if not parsed.words:
        return None
    return lambda text: [(span.start, span.end) for span in find_spans(text, parsed, with_inflections=True)]
