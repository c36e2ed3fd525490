"""Find in a session: the query of its page and the messages that match."""

from collections.abc import Mapping

from msgspec import Struct

from backscroll.errors import UsageError
from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.model.search import SessionMatches, has_words
from backscroll.web.search_mode import MODE_LABELS, Mode, length_problem, parse_mode
from backscroll.web.urls import session_url

__all__ = ["FindQuery", "Matches", "find_matches"]


class FindQuery(Struct, frozen=True, kw_only=True):
    """The query of a session's page, as in its URL. Words have their filters in the query."""

    text: str
    mode: Mode = "words"
    filter_query: str = ""

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> "FindQuery":
        """Read the query of a URL. Raises `UsageError` for an unknown kind of search."""
        mode = parse_mode(values.get("mode", ""))
        filter_query = values.get("filter", "").strip() if mode != "words" else ""
        return cls(text=values.get("find", "").strip(), mode=mode, filter_query=filter_query)

    @property
    def shown_mode(self) -> Mode:
        """The kind of search that finds the matches. Punctuation alone is exact text."""
        return "exact" if self.mode == "words" and not has_words(self.text) else self.mode

    @property
    def modes(self) -> list[tuple[Mode, str]]:
        """All kinds of search with their labels, if this is not a search for words."""
        return list(MODE_LABELS.items()) if self.mode != "words" else []

    def url(self, ref: str, position: int) -> str:
        """Return the address of a match."""
        mode = "" if self.mode == "words" else self.mode
        url = session_url(ref, find=self.text, mode=mode, filter=self.filter_query, at=position)
        return f"{url}#m{position}"


class Matches(Struct, frozen=True, kw_only=True):
    """Messages of a session that match a query."""

    query: FindQuery
    positions: list[int] = []
    in_subagents: list[tuple[str, int]] = []  # ref and position
    current: int | None = None  # index in the positions
    is_complete: bool = True
    problem: str = ""  # why nothing can be found

    def neighbour(self, step: int) -> int | None:
        """Return the position of the next match, or of the previous one with the step -1.

        After the last match comes the first one. None if there is no other match.
        """
        if not self.positions or (self.current is not None and len(self.positions) == 1):
            return None
        index = self.current + step if self.current is not None else 0
        return self.positions[index % len(self.positions)]


def find_matches(history: History, summary: SessionSummary, query: FindQuery, at: int | None) -> Matches:
    """Return the matches of a query. The one at the position ``at`` is the current one."""
    problem = length_problem(query.text, query.filter_query)
    found = SessionMatches(())
    try:
        if not problem:
            found = history.transcript.find_matches(
                summary, query.text, pattern=query.mode, filter_query=query.filter_query
            )
    except UsageError as error:
        problem = error.reason
    positions = [position for ref, position in found.positions if ref == summary.ref and position >= 0]
    return Matches(
        query=query,
        positions=positions,
        in_subagents=[(ref, position) for ref, position in found.positions if ref != summary.ref],
        current=positions.index(at) if at in positions else None,
        is_complete=found.is_complete,
        problem=problem,
    )
