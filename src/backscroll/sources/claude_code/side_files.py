"""Files that belong to a transcript: long tool results, tasks, workflow runs, versions of edited files.

They are archived as they are, so that a deleted session can be restored with them. None of them is a message.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from backscroll.model import RawRow, Unit
from backscroll.readers.file_names import is_utf8
from backscroll.sources.claude_code.folders import SUBAGENTS

__all__ = ["side_files"]

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_SESSION_BYTES = 32 * 1024 * 1024  # of all side files of a session


def side_files(unit: Unit) -> Iterator[RawRow]:
    """Yield the side files of a transcript with their paths below the root. Links are not followed.

    Files above the limits are left out.
    """
    root, path = Path(unit.root), Path(unit.path)
    remaining = MAX_SESSION_BYTES
    for name in _paths(unit, root, path):
        content = _read(name, remaining)
        if content is not None:
            remaining -= len(content)
            below = name[len(unit.root) :].lstrip(os.sep).replace(os.sep, "/")
            yield RawRow(table="", key="", value=content, path=below, is_text=False)


def _paths(unit: Unit, root: Path, path: Path) -> Iterator[str]:
    if unit.kind == "agent":
        yield str(path.with_name(f"{path.stem}.meta.json"))
    elif unit.kind == "session":
        folder = path.with_suffix("")
        yield str(folder / "custom-title.json")
        yield str(root / "todos" / f"{path.stem}.json")  # 0.2
        yield str(root / "todos" / f"{path.stem}-agent-{path.stem}.json")  # 1.0 to 2.1.15
        for one in (
            root / "tasks" / path.stem,
            folder / "tool-results",
            root / "file-history" / path.stem,
            folder / "workflows",
        ):
            yield from _list(str(one))
        for run in _list(str(folder / SUBAGENTS / "workflows")):
            yield from (name for name in _list(run) if name.endswith(f"{os.sep}journal.jsonl"))


def _list(folder: str) -> list[str]:
    """Return the files in a folder, sorted by name; none if it does not exist or is a link."""
    try:
        if stat.S_ISLNK(os.lstat(folder).st_mode):
            return []
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if is_utf8(entry.name))
    except OSError:
        return []


def _read(path: str, remaining: int) -> bytes | None:
    """Return the content of a regular file; None if it is too large or cannot be read."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > min(MAX_FILE_BYTES, remaining):
            return None
        with open(path, "rb") as file:  # noqa: PTH123 - faster than Path
            return file.read(min(MAX_FILE_BYTES, remaining))
    except OSError:
        return None
