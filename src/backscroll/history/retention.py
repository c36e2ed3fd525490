"""Sessions that the tools will delete."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.history.stores import Stores
from backscroll.readers.file_access import is_entry_denied
from backscroll.sources.capability_lookup import capability, has_capability
from backscroll.sources.protocols import RetentionPolicy

if TYPE_CHECKING:
    from backscroll.model import Retention
    from backscroll.sources import Source

__all__ = ["find_retentions"]


def find_retentions(stores: Stores, now: datetime, *, is_current: bool) -> list[Retention]:
    """Return what the tools will delete within a week.

    If the archive is current, folders are not listed. If it is open, files without a listed session are left
    out: they are empty, excluded or forgotten.
    """
    found: list[Retention] = []
    for source, root in stores.roots():
        is_existing = has_capability(source, RetentionPolicy) and not is_entry_denied(root) and root.is_dir()
        if is_existing and (policy := capability(source, RetentionPolicy)) is not None:
            folders = stores.archive.fingerprints.folders(source.name, root) if is_current else None
            retention = policy.retention(root, now, folders)
            if retention is not None and stores.is_open:
                retention = _listed_only(stores, source, root, retention)
            found += [retention] if retention is not None else []
    return found


def _listed_only(stores: Stores, source: Source, root: Path, retention: Retention) -> Retention | None:
    """Remove what the archive has read and does not list. What it has not read yet stays."""
    unlisted = stores.archive.unlisted_ids(source.platform, retention.expiring)
    if not unlisted:
        return retention
    units = stores.archive.fingerprints.units(source.name, root)
    # Without pathlib: there can be 10,000 units.
    unlisted &= {
        os.path.basename(path).rpartition(".")[0]  # noqa: PTH119
        for path, fingerprint in units.items()
        if fingerprint != "?"
    }
    expiring = tuple(one for one in retention.expiring if one not in unlisted)
    return retention.replace(expiring=expiring) if expiring else None
