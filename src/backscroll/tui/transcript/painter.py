"""Rows of a transcript as styled segments. Text is never parsed as terminal markup."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise

from rich.segment import Segment
from rich.style import Style

from backscroll.render.terminal.width import cell_width, truncate
from backscroll.tui.transcript.blocks import Block
from backscroll.tui.transcript.layout import INDENT, Layout, Row, text_width

__all__ = ["Painter", "RowMatches"]

INLINE_MARKDOWN = re.compile(r"(?P<code>`[^`]+`)|(?P<strong>\*\*[^*\s][^*]*\*\*)")
MAX_HIGHLIGHTED_CHARS = 20_000  # of a body line; matches after this offset are not highlighted
MAX_CACHED_LINES = 2048
KIND_MARKERS = {"prompt": "▌ ", "answer": "● ", "error": "✗ "}
MARKER_STYLES = {"prompt": "heading"}  # other markers have the style of their kind
EXPANDED_MARKER, FOLDED_MARKER = "▾ ", "▸ "

MatchFinder = Callable[[str], list[tuple[int, int]]]  # returns the spans of all matches in a text
WordsCheck = Callable[[str], bool]  # returns whether a text has all words
StyledSpan = tuple[int, int, str]  # start, end, style name


def _text_search(query: str) -> tuple[MatchFinder | None, WordsCheck | None]:
    from backscroll.history.parts.search import all_words_check, highlighter  # start-up: loads the index

    return highlighter(query), all_words_check(query)


class RowMatches:
    """Finds the words of a query in rows. Needs no styles: a search can finish before they are loaded."""

    def __init__(self, query: str) -> None:
        find, self._has_all_words = _text_search(query) if query.strip() else (None, None)
        self.in_text: MatchFinder = lru_cache(maxsize=MAX_CACHED_LINES)(find) if find else lambda _: []

    def matching_rows(self, layout: Layout, index: int) -> list[int]:
        """Return the offsets of the rows of a block to stop at.

        For a query with several words, these are the lines that have all of them. If there is no such line,
        it is the first one with a match.
        """
        rows = layout.block_rows(index)
        offsets = [offset for offset, row in enumerate(rows) if self.in_row(layout, row)]
        if self._has_all_words is None:
            return offsets
        first_rows: dict[tuple[str, int], int] = {}  # by line, which may be wrapped
        for offset in offsets:
            first_rows.setdefault((rows[offset].part, rows[offset].body_line), offset)
        complete = [
            offset for offset in first_rows.values() if self._has_all_words(_line(layout, rows[offset]))
        ]
        return complete or offsets[:1]

    def in_row(self, layout: Layout, row: Row) -> list[tuple[int, int]]:
        """Return the spans of the matches in a row."""
        if row.part == "heading":
            return self.in_text(row.text)
        return self.in_body(row, layout.blocks[row.block_index])

    def in_body(self, row: Row, block: Block) -> list[tuple[int, int]]:
        """Return the matches in a row. The whole line is searched, because wrapping may split a match."""
        if row.part != "body" or block.body is None:
            return []
        row_end = row.start + len(row.text)
        matches = self.in_text(_body_line(row, block))
        clipped = ((max(start, row.start), min(end, row_end)) for start, end in matches)
        return [(start - row.start, end - row.start) for start, end in clipped if start < end]


def _line(layout: Layout, row: Row) -> str:
    """Return the whole line that a row is a part of."""
    block = layout.blocks[row.block_index]
    return _body_line(row, block) if row.part == "body" else row.text


def _body_line(row: Row, block: Block) -> str:
    return block.body[row.body_line][0][:MAX_HIGHLIGHTED_CHARS] if block.body is not None else ""


class Painter:
    """Styles rows with the colors of a theme and highlights matches."""

    def __init__(self, matches: RowMatches, styles: dict[str, Style]) -> None:
        self._matches = matches
        self._styles = styles

    def style(self, name: str) -> Style:
        """Return the style of a component class."""
        return self._styles.get(name, Style.null())

    def paint(self, layout: Layout, row: Row) -> Iterator[Segment]:
        """Yield the segments of a row from left to right."""
        block = layout.blocks[row.block_index]
        if row.part == "gap":
            return
        yield Segment("│ " * block.depth, self.style("bar"))
        if row.part == "heading":
            yield from self._paint_heading(layout, row, block)
            return
        yield self._margin(row, block)
        yield from self._paint_text(row, block)

    def _paint_heading(self, layout: Layout, row: Row, block: Block) -> Iterator[Segment]:
        if block.is_foldable:
            is_expanded = layout.is_expanded(row.block_index)
            yield Segment(EXPANDED_MARKER if is_expanded else FOLDED_MARKER, self.style("bar"))
        else:
            yield self._kind_marker(block)
        width = text_width(block, layout.width) + (INDENT if block.is_foldable else 0)
        right_label = truncate(block.right_label, width // 2)
        text = truncate(row.text, max(width - cell_width(right_label) - 2, 1))
        yield from self._paint_spans(text, self._heading_spans(text, block), self._matches.in_text(text))
        if right_label:
            yield Segment(" " * max(width - cell_width(text) - cell_width(right_label), 1))
            yield Segment(right_label, self.style("error" if block.is_failed else "dim"))

    def _heading_spans(self, text: str, block: Block) -> list[StyledSpan]:
        """Emphasize the name of a call and dim its description, which follows after two spaces."""
        if not block.is_foldable:
            return [(0, len(text), "heading")]
        name_end = text.find("  ")
        name_end = len(text) if name_end == -1 else name_end
        return [(0, name_end, "error" if block.is_failed else "call"), (name_end, len(text), "dim")]

    def _margin(self, row: Row, block: Block) -> Segment:
        if block.is_foldable:
            return Segment("  ┆ ", self.style("bar"))
        is_first = row.body_line == 0 and row.start == 0 and not block.heading
        if block.kind == "prompt" or is_first:
            return self._kind_marker(block)
        return Segment("  ")

    def _kind_marker(self, block: Block) -> Segment:
        style = self.style(MARKER_STYLES.get(block.kind, block.kind))
        return Segment(KIND_MARKERS.get(block.kind, "  "), style)

    def _paint_text(self, row: Row, block: Block) -> Iterator[Segment]:
        spans: list[StyledSpan] = [(0, len(row.text), "dim" if block.is_dim else row.style)]
        if row.style in ("plain", "prompt") and not block.is_foldable:
            for inline in INLINE_MARKDOWN.finditer(row.text):
                spans.append((*inline.span(), inline.lastgroup or "plain"))
        yield from self._paint_spans(row.text, spans, self._matches.in_body(row, block))

    def _paint_spans(
        self, text: str, spans: list[StyledSpan], matches: list[tuple[int, int]]
    ) -> Iterator[Segment]:
        """Yield a text in segments. Where spans overlap, the later one wins; matches win over all."""
        layers = [*spans, *((start, end, "match") for start, end in matches)]
        boundaries = sorted({0, len(text), *(edge for start, end, _ in layers for edge in (start, end))})
        for start, end in pairwise(boundaries):
            names = [name for first, last, name in layers if first <= start and end <= last]
            style = self.style(names[0]) if names else Style.null()
            for name in names[1:]:
                style += self.style(name)
            yield Segment(text[start:end], style)
