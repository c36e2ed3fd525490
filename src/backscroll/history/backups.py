"""Create, check and list backups."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from backscroll.backup.create import BackupRequest, Selection, create_backup, plan_backup
from backscroll.backup.folder import (
    delete_backup,
    list_backups,
    new_backup_path,
    prunable_backups,
    read_manifest,
)
from backscroll.backup.reader import extract_archive, verify_backup
from backscroll.backup.restore import plan_restore, restore_backup
from backscroll.backup.restore_plan import RestoreOptions
from backscroll.changes.change_log import ChangeLog
from backscroll.errors import (
    InvalidBackupError,
    RestoreError,
    SessionNotFoundError,
    ToolRunningError,
    UsageError,
)
from backscroll.model.backup import (
    BackupManifest,
    BackupPlan,
    BackupResult,
    BackupStats,
    BackupSummary,
    BackupValidation,
    ProgressCallback,
    RestoreResult,
)
from backscroll.model.session import Filter, SessionSummary
from backscroll.sources import named
from backscroll.stores.lookup import (
    AnyPath,
    find_session,
    find_session_to_change,
    find_top_session,
    find_workspace,
)
from backscroll.stores.stores import Stores
from backscroll.transfer.restore import restore_archived

list_ = list  # `Backups.list` hides the name


class Backups:
    """Create, check and list backups."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    @property
    def folder(self) -> Path:
        """The folder of backups: the setting ``backup_dir``, else ``backups`` beside the archive."""
        return self._stores.settings.backup_dir or self._stores.archive_path.with_name("backups")

    def create(
        self,
        path: AnyPath | None = None,
        *,
        filter: Filter | None = None,
        sessions: Sequence[str] = (),
        base: AnyPath | None = None,
        force: bool = False,
        with_secrets: bool = False,
        progress: ProgressCallback | None = None,
    ) -> BackupResult:
        """Back up all roots and the archive into a new file, by default in the folder of backups.

        With a filter or refs of sessions, only these sessions are backed up.
        """
        request = self._request(path, filter, sessions, base, force=force, with_secrets=with_secrets)
        return create_backup(request, self._stores.roots(), self._stores.archive, progress)

    def plan(
        self,
        path: AnyPath | None = None,
        *,
        filter: Filter | None = None,
        sessions: Sequence[str] = (),
        base: AnyPath | None = None,
        force: bool = False,
    ) -> BackupPlan:
        """Return what `create` would write. Raises `BackupError` for an unsuitable path or base."""
        request = self._request(path, filter, sessions, base, force=force)
        return plan_backup(request, self._stores.roots(), self._stores.archive)

    def _request(
        self,
        path: AnyPath | None,
        filter_: Filter | None,
        refs: Sequence[str],
        base: AnyPath | None,
        *,
        force: bool,
        with_secrets: bool = False,
    ) -> BackupRequest:
        selection = self._selection(filter_, refs)
        base = _absolute(base)
        return BackupRequest(
            target=_absolute(path) or self.new_path(base.parent if base is not None else None),
            stats=self._stats(selection),
            selection=selection,
            base=base,
            force=force,
            with_secrets=with_secrets,
        )

    def _stats(self, selection: Selection | None) -> BackupStats:
        sessions: Sequence[SessionSummary] = selection.sessions if selection is not None else ()
        if selection is None:
            sessions = self._stores.archive.sessions.page(Filter(), limit=-1, offset=0)
        return BackupStats(len(sessions), sum(session.message_count for session in sessions))

    def _selection(self, filter_: Filter | None, refs: Sequence[str]) -> Selection | None:
        """Return the sessions of a filtered backup; None for all. Raises `UsageError` if there are none."""
        if filter_ is None and not refs:
            return None
        archive = self._stores.archive
        filter_ = replace(filter_ or Filter(), with_subagents=False)
        if filter_.workspace is not None:
            find_workspace(archive, filter_.workspace)  # raises WorkspaceNotFoundError
        found = archive.sessions.page(filter_, limit=-1, offset=0)
        if refs:
            named_refs = {self._find_session(ref).ref for ref in refs}
            if filter_ == Filter():
                found = archive.sessions.page(Filter(with_unlisted=True), limit=-1, offset=0)
            found = [session for session in found if session.ref in named_refs]
        if not found:
            raise UsageError(
                "No session matches.", hint="Run 'backscroll list' with the same options to see all."
            )
        return Selection(tuple(found), filter_)

    def _find_session(self, ref: str) -> SessionSummary:
        """Return the session of a ref. A subagent is backed up with its session."""
        found = find_session_to_change(self._stores.archive, ref)
        return find_session(self._stores.archive, found.parent_ref) if found.parent_ref else found

    def new_path(self, folder: Path | None = None) -> Path:
        """Return a name for a new backup in a folder."""
        return new_backup_path((folder or self.folder).absolute())

    def restore(
        self,
        path: AnyPath,
        *,
        source: str | None = None,
        sessions: Sequence[str] = (),
        path_map: Mapping[str, str] | None = None,
        force: bool = False,
        progress: ProgressCallback | None = None,
    ) -> RestoreResult:
        """Restore a backup, or one source or some sessions of it."""
        options = self._restore_options(Path(path), source, sessions, path_map, force=force)
        self._stores.close()  # the archive may be restored too
        log = ChangeLog(options.archive_folder / "changes")
        result = RestoreResult(files=())
        if options.sessions or not options.archived_sessions:
            result = restore_backup(Path(path).absolute(), options, log, progress=progress)
        return self._restore_archived(Path(path), options, result, log)

    def plan_restore(
        self,
        path: AnyPath,
        *,
        source: str | None = None,
        sessions: Sequence[str] = (),
        path_map: Mapping[str, str] | None = None,
        force: bool = False,
        with_running: bool = False,
        progress: ProgressCallback | None = None,
    ) -> RestoreResult:
        """Return what `restore` would do. Nothing is changed.

        ``with_running`` returns a running process in ``blocked_by`` instead of raising `ToolRunningError`.
        """
        options = self._restore_options(Path(path), source, sessions, path_map, force=force)
        result = RestoreResult(files=())
        if options.sessions or not options.archived_sessions:
            result = plan_restore(Path(path).absolute(), options, progress, with_running=with_running)
        try:
            return self._restore_archived(Path(path), options, result, None)
        except ToolRunningError as error:
            if not with_running:
                raise
            return replace(result, blocked_by=error.reason)

    def _restore_archived(
        self, path: Path, options: RestoreOptions, result: RestoreResult, log: ChangeLog | None
    ) -> RestoreResult:
        """Restore the selected sessions that only the archive of the backup contains."""
        if not options.archived_sessions:
            return result
        stores = self.open(path)
        try:
            sessions = [find_session(stores.archive, ref) for ref in options.archived_sessions]
            return restore_archived(stores.archive, sessions, options, result, log)
        finally:
            stores.close()

    def _restore_options(
        self,
        path: Path,
        source: str | None,
        sessions: Sequence[str],
        path_map: Mapping[str, str] | None,
        *,
        force: bool,
    ) -> RestoreOptions:
        if source is not None:
            named(source)  # raises UsageError
        found = self._resolve_in_backup(path, sessions) if sessions else None
        refs = tuple(one.ref for one in found if not one.is_gone) if found is not None else tuple(sessions)
        return RestoreOptions(
            archive_folder=self._stores.archive_path.parent.absolute(),
            source=source,
            sessions=refs,
            archived_sessions=tuple(one.ref for one in found or () if one.is_gone),
            is_resolved=found is not None,
            maps=tuple((path_map or {}).items()),
            force=force,
            known_roots=frozenset(root.absolute() for _, root in self._stores.roots()),
            home=self._stores.machine.home.absolute(),
        )

    def _resolve_in_backup(self, path: Path, refs: Sequence[str]) -> tuple[SessionSummary, ...] | None:
        """Return sessions in a backup; None if its archive cannot be read.

        Raises `RestoreError` if one matches no session, or several.
        """
        try:
            stores = self.open(path)
        except InvalidBackupError:
            return None
        try:
            return tuple(find_top_session(stores.archive, ref) for ref in refs)
        except SessionNotFoundError as error:
            hint = f"Run 'backscroll --backup {path} list' to see the sessions of the backup."
            hint = hint if "\n" not in error.reason else ""  # the candidates are listed
            raise RestoreError(error.reason, path, hint=hint) from error
        finally:
            stores.close()

    def validate(self, path: AnyPath, progress: ProgressCallback | None = None) -> BackupValidation:
        """Read a whole backup and compare it with its manifest."""
        return verify_backup(Path(path).absolute(), self._stores.archive_path.parent, progress)

    def manifest(self, path: AnyPath) -> BackupManifest:
        """Return the table of contents of a backup. Raises `InvalidBackupError`."""
        return read_manifest(Path(path).absolute())

    def open(self, path: AnyPath) -> Stores:
        """Extract the archive of a backup and return it with an index of its own."""
        folder = extract_archive(Path(path).absolute(), self._stores.backup_cache)
        return Stores((), folder, self._stores.machine, is_detached=True)

    def prunable(self, keep: int, folder: Path | None = None) -> list_[BackupSummary]:
        """Return the backups in a folder that are neither among the newest nor needed by one of those."""
        if keep < 1:
            raise UsageError("At least one backup must be kept.")
        return prunable_backups(self.list(folder), keep)

    def delete(self, backup: BackupSummary) -> None:
        """Delete a backup. Raises `BackupError`."""
        delete_backup(backup)

    def list(self, folder: Path | None = None) -> list[BackupSummary]:
        """Return the backups in a folder, newest first."""
        return list_backups((folder or self.folder).absolute())


def _absolute(path: AnyPath | None) -> Path | None:
    return Path(path).absolute() if path is not None else None
