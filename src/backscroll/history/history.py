"""History: the contract's methods, and everything else as parts that are loaded on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from backscroll import model, sources
from backscroll.archive.errors import is_archive_failure, to_archive_error
from backscroll.config import Machine, NamedRoot, Settings, this_machine
from backscroll.errors import BackscrollError
from backscroll.history.arguments import check_choice, check_filter, check_page
from backscroll.history.parts import load_part
from backscroll.history.retention import find_retentions
from backscroll.history.session_refs import find_session, find_session_to_change, find_subagent
from backscroll.history.stores import Stores
from backscroll.history.sync import sync
from backscroll.history.tool_changes import ToolChanges
from backscroll.history.workspaces import find_workspace
from backscroll.readers.file_access import is_entry_denied

if TYPE_CHECKING:
    from backscroll.history import parts
    from backscroll.model import Filter, PaginatedResult, Retention, SearchResult, Session, SessionSummary
    from backscroll.model.code.commit import BlameLine, CommitDetails, CommitSummary
    from backscroll.model.export import Format
    from backscroll.model.search import FilterItem, InvalidFilter, RecallResult, SearchFacets
    from backscroll.model.session import AgentSession, SessionFacets, SortKey
    from backscroll.model.sync import EventLog, SyncReport
    from backscroll.model.workspace import WorkspaceSummary
    from backscroll.redact.redactor import Redactor
    from backscroll.sources import Source

__all__ = ["History"]

Progress = Callable[[int, int], None]  # units of work done, and in total
AnyPath = str | PathLike[str]


class History(ToolChanges):
    """The sessions of all tools, and the archive that keeps them.

    With ``roots`` only these folders are read; otherwise every folder where a tool keeps its history.
    ``home`` is the archive folder. ``machine`` replaces the home, environment and system of this process.
    """

    # Parts, imported on first use: each command needs few of them.
    annotations: parts.Annotations  # tags, stars, notes and titles that users add, in the archive only
    archive_admin: parts.ArchiveAdmin  # status, verification, erasure, rebuild and extraction
    backups: parts.Backups  # backups of the tools' histories and the archive
    background_sync: parts.BackgroundSync  # a sync that continues in another process
    commits: parts.Commits  # sessions behind commits and lines
    exports: parts.Exports  # sessions as files, and the secrets in them
    hooks: parts.Hooks  # events that the tools and git report
    journal: parts.Journal  # a written record of commits and their conversations
    live: parts.Live  # changes while the tools write
    resume: parts.Resume  # resume a session in its tool, open its files, or hand it over
    source_files: parts.SourceFiles  # audit of the tools' files
    statistics: parts.Statistics  # counts, tokens and costs
    transcript: parts.Transcript  # messages and turns of a session
    transfers: parts.Transfers  # restore, move and copy sessions in their tools, and undo it
    _search: parts.Search

    def __init__(
        self,
        *,
        roots: Sequence[NamedRoot] = (),
        home: AnyPath | None = None,
        machine: Machine | None = None,
    ) -> None:
        self._stores = Stores(roots, Path(home) if home is not None else None, machine or this_machine())
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
        return find_retentions(self._stores, now or datetime.now(UTC), is_current=self._is_synced)

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
        check_page(limit, offset)
        check_choice("sort key", sort, model.SortKey)
        filter = check_filter(filter)
        stored = self._stores.archive.sessions
        total = stored.count(filter)
        data = stored.page(filter, limit=limit, offset=offset, sort=sort, is_reversed=is_reversed)
        has_more = offset + len(data) < total
        return model.PaginatedResult(tuple(data), model.Pagination(total, limit, offset, has_more))

    def session_facets(self, filter: Filter | None = None) -> SessionFacets:
        """Return how many sessions each value of each filter would list, with the other filters unchanged."""
        return self._stores.archive.facets.of_sessions(check_filter(filter))

    def all_sessions(self, filter: Filter | None = None) -> list[SessionSummary]:
        """Return all matching sessions, newest first."""
        return self._stores.archive.sessions.page(check_filter(filter), limit=-1, offset=0)

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
        return self.transcript.agent_session(find_subagent(self._stores.archive, ref))

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

    # Backups

    def open_backup(self, path: AnyPath) -> History:
        """Return the sessions in a backup, without restoring it. It has no roots, so `sync` reads nothing.

        Its archive is extracted into ``backup-cache`` beside this archive. Raises `InvalidBackupError`.
        """
        opened = History(machine=self._stores.machine)
        opened._stores = self.backups.open(path)
        return opened

    # Commits

    def list_commits(
        self,
        repository: AnyPath = ".",
        *,
        limit: int | None = 20,
        offset: int = 0,
        since: datetime | None = None,
        until: datetime | None = None,
        ref: str | None = None,
        progress: Progress | None = None,
    ) -> PaginatedResult[CommitSummary]:
        """Return commits with the sessions that led to them, newest first; all of them if the limit is None.

        The repository is any clone, also a bare one. Without a ref, the commits of all local branches are
        listed. Merges are omitted. Raises `RepositoryError` or `CommitNotFoundError`.
        """
        check_page(1 if limit is None else limit, offset)
        return self.commits.page(
            repository, limit=limit, offset=offset, since=since, until=until, ref=ref, progress=progress
        )

    def get_commit(
        self, sha: str, repository: AnyPath = ".", *, progress: Progress | None = None
    ) -> CommitDetails:
        """Return a commit with its sessions, the evidence and the turns that led to it."""
        return self.commits.get(sha, repository, progress)

    def blame_file(
        self,
        path: AnyPath,
        repository: AnyPath | None = None,
        *,
        lines: tuple[int, int] | None = None,
        ref: str | None = None,
        progress: Progress | None = None,
    ) -> tuple[BlameLine, ...]:
        """Return each line of a file with its commit, and the session and prompt that it comes from.

        Without a repository, it is the one that contains the file; otherwise the path can be relative to its
        root. Without a ref, the file is read as it is in the checkout, with changes that are not committed.
        ``lines`` are the first and the last line. Raises `RepositoryError`, `CommitNotFoundError`, or
        `UsageError` if the lines are not in the file.
        """
        return self.commits.blame(path, repository, lines=lines, ref=ref, progress=progress)

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
        filter_query: str = "",
        filters: Mapping[str, str | Sequence[str]] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        progress: Progress | None = None,
        redactor: Redactor | None = None,
    ) -> SearchResult:
        """Search messages: words in the query syntax, an exact substring, or a regular expression.

        ``ignore_case`` applies to substrings and regular expressions; a search for words always ignores case.
        ``filter_query`` has filters in the query syntax. ``filters`` are the same by name: source, workspace,
        role, tool, model, branch … Several values of one name must all match. ``until`` is exclusive.
        ``progress`` receives the number of scanned messages if the pattern cannot use the index. A redactor
        replaces secrets. Raises `UsageError` if there is nothing to search for: no word, no filter, no time.
        Raises `WorkspaceNotFoundError` with the candidates if the workspace is ambiguous.
        """
        check_page(limit, offset)
        return self._search.sessions(
            query,
            limit=limit,
            offset=offset,
            by=by,
            context=context,
            pattern=pattern,
            ignore_case=ignore_case,
            filter_query=filter_query,
            filters=filters or {},
            since=since,
            until=until,
            progress=progress,
            redactor=redactor,
        )

    def search_facets(
        self,
        query: str,
        *,
        pattern: Literal["words", "exact", "regex"] = "words",
        ignore_case: bool = False,
        filter_query: str = "",
    ) -> SearchFacets:
        """Return how many messages with every word, or the pattern, each value of each filter would find."""
        return self._search.facets(query, pattern=pattern, ignore_case=ignore_case, filter_query=filter_query)

    def filter_items(self, query: str) -> list[FilterItem]:
        """Return the valid filters and time limits of a query, with their places in the text."""
        return self._search.filter_items(query)

    def find_in_session(
        self, summary: SessionSummary, query: str, *, requires_all: bool = False
    ) -> list[tuple[str, int]]:
        """Return ref and position of the messages of a session and its subagents that match a query.

        If no message has all words, those with some of them match, unless ``requires_all``.
        """
        return list(self._search.in_session(summary, query, requires_all=requires_all).positions)

    def invalid_filters(self, query: str) -> list[InvalidFilter]:
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
        measure: Callable[[RecallResult], int] | None = None,
    ) -> RecallResult:
        """Return the sessions most useful for a task, best first, with excerpts within a token budget.

        The task is plain text of any length. A redactor replaces secrets. ``progress`` receives the number of
        steps done. ``measure`` returns the tokens of a result in the form that is used; by default as JSON.
        Raises `WorkspaceNotFoundError` if the workspace is ambiguous.
        """
        from backscroll.history.recall import recall  # start-up: loads index, search and render

        return recall(
            self._stores,
            task,
            workspace=workspace,
            token_budget=token_budget,
            redactor=redactor,
            progress=progress,
            measure=measure,
        )

    def learn_secrets(self, redactor: Redactor, summary: SessionSummary) -> None:
        """Scan a session for named secrets, so that the redactor also replaces them without a name."""
        self._search.learn_secrets(redactor, summary)

    def is_index_pending(self) -> bool:
        """Return whether some messages are not indexed yet. The next sync completes the index."""
        return self._stores.archive.index_queue.is_pending

    def __getattr__(self, name: str) -> Any:
        """Load a part on first use. Later uses find it as an attribute."""
        part = self.__dict__[name] = load_part(name, self._stores)
        return part
