"""Parts of `History`, each an attribute that is loaded on first use.

annotations      tags, stars, notes, titles
archive_admin    status, verify, forget, rebuild, extract
background_sync  complete a long sync in another process
backups          create, check, list
commits          sessions behind commits
exports          files, secrets
hooks            install hooks of the tools and of git
journal          entries of commits, notes, summaries
live             watch and follow
resume           resume, open, hand over
search           word and pattern search
source_files     audit of the tools' files
statistics       tokens, costs, a year in review
transcript       messages and turns of a session
transfers        restore, move and copy sessions in their tools, undo
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backscroll.history.parts.annotations import Annotations
    from backscroll.history.parts.archive_admin import ArchiveAdmin
    from backscroll.history.parts.background_sync import BackgroundSync
    from backscroll.history.parts.backups import Backups
    from backscroll.history.parts.commits import Commits
    from backscroll.history.parts.exports import Exports
    from backscroll.history.parts.hooks import Hooks
    from backscroll.history.parts.journal import Journal
    from backscroll.history.parts.live import Live
    from backscroll.history.parts.resume import Resume
    from backscroll.history.parts.search import Search
    from backscroll.history.parts.source_files import SourceFiles
    from backscroll.history.parts.statistics import Statistics
    from backscroll.history.parts.transcript import Transcript
    from backscroll.history.parts.transfers import Transfers
    from backscroll.history.stores import Stores

__all__ = [
    "Annotations",
    "ArchiveAdmin",
    "BackgroundSync",
    "Backups",
    "Commits",
    "Exports",
    "Hooks",
    "Journal",
    "Live",
    "Resume",
    "Search",
    "SourceFiles",
    "Statistics",
    "Transcript",
    "Transfers",
    "load_part",
]

# Parts of History: attribute and class. The module has the name of the attribute.
_PARTS = {
    "_search": "Search",
    "annotations": "Annotations",
    "archive_admin": "ArchiveAdmin",
    "background_sync": "BackgroundSync",
    "backups": "Backups",
    "commits": "Commits",
    "exports": "Exports",
    "hooks": "Hooks",
    "journal": "Journal",
    "live": "Live",
    "resume": "Resume",
    "source_files": "SourceFiles",
    "statistics": "Statistics",
    "transcript": "Transcript",
    "transfers": "Transfers",
}


def load_part(name: str, stores: "Stores") -> Any:
    """Import and create the part with this attribute name. Raises `AttributeError` if there is none."""
    if name not in _PARTS:
        raise AttributeError(f"'History' object has no attribute {name!r}")
    module = import_module(f"backscroll.history.parts.{name.removeprefix('_')}")
    return getattr(module, _PARTS[name])(stores)
