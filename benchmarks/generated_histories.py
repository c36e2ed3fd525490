"""Generated histories, written on first use and reused by later runs.

They are stored in the temporary folder of the system, or in ``BACKSCROLL_BENCH`` if that is set.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.builders.claude_code import damage as claude_damage
from tests.builders.claude_code.bulk.history import write_history as write_claude_history
from tests.builders.cursor.history import write_history as write_cursor_history
from tests.builders.cursor_cli.history import write_history as write_cursor_cli_history

MB = 1_000_000
CACHE_FOLDER = Path(os.environ.get("BACKSCROLL_BENCH") or Path(tempfile.gettempdir()) / "backscroll-bench")

_SESSION_COUNT_AND_SEED = {"S": (1000, 1), "M": (1000, 9), "L": (10_000, 2)}
_GENERATOR_VERSION = 2  # part of the folder name: results of different contents are not comparable
_LARGE_SESSION_BYTES = 450 * MB
_LONG_LINE_BYTES = 50 * MB


def cached_history(name: str, write: Callable[[Path], object]) -> Path:
    """Return the folder of a history; write it on first use."""
    root = CACHE_FOLDER / name
    if not root.exists():
        unfinished = root.with_name(f"{name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        write(unfinished)
        unfinished.rename(root)
    return root


def claude_code_history(scale: str) -> Path:
    """Return a Claude Code folder with 1,000 sessions (``S``, multilingual ``M``) or 10,000 (``L``)."""
    sessions, seed = _SESSION_COUNT_AND_SEED[scale]
    return cached_history(
        f"{scale}-v{_GENERATOR_VERSION}",
        lambda folder: write_claude_history(
            folder, sessions=sessions, seed=seed, is_multilingual=scale == "M"
        ),
    )


def large_session_history() -> Path:
    """Return a Claude Code folder with one session of 500 MB that has a line of 50 MB."""

    def write(folder: Path) -> None:
        path = folder / "projects" / "-large" / "00000000-0000-4000-8000-000000000001.jsonl"
        parts = folder / "parts"
        write_claude_history(parts, sessions=1, seed=2, bytes_target=_LARGE_SESSION_BYTES)
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            for part in sorted(parts.rglob("*.jsonl")):
                file.write(part.read_bytes())
        shutil.rmtree(parts)
        claude_damage.insert_giant_line(path, _LONG_LINE_BYTES)

    return cached_history(f"one-session-v{_GENERATOR_VERSION}", write)


def cursor_history() -> Path:
    """Return a Cursor user-data folder with a database of 500 MB and 37,000 bubbles."""
    return cached_history("cursor", write_cursor_history)


def cursor_cli_history() -> Path:
    """Return a Cursor CLI folder with 49 stores."""
    return cached_history(
        "cursor-cli", lambda folder: write_cursor_cli_history(folder, sessions=49, messages=65, seed=0)
    )


def folder_size(folder: Path) -> int:
    """Return the total bytes of all files below a folder."""
    return sum(path.stat().st_size for path in _list_files(folder))


def fill_page_cache(folder: Path) -> None:
    """Read every file once, so that all measured programs read from the page cache."""
    for path in _list_files(folder):
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 20):
                pass


def _list_files(folder: Path) -> Iterable[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
