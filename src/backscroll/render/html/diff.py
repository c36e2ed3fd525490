"""Edits of files as HTML: removed and added lines, highlighted, with the changed words marked.

The lines are in the order of a unified diff. A style sheet can show them side by side: rows of both sides
have the same height, because missing lines are empty elements that are hidden otherwise.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby, pairwise

from backscroll.model import Edit, Hunk
from backscroll.model.text import one_line, sanitize
from backscroll.render.html.diff_alignment import DiffRow, align_by_number, align_lines, changed_ranges
from backscroll.render.html.highlighting import CodeHighlighter, CodeSpan, language_of_path, spans_to_html

__all__ = ["DiffHtml"]

MAX_COMPARED_CHARS = 100_000  # later lines are aligned by number, without marked words
_MAX_PATH_CHARS = 1000
_OLD_GAP, _NEW_GAP = '<span class="gap"></span>', '<span class="gap new"></span>'
_KINDS = {"create": "new file", "delete": "deleted"}


class DiffHtml:
    """Renders the edits of tool calls. Paths below the ``folder`` are shown relative to it.

    The lines of the first edits are compared by words, up to ``MAX_COMPARED_CHARS``.
    """

    def __init__(self, highlighter: CodeHighlighter, folder: str = "") -> None:
        self._highlighter = highlighter
        self._folder = folder
        self._compared_chars = MAX_COMPARED_CHARS  # that are left

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
        removed, added = list(map(_single_line, hunk.removed)), list(map(_single_line, hunk.added))
        size = sum(map(len, removed)) + sum(map(len, added))
        old = _Side(removed, hunk.old_start, self._highlighter.spans(removed, language))
        new = _Side(added, hunk.new_start, self._highlighter.spans(added, language))
        if size <= self._compared_chars:
            self._compared_chars -= size
            rows = align_lines(removed, added)
            _mark_changes(rows, old, new)
        else:
            rows = align_by_number(len(removed), len(added))
        numbered = " numbered" if (old.start if removed else new.start) is not None else ""
        groups = (_group(list(group), old, new) for _, group in groupby(rows, lambda row: row.is_same))
        return f'<span class="hunk{numbered}">{"".join(groups)}</span>'


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


def _mark_changes(rows: Sequence[DiffRow], old: _Side, new: _Side) -> None:
    for row in rows:
        if row.is_pair and row.old is not None and row.new is not None:
            old.changed[row.old], new.changed[row.new] = changed_ranges(
                old.lines[row.old], new.lines[row.new]
            )


def _group(rows: Sequence[DiffRow], old: _Side, new: _Side) -> str:
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


def _single_line(line: str) -> str:
    return sanitize(line).replace("\n", " ")
