"""Restore sessions into their tools, move and copy them, and undo changes."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from backscroll.archive.session_key import SessionKey
from backscroll.config import given_path
from backscroll.errors import (
    BackscrollError,
    ChangeConflictError,
    SessionNotFoundError,
    UsageError,
    WorkspaceNotFoundError,
)
from backscroll.ingest.sync import sync
from backscroll.model.change import Change
from backscroll.model.session import Filter, SessionSummary
from backscroll.model.text import pluralize
from backscroll.model.transfer import (
    BlockingProcess,
    MigrateResult,
    MigrationPlan,
    Mode,
    PlannedSession,
    RestoreSessionResult,
    RestoreSessionsPlan,
    RestoreSessionsResult,
)
from backscroll.model.workspace import MovedWorkspaces
from backscroll.sources import named, names
from backscroll.stores.lookup import (
    AnyPath,
    check_choice,
    find_session,
    find_session_to_change,
    find_top_session,
    find_workspace,
    select_sessions,
)
from backscroll.stores.stores import Stores
from backscroll.transfer.migrate import (
    Progress,
    apply_migration,
    blocking_processes,
    end_migration,
    plan_migration,
)
from backscroll.transfer.moved_workspaces import find_moved
from backscroll.transfer.restore import apply_restore, apply_restores, plan_restore, plan_restores
from backscroll.transfer.safety import target_path


class Transfers:
    """Restore sessions into their tools, move and copy them, and undo changes.

    A plan shows what would change. Applying it updates the archive, too.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    # Plans

    def plan_restore(self, ref: str) -> PlannedSession:
        """Plan to restore a session that its tool has deleted."""
        self.recover()
        archive = self._stores.archive
        summary = find_top_session(archive, ref)
        self._check_unfinished(summary.ref)
        return plan_restore(archive, summary, self._stores.root_paths())

    def plan_restores(
        self, refs: Sequence[str] = (), *, filter: Filter | None = None, progress: Progress | None = None
    ) -> RestoreSessionsPlan:
        """Plan to restore the sessions of refs and a filter with one change.

        Raises `UsageError` if no session matches, and `SessionNotFoundError` for an ambiguous ref.
        """
        self.recover()
        archive = self._stores.archive
        summaries = select_sessions(archive, refs, filter)
        roots = self._stores.root_paths()
        return plan_restores(archive, summaries, roots, self._check_unfinished, progress)

    def plan_sessions(
        self,
        refs: Sequence[str],
        target: AnyPath,
        *,
        mode: Mode = "copy",
        keep_cwd: bool = False,
        with_running: bool = False,
    ) -> MigrationPlan:
        """Plan to move or copy sessions to a folder.

        ``with_running`` also plans sessions that a running process has open; `blocking_processes` returns it.
        Raises `SessionNotFoundError` for an ambiguous ref, and the errors of `target_path`.
        """
        check_choice("mode", mode, Mode)
        folder = self._target(target)
        self.recover()
        archive = self._stores.archive
        summaries = {one.ref: one for one in (find_session_to_change(archive, ref) for ref in refs)}
        command = _command_hash("migrate", sorted(summaries), folder, mode, keep_cwd)
        return plan_migration(
            archive,
            summaries.values(),
            folder,
            mode,
            roots=self._stores.root_paths(),
            keep_cwd=keep_cwd,
            with_running=with_running,
            check=self._check_unfinished,
            command=command,
            done=_new_refs(self._stores.change_log.open_batch(command)),
        )

    def plan_workspace(
        self,
        workspace: AnyPath,
        target: AnyPath,
        *,
        mode: Mode = "copy",
        keep_cwd: bool = False,
        with_running: bool = False,
    ) -> MigrationPlan:
        """Plan to move or copy all sessions of a folder that are in the tools' stores.

        ``with_running`` and errors as for `plan_sessions`. Raises `WorkspaceNotFoundError` if no session
        belongs to it.
        """
        check_choice("mode", mode, Mode)
        old, folder = given_path("old folder", workspace), self._target(target)
        self.recover()
        command = _command_hash("migrate-workspace", old.absolute(), folder, mode, keep_cwd)
        log, originals = self._stores.change_log, self._stores.archive.originals
        done = _new_refs(log.open_batch(command))
        try:
            found = self._sessions_of(old)
        except WorkspaceNotFoundError:
            done |= self._moved_to(folder, log.made_by(command)) if mode == "move" else {}
            if not done:
                raise
            found = []
        summaries = [one for one in found if originals.in_store(one)]
        archived = self._archived_of(found) if mode == "move" else []
        if not summaries and not archived and not done:
            raise WorkspaceNotFoundError(
                f"The tools have deleted all sessions of {workspace} ({pluralize(len(found), 'session')}).",
                str(workspace),
                hint="Restore one with 'backscroll restore-session REF', then migrate it.",
            )
        return plan_migration(
            self._stores.archive,
            [*summaries, *archived],
            folder,
            mode,
            roots=self._stores.root_paths(),
            keep_cwd=keep_cwd,
            with_running=with_running,
            check=self._check_unfinished,
            archived=[one.ref for one in archived],
            command=command,
            done=done,
        )

    def _archived_of(self, found: Iterable[SessionSummary]) -> list[SessionSummary]:
        """Return the sessions that only the archive has. Copies that were undone are left out."""
        listed = {one.ref for one in self._stores.archive.sessions.page(Filter(), limit=-1, offset=0)}
        stored = self._stores.archive.originals
        return [
            one
            for one in found
            if one.is_gone and one.ref in listed and (stored.files(one) or stored.units_with_rows(one.id))
        ]

    def _moved_to(self, folder: Path, changes: Iterable[Change]) -> dict[str, str]:
        """Return the sessions that changes have moved to a folder and that are still there."""
        found = {}
        for ref in _new_refs(changes):
            with suppress(SessionNotFoundError):  # forgotten since
                path = find_session(self._stores.archive, ref).workspace_path
                if path is not None and os.path.realpath(path) == str(folder):
                    found[ref] = ref
        return found

    def blocking_processes(self, plan: MigrationPlan) -> list[BlockingProcess]:
        """Return the running processes that prevent a planned migration."""
        return blocking_processes(plan)

    def _target(self, target: AnyPath) -> Path:
        """Return the target folder. The folders of all tools are refused, also those that are not read."""
        machine = self._stores.machine
        folders = [folder for name in names() for folder in named(name).roots(machine)]
        return target_path(target, [*folders, *self._stores.root_paths()])

    def _sessions_of(self, workspace: Path) -> list[SessionSummary]:
        """Return the sessions of exactly this folder, which need not exist."""
        path = os.path.abspath(workspace)  # noqa: PTH100 - links in it may be recorded
        paths = {path, os.path.realpath(path)}
        listed = self._stores.archive.sessions.page(Filter(with_unlisted=True), limit=-1, offset=0)
        found = [one for one in listed if one.workspace_path is not None and one.workspace_path in paths]
        if not found:
            find_workspace(self._stores.archive, path)  # raises WorkspaceNotFoundError with suggestions
            raise WorkspaceNotFoundError(f"No session has the workspace {path!r}.", path)
        return found

    def moved_workspaces(self, search: Sequence[Path] = ()) -> MovedWorkspaces:
        """Return the workspace folders that are gone, and where they may be. ``search`` adds folders."""
        return find_moved(self._stores.archive, search)

    # Changes

    def restore(self, planned: PlannedSession) -> RestoreSessionResult:
        """Restore a session as planned, then sync."""
        result = apply_restore(self._stores.archive, self._stores.change_log, planned)
        if result.change is not None:
            sync(self._stores)
        return result

    def restore_all(self, plan: RestoreSessionsPlan) -> RestoreSessionsResult:
        """Restore sessions as planned, then sync."""
        result = apply_restores(self._stores.archive, self._stores.change_log, plan)
        if result.change is not None:
            sync(self._stores)
        return result

    def migrate(self, plan: MigrationPlan, progress: Progress | None = None) -> MigrateResult:
        """Move or copy sessions as planned, then sync."""
        log = self._stores.change_log
        result = apply_migration(self._stores.archive, log, plan, progress)
        if result.success_count or plan.unchanged:  # the sync of an interrupted command is missing, too
            sync(self._stores)
        end_migration(log, plan, result)
        return result

    def changes(self) -> list[Change]:
        """Return all changes of the tools' stores, newest first."""
        return self._stores.change_log.entries()

    def to_undo(self, change_id: str | None = None) -> list[Change]:
        """Return the changes that `undo` would revert, newest first.

        Raises `ChangeNotFoundError`, or `UsageError` for an empty id.
        """
        if change_id == "":
            raise UsageError("The id of the change is empty. Run 'backscroll changes' to see all changes.")
        log = self._stores.change_log
        newest = log.find(change_id)
        if change_id is not None or not newest.batch:
            return [newest]
        return [one for one in log.entries() if one.batch == newest.batch and not one.is_undone]

    def undo(self, change_id: str | None = None) -> list[Change]:
        """Undo a change; without an id, everything that the last command changed. Then sync.

        A change that was interrupted is rolled back first. It is not in the result, but what the same command
        changed before it. One that cannot be rolled back is ended: the ``problems`` of the result are what
        could not be restored. Of several changes, those that cannot be undone are left, and
        `ChangeConflictError` names them.
        """
        log = self._stores.change_log
        planned = self.to_undo(change_id)
        self._recover()
        left = {one.id: one for one in log.entries()}
        undone: list[Change] = []
        conflicts: list[ChangeConflictError] = []
        try:
            for one in planned:
                if one.id not in left:  # rolled back
                    continue
                if one.is_interrupted and left[one.id].is_undone:  # its undo was interrupted
                    undone.append(left[one.id])
                    continue
                try:
                    undone.append(log.undo(one.id, is_final=False))
                except ChangeConflictError as error:
                    conflicts.append(error)
        finally:
            if undone:
                sync(self._stores)
                self._hide_copies(undone)
                for one in undone:
                    log.end_undo(one.id)
        if not conflicts:
            return undone
        if len(planned) == 1:
            raise conflicts[0]
        reasons = "".join(f"\n  {error}" for error in conflicts)
        raise ChangeConflictError(
            f"{len(undone)} of {len(planned)} changes are undone. The others are left as they are:{reasons}",
            conflicts[0].data_path,
        )

    def _hide_copies(self, changes: Iterable[Change]) -> None:
        """Stop listing copies that the tool no longer has: their messages are in the originals."""
        refs = (ref.partition(":") for change in changes for ref in change.copies)
        keys = [SessionKey(named(source).platform, id_) for source, _, id_ in refs]
        if keys:
            self._stores.writable_archive.maintenance.hide_undone_copies(keys)

    def recover(self) -> list[str]:
        """Roll back changes that a crash interrupted, then sync. Return their descriptions.

        One that cannot be rolled back now stays, and blocks only what touches the same files.
        """
        return [change.what for change in self._recover() if not change.is_undone]

    def _recover(self) -> list[Change]:
        ended = self._stores.change_log.recover()
        if ended:
            sync(self._stores)
            batches = {one.batch for one in ended if one.batch}
            others = [one for one in self.changes() if one.batch in batches and one.is_undone]
            self._hide_copies([*ended, *others])
        return ended

    def unfinished(self) -> list[tuple[Change, BackscrollError]]:
        """Return the interrupted changes that `recover` could not roll back, and why."""
        return self._stores.change_log.unfinished()

    def _check_unfinished(self, ref: str) -> None:
        """Raise the reason if a session has an interrupted change that cannot be rolled back."""
        for change, error in self.unfinished():
            if ref in change.sessions:
                raise error


def _command_hash(*parts: object) -> str:
    """Return a hash of a command and its arguments. A change stores it instead of ids and folders."""
    return sha256(repr([str(part) for part in parts]).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _new_refs(changes: Iterable[Change]) -> dict[str, str]:
    """Return the new refs of the sessions that changes have moved or copied."""
    found = {}
    for change in changes:
        if change.copies:
            found[change.sessions[0]] = change.copies[0]
        else:
            found |= {ref: ref for ref in change.sessions}
    return found
