"""Erase forgotten sessions from archive and index."""

from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.archive.maintenance.forget import ForgetResult
from backscroll.index import Index, IndexDamagedError
from backscroll.ingest.indexer import update
from backscroll.model import SessionSummary

__all__ = ["erase", "forget"]


def forget(archive: Archive, index: Index, summary: SessionSummary) -> ForgetResult:
    """Erase a session from archive and index. The tool's own files are not changed."""
    return replace(archive.maintenance.forget(summary), is_erased=erase(archive, index))


def erase(archive: Archive, index: Index) -> bool:
    """Remove forgotten sessions from the index and from free pages. Return False if the archive is in use.

    If this is interrupted, the next sync completes it.
    """
    if archive.pending_erasure.is_index_pending:
        if not _purge(archive, index):
            index.rebuild()  # a new index never contained the text
            update(archive, index)
        archive.pending_erasure.mark_index_done()
    return archive.maintenance.vacuum()


def _purge(archive: Archive, index: Index) -> bool:
    """Purge deleted documents from the index. Return False if the index must be rebuilt."""
    try:
        return update(archive, index) and index.purge_deleted()
    except (IndexDamagedError, OSError):
        return False
