"""Find the file and line that a message is about."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from backscroll.model import Edit, Message

__all__ = ["EditLocation", "edit_location"]

MAX_FILE_BYTES = 20_000_000  # larger files are not searched for a line


class EditLocation(Struct, frozen=True):
    """A file, and a line in it if known."""

    path: str
    line: int | None = None


def edit_location(
    message: Message, paths: Sequence[str], workspace: str | None, *, is_remote: bool = False
) -> EditLocation | None:
    """Return the first file that a message edits, else the first of ``paths``; None if there is none.

    The line is where the edit is today. For a file on a remote host, it is where the edit was made.
    """
    tool = message.tool
    edits = tool.edits if tool is not None else ()
    if edits:
        path = _absolute(edits[0].path, message, workspace)
        return EditLocation(path, _line_of(edits[0], None if is_remote else Path(path)))
    if not paths:
        return None
    offset = tool.params.get("offset") if tool is not None else None
    line = offset if isinstance(offset, int) and offset > 0 else None
    return EditLocation(_absolute(paths[0], message, workspace), line)


def _absolute(path: str, message: Message, workspace: str | None) -> str:
    base = message.cwd or workspace
    return path if base is None else str(Path(base) / path)


def _line_of(edit: Edit, path: Path | None) -> int | None:
    """Return the current line of the added text nearest to the original one; else the original line."""
    hunk = next((one for one in edit.hunks if one.added), None) or next(iter(edit.hunks), None)
    if hunk is None:
        return None
    first = next((line for line in hunk.added if line.strip()), None)
    original_line = hunk.new_start or hunk.old_start
    if first is None or path is None:
        return original_line
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return original_line
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return original_line
    matches = [number for number, text in enumerate(lines, start=1) if text == first.rstrip("\r\n")]
    return min(matches, key=lambda line: abs(line - (original_line or 1)), default=original_line)
