"""An archive of whatever lies below a root, and what it tells."""

from pathlib import Path
from typing import Any

from backscroll.archive import Archive
from backscroll.ingest.sync import sync
from backscroll.model import Filter, Message, SessionSummary
from backscroll.model.sync_report import SyncReport
from backscroll.sources import named

__all__ = ["Kept"]


class Kept:
    """An archive beside a root."""

    def __init__(self, source: str, root: Path, home: Path) -> None:
        self.source = source
        self.root = root
        self.archive = Archive(home / "archive.db")

    def sync(self) -> SyncReport:
        return sync(self.archive, [(named(self.source), self.root)])

    def summaries(self, **wanted: Any) -> list[SessionSummary]:
        everything = Filter(with_unlisted=True, with_subagents=True) if not wanted else Filter(**wanted)
        return self.archive.sessions.page(everything, limit=1000, offset=0)

    def messages(self, id_: str) -> list[Message]:
        (summary,) = self.archive.sessions.find(id_)
        return list(self.archive.messages.of_session(summary))

    def told(self) -> dict[str, Any]:
        """All that the archive tells, row numbers and times of reading aside."""
        return {
            f"{one.parent_ref} {one.ref}": (
                [
                    getattr(one, name)
                    for name in one.__struct_fields__
                    if name not in ("index", "first_message_preview", "is_gone")
                ],
                list(self.archive.messages.of_session(one)),
            )
            for one in self.summaries()
        }
