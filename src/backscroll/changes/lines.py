"""Replace single lines of a file to which a tool may append at the same time."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from backscroll.changes.files import sync_folder, write_file
from backscroll.errors import ChangeConflictError
from backscroll.model.safekeeping.changes import LineChange

__all__ = ["apply_lines", "inverse", "missing_lines"]

_MAX_TRIES = 20  # the file grew while it was rewritten


def inverse(change: LineChange) -> LineChange:
    """Return the change that restores the line."""
    return LineChange(path=change.path, before=change.after, after=change.before, label=change.label)


def missing_lines(path: Path, changes: Iterable[LineChange]) -> list[LineChange]:
    """Return the changes whose line is not in the file."""
    lines = set(path.read_bytes().split(b"\n")) if path.exists() else set()
    return [change for change in changes if change.before is not None and change.before not in lines]


def apply_lines(path: Path, changes: Sequence[LineChange], staged: Path) -> None:
    """Rewrite a file with changed lines. Lines that are not in the file are ignored.

    The file is replaced by a rename. What a tool appended to the old file meanwhile is appended to the new
    one, so that no line is lost.
    """
    staged.unlink(missing_ok=True)  # of an interrupted change
    if not changes:
        return
    replaced = {change.before: change.after for change in changes if change.before is not None}
    appended = [change.after for change in changes if change.before is None and change.after is not None]
    path.touch(mode=0o600, exist_ok=True)
    for _ in range(_MAX_TRIES):
        with path.open("rb") as old:
            content = old.read()
            mode = os.fstat(old.fileno()).st_mode & 0o777
            staged.unlink(missing_ok=True)
            write_file(staged, [_rewritten(content, replaced, appended)], mode)
            if os.fstat(old.fileno()).st_size != len(content):
                continue
            staged.replace(path)
            _append_rest(old, path)
        sync_folder(path.parent)
        return
    staged.unlink(missing_ok=True)
    raise ChangeConflictError(f"{path} is being written all the time. Close the tool and try again.", path)


def _rewritten(content: bytes, replaced: dict[bytes, bytes | None], appended: list[bytes]) -> bytes:
    lines = content.split(b"\n")
    rest = lines.pop()  # an incomplete line, or empty
    kept = [replaced.get(line, line) for line in lines]
    if rest and appended:
        kept.append(rest)
        rest = b""
    return b"".join(line + b"\n" for line in (*kept, *appended) if line is not None) + rest


def _append_rest(old: BinaryIO, path: Path) -> None:
    """Append what was written to the old file after it was read."""
    if rest := old.read():
        with path.open("ab") as new:
            new.write(rest)
