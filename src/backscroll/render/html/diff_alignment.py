"""Align the removed and added lines of a hunk, and find the words that differ within a line.

The cost is bounded: the lines of a long hunk are aligned by number, a long line differs in one place.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

__all__ = ["DiffRow", "align_by_number", "align_lines", "changed_ranges"]

_MAX_MATCHED_PAIRS = 40_000  # removed × added lines that are searched for equal lines
_MAX_COMPARED_PAIRS = 2_500  # removed × added lines that are compared by their words
_MIN_SIMILARITY = 0.5  # of two versions of one line
_MAX_CHANGED_SHARE = 0.7  # of a line; beyond it, marked words do not help
_MAX_LINE_TOKENS = 200
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_WORD = re.compile(r"\w+")

Range = tuple[int, int]  # start and end
_Pairs = Iterable[tuple[int, int]]
_Step = Callable[[Sequence[str], Sequence[str]], _Pairs]


class DiffRow(NamedTuple):
    """A removed line beside an added line, as indexes. None if a side has no line in this row."""

    old: int | None
    new: int | None
    is_pair: bool = False  # two versions of one line
    is_same: bool = False  # the line did not change


def align_lines(removed: Sequence[str], added: Sequence[str]) -> list[DiffRow]:
    """Return rows that contain every line once, in order, with similar lines beside each other."""
    if len(removed) * len(added) > _MAX_MATCHED_PAIRS:
        return align_by_number(len(removed), len(added))
    steps = (_unchanged_ends, _equal_lines, _reindented_lines, _similar_lines)
    rows: list[DiffRow] = []
    old = new = 0
    for i, j in _find_pairs(removed, added, steps):
        rows += _unpaired_rows((old, i), (new, j))
        is_same = removed[i] == added[j]
        rows.append(DiffRow(i, j, is_pair=not is_same, is_same=is_same))
        old, new = i + 1, j + 1
    return [*rows, *_unpaired_rows((old, len(removed)), (new, len(added)))]


def align_by_number(removed_count: int, added_count: int) -> list[DiffRow]:
    """Return rows with the first lines beside each other, then the second ones, and so on."""
    return list(_unpaired_rows((0, removed_count), (0, added_count)))


def changed_ranges(old: str, new: str) -> tuple[list[Range], list[Range]]:
    """Return the ranges of two lines that differ, by words. Both are empty if little is the same."""
    old_tokens, new_tokens = _TOKEN.findall(old), _TOKEN.findall(new)
    start = _common_prefix(old_tokens, new_tokens)
    end = _common_prefix(old_tokens[start:][::-1], new_tokens[start:][::-1])
    old_end, new_end = len(old_tokens) - end, len(new_tokens) - end
    changes = [(start, old_end, start, new_end)]
    if start < min(old_end, new_end) and max(old_end, new_end) - start <= _MAX_LINE_TOKENS:
        matcher = SequenceMatcher(None, old_tokens[start:old_end], new_tokens[start:new_end], autojunk=False)
        changes = [
            (start + i1, start + i2, start + j1, start + j2)
            for tag, i1, i2, j1, j2 in matcher.get_opcodes()
            if tag != "equal"
        ]
    old_ranges = _char_ranges(old_tokens, [(first, last) for first, last, _, _ in changes])
    new_ranges = _char_ranges(new_tokens, [(first, last) for _, _, first, last in changes])
    if min(_share(old, old_ranges), _share(new, new_ranges)) > _MAX_CHANGED_SHARE:
        return [], []
    return old_ranges, new_ranges


def _find_pairs(old: Sequence[str], new: Sequence[str], steps: Sequence[_Step]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of the first step, and those of the other steps between them."""
    if not old or not new or not steps:
        return
    end = len(old), len(new)
    old_at = new_at = 0
    for i, j in [*steps[0](old, new), end]:
        between = _find_pairs(old[old_at:i], new[new_at:j], steps[1:])
        yield from ((old_at + a, new_at + b) for a, b in between)
        if (i, j) != end:
            yield i, j
        old_at, new_at = i + 1, j + 1


def _unchanged_ends(old: Sequence[str], new: Sequence[str]) -> _Pairs:
    """Pair the first and the last lines that are equal."""
    start = _common_prefix(old, new)
    end = _common_prefix(old[start:][::-1], new[start:][::-1])
    last = ((len(old) - left, len(new) - left) for left in range(end, 0, -1))
    return [*((index, index) for index in range(start)), *last]


def _equal_lines(old: Sequence[str], new: Sequence[str]) -> _Pairs:
    """Pair equal lines. A run of them without any word, such as a bracket, is a coincidence."""
    for run in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        if any(_WORD.search(line) for line in old[run.a : run.a + run.size]):
            yield from ((run.a + index, run.b + index) for index in range(run.size))


def _reindented_lines(old: Sequence[str], new: Sequence[str]) -> _Pairs:
    return _equal_lines([line.strip() for line in old], [line.strip() for line in new])


def _similar_lines(old: Sequence[str], new: Sequence[str]) -> _Pairs:
    """Pair lines with common words so that the sum of the similarities is the largest."""
    old_words = [set(_WORD.findall(line)) for line in old]
    new_words = [set(_WORD.findall(line)) for line in new]
    if len(old) * len(new) > _MAX_COMPARED_PAIRS:
        both = enumerate(zip(old_words, new_words, strict=False))
        return [(index, index) for index, (one, other) in both if _similarity(one, other)]
    # sums[i][j]: the largest sum for the lines from i and j on
    sums = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        row, below = sums[i], sums[i + 1]
        for j in range(len(new) - 1, -1, -1):
            similarity = _similarity(old_words[i], new_words[j])
            paired = below[j + 1] + similarity if similarity else 0.0
            row[j] = max(paired, below[j], row[j + 1])
    return _best_path(sums)


def _best_path(sums: Sequence[Sequence[float]]) -> Iterator[tuple[int, int]]:
    i = j = 0
    while i < len(sums) - 1 and j < len(sums[0]) - 1:
        best = sums[i][j]
        if best == sums[i + 1][j]:
            i += 1
        elif best == sums[i][j + 1]:
            j += 1
        else:
            yield i, j
            i, j = i + 1, j + 1


def _similarity(one: set[str], other: set[str]) -> float:
    """Return the share of common words; 0 if it is too small for two versions of one line."""
    share = 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0
    return share if share >= _MIN_SIMILARITY else 0.0


def _unpaired_rows(old: Range, new: Range) -> Iterator[DiffRow]:
    for one, other in zip_longest(range(*old), range(*new)):
        yield DiffRow(one, other)


def _common_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _char_ranges(tokens: Sequence[str], token_ranges: Iterable[Range]) -> list[Range]:
    """Return ranges of tokens as ranges of characters. Ranges with only a space between them are joined."""
    offsets = [0]
    for token in tokens:
        offsets.append(offsets[-1] + len(token))
    joined: list[Range] = []
    for first, last in token_ranges:
        if first == last:
            continue
        if joined and not "".join(tokens[joined[-1][1] : first]).strip():
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return [(offsets[first], offsets[last]) for first, last in joined]


def _share(line: str, ranges: Iterable[Range]) -> float:
    """Return the share of a line, without its spaces, that the ranges cover."""
    size = len(line) - line.count(" ")
    covered = sum(last - first - line.count(" ", first, last) for first, last in ranges)
    return covered / size if size else 0.0
