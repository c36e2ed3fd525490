"""Read what hooks recorded.

spool        records of the assistants' hooks and of the git hook
new_commits  commits that the git hook did not report
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.ingest.hooks.new_commits import find_new_commits
from backscroll.ingest.hooks.spool import ingest_spool

if TYPE_CHECKING:
    from backscroll.archive import Archive

__all__ = ["ingest_hook_records"]


def ingest_hook_records(archive: Archive, spool: Path) -> int:
    """Store what hooks recorded, and the commits that no hook reported. Return the number of records."""
    return ingest_spool(archive, spool) + find_new_commits(archive)
