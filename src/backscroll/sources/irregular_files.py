"""Find folders, pipes and broken links with the name of a session file. No source can read them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from backscroll.model.message import Origin
from backscroll.model.problem import Problem
from backscroll.readers.files import escape_name
from backscroll.sources.protocols import Source, Watchable

_SESSION_FILES = (".jsonl", "store.db", "state.vscdb")  # ends of the names, in all sources
_MAX_FOLDER_DEPTH = 6  # a subagent of a workflow: project, session, subagents, workflows, name
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def find_irregular_files(source: Source, root: Path) -> list[Problem]:
    """Return a problem for each such entry below a root, sorted by path. Opens nothing, follows no folder."""
    paths = source.watched_paths(root) if isinstance(source, Watchable) else [root]
    found = [
        Problem(Origin(escape_name(path), "file"), "not-a-file", reason)
        for start in paths
        for path in _session_paths(str(start))
        if (reason := _fault(path)) is not None
    ]
    return sorted(found, key=lambda problem: problem.origin.path)


def _session_paths(start: str) -> Iterator[str]:
    """Yield the paths with the name of a session file that are not regular files, or are links."""
    if start.endswith(_SESSION_FILES):
        if os.path.lexists(start):
            yield start
        return
    stack = [(start, 0)]
    while stack:
        folder, depth = stack.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(_SESSION_FILES):
                        if not entry.is_file(follow_symlinks=False):
                            yield entry.path
                    elif depth < _MAX_FOLDER_DEPTH and entry.is_dir(follow_symlinks=False):
                        stack.append((entry.path, depth + 1))
        except OSError:  # does not exist, or a problem of its own
            continue


def _fault(path: str) -> str | None:
    """Return why a path cannot be read as a file; None for a file or a link to one."""
    is_link = os.path.islink(path)  # noqa: PTH114 - the name may not be UTF-8
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - as above
    except FileNotFoundError:
        return "is a link to a file that does not exist" if is_link else None
    except OSError as error:
        return "is a link to itself" if error.errno == errno.ELOOP else None
    if stat.S_ISREG(mode):
        return None
    kind = _KINDS.get(stat.S_IFMT(mode), "not a regular file")
    return f"is a link to {kind}, not to a file" if is_link else f"is {kind}, not a file"
