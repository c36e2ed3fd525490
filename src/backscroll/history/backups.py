"""Create, check and list backups."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from msgspec.structs import replace

from backscroll.archive.session_key import SessionKey
from backscroll.backup.create import BackupRequest, Selection, create_backup, plan_backup
from backscroll.backup.folder import (
    Places,
    Target,
    delete_backup,
    list_backups,
    new_backup_path,
    read_manifest,
)
from backscroll.backup.reader import extract_archive, read_details, verify_backup
from backscroll.backup.restore import BackupRestore
from backscroll.backup.restore_plan import RestoreOptions
from backscroll.backup.retention import (
    LATEST,
    check_rules,
    latest_base,
    latest_path,
    nightly_base,
    plan_prune,
)
from backscroll.config import given_maps
from backscroll.errors import (
    RestoreError,
    SessionNotFoundError,
    ToolRunningError,
)
from backscroll.history.remaining_copies import find_remaining_copies
from backscroll.model.backup import (
    NIGHTLY_RULES,
    BackupDetails,
    BackupManifest,
    BackupPlan,
    BackupResult,
    BackupStats,
    BackupSummary,
    BackupValidation,
    BackupVerdict,
    KeepRules,
    NightlyResult,
    Prefer,
    ProgressCallback,
    RestoredSession,
    RestoreResult,
)
from backscroll.model.copies import RemainingCopy
from backscroll.model.session import Filter, SessionSummary
from backscroll.sources import named, names
from backscroll.stores.lookup import (
    AnyPath,
    check_choice,
    find_top_session,
    select_sessions,
)
from backscroll.stores.stores import Stores
from backscroll.transfer.restore import (
    BackupSession,
    apply_backup_session,
    check_backup_processes,
    plan_backup_session,
)

list_ = list  # `Backups.list` hides the name


class Backups:
    """Create, check and list backups."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    @property
    def folder(self) -> Path:
        """The folder of backups: the setting ``backup_dir``, else ``backups`` beside the archive."""
        return self._places.folder

    @property
    def _places(self) -> Places:
        stores = self._stores
        archive_folder = stores.archive_path.parent.absolute()
        roots = [root.path for root in stores.named_roots]
        roots += [path for name in names() for path in named(name).roots(stores.machine)]
        places = Places(archive_folder, archive_folder, tuple(roots))
        folder = stores.settings.backup_dir or places.default_folder
        return replace(places, folder=folder.absolute())

    def create(
        self,
        path: AnyPath | None = None,
        *,
        filter: Filter | None = None,
        sessions: Sequence[str] = (),
        base: AnyPath | None = None,
        folder: AnyPath | None = None,
        force: bool = False,
        create_folder: bool = False,
        with_secrets: bool = False,
        progress: ProgressCallback | None = None,
    ) -> BackupResult:
        """Back up all roots and the archive into a new file, by default in the folder of backups.

        With a filter or refs of sessions, only these sessions are backed up. Without a path, the file gets a
        free name in ``folder``.
        """
        request = self._request(
            path,
            filter,
            sessions,
            base,
            folder,
            force=force,
            create_folder=create_folder,
            with_secrets=with_secrets,
        )
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
        folder: AnyPath | None = None,
        *,
        force: bool,
        create_folder: bool = False,
        with_secrets: bool = False,
    ) -> BackupRequest:
        selection = self._selection(filter_, refs)
        places, target = self._places, _absolute(path)
        folder = _absolute(folder) or (target.parent if target is not None else None)
        base = self._base(base, folder or places.folder)
        folder = folder or (base.parent if base is not None else places.folder)
        return BackupRequest(
            target=Target(
                target or new_backup_path(folder),
                places,
                is_named=path is not None,
                force=force,
                create_folder=create_folder,
            ),
            stats=self._stats(selection),
            selection=selection,
            prices=self._stores.settings.prices,
            base=base,
            with_secrets=with_secrets,
        )

    def _base(self, base: AnyPath | None, folder: Path) -> Path | None:
        """Return the base of a new backup in a folder. ``latest`` is the newest one that is complete."""
        if base is None or Path(base).name != LATEST or Path(base).exists():
            return _absolute(base)
        folder = folder if str(base) == LATEST else Path(base).parent.absolute()
        return latest_base(folder, self._stores.archive_path.parent)

    def _stats(self, selection: Selection | None) -> BackupStats:
        sessions: Sequence[SessionSummary] = selection.sessions if selection is not None else ()
        if selection is None:
            sessions = self._stores.archive.sessions.page(Filter(), limit=-1, offset=0)
        return BackupStats(len(sessions), sum(session.message_count for session in sessions))

    def _selection(self, filter_: Filter | None, refs: Sequence[str]) -> Selection | None:
        """Return the sessions of a filtered backup; None for all. Raises `UsageError` if there are none."""
        if filter_ is None and not refs:
            return None
        filter_ = replace(filter_ or Filter(), with_subagents=False)
        return Selection(tuple(select_sessions(self._stores.archive, refs, filter_)), filter_)

    def restore(
        self,
        path: AnyPath,
        *,
        source: str | None = None,
        sessions: Sequence[str] = (),
        path_map: Mapping[str, str] | None = None,
        force: bool = False,
        prefer: Prefer | None = None,
        with_config: bool = False,
        progress: ProgressCallback | None = None,
    ) -> RestoreResult:
        """Add what is missing from a backup: files, and sessions of databases and of the archive.

        What exists and differs is kept, or replaced if ``prefer`` is ``backup``; ``force`` is the same. No
        database is replaced. ``with_config`` restores the settings, too.
        """
        options = self._restore_options(
            source, sessions, path_map, prefer or ("backup" if force else "machine"), with_config=with_config
        )
        log = self._stores.change_log
        log.recover()
        with BackupRestore(self.find(path), options, progress) as restore:
            planned = self._plan_sessions(restore)
            restore.check_processes()
            check_backup_processes(planned)
            result = self._result(restore, planned)
            if restore.plan.merges_archive:
                self._merge_archive(restore)
            self._stores.close()  # the archive may be restored too
            batch = uuid4().hex[:12]
            change = restore.apply(log, batch)
            done = [
                one if one.changes.is_empty else apply_backup_session(restore, log, one, batch)
                for one in planned
            ]
            change_ids = [one.id for one in log.entries() if one.batch == batch]
            return replace(
                self._counted(restore, result, done),
                change_id=change_ids[0] if change_ids else change.id if change is not None else None,
            )

    def plan_restore(
        self,
        path: AnyPath,
        *,
        source: str | None = None,
        sessions: Sequence[str] = (),
        path_map: Mapping[str, str] | None = None,
        force: bool = False,
        prefer: Prefer | None = None,
        with_config: bool = False,
        with_running: bool = False,
        progress: ProgressCallback | None = None,
    ) -> RestoreResult:
        """Return what `restore` would do. Nothing is changed.

        ``with_running`` returns a running process in ``blocked_by`` instead of raising `ToolRunningError`.
        """
        options = self._restore_options(
            source, sessions, path_map, prefer or ("backup" if force else "machine"), with_config=with_config
        )
        with BackupRestore(self.find(path), options, progress) as restore:
            planned = self._plan_sessions(restore)
            result = self._result(restore, planned)
            try:
                restore.check_processes()
                check_backup_processes(planned)
            except ToolRunningError as error:
                if not with_running:
                    raise
                return replace(result, blocked_by=error.reason)
            return result

    def remaining_copies(self, ref: str) -> list_[RemainingCopy]:
        """Return what contains a session outside the archive. See `History.remaining_copies`."""
        summary = find_top_session(self._stores.archive, ref)
        return find_remaining_copies(self._stores, summary, self.list(), self.open)

    def _plan_sessions(self, restore: BackupRestore) -> list_[BackupSession]:
        """Plan the sessions of the backup that the options select."""
        return [
            plan_backup_session(restore, one)
            for one in self._selected(restore)
            if not one.is_gone or restore.options.sessions or restore.is_filtered
        ]

    def _selected(self, restore: BackupRestore) -> list_[SessionSummary]:
        """Return the selected sessions in the archive of the backup. Raises `RestoreError`."""
        archive, options = restore.archive, restore.options
        if archive is None:
            if not options.sessions and not restore.is_filtered:
                return []
            raise RestoreError(
                f"The archive in {restore.backup} is damaged or of a newer version. No single session can be"
                " restored from it.",
                restore.backup,
            )
        try:
            found = (
                list(
                    {
                        one.ref: one for one in (find_top_session(archive, ref) for ref in options.sessions)
                    }.values()
                )
                if options.sessions
                else archive.sessions.page(Filter(with_unlisted=True), limit=-1, offset=0)
            )
        except SessionNotFoundError as error:
            hint = f"Run 'backscroll --backup {restore.backup} list' to see the sessions of the backup."
            hint = hint if "\n" not in error.reason else ""  # the candidates are listed
            raise RestoreError(error.reason, restore.backup, hint=hint) from error
        return [one for one in found if options.source in (None, one.source)]

    def _result(self, restore: BackupRestore, planned: Sequence[BackupSession]) -> RestoreResult:
        """Return what a restore does: files, sessions of the tools and of the archive, annotations."""
        added: frozenset[SessionKey] = frozenset()
        annotations = 0
        if restore.plan.merges_archive and restore.archive is not None:
            keys, there = self._keys(restore), restore.archive.maintenance
            missing = there.annotations()
            added = keys
            if self._stores.archive_path.exists():
                here = self._stores.archive.maintenance
                added, missing = keys - here.session_keys(), missing - here.annotations()
            annotations = sum(SessionKey(*row[:2]) in keys for row in missing)
        found = {SessionKey(one.summary.platform, one.summary.id): one.outcome for one in planned}
        for one in self._selected(restore) if added else ():
            key = SessionKey(one.platform, one.id)
            if key in added and (key not in found or found[key].action == "kept"):
                found[key] = RestoredSession(one.ref, "added")
        result = RestoreResult(
            files=(),
            sessions=tuple(found.values()),
            annotations_restored=annotations,
            warnings=restore.plan.warnings,
        )
        return self._counted(restore, result, planned)

    def _counted(
        self, restore: BackupRestore, result: RestoreResult, planned: Sequence[BackupSession]
    ) -> RestoreResult:
        """Return the result with the files and outcomes of all sessions."""
        outcomes = {one.outcome.ref: one.outcome for one in planned if one.outcome.action != "kept"}
        sessions = tuple(outcomes.get(one.ref, one) for one in result.sessions)
        files = (*restore.file_results, *(file for one in planned for file in one.files()))
        written = {file.path for file in files if file.action in ("create", "replace", "insert")}
        return replace(
            result,
            files=files,
            files_restored=len(written),
            sessions=sessions,
            sessions_restored=sum(one.action == "added" for one in sessions),
        )

    def _keys(self, restore: BackupRestore) -> frozenset[SessionKey]:
        """Return the selected sessions that were not forgotten here."""
        has_archive = self._stores.archive_path.exists()
        forgotten = self._stores.archive.maintenance.forgotten() if has_archive else frozenset()
        keys = (SessionKey(one.platform, one.id) for one in self._selected(restore))
        return frozenset(key for key in keys if tuple(key) not in forgotten)

    def _merge_archive(self, restore: BackupRestore) -> None:
        if restore.archive is not None:
            restore.merge_archive(self._stores.writable_archive, self._keys(restore))

    def _restore_options(
        self,
        source: str | None,
        sessions: Sequence[str],
        path_map: Mapping[str, str] | None,
        prefer: Prefer,
        *,
        with_config: bool,
    ) -> RestoreOptions:
        if source is not None:
            named(source)  # raises UsageError
        check_choice("prefer", prefer, Prefer)
        return RestoreOptions(
            archive_folder=self._stores.archive_path.parent.absolute(),
            source=source,
            sessions=tuple(sessions),
            maps=given_maps(path_map or {}),
            prefer=prefer,
            with_config=with_config,
            known_roots=frozenset(root.absolute() for _, root in self._stores.roots()),
            home=self._stores.machine.home.absolute(),
        )

    def validate(self, path: AnyPath, progress: ProgressCallback | None = None) -> BackupValidation:
        """Read a whole backup and compare it with its manifest."""
        return verify_backup(self.find(path), self._stores.archive_path.parent, progress)

    def manifest(self, path: AnyPath) -> BackupManifest:
        """Return the table of contents of a backup. Raises `InvalidBackupError`."""
        return read_manifest(self.find(path))

    def details(self, path: AnyPath) -> BackupDetails:
        """Return the manifest, the settings and the change log of a backup. Raises `InvalidBackupError`."""
        return read_details(self.find(path))

    def open(self, path: AnyPath) -> Stores:
        """Extract the archive of a backup and return it with an index of its own."""
        folder = extract_archive(self.find(path), self._stores.backup_cache)
        return Stores((), folder, self._stores.machine, is_detached=True)

    def plan_prune(self, rules: KeepRules, folder: AnyPath | None = None) -> list_[BackupVerdict]:
        """Return every backup in a folder with whether the rules keep it, and why, newest first."""
        return plan_prune(self._absolute_folder(folder), rules)

    def prunable(self, keep: int, folder: AnyPath | None = None) -> list_[BackupSummary]:
        """Return the backups in a folder that are neither among the newest nor needed by one of those."""
        return [one.backup for one in self.plan_prune(KeepRules(last=keep), folder) if not one.is_kept]

    def nightly(
        self,
        folder: AnyPath | None = None,
        rules: KeepRules = NIGHTLY_RULES,
        *,
        create_folder: bool = False,
        progress: ProgressCallback | None = None,
    ) -> NightlyResult:
        """Create a backup, incremental to the latest in the folder, verify it, and delete old ones.

        Only backups of this archive with generated names are counted and deleted. Nothing is deleted if the
        new backup is invalid. Every 30 days, the backup is not incremental, so that old ones can be deleted.
        """
        check_rules(rules)
        folder = self._absolute_folder(folder)
        now, archive_folder = datetime.now(UTC), self._stores.archive_path.parent
        base = nightly_base(folder, archive_folder, now) if folder.is_dir() else None
        created = self.create(folder=folder, base=base, create_folder=create_folder, progress=progress)
        validation = self.validate(created.backup_path, progress)
        if validation.status == "invalid":
            return NightlyResult(created=created, validation=validation)
        verdicts = plan_prune(folder, rules, of=created.manifest)
        for one in verdicts:
            if not one.is_kept:
                self.delete(one.backup)
        return NightlyResult(created=created, validation=validation, verdicts=tuple(verdicts))

    def log_nightly(self, line: str) -> None:
        """Append a line to ``nightly.log`` beside the archive. A scheduler often discards the output."""
        with (
            suppress(OSError),  # the disk is full, or the folder of the archive is missing
            self._stores.archive_path.with_name("nightly.log").open("a", encoding="utf-8") as file,
        ):
            file.write(f"{line}\n")

    def delete(self, backup: BackupSummary) -> None:
        """Delete a backup. Raises `BackupError`."""
        delete_backup(backup)

    def list(self, folder: AnyPath | None = None) -> list[BackupSummary]:
        """Return the backups in a folder, newest first."""
        return list_backups(self._absolute_folder(folder))

    def _absolute_folder(self, folder: AnyPath | None) -> Path:
        return _absolute(folder) or self.folder

    def find(self, path: AnyPath) -> Path:
        """Return the file of a backup. ``latest`` is the newest one in its folder."""
        found = Path(path)
        if found.name != LATEST or found.exists():
            return found.absolute()
        return latest_path(self.folder if str(found) == LATEST else found.parent.absolute())


def _absolute(path: AnyPath | None) -> Path | None:
    return Path(path).absolute() if path is not None else None
