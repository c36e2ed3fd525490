"""Marker file for an unfinished erasure.

`forget` deletes rows in one transaction. Afterwards the index and the free pages still contain
text. The marker exists from before the transaction until both are clean, so that the next sync
can finish after a crash.
"""

from pathlib import Path

__all__ = ["PendingErasure"]


class PendingErasure:
    """The marker file in the folder of an archive."""

    def __init__(self, archive: Path) -> None:
        self._marker = archive.with_name(f"{archive.name}-erase")

    def start(self) -> None:
        """Record that the index and the free pages must be cleaned."""
        self._marker.write_text("index\n", encoding="ascii")

    @property
    def is_pending(self) -> bool:
        return self._marker.exists()

    @property
    def is_index_pending(self) -> bool:
        """Whether the index may still contain forgotten text."""
        return self.is_pending and "index" in self._marker.read_text(encoding="ascii", errors="replace")

    def mark_index_done(self) -> None:
        """Record that the index is clean. Free pages may still contain text."""
        if self.is_pending:
            self._marker.write_text("free space\n", encoding="ascii")

    def finish(self) -> None:
        """Delete the marker."""
        self._marker.unlink(missing_ok=True)
