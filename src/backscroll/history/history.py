"""History: the contract's methods, and everything else as parts that are loaded on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from backscroll import model, sources
from backscroll.archive.errors import is_archive_failure, to_archive_error
from backscroll.config import Machine, NamedRoot, Settings, this_machine
from backscroll.errors import BackscrollError, SessionNotFoundError, UsageError
from backscroll.history.session_refs import find_session, find_session_to_change
from backscroll.history.stores import Stores
from backscroll.history.sync import sync
from backscroll.history.workspaces import find_workspace
from backscroll.readers.file_access import is_entry_denied
from backscroll.sources.protocols import RetentionPolicy

if TYPE_CHECKING:
    from backscroll.history.parts.annotations import Annotations
    from backscroll.history.parts.archive_admin import ArchiveAdmin
    from backscroll.history.parts.background_sync import BackgroundSync
    from backscroll.history.parts.exports import Exports
    from backscroll.history.parts.live import Live
    from backscroll.history.parts.resume import Resume
    from backscroll.history.parts.search import Search
    from backscroll.history.parts.source_files import SourceFiles
    from backscroll.history.parts.statistics import Statistics
    from backscroll.history.parts.transcript import Transcript
    from backscroll.model import Filter, PaginatedResult, Retention, SearchResult, Session, SessionSummary
    from backscroll.model.export import Format
    from backscroll.model.search import RecallResult
    from backscroll.model.session import AgentSession, SortKey
    from backscroll.model.sync import EventLog, SyncReport
    from backscroll.model.workspace import WorkspaceSummary
    from backscroll.redact.redactor import Redactor
    from backscroll.sources import Source

__all__ = ["History"]

Progress = Callable[[int, int], None]  # units of work done, and in total

_MAX_PAGE_SIZE = 1000
_MAX_OFFSET = 2**63 - 1  # of SQLite


class History:
    """The sessions of all tools, and the archive that keeps them.

    With ``roots`` only these folders are read; otherwise every folder where a tool keeps its history.
    ``home`` is the archive folder. ``machine`` replaces the home, environment and system of this process.
    """

    def __init__(
        self,
        *,
        roots: Sequence[NamedRoot] = (),
        home: Path | None = None,
        machine: Machine | None = None,
    ) -> None:
        self._stores = Stores(roots, home, machine or this_machine())
        self._is_synced = False

    # Open and close

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is None or isinstance(error, BackscrollError | OSError | KeyboardInterrupt):
            return
        if is_archive_failure(error):
            raise to_archive_error(error, self.archive_path) from error

    def close(self) -> None:
        """Close the archive if it is open."""
        self._stores.close()

    def interrupt(self) -> None:
        """Cancel the running archive query, from any thread. The query raises `ArchiveError`."""
        if self._stores.is_open:
            self._stores.archive.interrupt()

    @property
    def archive_path(self) -> Path:
        """The archive file, existing or not."""
        return self._stores.archive_path

    @property
    def settings(self) -> Settings:
        """The content of ``config.toml``. Raises `UsageError` if it is invalid."""
        return self._stores.settings

    # Read the tools' files

    @staticmethod
    def source_names() -> tuple[str, ...]:
        """Return the names of all sources."""
        return sources.names()

    def roots(self) -> Iterator[tuple[Source, Path]]:
        """Yield every source with each of its roots, existing or not."""
        return self._stores.roots()

    def sync(self, progress: Progress | None = None, *, wait: bool = True) -> SyncReport | None:
        """Read what changed into the archive. None if another process is syncing and ``wait`` is False."""
        report = sync(self._stores, progress, wait=wait)
        self._is_synced = self._is_synced or report is not None
        return report

    @property
    def is_complete(self) -> bool:
        """Whether the archive contains everything that the last sync found."""
        return self._stores.archive.sync_state.is_complete

    def unreadable_paths(self) -> list[str]:
        """Return the files and folders without permission to read them, as of the last sync."""
        roots = [str(root) for _, root in self.roots() if is_entry_denied(root)]
        return list(dict.fromkeys([*roots, *self._stores.archive.unreadable_paths()]))

    def retentions(self, now: datetime | None = None) -> list[Retention]:
        """Return what the tools will delete within a week. Synced sessions stay in the archive."""
        now = now or datetime.now(UTC)
        found: list[Retention] = []
        for source, root in self.roots():
            if isinstance(source, RetentionPolicy) and not is_entry_denied(root) and root.is_dir():
                is_current = self._is_synced
                folders = self._stores.archive.fingerprints.folders(source.name, root) if is_current else None
                retention = source.retention(root, now, folders)
                found += [retention] if retention is not None else []
        return found

    def events(self, since: datetime | None = None) -> EventLog:
        """Return which sessions vanished, were overwritten or came back in the tools' stores."""
        return self._stores.archive.events.log(since)

    # Sessions

    def list_sessions(
        self,
        filter: Filter | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
        sort: SortKey = "updated",
        is_reversed: bool = False,
    ) -> PaginatedResult[SessionSummary]:
        """Return one page of sessions, by default the last updated first.

        Times and numbers are sorted in descending order, texts in ascending order.
        """
        _check_page(limit, offset)
        filter = filter or model.Filter()
        total = self._stores.archive.sessions.count(filter)
        data = self._stores.archive.sessions.page(
            filter, limit=limit, offset=offset, sort=sort, is_reversed=is_reversed
        )
        has_more = offset + len(data) < total
        return model.PaginatedResult(tuple(data), model.Pagination(total, limit, offset, has_more))

    def all_sessions(self, filter: Filter | None = None) -> list[SessionSummary]:
        """Return all matching sessions, newest first."""
        return self._stores.archive.sessions.page(filter or model.Filter(), limit=-1, offset=0)

    def live_sessions(self) -> set[tuple[str, str]]:
        """Return platform and id of the sessions that are running now."""
        return self._stores.archive.sessions.live()

    def find(self, ref: str) -> SessionSummary:
        """Return the session of a ref: an index, an id, or an unambiguous prefix of an id.

        An index is a position in the complete list, from 1. Raises `SessionNotFoundError`. If several
        sessions match, the message lists them.
        """
        return find_session(self._stores.archive, ref)

    def find_to_change(self, ref: str) -> SessionSummary:
        """Return the session of a ref. Raises `UsageError` for an index while a sync is incomplete."""
        return find_session_to_change(self._stores.archive, ref)

    def get_session(self, ref: str) -> Session:
        """Return a session with all its messages."""
        summary = self.find(ref)
        return model.Session(summary, tuple(self._stores.archive.messages.of_session(summary)))

    def get_agent_session(self, ref: str) -> AgentSession:
        """Return a subagent with all its messages. Raises `SessionNotFoundError` if it is a session."""
        summary = self.find(ref)
        if summary.parent_ref is None:
            ids = ", ".join(summary.agent_ids)
            hint = f"Its subagents are {ids}." if ids else "It has no subagents."
            raise SessionNotFoundError(f"{summary.ref} is a session, not a subagent. {hint}", ref)
        return self.transcript.agent_session(summary)

    def list_workspaces(self) -> list[WorkspaceSummary]:
        """Return every workspace that has sessions, the most recently used first."""
        return self._stores.archive.sessions.workspaces()

    def find_workspace(self, name: str) -> list[str]:
        """Return the hashes of the workspaces that match a path, a name, the end of a path or a host.

        Raises `WorkspaceNotFoundError` if none matches, with suggestions, or if the end of a path is
        ambiguous.
        """
        return find_workspace(self._stores.archive, name)

    def export_session(
        self,
        ref: str,
        format: Format = "md",
        *,
        redactor: Redactor | None = None,
        everything: bool = False,
    ) -> Iterator[str]:
        """Stream a session as Markdown, HTML, JSON, JSON lines or text.

        A redactor replaces secrets and reports them afterwards. ``everything`` includes abandoned branches
        and injected text; JSON always does.
        """
        return self.exports.stream(self.find(ref), format, redactor=redactor, everything=everything)

    # Search

    def search_sessions(
        self,
        query: str,
        *,
        limit: int = 20,
        offset: int = 0,
        by: Literal["session", "message"] = "session",
        context: int = 2,
        pattern: Literal["words", "exact", "regex"] = "words",
        ignore_case: bool = False,
        filters: Mapping[str, str | Sequence[str]] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        progress: Progress | None = None,
        redactor: Redactor | None = None,
    ) -> SearchResult:
        """Search messages: words in the query syntax, an exact substring, or a regular expression.

        ``ignore_case`` applies to substrings and regular expressions; a search for words always ignores case.
        ``filters`` are those of the query syntax, by name: source, workspace, role, tool, model, branch …
        Several values of one name must all match. ``until`` is exclusive. ``progress`` receives the number of
        scanned messages if the pattern cannot use the index. A redactor replaces secrets. Raises
        `WorkspaceNotFoundError` with the candidates if the workspace is ambiguous.
        """
        _check_page(limit, offset)
        return self._search.sessions(
            query,
            limit=limit,
            offset=offset,
            by=by,
            context=context,
            pattern=pattern,
            ignore_case=ignore_case,
            filters=filters or {},
            since=since,
            until=until,
            progress=progress,
            redactor=redactor,
        )

    def find_in_session(self, summary: SessionSummary, query: str) -> list[tuple[str, int]]:
        """Return ref and position of the messages of a session and its subagents that match a query."""
        return self._search.in_session(summary, query)

    def invalid_filters(self, query: str) -> list[str]:
        """Return the parts of a query that look like filters and are none. They are searched as text."""
        return self._search.invalid_filters(query)

    def recall(
        self,
        task: str,
        *,
        workspace: str | None = None,
        token_budget: int = 1500,
        redactor: Redactor | None = None,
        progress: Progress | None = None,
    ) -> RecallResult:
        """Return the sessions most useful for a task, best first, with excerpts within a token budget.

        The task is plain text of any length. A redactor replaces secrets. ``progress`` receives the number of
        steps done. Raises `WorkspaceNotFoundError` if the workspace is ambiguous.
        """
        from backscroll.history.recall import recall  # start-up: loads index, search and render

        return recall(
            self._stores,
            task,
            workspace=workspace,
            token_budget=token_budget,
            redactor=redactor,
            progress=progress,
        )

    def learn_secrets(self, redactor: Redactor, summary: SessionSummary) -> None:
        """Scan a session for named secrets, so that the redactor also replaces them without a name."""
        self._search.learn_secrets(redactor, summary)

    def is_index_pending(self) -> bool:
        """Return whether some messages are not indexed yet. The next sync completes the index."""
        return self._stores.archive.index_queue.is_pending

    # Parts, imported on first use: each command needs few of them

    @cached_property
    def _search(self) -> Search:
        from backscroll.history.parts.search import Search

        return Search(self._stores)

    @cached_property
    def transcript(self) -> Transcript:
        """Messages and turns of a session."""
        from backscroll.history.parts.transcript import Transcript

        return Transcript(self._stores)

    @cached_property
    def annotations(self) -> Annotations:
        """Tags, stars, notes and titles that users add, in the archive only."""
        from backscroll.history.parts.annotations import Annotations

        return Annotations(self._stores)

    @cached_property
    def archive_admin(self) -> ArchiveAdmin:
        """Status, verification, erasure, rebuild and extraction."""
        from backscroll.history.parts.archive_admin import ArchiveAdmin

        return ArchiveAdmin(self._stores)

    @cached_property
    def statistics(self) -> Statistics:
        """Counts, tokens and costs."""
        from backscroll.history.parts.statistics import Statistics

        return Statistics(self._stores)

    @cached_property
    def resume(self) -> Resume:
        """Resume a session in its tool, open its files, or hand it over."""
        from backscroll.history.parts.resume import Resume

        return Resume(self._stores)

    @cached_property
    def exports(self) -> Exports:
        """Sessions as files, and the secrets in them."""
        from backscroll.history.parts.exports import Exports

        return Exports(self._stores)

    @cached_property
    def background_sync(self) -> BackgroundSync:
        """A sync that continues in another process."""
        from backscroll.history.parts.background_sync import BackgroundSync

        return BackgroundSync(self._stores)

    @cached_property
    def live(self) -> Live:
        """Changes while the tools write."""
        from backscroll.history.parts.live import Live

        return Live(self._stores)

    @cached_property
    def source_files(self) -> SourceFiles:
        """Audit of the tools' files."""
        from backscroll.history.parts.source_files import SourceFiles

        return SourceFiles(self._stores)


def _check_page(limit: int, offset: int) -> None:
    if not 1 <= limit <= _MAX_PAGE_SIZE:
        raise UsageError(f"The limit must be between 1 and {_MAX_PAGE_SIZE}, not {limit}.")
    if not 0 <= offset <= _MAX_OFFSET:
        raise UsageError(f"The offset must be between 0 and {_MAX_OFFSET}, not {offset}.")
