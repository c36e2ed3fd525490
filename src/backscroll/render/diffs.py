"""File edits of tool calls as unified diffs."""

from collections.abc import Iterator

from backscroll.model import Edit, Hunk
from backscroll.model.text import one_line, sanitize

__all__ = ["diff_lines"]

_MAX_PATH_CHARS = 1000


def diff_lines(edit: Edit) -> Iterator[str]:
    """Yield the lines of a unified diff; none if the tool stored no changed lines.

    ``@@`` has no line numbers if the tool did not store them.
    """
    hunks = [hunk for hunk in edit.hunks if hunk.removed or hunk.added]
    if not hunks:
        return
    path = one_line(edit.path, _MAX_PATH_CHARS)
    yield "--- /dev/null" if edit.kind == "create" else f"--- {path}"
    yield "+++ /dev/null" if edit.kind == "delete" else f"+++ {path}"
    for hunk in hunks:
        yield _hunk_header(hunk)
        yield from (f"-{_single_line(line)}" for line in hunk.removed)
        yield from (f"+{_single_line(line)}" for line in hunk.added)


def _hunk_header(hunk: Hunk) -> str:
    if hunk.old_start is None and hunk.new_start is None:
        return "@@ @@"
    old = hunk.old_start if hunk.old_start is not None else hunk.new_start
    new = hunk.new_start if hunk.new_start is not None else hunk.old_start
    return f"@@ -{_range(old, len(hunk.removed))} +{_range(new, len(hunk.added))} @@"


def _range(start: int | None, count: int) -> str:
    """Return a range of lines. A range without lines has the number of the line before it."""
    first = start or 1
    return f"{first if count else max(first - 1, 0)},{count}"


def _single_line(line: str) -> str:
    return sanitize(line).replace("\n", " ")
