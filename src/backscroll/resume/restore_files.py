"""Restore files that a tool has deleted.

A file is written atomically, and an existing file is never replaced. Deleting the restored files undoes it.
"""

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from backscroll.archive import Archive
from backscroll.archive.storage.originals import Original
from backscroll.errors import DestinationError
from backscroll.model import SessionSummary
from backscroll.model.resume import RestorePlan
from backscroll.sources import named
from backscroll.sources.protocols import open_process

__all__ = ["plan", "restore_files"]


def plan(archive: Archive, summary: SessionSummary) -> RestorePlan:
    """Return the files that can be restored, and any obstacle. Nothing is written."""
    originals = archive.originals.files(summary)
    missing = _missing(originals, summary)
    if originals and not missing:
        return RestorePlan((), 0, "its files exist with other content")
    files = tuple(one.path for one in missing)
    return RestorePlan(files, sum(one.size for one in missing), _obstacle(missing, summary))


def restore_files(archive: Archive, summary: SessionSummary) -> list[Path]:
    """Restore the missing files of a session, the transcript first.

    Raises `DestinationError` on failure; no file is left behind then. The files get the current time:
    otherwise the tool may delete them again at its next start.
    """
    missing = _missing(archive.originals.files(summary), summary)
    if (obstacle := _obstacle(missing, summary)) is not None:
        raise DestinationError(obstacle, missing[0].path if missing else summary.id)
    written: list[Path] = []
    try:
        for original in missing:
            written.append(_write(archive, original))
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return written


def _missing(originals: list[Original], summary: SessionSummary) -> list[Original]:
    found = [one for one in originals if not Path(one.path).exists()]
    return sorted(found, key=lambda one: (Path(one.path).stem != summary.id, one.path))


def _obstacle(missing: list[Original], summary: SessionSummary) -> str | None:
    for root, source in {one.root: one.source for one in missing}.items():
        if not Path(root).is_dir():
            return f"{root} does not exist"
        pid = open_process(named(source), Path(root), summary.id)
        if pid is not None:
            return f"process {pid} has the session open. Close it first"
    return None


def _write(archive: Archive, original: Original) -> Path:
    target = Path(original.path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = target.with_name(f".{uuid4().hex}.part")  # tools ignore this name
        try:
            archive.originals.write_file(original, temporary)
            temporary.chmod(0o600)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            os.link(temporary, target)  # unlike a rename, this never replaces a file
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
    except FileExistsError as error:
        raise DestinationError(f"{target} exists. Nothing was restored.", target) from error
    except OSError as error:
        raise DestinationError(f"{target} cannot be written: {error.strerror or error}.", target) from error
    return target
