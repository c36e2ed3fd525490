"""Edits of files as HTML: removed and added lines, highlighted, with the changed words marked.

The lines are in the order of a unified diff. A style sheet can show them side by side: rows of both sides
have the same height, because missing lines are empty elements that are hidden otherwise.

The cost is bounded: the lines of a long hunk are aligned by number, a long line differs in one place.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from html import escape
from itertools import groupby, pairwise, zip_longest
from typing import NamedTuple

from backscroll.model.message import Edit, Hunk
from backscroll.model.text import one_line
from backscroll.render.html.highlighting import CodeHighlighter, CodeSpan, language_of_path, spans_to_html
from backscroll.render.tool_calls import single_line

_MAX_COMPARED_CHARS = 100_000  # later lines are aligned by number, without marked words
_MAX_PATH_CHARS = 1000
_OLD_GAP, _NEW_GAP = '<span class="gap"></span>', '<span class="gap new"></span>'
_KINDS = {"create": "new file", "delete": "deleted"}


class DiffHtml:
    """Renders the edits of tool calls. Paths below the ``folder`` are shown relative to it.

    The lines of the first edits are compared by words, up to ``_MAX_COMPARED_CHARS``.
    """

    def __init__(self, highlighter: CodeHighlighter, folder: str = "") -> None:
        self._highlighter = highlighter
        self._folder = folder
        self._compared_chars = _MAX_COMPARED_CHARS  # that are left

    def render(self, edits: Sequence[Edit]) -> str:
        """Return the edits of one call; empty if the tool stored no changed lines."""
        shown = [edit for edit in edits if any(hunk.removed or hunk.added for hunk in edit.hunks)]
        if not shown:
            return ""
        parts = [self._edit(edit, has_path=len(edits) > 1 or edit.kind != "update") for edit in shown]
        return f'<pre class="diff">{"".join(parts)}</pre>\n'

    def _edit(self, edit: Edit, *, has_path: bool) -> str:
        hunks = [hunk for hunk in edit.hunks if hunk.removed or hunk.added]
        language = language_of_path(edit.path)
        parts = [self._heading(edit) if has_path else ""]
        for index, hunk in enumerate(hunks):
            is_only_start_known = not hunk.removed and hunk.new_start is None and hunk.old_start is not None
            place = f"line {hunk.old_start}" if is_only_start_known else "⋯" if index else ""
            parts.append(f'<span class="skip">{place}\n</span>' if place else "")
            parts.append(self._hunk(hunk, language))
        return "".join(parts)

    def _heading(self, edit: Edit) -> str:
        path = escape(one_line(edit.path.removeprefix(self._folder), _MAX_PATH_CHARS))
        kind = f" <b>{_KINDS[edit.kind]}</b>" if edit.kind in _KINDS else ""
        return f'<span class="file">{path}{kind}\n</span>'

    def _hunk(self, hunk: Hunk, language: str) -> str:
        removed, added = list(map(single_line, hunk.removed)), list(map(single_line, hunk.added))
        size = sum(map(len, removed)) + sum(map(len, added))
        old = _Side(removed, hunk.old_start, self._highlighter.spans(removed, language))
        new = _Side(added, hunk.new_start, self._highlighter.spans(added, language))
        if size <= self._compared_chars:
            self._compared_chars -= size
            rows = align_lines(removed, added)
            _mark_changes(rows, old, new)
        else:
            rows = _align_by_number(len(removed), len(added))
        numbered = " numbered" if (old.start if removed else new.start) is not None else ""
        groups = (_group(list(group), old, new) for _, group in groupby(rows, lambda row: row.is_same))
        return f'<span class="hunk{numbered}">{"".join(groups)}</span>'


class _DiffRow(NamedTuple):
    """A removed line beside an added line, as indexes. None if a side has no line in this row."""

    old: int | None
    new: int | None
    is_pair: bool = False  # two versions of one line
    is_same: bool = False  # the line did not change


class _Side:
    """The removed or the added lines of a hunk."""

    def __init__(self, lines: list[str], start: int | None, spans: list[list[CodeSpan]] | None) -> None:
        self.lines = lines
        self.start = start
        self.changed: dict[int, list[tuple[int, int]]] = {}
        self._spans = spans

    def line(self, index: int, tag: str, sign: str, css_class: str = "") -> str:
        """Return a line as an element."""
        attributes = f' class="{css_class}"' if css_class else ""
        number = f' data-line="{self.start + index}"' if self.start is not None else ""
        spans = self._spans[index] if self._spans is not None else [("", self.lines[index])]
        if ranges := self.changed.get(index):
            html = "".join(
                f'<b class="changed">{spans_to_html(part)}</b>' if is_changed else spans_to_html(part)
                for is_changed, part in _split(spans, ranges)
            )
        else:
            html = spans_to_html(spans)
        return f'<{tag}{attributes}{number}><span class="sign">{sign}</span>{html}\n</{tag}>'


def _mark_changes(rows: Sequence[_DiffRow], old: _Side, new: _Side) -> None:
    for row in rows:
        if row.is_pair and row.old is not None and row.new is not None:
            old.changed[row.old], new.changed[row.new] = changed_ranges(
                old.lines[row.old], new.lines[row.new]
            )


def _group(rows: Sequence[_DiffRow], old: _Side, new: _Side) -> str:
    """Return unchanged lines, or removed lines and then added lines."""
    if rows[0].is_same:
        left = [old.line(row.old, "span", " ", "same") for row in rows if row.old is not None]
        right = [new.line(row.new, "span", " ", "again") for row in rows if row.new is not None]
    else:
        left = [old.line(row.old, "del", "-") if row.old is not None else _OLD_GAP for row in rows]
        right = [new.line(row.new, "ins", "+") if row.new is not None else _NEW_GAP for row in rows]
    has_left, has_right = (any(row[side] is not None for row in rows) for side in (0, 1))
    if has_left and has_right:
        return f'<span class="rows two">{"".join(left)}{"".join(right)}</span>'
    return f'<span class="rows">{"".join(left if has_left else right)}</span>'


def _split(
    spans: Sequence[CodeSpan], ranges: Sequence[tuple[int, int]]
) -> Iterator[tuple[bool, list[CodeSpan]]]:
    """Yield the parts of a line outside and inside the ranges, and whether they are inside."""
    bounds = [0, *(bound for one in ranges for bound in one), sum(len(text) for _, text in spans)]
    for index, (start, end) in enumerate(pairwise(bounds)):
        part, at = [], 0
        for css_class, text in spans:
            if piece := text[max(0, start - at) : max(0, end - at)]:
                part.append((css_class, piece))
            at += len(text)
        if part:
            yield index % 2 == 1, part


_MAX_MATCHED_PAIRS = 40_000  # removed × added lines that are searched for equal lines
_MAX_COMPARED_PAIRS = 2_500  # removed × added lines that are compared by their words
_MIN_SIMILARITY = 0.5  # of two versions of one line
_MAX_CHANGED_SHARE = 0.7  # of a line; beyond it, marked words do not help
_MAX_LINE_TOKENS = 200
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_WORD = re.compile(r"\w+")

_Range = tuple[int, int]  # start and end
_Pairs = Iterable[tuple[int, int]]
_Step = Callable[[Sequence[str], Sequence[str]], _Pairs]


def align_lines(removed: Sequence[str], added: Sequence[str]) -> list[_DiffRow]:
    """Return rows that contain every line once, in order, with similar lines beside each other."""
    if len(removed) * len(added) > _MAX_MATCHED_PAIRS:
        return _align_by_number(len(removed), len(added))
    steps = (_unchanged_ends, _equal_lines, _reindented_lines, _similar_lines)
    rows: list[_DiffRow] = []
    old = new = 0
    for i, j in _find_pairs(removed, added, steps):
        rows += _unpaired_rows((old, i), (new, j))
        is_same = removed[i] == added[j]
        rows.append(_DiffRow(i, j, is_pair=not is_same, is_same=is_same))
        old, new = i + 1, j + 1
    return [*rows, *_unpaired_rows((old, len(removed)), (new, len(added)))]


def _align_by_number(removed_count: int, added_count: int) -> list[_DiffRow]:
    """Return rows with the first lines beside each other, then the second ones, and so on."""
    return list(_unpaired_rows((0, removed_count), (0, added_count)))


def _unpaired_rows(old: _Range, new: _Range) -> Iterator[_DiffRow]:
    for one, other in zip_longest(range(*old), range(*new)):
        yield _DiffRow(one, other)


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


def changed_ranges(old: str, new: str) -> tuple[list[_Range], list[_Range]]:
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


def _common_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _char_ranges(tokens: Sequence[str], token_ranges: Iterable[_Range]) -> list[_Range]:
    """Return ranges of tokens as ranges of characters. Ranges with only a space between them are joined."""
    offsets = [0]
    for token in tokens:
        offsets.append(offsets[-1] + len(token))
    joined: list[_Range] = []
    for first, last in token_ranges:
        if first == last:
            continue
        if joined and not "".join(tokens[joined[-1][1] : first]).strip():
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return [(offsets[first], offsets[last]) for first, last in joined]


def _share(line: str, ranges: Iterable[_Range]) -> float:
    """Return the share of a line, without its spaces, that the ranges cover."""
    size = len(line) - line.count(" ")
    covered = sum(last - first - line.count(" ", first, last) for first, last in ranges)
    return covered / size if size else 0.0
