"""Search requests and results, and the text and paths by which a message is found."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import Struct

from backscroll.model.message import Message, Role, Time
from backscroll.model.session import FacetValue, SessionSummary

SearchBy = Literal["session", "message"]
SearchKind = Literal["words", "exact", "regex"]


class SearchRequest(Struct, frozen=True, kw_only=True):
    """The arguments of `History.search_sessions`."""

    query: str
    limit: int
    offset: int
    by: SearchBy
    context: int  # lines
    pattern: SearchKind
    ignore_case: bool
    filter_query: str
    filters: Mapping[str, str | Sequence[str]]
    since: datetime | None
    until: datetime | None


def has_words(query: str) -> bool:
    """Return whether a query contains words. Punctuation alone can only be found as exact text."""
    return any(map(str.isalnum, query))


class InvalidFilter(Struct, frozen=True):
    """A part of a query that looks like a filter and is none. It is searched as text."""

    text: str  # such as "role:king"
    allowed_values: tuple[str, ...]  # of this filter; empty if they are not fixed
    similar_name: str | None = None  # the filter that was probably meant, if the name is unknown


class FilterItem(Struct, frozen=True):
    """A filter in the text of a query."""

    name: str
    value: str
    start: int
    end: int
    is_excluded: bool  # with a minus


class SearchFacets(Struct, frozen=True, kw_only=True):
    """Numbers of messages that match a query, by property.

    Messages match that have every word, or the pattern.

    The filters of a property do not limit its own counts. Only values with messages are included, the most
    frequent first.
    """

    total: int  # messages
    sources: tuple[FacetValue, ...]
    workspaces: tuple[FacetValue, ...]
    roles: tuple[FacetValue, ...]
    kinds: tuple[FacetValue, ...]  # "error", "edit"
    models: tuple[FacetValue, ...]
    dates: tuple[FacetValue, ...]  # days, months or years in order, also those without messages
    is_partial: bool = False  # because of a time limit, only the newest messages were compared


class SearchRanks(Struct, frozen=True, gc=False):
    """Ranks of a session, from 1 or None if it is not in a ranking, and the two parts of its score."""

    all_words: int | None  # sessions with every word in one message
    some_words: int | None  # sessions with some of the words in a message
    session: int | None  # sessions in which the words were said, in any messages
    message_score: float = 0.0  # relative to the best session, plus a bonus for all words
    session_score: float = 0.0  # relative to the best session


class SecondMatch(Struct, frozen=True, kw_only=True, gc=False):
    """Another message of a session, with words of the query that the first one does not contain."""

    message_id: str
    message_index: int  # position in the session, from 0
    role: Role
    timestamp: Time | None
    match: str
    highlights: tuple[tuple[int, int], ...]  # in the match
    line_number: int


class SearchMatch(Struct, frozen=True, kw_only=True, gc=False):
    """A matching message and the position of the match."""

    session_ref: str
    session_id: str
    session_index: int | None
    source: str
    title: str | None
    workspace_name: str | None
    message_id: str
    message_index: int  # position in the session, from 0
    role: Role
    timestamp: Time | None
    match: str
    highlights: tuple[tuple[int, int], ...]  # in the match
    context: tuple[str, ...]  # lines around the match, including it
    line_number: int
    score: float
    match_count: int  # matching messages of the session
    parent_ref: str | None = None  # of a subagent: the session that started it
    matches_all: bool = True  # the session has all words, not some
    also: SecondMatch | None = None  # another message, if the words are spread over several
    ranks: SearchRanks | None = None  # None if messages or a single word were searched
    is_note: bool = False  # the match is in the user's annotations; the message is the first of the session
    is_title: bool = False  # the match is in the title; the message is the first of the session

    @property
    def place(self) -> str:
        """Return where the match is: ``note``, ``title`` or the role of the message."""
        return "note" if self.is_note else "title" if self.is_title else self.role


class SearchResult(Struct, frozen=True, kw_only=True):
    """One page of matches."""

    data: tuple[SearchMatch, ...]
    total: int | None  # with all words; None if counting is too expensive
    total_at_least: int | None = None
    row_count: int | None = None  # on all pages, also those with some of the words; None if not counted
    limit: int
    offset: int
    has_more: bool
    took_ms: float
    is_relaxed: bool = False  # no message has all words; these have the most
    is_cut_short: bool = False  # the time limit was reached

    @property
    def is_counted(self) -> bool:
        """Return whether the number of matches is known."""
        return self.total is not None or not self.has_more

    @property
    def known_row_count(self) -> int:
        """Return the number of matches on all pages, as far as it is known."""
        return self.row_count if self.row_count is not None else self.total_at_least or 0


class SessionMatches(Struct, frozen=True):
    """The matching messages of one session and its subagents."""

    positions: tuple[tuple[str, int], ...]  # ref and position of each message, in this order
    is_complete: bool = True  # False if the limit of time or number was reached


class Excerpt(Struct, frozen=True, kw_only=True):
    """A part of a session that is relevant to a task: prompt, text and outcome."""

    agent_ref: str | None  # set if it is from a subagent
    message_index: int  # position in the session or subagent, from 0
    role: Role
    timestamp: Time | None
    asked: str | None  # the prompt of the turn; None if it is the text itself
    text: str
    outcome: str | None  # the assistant's last message of the turn; None if it is the text itself


class RecalledSession(Struct, frozen=True, kw_only=True):
    """A session that is relevant to a task."""

    session_ref: str
    session_id: str
    title: str | None
    workspace_name: str | None
    updated_at: Time | None
    excerpts: tuple[Excerpt, ...]


class RecallResult(Struct, frozen=True, kw_only=True):
    """The sessions relevant to a task, best first."""

    task: str
    sessions: tuple[RecalledSession, ...]
    token_budget: int
    left_out: int  # relevant sessions that exceed the token budget


_ENDINGS = ("path", "paths", "file", "files", "filename", "folder", "directory")
MAX_PATH_CHARS = 1024
MAX_PATHS = 100  # paths per message


def paths_of(message: Message) -> tuple[str, ...]:
    """Return the distinct paths in a message.

    A tool argument is a path if its name ends like one: file_path, target_file, relativeWorkspacePath. So
    unknown tools are covered, too.
    """
    tool = message.tool
    found = [one.path for one in message.attachments if one.path] if message.attachments else []
    if tool is not None:
        if tool.edits:
            found += [edit.path for edit in tool.edits]
        found += _paths_in(tool.params)
    return tuple(dict.fromkeys(found[:MAX_PATHS])) if found else ()


def _paths_in(params: dict[str, Any], *, is_nested: bool = False) -> list[str]:
    found: list[str] = []
    for name, value in params.items():
        if isinstance(value, str):
            if _is_path_name(name) and _may_be_path(value):
                found.append(value)
        elif isinstance(value, list):
            for item in value[:MAX_PATHS]:
                if isinstance(item, dict) and not is_nested:
                    found += _paths_in(item, is_nested=True)
                elif isinstance(item, str) and _is_path_name(name) and _may_be_path(item):
                    found.append(item)
    return found


@lru_cache(maxsize=1024)
def _is_path_name(name: str) -> bool:
    return name.lower().endswith(_ENDINGS)


def _may_be_path(value: str) -> bool:
    return 0 < len(value) <= MAX_PATH_CHARS and "\n" not in value


def searchable_text(message: Message) -> str:
    """Return the text of a message, or the name, arguments and result of a tool call."""
    tool = message.tool
    if tool is None:
        return message.content
    asked = "\n".join(f"{name}: {_value_text(value)}" for name, value in tool.params.items())
    return "\n".join(part for part in (tool.name, asked, message.content, tool.result) if part)


def annotations_time(summary: SessionSummary) -> datetime | None:
    """Return when a note was last written or edited; without notes, the last activity of the session."""
    return max((note.edited_at or note.written_at for note in summary.notes), default=summary.updated_at)


def annotations_text(summary: SessionSummary) -> str:
    """Return what the user added to a session, a line or more each: title, tags and notes."""
    title = summary.title if summary.original_title is not None else None
    tags = " ".join(f"#{tag}" for tag in summary.tags)
    return "\n".join(part for part in (title, tags, *(note.text for note in summary.notes)) if part)


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
