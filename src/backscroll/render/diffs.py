"""What a tool call did to a file, as lines of a unified diff."""

from collections.abc import Iterator

from backscroll.model import Edit, Hunk
from backscroll.model.sanitize import one_line, sanitize

__all__ = ["diff_lines"]

_PATH = 1000


def diff_lines(edit: Edit) -> Iterator[str]:
    """An edit as people and tools know it; a place that the tool did not note is left out of ``@@``.

    Nothing at all when the tool kept no lines of it.
    """
    if not any(map(_says_anything, edit.hunks)):
        return
    path = one_line(edit.path, _PATH)
    yield "--- /dev/null" if edit.kind == "create" else f"--- {path}"
    yield "+++ /dev/null" if edit.kind == "delete" else f"+++ {path}"
    for hunk in filter(_says_anything, edit.hunks):
        yield _place(hunk)
        yield from (f"-{_flat(line)}" for line in hunk.removed)
        yield from (f"+{_flat(line)}" for line in hunk.added)


def _says_anything(hunk: Hunk) -> bool:
    return bool(hunk.removed or hunk.added)


def _place(hunk: Hunk) -> str:
    if hunk.old_start is None and hunk.new_start is None:
        return "@@ @@"
    old = hunk.old_start if hunk.old_start is not None else hunk.new_start
    new = hunk.new_start if hunk.new_start is not None else hunk.old_start
    return f"@@ -{old},{len(hunk.removed)} +{new},{len(hunk.added)} @@"


def _flat(line: str) -> str:
    """One line stays one line, whatever ends are in it."""
    return sanitize(line).replace("\n", " ")
