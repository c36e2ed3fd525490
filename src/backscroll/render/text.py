"""What a search found, as lines that are safe for any terminal."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from backscroll.model import SearchResult
from backscroll.render.inert import inert, one_line
from backscroll.render.terminal.amounts import ago
from backscroll.render.terminal.listing import short_id

__all__ = ["match_lines"]

_WIDTH = 300
_NARROWEST = 40
_MARGIN = "      │ "


def match_lines(
    found: SearchResult, *, is_coloured: bool, width: int = _WIDTH, now: datetime | None = None
) -> Iterator[str]:
    """What a search found: the session, and the place in it with its surroundings, in lines so wide."""
    now = now or datetime.now(UTC)
    width = max(min(width, _WIDTH) - len(_MARGIN), _NARROWEST)
    for match in found.data:
        more = f" · {match.match_count:,} matches" if match.match_count > 1 else ""
        index = f"{match.session_index:>4}" if match.session_index is not None else "    "
        yield f"{index}  {one_line(match.title or match.session_ref, 90)}"
        yield (
            f"      {ago(match.timestamp, now)} · {match.source}"
            f" · {one_line(match.workspace_name or 'no workspace', 40)}"
            f" · {'note' if match.is_note else match.role} · {short_id(match.session_id)}{more}"
        )
        text, highlights = _fitted(match.match, match.highlights, width)
        marked = _marked(text, highlights) if is_coloured else inert(text)
        for line in match.context:
            yield _MARGIN + (marked if line == match.match else _cut(inert(line), width))
        yield ""
    if found.data:
        total = f"{found.total:,}" if found.total is not None else f"at least {found.total_at_least:,}"
        yield f"{found.offset + 1} to {found.offset + len(found.data)} of {total}, {found.took_ms:.0f} ms"


def _fitted(
    text: str, highlights: Sequence[tuple[int, int]], width: int
) -> tuple[str, Sequence[tuple[int, int]]]:
    """The part of a line around what was found, when all of it is too long, and the places in that part."""
    if len(text) <= width:
        return text, highlights
    first = highlights[0][0] if highlights else 0
    start = max(0, min(first - width // 3, len(text) - width))
    stop = start + width
    before, after = "…" if start else "", "…" if stop < len(text) else ""
    inner = range(start + len(before), stop - len(after))
    moved = [(max(a, inner.start) - start, min(b, inner.stop) - start) for a, b in highlights]
    return f"{before}{text[inner.start : inner.stop]}{after}", [(a, b) for a, b in moved if a < b]


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"


def _marked(text: str, highlights: Iterable[tuple[int, int]]) -> str:
    """The text with what was found in bold."""
    out, at = [], 0
    for start, end in highlights:
        out += [inert(text[at:start]), "\x1b[1;33m", inert(text[start:end]), "\x1b[0m"]
        at = end
    return "".join([*out, inert(text[at:])])
