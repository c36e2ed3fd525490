"""Sessions that the tools will delete."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from backscroll.history.stores import Stores
from backscroll.readers.file_access import is_entry_denied
from backscroll.sources.protocols import RetentionPolicy

if TYPE_CHECKING:
    from backscroll.model import Retention

__all__ = ["find_retentions"]


def find_retentions(stores: Stores, now: datetime, *, is_current: bool) -> list[Retention]:
    """Return what the tools will delete within a week. If the archive is current, folders are not listed."""
    found: list[Retention] = []
    for source, root in stores.roots():
        if isinstance(source, RetentionPolicy) and not is_entry_denied(root) and root.is_dir():
            folders = stores.archive.fingerprints.folders(source.name, root) if is_current else None
            retention = source.retention(root, now, folders)
            found += [retention] if retention is not None else []
    return found
