"""Sessions in a list: columns that fit the terminal, or plain lines that stay as they are."""

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

_TITLE = 300
_GAP = "  "
_NARROWEST = 24  # columns for a title, before others are left out
_LEAST_PREVIEW = 12
_UNNAMED = "(no words)"
_DROPPED = ("source", "tokens", "msgs", "workspace")  # where there is no room, in this order

Live = Collection[tuple[str, str]]  # platform and id of sessions that are being held


class _Column(Struct, frozen=True):
    name: str
    cells: Sequence[str]
    most: int = 20
    is_right: bool = False

    @property
    def width(self) -> int:
        return min(max(map(cell_width, (self.name, *self.cells))), self.most)


def short_id(id_: str) -> str:
    """As much of an id as tells it from others; ids that are made of words are told whole."""
    return sanitize(id_ if id_.startswith("inline-") else id_[:8])


def plain_lines(page: PaginatedResult[SessionSummary], live: Live = ()) -> Iterator[str]:
    """A line per session with the same columns everywhere: two spaces between them, the title last.

    Index, time of the last message in UTC, beginning of the id, source, workspace, messages, tokens, title,
    tags and marks.
    """
    for one in page.data:
        updated = one.updated_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ") if one.updated_at else "-"
        marks = _marks(one, live)
        words = [
            starred_title(one, _TITLE, _UNNAMED),
            format_tags(one),
            f"[{', '.join(marks)}]" if marks else "",
        ]
        columns = (
            f"{one.index:>4}",
            f"{updated:<17}",
            f"{short_id(one.id):<8}",
            f"{one.source:<11}",
            f"{one_line(one.workspace_name or '-', 40):<12}",
            f"{one.message_count:>5}",
            f"{_tokens(one) or '-':>5}",
            *filter(None, words),
        )
        yield _GAP.join(columns)
    yield from _footer(page)


def table_lines(
    page: PaginatedResult[SessionSummary],
    *,
    width: int,
    style: Style,
    live: Live = (),
    now: datetime | None = None,
) -> Iterator[str]:
    """A line per session that is as wide as the terminal, below the names of the columns."""
    now = now or datetime.now(UTC)
    data = page.data
    before = [
        _Column("#", [str(one.index) for one in data], is_right=True),
        _Column(
            "when", [format_age(one.updated_at, now).removesuffix(" ago") for one in data], is_right=True
        ),
    ]
    after = [
        _Column("workspace", [one_line(one.workspace_name or "", 60) for one in data], max(9, width // 8)),
        _Column("msgs", [compact_number(one.message_count) for one in data], 5, is_right=True),
        _Column("tokens", [_tokens(one) for one in data], 6, is_right=True),
        _Column("source", [_short_source(one.source) for one in data], 8),
        _Column("id", [short_id(one.id) for one in data]),
    ]
    for name in _DROPPED:
        if _left(width, [*before, *after]) >= _NARROWEST:
            break
        after = [column for column in after if column.name != name]
    room = max(_left(width, [*before, *after]), 1)
    named = _GAP.join(
        [
            *(pad(column.name, column.width, is_right=column.is_right) for column in before),
            pad("title", room),
            *(pad(column.name, column.width, is_right=column.is_right) for column in after),
        ]
    )
    yield style("dim", named.rstrip())
    for place, one in enumerate(data):
        cells_before, cells_after = (
            [pad(column.cells[place], column.width, is_right=column.is_right) for column in side]
            for side in (before, after)
        )
        title = _titled(one, room, style, _marks(one, live))
        dim = style("dim", _GAP.join(cells_after).rstrip())
        yield f"{cells_before[0]}{_GAP}{style('dim', cells_before[1])}{_GAP}{title}{_GAP}{dim}"
    yield from (style("dim", line) for line in _footer(page))


def _left(width: int, columns: Sequence[_Column]) -> int:
    return width - sum(column.width + len(_GAP) for column in columns)


def _titled(one: SessionSummary, room: int, style: Style, marks: Sequence[str]) -> str:
    """Title, marks and tags, and how it began where there is room left, in exactly so many columns."""
    noted = _GAP.join(filter(None, [", ".join(marks), format_tags(one)]))
    noted = truncate(noted, room // 2)
    star = "★ " if one.is_starred else ""
    taken = cell_width(noted) + len(_GAP) if noted else 0
    title = truncate(one_line(one.title or _UNNAMED, _TITLE), room - cell_width(star) - taken)
    left = room - cell_width(star) - cell_width(title) - taken
    told = f"{style('star', star)}{style('title', title)}{_GAP + style('error', noted) if noted else ''}"
    preview = one_line(one.first_message_preview or "", _TITLE)
    is_new = not preview.startswith((one.title or "").rstrip("…"))
    if not is_new or not preview or left - len(_GAP) < _LEAST_PREVIEW:
        return told + " " * left
    return f"{told}{_GAP}{style('dim', pad(preview, left - len(_GAP)))}"


def _marks(one: SessionSummary, live: Live) -> list[str]:
    """What is special about a session."""
    marks = ["live"] if (one.platform, one.id) in live else []
    marks += ["gone"] if one.is_gone else []
    return marks + ([] if one.completeness == "complete" else [one.completeness])


def _tokens(one: SessionSummary) -> str:
    return compact_number(one.total_tokens) if one.total_tokens is not None else ""


def _short_source(source: str) -> str:
    """A source in one word: what kind it is where that is short, else whose."""
    first, _, last = source.rpartition("-")
    return last if not first or len(last) <= 3 else first


def _footer(page: PaginatedResult[SessionSummary]) -> Iterator[str]:
    shown = page.pagination
    if shown.has_more or shown.offset:
        yield f"{shown.offset + 1} to {shown.offset + len(page.data)} of {shown.total:,}"
