"""Sessions and their messages, as they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from backscroll.archive.parts.opened import Opened

if TYPE_CHECKING:
    from backscroll.archive.derive.affected import Session
    from backscroll.archive.query.filters import Filter
    from backscroll.archive.query.message_lookup import Passage, Place
    from backscroll.archive.query.original_records import Records
    from backscroll.archive.query.read_cache import AtHand
    from backscroll.archive.query.statistics import Statistics
    from backscroll.model import Message, SessionSummary
    from backscroll.model.workspace import WorkspaceSummary

__all__ = ["Telling"]


class Telling(Opened):
    """Sessions and their messages, as they are asked for."""

    @cached_property
    def _at_hand(self) -> AtHand:
        from backscroll.archive.query.read_cache import AtHand

        return AtHand(self._db)

    def summaries(self, wanted: Filter, *, limit: int, offset: int) -> list[SessionSummary]:
        """One page of sessions, newest first."""
        from backscroll.archive.query import sessions as summaries

        return summaries.summaries(self._db, wanted, limit=limit, offset=offset)

    def count(self, wanted: Filter) -> int:
        """How many sessions pass a filter."""
        from backscroll.archive.query import sessions as summaries

        return summaries.count(self._db, wanted)

    def numbers(self, wanted: Filter) -> tuple[set[int], set[int]]:
        """The numbers of the sessions that pass with the subagents they started, and those of all others."""
        from backscroll.archive.query.filters import numbers

        return numbers(self._db, wanted)

    def workspace_hashes(self, called: str, *, is_strict: bool = True) -> list[str]:
        """The workspaces of a path, a name, the end of a path or a host.

        When the end of a path fits several, raises `WorkspaceNotFoundError` with the candidates if strict.
        """
        from backscroll.archive.query.workspaces import meant

        return meant(self._at_hand.workspaces(), called, is_strict=is_strict)

    def every_workspace(self) -> list[WorkspaceSummary]:
        """Every workspace of a listed session, the one used last first."""
        from backscroll.archive.query.workspaces import every_workspace

        return every_workspace(self._db)

    def workspaces_of(self, numbers: Iterable[int]) -> dict[int, str]:
        """The hashes of the workspaces that sessions and subagents belong to, by their numbers."""
        from backscroll.archive.query.workspaces import workspaces_of

        return workspaces_of(self._db, numbers)

    def find(self, id_: str) -> list[SessionSummary]:
        """Sessions and subagents whose id begins so."""
        from backscroll.archive.query import sessions as summaries

        return summaries.find(self._db, id_)

    def by_number(self, number: int) -> SessionSummary | None:
        """The session or subagent that has this number in the archive."""
        from backscroll.archive.query import sessions as summaries

        return summaries.by_number(self._db, number)

    def numbered(self, numbers: Iterable[int]) -> dict[int, SessionSummary]:
        """The sessions and subagents that have these numbers, by number."""
        from backscroll.archive.query import sessions as summaries

        return summaries.numbered(self._db, numbers)

    def titles(self, numbers: Iterable[int]) -> list[tuple[int, str]]:
        """The tools' own titles of those sessions and subagents of these numbers that have one."""
        from backscroll.archive.query import sessions as summaries

        return summaries.titles(self._db, numbers)

    def passages(self, places: Iterable[Place], having: tuple[bytes, ...] = ()) -> dict[Place, Passage]:
        """The messages that stand at these places, with the sessions they are in.

        Some that do not have these bytes as they are packed may be left out.
        """
        from backscroll.archive.query import message_lookup

        return message_lookup.passages(self._db, self._at_hand, places, having)

    def indexes(self, numbers: Iterable[int]) -> dict[int, int]:
        """The places of sessions in the whole list, from 1, by their numbers."""
        every = self._at_hand.indexes()
        return {number: every[number] for number in numbers if number in every}

    def agents_started(self, summary: SessionSummary) -> list[tuple[SessionSummary, str | None]]:
        """The subagents below a session, each with the id of the call that started it, where it is known."""
        from backscroll.archive.query import subagents as nesting

        return nesting.agents_started(self._db, summary)

    def messages_of(self, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
        """The messages of a session from a position on, in order; see `reading.messages_of`."""
        from backscroll.archive.query import messages as reading

        return reading.messages_of(self._db, summary, start)

    def talk_of(self, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
        """The same without what they cost, which is there at once however many there are."""
        from backscroll.archive.query.message_stream import talk_of

        return talk_of(self._db, summary, start)

    def prompts_of(self, summary: SessionSummary, agents: Collection[str] = ()) -> list[int]:
        """Where each turn begins; what these agents were told in the session's own file is left out."""
        from backscroll.archive.query.message_stream import prompts_of

        return prompts_of(self._db, summary, agents)

    def position_of(self, summary: SessionSummary, id_: str) -> list[tuple[int, str]]:
        """Positions and ids of the message that has this id, or of those whose id begins so."""
        from backscroll.archive.query.message_stream import position_of

        return position_of(self._db, summary, id_)

    def records_of(self, summary: SessionSummary) -> Records:
        """The original records of a session's messages."""
        from backscroll.archive.query.original_records import Records

        return Records(self._db, summary)

    def statistics(self, wanted: Filter, only: Session | None = None) -> Statistics:
        """The figures of the sessions that pass, or of that one of them."""
        from backscroll.archive.query.statistics import Statistics

        return Statistics(self._db, wanted, only)

    def extent(self, summary: SessionSummary) -> tuple[int | None, int]:
        """Which account tells of a session, if only one does, and how many messages there are."""
        from backscroll.archive.query import messages as reading

        return reading.extent(self._db, summary)

    def numbers_below(self, summary: SessionSummary) -> dict[int, str]:
        """The numbers of a session and of its subagents, with their refs."""
        from backscroll.archive.query import subagents as nesting

        return nesting.numbers_below(self._db, summary)
