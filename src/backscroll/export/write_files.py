"""Write sessions into files, one each, piece by piece."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from backscroll.errors import DestinationError
from backscroll.export.file_names import file_names
from backscroll.model import SessionSummary
from backscroll.model.export_format import Format
from backscroll.render.index_page import index_page

__all__ = ["Exported", "Progress", "weight", "write_files", "write_one"]

_INDEX = "index.html"

Progress = Callable[[int, int], None]
Stream = Callable[[SessionSummary], Iterator[str]]


class Exported(msgspec.Struct, frozen=True):
    """What was written."""

    files: tuple[Path, ...]
    index: Path | None = None  # the page that leads to them, when there is one
    kept: int = 0  # of the files that were there already, and stay


def weight(summary: SessionSummary) -> int:
    """How much of the whole work a session is."""
    return summary.message_count + 1


def write_one(pieces: Iterable[str], path: Path, *, force: bool = False) -> Path:
    """One session into one file. Raises `DestinationError` when there is one already."""
    _refuse([path], force)
    _make(path.parent)
    _write(pieces, path)
    return path


def write_files(
    summaries: Sequence[SessionSummary],
    stream: Stream,
    folder: Path,
    format_: Format,
    *,
    force: bool = False,
    missing: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """A file for each session, and for HTML a page that leads to them.

    Raises `DestinationError`, before anything is written, when a file of such a name is there, unless
    ``force`` says to replace it or ``missing`` to write only the others.
    """
    names = file_names(summaries, format_)
    index = folder / _INDEX if format_ == "html" else None
    paths = [folder / name for name in names]
    there = _refuse([*paths, *([index] if index is not None else [])], force, missing=missing)
    _make(folder)
    total, done = sum(map(weight, summaries)), 0
    for summary, path in zip(summaries, paths, strict=True):
        if path not in there:
            _write(stream(summary), path)
        done += weight(summary)
        if progress is not None:
            progress(done, total)
    if index is not None and index not in there:
        _write(index_page(zip(summaries, names, strict=True)), index)
    return Exported(tuple(paths), index, len(there - {index}))


def _refuse(paths: list[Path], force: bool, *, missing: bool = False) -> set[Path | None]:
    """A file that is there stays, unless told otherwise; a folder or a link stays in any case.

    Returns those that are there and are not to be written.
    """
    there: set[Path | None] = set()
    for path in paths:
        if not path.is_symlink() and not path.exists():
            continue
        if not path.is_file() or path.is_symlink():
            raise DestinationError(f"{path} is there and is no plain file; choose another place", path)
        if not force and not missing:
            others = "--missing writes the others, " if len(paths) > 1 else ""
            raise DestinationError(f"{path} exists; {others}--force replaces it. Nothing was written.", path)
        if not force:
            there.add(path)
    return there


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DestinationError(f"{folder} cannot be made: {error.strerror}", folder) from error


def _write(pieces: Iterable[str], path: Path) -> None:
    """All of it under its name, or nothing."""
    part = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(pieces)
        part.replace(path)
    except OSError as error:
        raise DestinationError(f"{path} cannot be written: {error.strerror}", path) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
