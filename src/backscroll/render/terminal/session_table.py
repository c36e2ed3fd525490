"""A list of sessions: columns that fit the terminal, or tab-separated values for pipes."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from backscroll.model import PaginatedResult, SessionSummary
from backscroll.model.text import one_line
from backscroll.render.annotations import format_tags
from backscroll.render.terminal.humanize import SUBAGENT_MARK
from backscroll.render.terminal.session_columns import (
    COLUMNS,
    PIPE_COLUMNS,
    TERMINAL_COLUMNS,
    ListState,
    session_states,
)
from backscroll.render.terminal.style import Style
from backscroll.render.terminal.width import cell_width, pad, truncate

__all__ = ["page_footer", "tab_separated_lines", "table_lines"]

_MAX_TITLE_CHARS = 300
_GAP = "  "
_MIN_TITLE_WIDTH = 24  # cells; other columns are dropped first
_MIN_PREVIEW_WIDTH = 12
_UNTITLED = "(untitled)"
_DROP_ORDER = ("source", "tokens", "messages", "workspace")  # columns to drop on a narrow terminal
_PIPE_STYLES = {"index": "", "title": "title", "tags": "error", "state": "error"}  # others are dim

LiveSessions = Collection[tuple[str, str]]  # platform and id of sessions that are running


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


def tab_separated_lines(
    page: PaginatedResult[SessionSummary],
    *,
    columns: Sequence[str] = (),
    style: Style,
    live: LiveSessions = (),
) -> Iterator[str]:
    """Yield one line per session: the columns separated by tabs. Unknown values are empty."""
    state = ListState(datetime.now(UTC), live)
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
    live: LiveSessions = (),
    now: datetime | None = None,
) -> Iterator[str]:
    """Yield a heading and one line per session, as wide as the terminal.

    A narrow terminal gets fewer columns, unless `columns` names them.
    """
    state = ListState(now or datetime.now(UTC), live)
    sessions = page.data
    names = list(columns or TERMINAL_COLUMNS)
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


def _cells(name: str, sessions: Sequence[SessionSummary], state: ListState, width: int) -> _Cells:
    column = COLUMNS[name]
    max_width = max(9, width // 8) if name == "workspace" else column.max_width
    cells = [column.terminal_text(session, state) for session in sessions]
    return _Cells(name, column.heading, cells, max_width, column.is_right)


def _title_width(width: int, columns: Collection[_Cells]) -> int:
    return width - sum(column.width + len(_GAP) for column in columns)


def _title_cell(
    session: SessionSummary, width: int, style: Style, state: ListState, columns: Sequence[str]
) -> str:
    """Return the title in exactly `width` cells, with states, tags and prompt that have no own column.

    The first prompt is shown only if there is space.
    """
    states = "" if "state" in columns else ", ".join(session_states(session, state))
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
