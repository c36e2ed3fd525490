"""A list of sessions: columns that fit the terminal, or lines in a fixed format for pipes."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from backscroll.model import PaginatedResult, SessionSummary
from backscroll.model.sanitize import one_line, sanitize
from backscroll.render.annotations import format_tags, starred_title
from backscroll.render.terminal.humanize import compact_number, format_age
from backscroll.render.terminal.style import Style
from backscroll.render.terminal.width import cell_width, pad, truncate

__all__ = ["plain_lines", "short_id", "table_lines"]

_MAX_TITLE_CHARS = 300
_GAP = "  "
_MIN_TITLE_WIDTH = 24  # cells; other columns are dropped first
_MIN_PREVIEW_WIDTH = 12
_UNTITLED = "(untitled)"
_DROP_ORDER = ("source", "tokens", "msgs", "workspace")  # columns to drop on a narrow terminal

LiveSessions = Collection[tuple[str, str]]  # platform and id of sessions that are running


class _Column(Struct, frozen=True):
    name: str
    cells: Sequence[str]
    max_width: int = 20
    is_right: bool = False

    @property
    def width(self) -> int:
        return min(max(map(cell_width, (self.name, *self.cells))), self.max_width)

    @property
    def heading(self) -> str:
        return pad(self.name, self.width, is_right=self.is_right)

    def cell(self, row: int) -> str:
        return pad(self.cells[row], self.width, is_right=self.is_right)


def short_id(id_: str) -> str:
    """Return the first 8 characters of an id, or a whole id of the form ``inline-…``."""
    return sanitize(id_ if id_.startswith("inline-") else id_[:8])


def plain_lines(page: PaginatedResult[SessionSummary], live: LiveSessions = ()) -> Iterator[str]:
    """Yield one line per session in a fixed format: columns separated by two spaces, the title last.

    Index, time of the last message in UTC, start of the id, source, workspace, messages, tokens, title, tags
    and states.
    """
    for session in page.data:
        updated = (
            session.updated_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ") if session.updated_at else "-"
        )
        states = _states(session, live)
        texts = [
            starred_title(session, _MAX_TITLE_CHARS, _UNTITLED),
            format_tags(session),
            f"[{', '.join(states)}]" if states else "",
        ]
        columns = (
            f"{session.index:>4}",
            f"{updated:<17}",
            f"{short_id(session.id):<8}",
            f"{session.source:<11}",
            f"{one_line(session.workspace_name or '-', 40):<12}",
            f"{session.message_count:>5}",
            f"{_tokens(session) or '-':>5}",
            *filter(None, texts),
        )
        yield _GAP.join(columns)
    yield from _footer(page)


def table_lines(
    page: PaginatedResult[SessionSummary],
    *,
    width: int,
    style: Style,
    live: LiveSessions = (),
    now: datetime | None = None,
) -> Iterator[str]:
    """Yield a heading and one line per session, as wide as the terminal."""
    now = now or datetime.now(UTC)
    sessions = page.data
    ages = [format_age(session.updated_at, now).removesuffix(" ago") for session in sessions]
    left = [
        _Column("#", [str(session.index) for session in sessions], is_right=True),
        _Column("when", ages, is_right=True),
    ]
    workspaces = [one_line(session.workspace_name or "", 60) for session in sessions]
    right = [
        _Column("workspace", workspaces, max(9, width // 8)),
        _Column("msgs", [compact_number(session.message_count) for session in sessions], 5, is_right=True),
        _Column("tokens", [_tokens(session) for session in sessions], 6, is_right=True),
        _Column("source", [_short_source(session.source) for session in sessions], 8),
        _Column("id", [short_id(session.id) for session in sessions]),
    ]
    for name in _DROP_ORDER:
        if _title_width(width, [*left, *right]) >= _MIN_TITLE_WIDTH:
            break
        right = [column for column in right if column.name != name]
    title_width = max(_title_width(width, [*left, *right]), 1)
    headings = [column.heading for column in left], [column.heading for column in right]
    yield style("dim", _GAP.join([*headings[0], pad("title", title_width), *headings[1]]).rstrip())
    for row, session in enumerate(sessions):
        index, age = (column.cell(row) for column in left)
        title = _title_cell(session, title_width, style, _states(session, live))
        rest = _GAP.join(column.cell(row) for column in right).rstrip()
        yield f"{index}{_GAP}{style('dim', age)}{_GAP}{title}{_GAP}{style('dim', rest)}"
    yield from (style("dim", line) for line in _footer(page))


def _title_width(width: int, columns: Sequence[_Column]) -> int:
    return width - sum(column.width + len(_GAP) for column in columns)


def _title_cell(session: SessionSummary, width: int, style: Style, states: Sequence[str]) -> str:
    """Return title, states and tags, and the first prompt if there is space, in exactly `width` cells."""
    notes = _GAP.join(filter(None, [", ".join(states), format_tags(session)]))
    notes = truncate(notes, width // 2)
    star = "★ " if session.is_starred else ""
    notes_width = cell_width(notes) + len(_GAP) if notes else 0
    title_width = width - cell_width(star) - notes_width
    title = truncate(one_line(session.title or _UNTITLED, _MAX_TITLE_CHARS), title_width)
    unused = title_width - cell_width(title)
    cell = f"{style('star', star)}{style('title', title)}{_GAP + style('error', notes) if notes else ''}"
    preview = one_line(session.first_message_preview or "", _MAX_TITLE_CHARS)
    repeats_title = preview.startswith((session.title or "").rstrip("…"))
    if repeats_title or not preview or unused - len(_GAP) < _MIN_PREVIEW_WIDTH:
        return cell + " " * unused
    return f"{cell}{_GAP}{style('dim', pad(preview, unused - len(_GAP)))}"


def _states(session: SessionSummary, live: LiveSessions) -> list[str]:
    states = ["live"] if (session.platform, session.id) in live else []
    states += ["gone"] if session.is_gone else []
    return states + ([] if session.completeness == "complete" else [session.completeness])


def _tokens(session: SessionSummary) -> str:
    return compact_number(session.total_tokens) if session.total_tokens is not None else ""


def _short_source(source: str) -> str:
    """Return one word of a source name: the last if it is short (``cli``), else the first (``claude``)."""
    first, _, last = source.rpartition("-")
    return last if not first or len(last) <= 3 else first


def _footer(page: PaginatedResult[SessionSummary]) -> Iterator[str]:
    shown = page.pagination
    if shown.has_more or shown.offset:
        yield f"{shown.offset + 1} to {shown.offset + len(page.data)} of {shown.total:,}"
