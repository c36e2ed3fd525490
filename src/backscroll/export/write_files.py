"""Write sessions to files, one each."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from backscroll.errors import DestinationError
from backscroll.export.file_names import file_names
from backscroll.model import SessionSummary
from backscroll.model.export import Format
from backscroll.render.html.index_page import index_page

__all__ = ["INDEX_FILE", "Exported", "Progress", "work_units", "write_files", "write_one"]

INDEX_FILE = "index.html"

Progress = Callable[[int, int], None]
Stream = Callable[[SessionSummary], Iterator[str]]


class Exported(msgspec.Struct, frozen=True):
    """Files that an export wrote."""

    files: tuple[Path, ...]
    index: Path | None = None  # the index page, for HTML
    kept: int = 0  # number of existing files that were skipped


def work_units(summary: SessionSummary) -> int:
    """Return the share of a session in the progress."""
    return summary.message_count + 1


def write_one(chunks: Iterable[str], path: Path, *, force: bool = False) -> Path:
    """Write one session to one file. Raises `DestinationError` if it exists, unless ``force``.

    The folder must exist.
    """
    _check_parent(path)
    _existing_files([path], force)
    _write(chunks, path)
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
    """Write a file for each session, and an index page for HTML.

    Raises `DestinationError` before anything is written if a file exists, unless ``force`` replaces it or
    ``missing`` skips it. The folder is created; the one that contains it must exist.
    """
    _check_parent(folder)
    names = file_names(summaries, format_)
    index = folder / INDEX_FILE if format_ == "html" else None
    paths = [folder / name for name in names]
    existing = _existing_files([*paths, *([index] if index is not None else [])], force, missing=missing)
    _create_folder(folder)
    total, done = sum(map(work_units, summaries)), 0
    for summary, path in zip(summaries, paths, strict=True):
        if path not in existing:
            _write(stream(summary), path)
        done += work_units(summary)
        if progress is not None:
            progress(done, total)
    if index is not None and index not in existing:
        _write(index_page(zip(summaries, names, strict=True)), index)
    return Exported(tuple(paths), index, len(existing - {index}))


def _existing_files(paths: list[Path], force: bool, *, missing: bool = False) -> set[Path | None]:
    """Raise if a file exists and must not be replaced. Folders and links are never replaced.

    Returns the existing files to skip.
    """
    existing: set[Path | None] = set()
    for path in paths:
        if not path.is_symlink() and not path.exists():
            continue
        if not path.is_file() or path.is_symlink():
            raise DestinationError(f"{path} is not a regular file. Choose another path.", path)
        if not force and not missing:
            skip = "--missing to skip existing files or " if len(paths) > 1 else ""
            raise DestinationError(
                f"{path} exists. Nothing was written.", path, hint=f"Use {skip}--force to replace it."
            )
        if not force:
            existing.add(path)
    return existing


def _check_parent(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise DestinationError(
            f"The folder {path.parent} does not exist. Create it, or choose another path.", path.parent
        )


def _create_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise DestinationError(f"The folder {folder} cannot be created: {error.strerror}.", folder) from error


def _write(chunks: Iterable[str], path: Path) -> None:
    """Write a file atomically."""
    part = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(chunks)
        part.replace(path)
    except OSError as error:
        raise DestinationError(f"{path} cannot be written: {error.strerror}.", path) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
