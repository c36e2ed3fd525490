"""Archive of one root, with its content in a comparable form."""

from pathlib import Path
from typing import Any

from backscroll.archive.archive import Archive
from backscroll.ingest.sync import read_changes
from backscroll.model.message import Message
from backscroll.model.session import Filter, SessionSummary
from backscroll.model.sync import SyncReport
from backscroll.sources import named


class SyncedArchive:
    """Archive and the root that it is synced with."""

    def __init__(self, source: str, root: Path, home: Path) -> None:
        self.source = source
        self.root = root
        self.archive = Archive(home / "archive.db")

    def sync(self) -> SyncReport:
        return read_changes(self.archive, [(named(self.source), self.root)])

    def summaries(self, **filter_: Any) -> list[SessionSummary]:
        everything = Filter(with_unlisted=True, with_subagents=True) if not filter_ else Filter(**filter_)
        return self.archive.sessions.page(everything, limit=1000, offset=0)

    def messages(self, id_: str) -> list[Message]:
        (summary,) = self.archive.sessions.find(id_)
        return list(self.archive.messages.of_session(summary))

    def content(self) -> dict[str, Any]:
        """Return all sessions with their messages, without row ids and read times."""
        return {
            f"{summary.parent_ref} {summary.ref}": (
                [
                    getattr(summary, name)
                    for name in summary.__struct_fields__
                    if name not in ("index", "first_message_preview", "is_gone")
                ],
                list(self.archive.messages.of_session(summary)),
            )
            for summary in self.summaries()
        }
