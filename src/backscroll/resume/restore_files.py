"""Files that a tool has deleted, put back where they were.

Only where nothing is: a file appears with all its bytes or not at all, and none is
ever replaced. What was written is told, and deleting it undoes it.
"""

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from backscroll.archive import Archive
from backscroll.archive.storage.originals import Original
from backscroll.errors import DestinationError
from backscroll.model import SessionSummary
from backscroll.model.tool import RestorePlan
from backscroll.sources import named
from backscroll.sources.protocols import open_process

__all__ = ["plan", "put_back"]


def plan(archive: Archive, summary: SessionSummary) -> RestorePlan:
    """Look what there is to put back, and whether that can be done. Nothing is written."""
    kept = archive.originals.files(summary)
    missing = _missing(kept, summary)
    if kept and not missing:
        return RestorePlan((), 0, "other files are in the places of its own")
    files = tuple(one.path for one in missing)
    return RestorePlan(files, sum(one.size for one in missing), _obstacle(missing, summary))


def put_back(archive: Archive, summary: SessionSummary) -> list[Path]:
    """Write the missing files of a session to their places, its own first.

    Raises `DestinationError`; then nothing has been left behind. The files get the time of now, or the tool
    might delete them again at its next start.
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


def _missing(kept: list[Original], summary: SessionSummary) -> list[Original]:
    found = [one for one in kept if not Path(one.path).exists()]
    return sorted(found, key=lambda one: (Path(one.path).stem != summary.id, one.path))


def _obstacle(missing: list[Original], summary: SessionSummary) -> str | None:
    for root, source in {one.root: one.source for one in missing}.items():
        if not Path(root).is_dir():
            return f"{root} is not there"
        pid = open_process(named(source), Path(root), summary.id)
        if pid is not None:
            return f"process {pid} has the session open; close it first"
    return None


def _write(archive: Archive, original: Original) -> Path:
    target = Path(original.path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = target.with_name(f".{uuid4().hex}.part")  # no tool reads a file of such a name
        try:
            archive.originals.write_file(original, beside)
            beside.chmod(0o600)
            with beside.open("rb") as file:
                os.fsync(file.fileno())
            os.link(beside, target)  # unlike a renaming, this never replaces a file
        finally:
            with suppress(FileNotFoundError):
                beside.unlink()
    except FileExistsError as error:
        raise DestinationError(f"{target} is there again; nothing was put back", target) from error
    except OSError as error:
        raise DestinationError(f"{target} cannot be written: {error.strerror or error}", target) from error
    return target
