"""The made histories that everything is measured on, written once and kept between runs.

They lie in a folder of the system's own for temporary files; set ``BACKSCROLL_BENCH`` to another one.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from backscroll.testing import claude_code, cursor, cursor_cli

__all__ = [
    "FOLDER",
    "MB",
    "claude_large",
    "claude_of",
    "cursor_agent",
    "cursor_ide",
    "made",
    "size_of",
    "warm",
]

MB = 1_000_000
FOLDER = Path(os.environ.get("BACKSCROLL_BENCH") or Path(tempfile.gettempdir()) / "backscroll-bench")

_SESSIONS = {"S": (1000, 1), "L": (10_000, 2)}
_LARGE = 450 * MB
_LINE = 50 * MB


def made(name: str, write: Callable[[Path], object]) -> Path:
    """A history, written once."""
    root = FOLDER / name
    if not root.exists():
        unfinished = root.with_name(f"{name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        write(unfinished)
        unfinished.rename(root)
    return root


def claude_of(scale: str) -> Path:
    """Claude Code's folder of a thousand sessions (``S``) or ten thousand (``L``)."""
    sessions, seed = _SESSIONS[scale]
    return made(scale, lambda folder: claude_code.history(folder, sessions=sessions, seed=seed))


def claude_large() -> Path:
    """A folder with one session of half a gigabyte, of which one line is 50 MB long."""

    def write(folder: Path) -> None:
        path = folder / "projects" / "-large" / "00000000-0000-4000-8000-000000000001.jsonl"
        parts = folder / "parts"
        claude_code.history(parts, sessions=1, seed=2, bytes_target=_LARGE)
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            for part in sorted(parts.rglob("*.jsonl")):
                file.write(part.read_bytes())
        shutil.rmtree(parts)
        claude_code.damage.giant_line(path, _LINE)

    return made("one-session", write)


def cursor_ide() -> Path:
    """Cursor's user-data folder with a database of 500 MB and 37,000 bubbles."""
    return made("cursor", cursor.history)


def cursor_agent() -> Path:
    """Cursor's command line tool: 49 stores."""
    return made("cursor-cli", lambda folder: cursor_cli.history(folder, sessions=49, messages=65, seed=0))


def files_of(folder: Path) -> Iterable[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def size_of(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.stat().st_size for path in files_of(folder))


def warm(folder: Path) -> None:
    """Read everything once, so that it lies in the page cache for everybody who is measured."""
    for path in files_of(folder):
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
