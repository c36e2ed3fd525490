"""Queries for sessions, subagents and workspaces."""

import sqlite3
from collections.abc import Iterable

from backscroll.archive.query import sessions as summaries
from backscroll.archive.query import subagents as nesting
from backscroll.archive.query.completion import live
from backscroll.archive.query.filters import numbers
from backscroll.archive.query.read_cache import AtHand
from backscroll.archive.query.statistics import Statistics
from backscroll.archive.query.workspaces import every_workspace, meant, workspaces_of
from backscroll.archive.session_key import SessionKey
from backscroll.model import Filter, SessionSummary
from backscroll.model.workspace import WorkspaceSummary

__all__ = ["SessionQueries"]


class SessionQueries:
    """Find, list and count sessions and workspaces."""

    def __init__(self, db: sqlite3.Connection, cache: AtHand) -> None:
        self._db = db
        self._at_hand = cache

    def page(self, wanted: Filter, *, limit: int, offset: int) -> list[SessionSummary]:
        """One page of sessions, newest first."""
        return summaries.summaries(self._db, wanted, limit=limit, offset=offset)

    def count(self, wanted: Filter) -> int:
        """How many sessions pass a filter."""
        return summaries.count(self._db, wanted)

    def matching_ids(self, wanted: Filter) -> tuple[set[int], set[int]]:
        """The numbers of the sessions that pass with the subagents they started, and those of all others."""
        return numbers(self._db, wanted)

    def workspace_hashes(self, called: str, *, is_strict: bool = True) -> list[str]:
        """The workspaces of a path, a name, the end of a path or a host.

        When the end of a path fits several, raises `WorkspaceNotFoundError` with the candidates if strict.
        """
        return meant(self._at_hand.workspaces(), called, is_strict=is_strict)

    def workspaces(self) -> list[WorkspaceSummary]:
        """Every workspace of a listed session, the one used last first."""
        return every_workspace(self._db)

    def workspace_hashes_by_id(self, numbers: Iterable[int]) -> dict[int, str]:
        """The hashes of the workspaces that sessions and subagents belong to, by their numbers."""
        return workspaces_of(self._db, numbers)

    def find(self, id_: str) -> list[SessionSummary]:
        """Sessions and subagents whose id begins so."""
        return summaries.find(self._db, id_)

    def by_id(self, number: int) -> SessionSummary | None:
        """The session or subagent that has this number in the archive."""
        return summaries.by_number(self._db, number)

    def by_ids(self, numbers: Iterable[int]) -> dict[int, SessionSummary]:
        """The sessions and subagents that have these numbers, by number."""
        return summaries.numbered(self._db, numbers)

    def titles(self, numbers: Iterable[int]) -> list[tuple[int, str]]:
        """The tools' own titles of those sessions and subagents of these numbers that have one."""
        return summaries.titles(self._db, numbers)

    def list_indexes(self, numbers: Iterable[int]) -> dict[int, int]:
        """The places of sessions in the whole list, from 1, by their numbers."""
        every = self._at_hand.indexes()
        return {number: every[number] for number in numbers if number in every}

    def subagents(self, summary: SessionSummary) -> list[tuple[SessionSummary, str | None]]:
        """The subagents below a session, each with the id of the call that started it, where it is known."""
        return nesting.agents_started(self._db, summary)

    def statistics(self, wanted: Filter, only: SessionKey | None = None) -> Statistics:
        """The figures of the sessions that pass, or of that one of them."""
        return Statistics(self._db, wanted, only)

    def ids_with_subagents(self, summary: SessionSummary) -> dict[int, str]:
        """The numbers of a session and of its subagents, with their refs."""
        return nesting.numbers_below(self._db, summary)

    def live(self) -> set[tuple[str, str]]:
        """Sessions that are being held, by platform and id."""
        return live(self._db)
