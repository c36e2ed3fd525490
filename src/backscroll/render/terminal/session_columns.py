"""Columns of a session list."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime

from msgspec import Struct

from backscroll.model import SessionSummary
from backscroll.model.text import one_line
from backscroll.render.annotations import format_tags
from backscroll.render.terminal.humanize import compact_number, format_age, short_id

__all__ = [
    "COLUMNS",
    "PIPE_COLUMNS",
    "TERMINAL_COLUMNS",
    "Column",
    "ListState",
    "session_states",
]

_MAX_TEXT_CHARS = 10_000  # of a value in a pipe
_MAX_CELL_CHARS = 300  # of a value on a terminal


class ListState(Struct, frozen=True):
    """What the values of a list depend on besides the sessions."""

    now: datetime
    live: Collection[tuple[str, str]] = ()  # platform and id of sessions that are running


Format = Callable[[SessionSummary, ListState], str]


class Column(Struct, frozen=True, kw_only=True):
    """A column: complete values for pipes, short ones for terminals."""

    heading: str
    text: Format
    cell: Format | None = None  # on a terminal; None: the same as text
    max_width: int = 20
    is_right: bool = False

    def pipe_text(self, session: SessionSummary, state: ListState) -> str:
        """Return the value in one line, without tabs. Unknown is empty."""
        return one_line(self.text(session, state), _MAX_TEXT_CHARS)

    def terminal_text(self, session: SessionSummary, state: ListState) -> str:
        """Return the value for a cell of a table."""
        return one_line((self.cell or self.text)(session, state), _MAX_CELL_CHARS)


def session_states(session: SessionSummary, state: ListState) -> list[str]:
    """Return what is special about a session: live, gone, partial, lossy."""
    states = ["live"] if (session.platform, session.id) in state.live else []
    states += ["gone"] if session.is_gone else []
    return states + ([] if session.completeness == "complete" else [session.completeness])


def _time(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at is not None else ""


def _age(at: datetime | None, now: datetime) -> str:
    return format_age(at, now).removesuffix(" ago")


def _number(number: int | None) -> str:
    return "" if number is None else str(number)


def _compact(number: int | None) -> str:
    return "" if number is None else compact_number(number)


def _states(session: SessionSummary, state: ListState) -> str:
    states = ["subagent"] if session.parent_ref is not None else []
    states += session_states(session, state)
    return " ".join(states + (["starred"] if session.is_starred else []))


def _short_source(source: str) -> str:
    """Return one word of a source name: the last if it is short (``cli``), else the first (``claude``)."""
    first, _, last = source.rpartition("-")
    return last if not first or len(last) <= 3 else first


def _number_column(heading: str, value: Callable[[SessionSummary], int | None]) -> Column:
    return Column(
        heading=heading,
        text=lambda session, _: _number(value(session)),
        cell=lambda session, _: _compact(value(session)),
        is_right=True,
    )


COLUMNS: dict[str, Column] = {
    "index": Column(heading="#", text=lambda session, _: _number(session.index), is_right=True),
    "updated": Column(
        heading="when",
        text=lambda session, _: _time(session.updated_at),
        cell=lambda session, state: _age(session.updated_at, state.now),
        is_right=True,
    ),
    "created": Column(
        heading="created",
        text=lambda session, _: _time(session.created_at),
        cell=lambda session, state: _age(session.created_at, state.now),
        is_right=True,
    ),
    "title": Column(heading="title", text=lambda session, _: session.title or ""),
    "prompt": Column(
        heading="prompt", text=lambda session, _: session.first_message_preview or "", max_width=40
    ),
    "workspace": Column(heading="workspace", text=lambda session, _: session.workspace_name or ""),
    "path": Column(heading="path", text=lambda session, _: session.workspace_path or "", max_width=60),
    "branch": Column(heading="branch", text=lambda session, _: session.git_branch or ""),
    "models": Column(heading="models", text=lambda session, _: " ".join(session.models), max_width=30),
    "messages": _number_column("msgs", lambda session: session.message_count),
    "prompts": _number_column("prompts", lambda session: session.interaction_count),
    "tokens": _number_column("tokens", lambda session: session.total_tokens),
    "lines": _number_column("lines", lambda session: session.total_changes),
    "source": Column(
        heading="source",
        text=lambda session, _: session.source,
        cell=lambda session, _: _short_source(session.source),
        max_width=8,
    ),
    "id": Column(
        heading="id",
        text=lambda session, _: session.id,
        cell=lambda session, _: short_id(session.id, session.parent_ref),
    ),
    "ref": Column(heading="ref", text=lambda session, _: session.ref, max_width=60),
    "parent": Column(heading="parent", text=lambda session, _: session.parent_ref or "", max_width=60),
    "tags": Column(
        heading="tags",
        text=lambda session, _: " ".join(session.tags),
        cell=lambda session, _: format_tags(session),
    ),
    "state": Column(heading="state", text=_states),
}
TERMINAL_COLUMNS = ("index", "updated", "title", "workspace", "messages", "tokens", "source", "id")
PIPE_COLUMNS = (
    "index", "updated", "id", "source", "workspace", "messages", "tokens", "title", "tags", "state"
)  # fmt: skip
