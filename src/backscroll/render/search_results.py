"""What a search found, as lines that are safe for any terminal."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from backscroll.model import SearchMatch, SearchResult
from backscroll.model.sanitize import one_line, sanitize
from backscroll.render.terminal.humanize import format_age
from backscroll.render.terminal.session_table import short_id
from backscroll.render.terminal.width import cell_width, prefix_length, truncate

__all__ = ["match_lines"]

_WIDTH = 300
_NARROWEST = 12
_INDENT = " " * 6
_MARGIN = f"{_INDENT}│ "

_Places = Sequence[tuple[int, int]]


def match_lines(
    found: SearchResult, *, is_coloured: bool, width: int = _WIDTH, now: datetime | None = None
) -> Iterator[str]:
    """What a search found: the session, and the place in it with its surroundings, in lines so wide."""
    now = now or datetime.now(UTC)
    width = max(min(width, _WIDTH) - len(_MARGIN), _NARROWEST)
    head = width + len(_MARGIN) - len(_INDENT)
    for match in found.data:
        index = f"{match.session_index:>4}" if match.session_index is not None else "    "
        yield f"{index}  {truncate(one_line(match.title or match.session_ref, 90), head)}"
        yield _INDENT + truncate(_facts(match, now, head), head)
        text, places = _fitted(*_laid_out(match.match, match.highlights), width)
        marked = _marked(text, places) if is_coloured else text
        for line in match.context:
            yield (
                _MARGIN + (marked if line == match.match else truncate(_laid_out(line, ())[0], width))
            ).rstrip()
        yield ""
    if found.data:
        total = found.total if found.total is not None else found.total_at_least
        least = "" if found.is_counted else "at least "
        last = found.offset + len(found.data)
        yield f"{found.offset + 1} to {last} of {least}{total:,}, {found.took_ms:.0f} ms"


def _facts(match: SearchMatch, now: datetime, width: int) -> str:
    """When and where it was said, and what the message and its session are called by.

    Where there is little room, what is soonest done without is left out.
    """
    facts = [
        format_age(match.timestamp, now),
        match.source,
        one_line(match.workspace_name or "no workspace", 40),
        "note" if match.is_note else f"{match.role} #{match.message_index}",
        short_id(match.session_id),
        *([f"{match.match_count:,} matches"] if match.match_count > 1 else []),
    ]
    for fact in facts[1:3]:
        if cell_width(told := " · ".join(facts)) <= width:
            return told
        facts.remove(fact)
    return " · ".join(facts)


def _laid_out(text: str, places: _Places) -> tuple[str, _Places]:
    """A line with nothing in it that a terminal obeys, tabs as spaces, and where the places are then."""
    pieces: list[str] = []
    moved: list[tuple[int, int]] = []
    at = length = column = 0
    for begin, end in [*places, (len(text), len(text))]:
        for piece in (text[at:begin], text[begin:end]):
            pieces.append(_spaced(sanitize(piece).replace("\n", " "), column))
            column += cell_width(pieces[-1])
            length += len(pieces[-1])
        moved.append((length - len(pieces[-1]), length))
        at = end
    return "".join(pieces), moved[: len(places)]


def _spaced(text: str, column: int) -> str:
    """The text with spaces up to the next eighth column for each tab, when it begins at a column."""
    return (" " * (column % 8) + text).expandtabs(8)[column % 8 :] if "\t" in text else text


def _fitted(text: str, places: _Places, width: int) -> tuple[str, _Places]:
    """The part of a line around what was found, when all of it is too long, and the places in that part."""
    if cell_width(text) <= width:
        return text, places
    first = places[0][0] if places else 0
    # A third of the room is for what comes before, more where the line ends soon after.
    start = first - prefix_length(text[:first][::-1], width // 3)
    start = min(start, len(text) - prefix_length(text[::-1], width))
    before = "…" if start else ""
    start += len(before)
    shown = truncate(text[start:], width - len(before))
    end = start + len(shown.removesuffix("…")) if shown != text[start:] else len(text)
    moved = [(max(begin, start), min(stop, end)) for begin, stop in places]
    by = len(before) - start
    return before + shown, [(begin + by, stop + by) for begin, stop in moved if begin < stop]


def _marked(text: str, places: Iterable[tuple[int, int]]) -> str:
    """The text with what was found in bold."""
    out, at = [], 0
    for start, end in places:
        out += [text[at:start], "\x1b[1;33m", text[start:end], "\x1b[0m"]
        at = end
    return "".join([*out, text[at:]])
