"""The SQLite archive. It keeps everything that was read, also after the tools delete it.

archive.py          Archive: open and close; its parts are attributes
connection.py       open the database, transactions, schema version
migrations/         the schema
write/              store one unit in one transaction
derive/             assemble sessions from fragments
query/              list, read and filter sessions and messages
storage/            compressed chunks, raw files, interned strings
maintenance/        verify, compact, forget, back up, import of older databases
commits/            derived tables that link commits and sessions
hooks/              events that hooks recorded, and commits that the git hook reported
annotations.py      tags, stars, notes and titles of users
index_queue.py      sessions that the search index does not contain yet
pending_erasure.py  marker file of an unfinished `forget`
session_key.py      SessionKey: platform and id
sync_lock.py        one sync at a time, across processes
sync_progress.py    progress of a running sync, for other processes
sync_state.py       whether the last sync is complete
timestamps.py       times as integer milliseconds
undone_copies.py    copies of sessions that `undo` removed from the tool
wildcards.py        names with "*" in filters
errors.py           SQLite errors as `ArchiveError`
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backscroll.archive.archive import Archive

__all__ = ["Archive"]


def __getattr__(name: str) -> Any:
    if name != "Archive":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Loaded on first use: shell completion imports query.completion on every key press.
    from backscroll.archive.archive import Archive

    globals()[name] = Archive
    return Archive
