"""Lines of text cut to the width of a screen, in cells: a CJK character or an emoji takes two."""

from rich.cells import cell_len, split_graphemes

__all__ = ["Piece", "fitted", "wrap"]

Piece = tuple[int, int]  # from one character to before another


def wrap(line: str, width: int) -> list[Piece]:
    """Where a line is cut so that each piece fits, at spaces where there are any. Nothing of it is left out
    but the spaces at a cut.
    """
    if len(line) <= width and line.isascii():
        return [(0, len(line))]
    if line.isascii():
        return _wrap_ascii(line, width)
    return _wrap_any(line, width)


def _wrap_ascii(line: str, width: int) -> list[Piece]:
    pieces: list[Piece] = []
    start, length = 0, len(line)
    while length - start > width:
        cut = line.rfind(" ", start + 1, start + width + 1)
        if cut == -1 or not line[start:cut].strip():
            pieces.append((start, start + width))
            start += width
            continue
        pieces.append((start, cut))
        start = cut + 1
    pieces.append((start, length))
    return pieces


def _wrap_any(line: str, width: int) -> list[Piece]:
    spans, _ = split_graphemes(line)
    pieces: list[Piece] = []
    start = used = 0
    space = -1  # where the piece could be cut
    used_at_space = 0
    for begin, _, cells in spans:
        if used + cells > width and begin > start:
            if line[begin] == " ":
                pieces.append((start, begin))
                start, used, space = begin + 1, 0, -1
                continue
            if space > start:
                pieces.append((start, space))
                start, used = space + 1, used - used_at_space
            else:
                pieces.append((start, begin))
                start, used = begin, 0
            space = -1
        used += cells
        if line[begin] == " ":
            space, used_at_space = begin, used
    pieces.append((start, len(line)))
    return pieces


def fitted(text: str, width: int) -> str:
    """The text in at most so many cells; what is cut off is told by a mark."""
    if (len(text) <= width and text.isascii()) or cell_len(text) <= width:
        return text
    if width < 1:
        return ""
    kept = used = 0
    for _, end, cells in split_graphemes(text)[0]:
        if used + cells > width - 1:
            break
        kept, used = end, used + cells
    return text[:kept] + "…"
