"""The place in a file that a message is about, as the file is today."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from backscroll.model import Edit, Message

__all__ = ["Place", "place_of"]

_LARGEST = 20_000_000  # bytes of a file that is looked through for a line


class Place(Struct, frozen=True):
    """A file, and the line in it where that is known."""

    path: str
    line: int | None = None


def place_of(message: Message, paths: Sequence[str], workspace: str | None) -> Place | None:
    """The first file that a message changed, or names among ``paths``; None when it is about no file."""
    tool = message.tool
    edits = tool.edits if tool is not None else ()
    if edits:
        path = _absolute(edits[0].path, message, workspace)
        return Place(path, _line_of(edits[0], Path(path)))
    if not paths:
        return None
    asked = tool.params.get("offset") if tool is not None else None
    line = asked if isinstance(asked, int) and asked > 0 else None
    return Place(_absolute(paths[0], message, workspace), line)


def _absolute(path: str, message: Message, workspace: str | None) -> str:
    base = message.cwd or workspace
    return path if base is None else str(Path(base) / path)


def _line_of(edit: Edit, path: Path) -> int | None:
    """Where what was put in stands today: nearest to where it was put; else where it was put."""
    hunk = next((one for one in edit.hunks if one.added), None) or next(iter(edit.hunks), None)
    if hunk is None:
        return None
    first = next((line for line in hunk.added if line.strip()), None)
    told = hunk.new_start or hunk.old_start
    if first is None:
        return told
    try:
        if path.stat().st_size > _LARGEST:
            return told
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return told
    there = [number for number, line in enumerate(lines, start=1) if line == first.rstrip("\r\n")]
    return min(there, key=lambda number: abs(number - (told or 1)), default=told)
