"""Which sessions there are: listed, found by a ref, read whole, searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Literal

from backscroll import sources
from backscroll.errors import (
    SessionNotFoundError,
    UsageError,
)
from backscroll.history.base import Opened

if TYPE_CHECKING:
    from backscroll.ingest.audit import Progress
    from backscroll.model import Filter, PaginatedResult, SearchResult, Session, SessionSummary
    from backscroll.redact.redactor import Redactor
    from backscroll.search.search import By, LearnSecrets, RedactText

__all__ = ["Sessions"]

_LARGEST_PAGE = 1000
_LEARNED = 1000  # messages that are looked through for secrets where there is no index to ask
_LAST_OFFSET = 2**63 - 1  # what SQLite can count to
_LONGEST_PLACE = 18  # digits


def _check_page(limit: int, offset: int) -> None:
    if not 1 <= limit <= _LARGEST_PAGE:
        raise UsageError(f"a page holds 1 to {_LARGEST_PAGE} sessions, not {limit}")
    if offset < 0:
        raise UsageError(f"a page cannot begin before the first session: {offset}")
    if offset > _LAST_OFFSET:
        raise UsageError(f"no list is so long that a page of it begins at {offset}")


class Sessions(Opened):
    """Which sessions there are: listed, found by a ref, read whole, searched."""

    def list_sessions(
        self, wanted: Filter | None = None, *, limit: int = 20, offset: int = 0
    ) -> PaginatedResult[SessionSummary]:
        """One page of sessions, newest first."""
        from backscroll.model import Filter, PaginatedResult, Pagination

        _check_page(limit, offset)
        wanted = wanted or Filter()
        total = self._archive.sessions.count(wanted)
        data = self._archive.sessions.page(wanted, limit=limit, offset=offset)
        has_more = offset + len(data) < total
        return PaginatedResult(tuple(data), Pagination(total, limit, offset, has_more))

    def every_session(self, wanted: Filter | None = None) -> list[SessionSummary]:
        """All sessions that fit, newest first, without pages."""
        from backscroll.model import Filter

        return self._archive.sessions.page(wanted or Filter(), limit=-1, offset=0)

    def find(self, ref: str, wanted: Filter | None = None) -> SessionSummary:
        """The session that a ref names: an index of the list, an id, or any unambiguous beginning of one.

        A copied session has subagents of the same ids. Then the first one is meant, and ``SESSION/SUBAGENT``
        names any.

        Raises `SessionNotFoundError`, which names the candidates when there are several.
        """
        from backscroll.model import Filter

        wanted = wanted or Filter()
        ref = ref.strip()
        # Nobody writes a place with a zero in front; an id may begin so.
        if ref.isascii() and ref.isdigit() and not ref.startswith("0") and len(ref) <= _LONGEST_PLACE:
            place = int(ref)
            if place <= self._archive.sessions.count(wanted):
                return self._archive.sessions.page(wanted, limit=1, offset=place - 1)[0]
        source, colon, id_ = ref.partition(":")
        if not colon or source not in sources.names():
            id_ = ref
        parent, slash, name = id_.rpartition("/")
        found = (
            (self._archive.sessions.find(name) or self._archive.sessions.find(name.lower())) if name else []
        )
        if slash:
            found = [one for one in found if _is_of(one, parent)]
        if len(found) > 1 and id_ != ref:
            # Of several that begin so, those of the source that was named are meant, when it has any.
            found = [one for one in found if one.source == source] or found
        if found and len({one.ref for one in found}) == 1:
            return min(found, key=_age)
        if not found:
            raise SessionNotFoundError(
                f"no session is called {ref!r}; backscroll list shows what there is", ref
            )
        from backscroll.model.sanitize import one_line

        names = "\n".join(f"  {one.ref}  {one_line(one.title or '', 100)}".rstrip() for one in found)
        raise SessionNotFoundError(f"{ref!r} may be any of these; write more of it:\n{names}", ref)

    def get_session(self, ref: str, wanted: Filter | None = None) -> Session:
        """A session with every message of it."""
        from backscroll.model import Session

        summary = self.find(ref, wanted)
        return Session(summary, tuple(self._archive.messages.of_session(summary)))

    def learn_secrets(self, redactor: Redactor, summary: SessionSummary) -> None:
        """Take note of the secrets that a session calls by name, so that they are known where it does not."""
        if not self._index.is_usable():
            redactor.scan(islice(self._archive.messages.of_session(summary), _LEARNED))
            return
        from backscroll.search.known_secrets import learn_named_secrets

        learn_named_secrets(
            self._archive, self._index, redactor, self._archive.sessions.ids_with_subagents(summary)
        )

    def is_index_behind(self) -> bool:
        """Whether a search does not find everything yet; the next sync completes the index."""
        return self._archive.index_queue.is_pending

    def search_sessions(
        self,
        query: str,
        *,
        limit: int = 20,
        offset: int = 0,
        by: By = "session",
        context: int = 2,
        pattern: Literal["words", "exact", "regex"] = "words",
        filters: Mapping[str, str | Sequence[str]] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        progress: Progress | None = None,
        redactor: Redactor | None = None,
    ) -> SearchResult:
        """Find what was said: words in the query syntax, an exact substring, or a regular expression.

        ``filters`` are those of the query syntax, by name: source, workspace, role, tool, model, branch …
        Of several values of one name all must hold.
        ``until`` is the first moment that is too late. ``progress`` is told how many messages were looked at
        when a pattern holds nothing to look up. Raises `WorkspaceNotFoundError` with the candidates when the
        workspace is the end of several paths. With a redaction, secrets are replaced.
        """
        from backscroll.index import Filter, IndexDamagedError, Query, exact, parse, regex
        from backscroll.search.search import resolve_filters, search_pattern, search_words

        _check_page(limit, offset)
        if not self._index.is_usable():
            self._update_index()
        called = (filters or {}).get("workspace", "*")
        if isinstance(called, str) and "*" not in called:
            self._archive.sessions.workspace_hashes(called)  # raises when it is not clear which is meant
        has_other_filters = bool(filters) or since is not None or until is not None
        asked = parse(query, has_other_filters=has_other_filters) if pattern == "words" else Query()
        conditions = [
            Filter(name, one)
            for name, value in (filters or {}).items()
            for one in ([value] if isinstance(value, str) else value)
        ]
        asked = resolve_filters(self._archive, asked.with_filters(*conditions, since=since, until=until))

        redact: RedactText | None = None
        learn_secrets: LearnSecrets | None = None
        if redactor is not None:
            from backscroll.model.redaction import SecretLocation

            def redact(text: str, ref: str, position: int) -> str:
                return redactor.redact_text(text, SecretLocation(ref, position))

            def learn_secrets(sessions: set[int]) -> None:
                from backscroll.search.known_secrets import learn_named_secrets

                learn_named_secrets(self._archive, self._index, redactor, sessions)

        def found() -> SearchResult:
            if pattern == "words":
                return search_words(
                    self._archive,
                    self._index,
                    asked,
                    limit=limit,
                    offset=offset,
                    by=by,
                    context=context,
                    redact=redact,
                    learn_secrets=learn_secrets,
                )
            looked_for = exact(query) if pattern == "exact" else regex(query)
            return search_pattern(
                self._archive,
                self._index,
                looked_for,
                asked,
                limit=limit,
                offset=offset,
                by=by,
                context=context,
                redact=redact,
                learn_secrets=learn_secrets,
                progress=None if looked_for.is_narrow else progress,
            )

        try:
            return found()
        except IndexDamagedError:
            # Damage in a place that only this search has looked at.
            self._index.rebuild()
            self._update_index()
            return found()

    def find_in_session(self, summary: SessionSummary, query: str) -> list[tuple[str, int]]:
        """Where in a session and its subagents some words were said: refs and positions of messages."""
        from backscroll.index import parse
        from backscroll.search.search import find_positions, resolve_filters

        if not self._index.is_usable():
            return []
        return find_positions(
            self._archive, self._index, resolve_filters(self._archive, parse(query)), summary
        )


def _is_of(one: SessionSummary, parent: str) -> bool:
    """Whether it is a subagent of a session whose id begins so."""
    return one.parent_ref is not None and one.parent_ref.partition(":")[2].startswith(parent)


def _age(one: SessionSummary) -> tuple[bool, str, str]:
    """Sessions before subagents, and what was there first before its copies."""
    began = one.created_at.isoformat() if one.created_at is not None else "~"
    return one.parent_ref is not None, began, one.parent_ref or ""
