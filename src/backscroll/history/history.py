"""History: the contract's methods, and everything else as parts that are loaded on first use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from backscroll import model, sources
from backscroll.archive.connection import is_archive_failure, to_archive_error
from backscroll.config import Machine, NamedRoot, Settings, this_machine
from backscroll.errors import BackscrollError
from backscroll.ingest.sync import sync
from backscroll.readers.files import is_entry_denied
from backscroll.stores.lookup import (
    AnyPath,
    check_choice,
    check_filter,
    check_page,
    find_session,
    find_session_to_change,
    find_subagent,
    find_workspace,
)
from backscroll.stores.stores import Stores

if TYPE_CHECKING:
    import backscroll.annotations
    import backscroll.export
    import backscroll.history.backups
    import backscroll.history.commits
    import backscroll.history.hooks
    import backscroll.history.resume
    import backscroll.history.transcript
    import backscroll.ingest.archive_admin
    import backscroll.ingest.audit
    import backscroll.ingest.background_sync
    import backscroll.ingest.watch
    import backscroll.journal.journal
    import backscroll.search.search
    import backscroll.stats.statistics
    import backscroll.transfer.transfers
    from backscroll.model.backup import (
        BackupResult,
        BackupValidation,
        Prefer,
        ProgressCallback,
        RestoreResult,
    )
    from backscroll.model.change import Change
    from backscroll.model.commit import BlameLine, CommitDetails, CommitSummary
    from backscroll.model.copies import RemainingCopy
    from backscroll.model.export import Format
    from backscroll.model.mcp_client import McpClient
    from backscroll.model.retention import Retention
    from backscroll.model.search import (
        FilterItem,
        InvalidFilter,
        RecallResult,
        SearchBy,
        SearchFacets,
        SearchKind,
        SearchResult,
    )
    from backscroll.model.session import (
        AgentSession,
        Filter,
        PaginatedResult,
        Session,
        SessionFacets,
        SessionSummary,
        SortKey,
    )
    from backscroll.model.sync import EventLog, Progress, SyncReport
    from backscroll.model.transfer import (
        MigrateResult,
        Mode,
        RestoreSessionResult,
        RestoreSessionsResult,
    )
    from backscroll.model.workspace import WorkspaceSummary
    from backscroll.redact import Redactor
    from backscroll.sources import Source


class History:
    """The sessions of all tools, and the archive that keeps them.

    With ``roots`` only these folders are read; otherwise every folder where a tool keeps its history.
    ``home`` is the archive folder. ``machine`` replaces the home, environment and system of this process.
    """

    # The parts. Each is loaded on first use, from the module in its annotation: a command needs few of them.
    annotations: backscroll.annotations.Annotations  # tags, stars, notes, titles
    archive_admin: backscroll.ingest.archive_admin.ArchiveAdmin  # status, verify, forget, rebuild
    backups: backscroll.history.backups.Backups  # of the tools' histories and the archive
    background_sync: backscroll.ingest.background_sync.BackgroundSync  # in another process
    commits: backscroll.history.commits.CommitsAndCosts  # sessions behind commits and lines
    exports: backscroll.export.Exports  # sessions as files, and the secrets in them
    hooks: backscroll.history.hooks.Hooks  # events that the tools and git report
    journal: backscroll.journal.journal.Journal  # a record of commits and their conversations
    live: backscroll.ingest.watch.Live  # changes while the tools write
    resume: backscroll.history.resume.Resume  # in the tool, open files, hand over
    source_files: backscroll.ingest.audit.SourceFiles  # audit of the tools' files
    statistics: backscroll.stats.statistics.Statistics  # counts, tokens and costs
    transcript: backscroll.history.transcript.Transcript  # messages and turns of a session
    transfers: backscroll.transfer.transfers.Transfers  # restore, move and copy in the tools, undo
    _search: backscroll.search.search.Search

    def __init__(
        self, *, roots: Sequence[NamedRoot] = (), home: AnyPath | None = None, machine: Machine | None = None
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

    @staticmethod
    def source_colors() -> dict[str, tuple[str, str]]:
        """Return the color of each source on a light and on a dark page."""
        return {name: source.color for name, source in sources.SOURCES.items()}

    @staticmethod
    def mcp_clients(machine: Machine) -> dict[str, McpClient]:
        """Return the MCP clients of all sources, by name. Those with the name of a source are first."""
        found = [one for name in sources.names() for one in sources.named(name).mcp_clients(machine)]
        found.sort(key=lambda client: client.name not in sources.SOURCES)
        return {client.name: client for client in found}

    def roots(self) -> Iterator[tuple[Source, Path]]:
        """Yield every source with each of its roots, existing or not."""
        return self._stores.roots()

    def sync(
        self, progress: Progress | None = None, *, wait: bool = True, full: bool = False
    ) -> SyncReport | None:
        """Read what changed into the archive. None if another process is syncing and ``wait`` is False.

        With ``full``, read everything again, also what seems unchanged.
        """
        report = sync(self._stores, progress, wait=wait, full=full)
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
        """Return what the tools will delete within `WARNING_DAYS`. Synced sessions stay in the archive."""
        return _find_retentions(self._stores, now or datetime.now(UTC), is_current=self._is_synced)

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
        self, ref: str, format: Format = "md", *, redactor: Redactor | None = None, everything: bool = False
    ) -> Iterator[str]:
        """Stream a session in a format.

        A redactor replaces secrets and reports them afterwards. ``everything`` includes abandoned branches
        and injected text; JSON always does.
        """
        return self.exports.stream(self.find(ref), format, redactor=redactor, everything=everything)

    # Backups

    def create_backup(
        self,
        path: AnyPath | None = None,
        *,
        filter: Filter | None = None,
        sessions: Sequence[str] = (),
        base: AnyPath | None = None,
        force: bool = False,
        create_folder: bool = False,
        with_secrets: bool = False,
        progress: ProgressCallback | None = None,
    ) -> BackupResult:
        """Back up the tools' histories and the archive into one file, by default in the folder of backups.

        With a ``filter`` or refs of ``sessions``, the backup contains only the sessions that match both. With
        a ``base``, only files that have changed since that backup are written. ``force`` replaces a backup
        that no other one needs. Only the folder of backups beside the archive is created, unless
        ``create_folder``. Credentials are removed from the copies of databases, unless ``with_secrets``. Call
        `sync` first to bring the archive in the backup up to date. Raises `BackupError`.
        """
        return self.backups.create(
            path,
            filter=filter,
            sessions=sessions,
            base=base,
            force=force,
            create_folder=create_folder,
            with_secrets=with_secrets,
            progress=progress,
        )

    def validate_backup(self, path: AnyPath, progress: ProgressCallback | None = None) -> BackupValidation:
        """Read a whole backup and compare every file with its manifest."""
        return self.backups.validate(path, progress)

    def restore_backup(
        self,
        path: AnyPath,
        *,
        source: str | None = None,
        sessions: Sequence[str] = (),
        path_map: Mapping[str, str] | None = None,
        force: bool = False,
        prefer: Prefer | None = None,
        with_config: bool = False,
        is_dry_run: bool = False,
        progress: ProgressCallback | None = None,
    ) -> RestoreResult:
        """Add what is missing from a backup: all of it, what belongs to a source, or some sessions.

        Files and sessions that exist and differ are kept, or replaced if ``prefer`` is ``backup``; ``force``
        is the same. No database is replaced. ``path_map`` has new folders by old ones: files below them go to
        the new place, and workspaces below them are renamed. ``with_config`` restores the settings, too. The
        change log keeps what was replaced. Raises `BackupError`, `ToolRunningError` or
        `ChangeConflictError`; then nothing is changed.
        """
        restore = self.backups.restore if not is_dry_run else self.backups.plan_restore
        return restore(
            path,
            source=source,
            sessions=sessions,
            path_map=path_map,
            force=force,
            prefer=prefer,
            with_config=with_config,
            progress=progress,
        )

    def open_backup(self, path: AnyPath) -> History:
        """Return the sessions in a backup, without restoring it. It has no roots, so `sync` reads nothing.

        Its archive is extracted into ``backup-cache`` beside this archive. Raises `InvalidBackupError`.
        """
        opened = History(machine=self._stores.machine)
        opened._stores = self.backups.open(path)
        return opened

    def remaining_copies(self, ref: str) -> list[RemainingCopy]:
        """Return what contains a session outside the archive: files of tools, journals, backups.

        `archive_admin.forget` does not change them. Backups in another folder than `backups.folder` and
        exported files are not known.
        """
        return self.backups.remaining_copies(ref)

    # Changes of the tools' stores. Each is recorded and can be undone.

    def restore_session(self, ref: str) -> RestoreSessionResult:
        """Write a session that its tool has deleted back to the tool's store, so that the tool can resume it.

        Existing files are not replaced. Raises `ToolRunningError`, `ChangeConflictError`,
        `DataNotFoundError`, `TransferError` or `UnknownStoreVersionError`; then nothing is changed.
        """
        return self.transfers.restore(self.transfers.plan_restore(ref))

    def restore_sessions(
        self, refs: Sequence[str] = (), *, filter: Filter | None = None
    ) -> RestoreSessionsResult:
        """Write all sessions of refs and a filter back to their tools' stores, with one change.

        Without refs, all sessions that match the filter. Those that cannot be restored are in ``errors``, and
        prevent no others. Raises `UsageError` if no session matches, and `SessionNotFoundError`.
        """
        return self.transfers.restore_all(self.transfers.plan_restores(refs, filter=filter))

    def migrate_session(
        self, ref: str | Sequence[str], target: AnyPath, *, mode: Mode = "copy", keep_cwd: bool = False
    ) -> MigrateResult:
        """Move or copy sessions to another folder, so that the tool finds them there.

        A copy has a new id. ``keep_cwd`` leaves the folder that is recorded with each message. A session that
        fails is in ``errors`` and left as it was. Raises `SessionNotFoundError` or `DestinationError`.
        """
        refs = [ref] if isinstance(ref, str) else ref
        return self.transfers.migrate(
            self.transfers.plan_sessions(refs, target, mode=mode, keep_cwd=keep_cwd)
        )

    def migrate_workspace(
        self, workspace: AnyPath, target: AnyPath, *, mode: Mode = "copy", keep_cwd: bool = False
    ) -> MigrateResult:
        """Move or copy all sessions of a folder. Raises `WorkspaceNotFoundError` or `DestinationError`."""
        return self.transfers.migrate(
            self.transfers.plan_workspace(workspace, target, mode=mode, keep_cwd=keep_cwd)
        )

    def list_changes(self) -> list[Change]:
        """Return all changes of the tools' stores, newest first."""
        return self.transfers.changes()

    def undo_change(self, change_id: str | None = None) -> list[Change]:
        """Undo a change; without an id, everything that the last command changed.

        Raises `ChangeNotFoundError`, or `ChangeConflictError` if something has changed since.
        """
        return self.transfers.undo(change_id)

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
        window: int | None = None,
        progress: Progress | None = None,
    ) -> PaginatedResult[CommitSummary]:
        """Return commits with the sessions that led to them, newest first; all of them if the limit is None.

        The repository is any clone, also a bare one. Without a ref, the commits of all local branches are
        listed. Merges are omitted. ``context`` of a commit without a session are the sessions that were open
        between its parent and itself, at most ``window`` minutes before: by default ``commits.window`` of the
        settings, or 30. 0 switches it off. Raises `RepositoryError` or `CommitNotFoundError`.
        """
        return self.commits.page(
            repository,
            limit=limit,
            offset=offset,
            since=since,
            until=until,
            ref=ref,
            window=window,
            progress=progress,
        )

    def get_commit(
        self,
        sha: str,
        repository: AnyPath = ".",
        *,
        window: int | None = None,
        progress: Progress | None = None,
    ) -> CommitDetails:
        """Return a commit with its sessions, the evidence and the turns that led to it.

        ``window`` is that of `list_commits`.
        """
        return self.commits.get(sha, repository, progress, window=window)

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
        by: SearchBy = "session",
        context: int = 2,
        pattern: SearchKind = "words",
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
        from backscroll.model.search import SearchRequest  # start-up: loads msgspec

        request = SearchRequest(
            query=query,
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
        )
        return self._search.sessions(request, progress=progress, redactor=redactor)

    def search_facets(
        self, query: str, *, pattern: SearchKind = "words", ignore_case: bool = False, filter_query: str = ""
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
        from backscroll.search.recall import recall  # start-up: loads index, search and render

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

    if not TYPE_CHECKING:  # a type checker knows the parts by their annotations

        def __getattr__(self, name: str) -> object:
            """Load a part on first use. Later uses find it as an attribute."""
            module, _, class_name = History.__annotations__.get(name, "").rpartition(".")
            if not module:
                raise AttributeError(f"'History' object has no attribute {name!r}")
            part = self.__dict__[name] = getattr(import_module(module), class_name)(self._stores)
            return part


def _find_retentions(stores: Stores, now: datetime, *, is_current: bool) -> list[Retention]:
    """Return what the tools will delete within `WARNING_DAYS`.

    If the archive is current, folders are not listed. If it is open, files without a listed session are left
    out: they are empty, excluded or forgotten.
    """
    found: list[Retention] = []
    for source, root in stores.roots():
        policy = source.retention() if not is_entry_denied(root) and root.is_dir() else None
        if policy is not None:
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
    return retention._replace(expiring=expiring) if expiring else None
