"""A list of sessions: columns that fit the terminal, or tab-separated values for pipes."""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from backscroll.model.session import PaginatedResult, SessionSummary
from backscroll.model.text import one_line
from backscroll.render.annotations import format_tags
from backscroll.render.humanize import SUBAGENT_MARK, compact_number, format_age, short_id
from backscroll.render.terminal_text import Style, cell_width, pad, truncate

_MAX_TEXT_CHARS = 10_000  # of a value in a pipe
_MAX_CELL_CHARS = 300  # of a value on a terminal
_MAX_TITLE_CHARS = 300
_GAP = "  "
_MIN_TITLE_WIDTH = 24  # cells; other columns are dropped first
_MIN_PREVIEW_WIDTH = 12
_UNTITLED = "(untitled)"
_TERMINAL_COLUMNS = ("index", "updated", "title", "workspace", "messages", "tokens", "source", "id")
PIPE_COLUMNS = (
    "index", "updated", "id", "source", "workspace", "messages", "tokens", "title", "tags", "state"
)  # fmt: skip
_DROP_ORDER = ("source", "tokens", "messages", "workspace")  # columns to drop on a narrow terminal
_PIPE_STYLES = {"index": "", "title": "title", "tags": "error", "state": "error"}  # others are dim

_LiveSessions = Collection[tuple[str, str]]  # platform and id of sessions that are running


def tab_separated_lines(
    page: PaginatedResult[SessionSummary],
    *,
    columns: Sequence[str] = (),
    style: Style,
    live: _LiveSessions = (),
) -> Iterator[str]:
    """Yield one line per session: the columns separated by tabs. Unknown values are empty."""
    state = _ListState(datetime.now(UTC), live)
    columns = columns or PIPE_COLUMNS
    for session in page.data:
        texts = [COLUMNS[name].pipe_text(session, state) for name in columns]
        if style.is_colored:
            styles = [_PIPE_STYLES.get(name, "dim") for name in columns]
            texts = [style(code, text) if code else text for code, text in zip(styles, texts, strict=True)]
        yield "\t".join(texts)


def table_lines(
    page: PaginatedResult[SessionSummary],
    *,
    width: int,
    style: Style,
    columns: Sequence[str] = (),
    live: _LiveSessions = (),
    now: datetime | None = None,
) -> Iterator[str]:
    """Yield a heading and one line per session, as wide as the terminal.

    A narrow terminal gets fewer columns, unless `columns` names them.
    """
    state = _ListState(now or datetime.now(UTC), live)
    sessions = page.data
    names = list(columns or _TERMINAL_COLUMNS)
    others = {name: _cells(name, sessions, state, width) for name in names if name != "title"}
    for name in _DROP_ORDER if not columns else ():
        if _title_width(width, others.values()) >= _MIN_TITLE_WIDTH:
            break
        del others[name]
    names = [name for name in names if name == "title" or name in others]
    title_width = max(_title_width(width, others.values()), _MIN_PREVIEW_WIDTH if columns else 1)
    heading = (
        pad("title", title_width) if name == "title" else others[name].padded(others[name].heading)
        for name in names
    )
    yield style("dim", _GAP.join(heading).rstrip())
    for row, session in enumerate(sessions):
        cells: list[str] = []
        for name in names:
            if name == "title":
                cells.append(_title_cell(session, title_width, style, state, columns))
                continue
            cell = others[name].padded(others[name].cells[row])
            cell = cell.rstrip() if name == names[-1] else cell
            cells.append(cell if name == "index" else style("dim", cell))
        yield _GAP.join(cells).rstrip()


def page_footer(page: PaginatedResult[Any]) -> str | None:
    """Return the range of a page, such as ``1 to 20 of 46``. None if the page shows everything."""
    shown = page.pagination
    if not shown.has_more and not shown.offset:
        return None
    return f"{shown.offset + 1} to {shown.offset + len(page.data)} of {shown.total:,}"


class _ListState(Struct, frozen=True):
    """What the values of a list depend on besides the sessions."""

    now: datetime
    live: _LiveSessions = ()


class _Cells(Struct, frozen=True):
    """A column of a table with its values."""

    name: str
    heading: str
    cells: Sequence[str]
    max_width: int
    is_right: bool

    @property
    def width(self) -> int:
        return min(max(map(cell_width, (self.heading, *self.cells))), self.max_width)

    def padded(self, text: str) -> str:
        return pad(text, self.width, is_right=self.is_right)


def _cells(name: str, sessions: Sequence[SessionSummary], state: _ListState, width: int) -> _Cells:
    column = COLUMNS[name]
    max_width = max(9, width // 8) if name == "workspace" else column.max_width
    cells = [column.terminal_text(session, state) for session in sessions]
    return _Cells(name, column.heading, cells, max_width, column.is_right)


def _title_width(width: int, columns: Collection[_Cells]) -> int:
    return width - sum(column.width + len(_GAP) for column in columns)


def _title_cell(
    session: SessionSummary, width: int, style: Style, state: _ListState, columns: Sequence[str]
) -> str:
    """Return the title in exactly `width` cells, with states, tags and prompt that have no own column.

    The first prompt is shown only if there is space.
    """
    states = "" if "state" in columns else ", ".join(_special_states(session, state))
    tags = "" if "tags" in columns else format_tags(session)
    notes = truncate(_GAP.join(filter(None, [states, tags])), width // 2)
    star = "★ " if session.is_starred and "state" not in columns else ""
    arrow = SUBAGENT_MARK if session.parent_ref is not None else ""
    notes_width = cell_width(notes) + len(_GAP) if notes else 0
    title_width = width - cell_width(star + arrow) - notes_width
    shown_title = session.title or session.first_message_preview or _UNTITLED
    title = truncate(one_line(shown_title, _MAX_TITLE_CHARS), title_width)
    unused = title_width - cell_width(title)
    mark = style("agent", arrow) + style("star", star)
    cell = f"{mark}{style('title', title)}{_GAP + style('error', notes) if notes else ''}"
    preview = "" if columns else one_line(session.first_message_preview or "", _MAX_TITLE_CHARS)
    repeats_title = not session.title or preview.startswith(session.title.rstrip("…"))
    if repeats_title or not preview or unused - len(_GAP) < _MIN_PREVIEW_WIDTH:
        return cell + " " * unused
    return f"{cell}{_GAP}{style('dim', pad(preview, unused - len(_GAP)))}"


_Format = Callable[[SessionSummary, _ListState], str]


class _Column(Struct, frozen=True, kw_only=True):
    """A column: complete values for pipes, short ones for terminals."""

    heading: str
    text: _Format
    cell: _Format | None = None  # on a terminal; None: the same as text
    max_width: int = 20
    is_right: bool = False

    def pipe_text(self, session: SessionSummary, state: _ListState) -> str:
        """Return the value in one line, without tabs. Unknown is empty."""
        return one_line(self.text(session, state), _MAX_TEXT_CHARS)

    def terminal_text(self, session: SessionSummary, state: _ListState) -> str:
        """Return the value for a cell of a table."""
        return one_line((self.cell or self.text)(session, state), _MAX_CELL_CHARS)


def _special_states(session: SessionSummary, state: _ListState) -> list[str]:
    """Return what is special about a session: live, gone, partial, lossy."""
    states = ["live"] if (session.platform, session.id) in state.live else []
    states += ["gone"] if session.is_gone else []
    return states + ([] if session.completeness == "complete" else [session.completeness])


def _states(session: SessionSummary, state: _ListState) -> str:
    states = ["subagent"] if session.parent_ref is not None else []
    states += _special_states(session, state)
    return " ".join(states + (["starred"] if session.is_starred else []))


def _time(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at is not None else ""


def _age(at: datetime | None, now: datetime) -> str:
    return format_age(at, now).removesuffix(" ago")


def _number(number: int | None) -> str:
    return "" if number is None else str(number)


def _compact(number: int | None) -> str:
    return "" if number is None else compact_number(number)


def _short_source(source: str) -> str:
    """Return one word of a source name: the last if it is short (``cli``), else the first (``claude``)."""
    first, _, last = source.rpartition("-")
    return last if not first or len(last) <= 3 else first


def _number_column(heading: str, value: Callable[[SessionSummary], int | None]) -> _Column:
    return _Column(
        heading=heading,
        text=lambda session, _: _number(value(session)),
        cell=lambda session, _: _compact(value(session)),
        is_right=True,
    )


COLUMNS: dict[str, _Column] = {
    "index": _Column(heading="#", text=lambda session, _: _number(session.index), is_right=True),
    "updated": _Column(
        heading="when",
        text=lambda session, _: _time(session.updated_at),
        cell=lambda session, state: _age(session.updated_at, state.now),
        is_right=True,
    ),
    "created": _Column(
        heading="created",
        text=lambda session, _: _time(session.created_at),
        cell=lambda session, state: _age(session.created_at, state.now),
        is_right=True,
    ),
    "title": _Column(heading="title", text=lambda session, _: session.title or ""),
    "prompt": _Column(
        heading="prompt", text=lambda session, _: session.first_message_preview or "", max_width=40
    ),
    "workspace": _Column(heading="workspace", text=lambda session, _: session.workspace_name or ""),
    "path": _Column(heading="path", text=lambda session, _: session.workspace_path or "", max_width=60),
    "branch": _Column(heading="branch", text=lambda session, _: session.git_branch or ""),
    "models": _Column(heading="models", text=lambda session, _: " ".join(session.models), max_width=30),
    "messages": _number_column("msgs", lambda session: session.message_count),
    "prompts": _number_column("prompts", lambda session: session.interaction_count),
    "tokens": _number_column("tokens", lambda session: session.total_tokens),
    "lines": _number_column("lines", lambda session: session.total_changes),
    "source": _Column(
        heading="source",
        text=lambda session, _: session.source,
        cell=lambda session, _: _short_source(session.source),
        max_width=8,
    ),
    "id": _Column(
        heading="id",
        text=lambda session, _: session.id,
        cell=lambda session, _: short_id(session.id, session.parent_ref),
    ),
    "ref": _Column(heading="ref", text=lambda session, _: session.ref, max_width=60),
    "parent": _Column(heading="parent", text=lambda session, _: session.parent_ref or "", max_width=60),
    "tags": _Column(
        heading="tags",
        text=lambda session, _: " ".join(session.tags),
        cell=lambda session, _: format_tags(session),
    ),
    "state": _Column(heading="state", text=_states),
}
