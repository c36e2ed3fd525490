"""Hooks of assistants and of git."""

from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from backscroll import git, sources
from backscroll.commits.link import link_commits
from backscroll.config.settings_file import SettingsChange
from backscroll.errors import BackscrollError, RepositoryError, UsageError
from backscroll.hooks import install_git_hooks
from backscroll.hooks.install_git_hooks import GitHookChange as GitHookChange
from backscroll.hooks.install_tool_hooks import hook_status, plan_install, plan_uninstall
from backscroll.hooks.shell_command import git_hook_command, hook_command
from backscroll.ingest.hooks import repository_fingerprint
from backscroll.journal.journal import Journal
from backscroll.model.hook import HookCommit, HookFile, HookStatus, SpoolStatus
from backscroll.stores.stores import Stores


class Hooks:
    """Commands that the tools and git run at certain events, so that Backscroll learns about them."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    @staticmethod
    def tools() -> tuple[str, ...]:
        """Return the names of the sources that have hooks."""
        return tuple(name for name in sources.names() if sources.named(name).hooks() is not None)

    def title(self, tool: str) -> str:
        """Return the name of a tool for users."""
        return self._file(tool).title

    def plan_install(self, tool: str) -> SettingsChange:
        """Return the change of a tool's settings that registers the hooks.

        Raises `UsageError` if the settings cannot be parsed, or on Windows.
        """
        if self._stores.machine.system == "win32":
            raise UsageError(
                "Hooks of assistants are not supported on Windows. Every sync reads the same sessions without"
                " them."
            )
        return plan_install(self._file(tool), self._command)

    def plan_uninstall(self, tool: str) -> SettingsChange:
        """Return the change of a tool's settings that removes the hooks."""
        return plan_uninstall(self._file(tool))

    def status(self) -> list[HookStatus]:
        """Return the state of the hooks of every tool."""
        return [hook_status(tool, self._file(tool), self._command) for tool in self.tools()]

    def spool_status(self) -> SpoolStatus:
        """Return what hooks have recorded: in the archive, and waiting for the next sync."""
        spool = self._stores.spool_path
        pending = [file.stat().st_size for file in spool.glob("*.jsonl")] if spool.is_dir() else []
        events, unreadable, last_at, commits = 0, 0, None, 0
        if self._stores.archive_path.exists():
            events, unreadable, last_at = self._stores.archive.hooks.events.counts()
            commits = self._stores.archive.hooks.commits.count
        return SpoolStatus(
            path=str(spool),
            pending_bytes=sum(pending),
            event_count=events,
            commit_count=commits,
            unreadable_count=unreadable,
            last_event_at=datetime.fromtimestamp(last_at / 1000, UTC) if last_at else None,
        )

    def process_commits(self) -> int:
        """Link the commits that the git hook reported to their sessions, and write their journal entries.

        Return the number of commits. After an interruption, the next call continues.
        """
        pending = self._stores.archive.hooks.commits.pending()
        for repository, commits in groupby(sorted(pending, key=_by_repository), key=_by_repository):
            self._process(Path(repository), sorted(commits, key=lambda commit: commit.at))
        return len(pending)

    def processed_commit_count(self) -> int:
        """Return how many reported commits were processed."""
        return self._stores.archive.hooks.commits.done_count

    def _process(self, git_folder: Path, reported: list[HookCommit]) -> None:
        hook_commits = self._stores.archive.hooks.commits
        try:
            opened = git.open_repository(git_folder)
            commits = git.list_commits(opened)
        except RepositoryError:  # deleted or moved
            hook_commits.mark_done(reported)
            return
        existing = {commit.sha for commit in commits}
        current = [one for one in reported if one.sha in existing]  # others were amended or rebased
        link_commits(self._stores.archive, opened, commits, [one.sha for one in current])
        hook_commits.mark_done(one for one in reported if one.sha not in existing)
        for number, one in enumerate(current):
            if self._stores.settings.is_journal_on_commit:
                # Only the first one may continue a conversation whose entry exists.
                self._write_entry(one, is_refreshed=not number)
            hook_commits.mark_done([one])

    def _write_entry(self, commit: HookCommit, *, is_refreshed: bool) -> None:
        """Write the journal entry of a commit. An error is added to ``journal.log``."""
        folder = Path(commit.folder)
        repository = folder if folder.is_dir() else Path(commit.repository)
        model = self._stores.settings.journal_model
        journal = Journal(self._stores)
        try:
            journal.write(commit.sha, repository, model=model, is_refreshed=is_refreshed)
        except BackscrollError as error:
            journal.log_failure(repository, commit.sha, error)

    # Git

    def plan_git_install(self, repository: Path, *, is_global: bool = False) -> GitHookChange:
        """Return the change that installs the git hook in a repository or, with a new git, in all of them.

        Raises `RepositoryError`, or `UsageError` if the hooks are part of the repository.
        """
        return install_git_hooks.plan_install(repository, self._git_command, is_global=is_global)

    def plan_git_uninstall(self, repository: Path, *, is_global: bool = False) -> GitHookChange:
        """Return the change that removes the git hook."""
        return install_git_hooks.plan_uninstall(repository, is_global=is_global)

    def apply_git_change(self, change: GitHookChange) -> None:
        """Apply a change of git hooks. From then on, a sync finds commits for which git runs no hook."""
        change.apply()
        if change.git_folder is None:
            return
        hook_commits = self._stores.archive.hooks.commits
        if change.is_removal:
            hook_commits.delete_repository(str(change.git_folder))
        else:
            self._stores.spool_path.mkdir(mode=0o700, exist_ok=True)
            hook_commits.set_fingerprint(str(change.git_folder), repository_fingerprint(change.git_folder))

    def git_status(self, repository: Path) -> list[HookStatus]:
        """Return the state of the git hook in a repository, and in the user's configuration."""
        return install_git_hooks.status(repository, self._git_command)

    @property
    def _git_command(self) -> str:
        roots = [f"{root.source}={root.path}" for root in self._stores.named_roots]
        return git_hook_command(self._stores.spool_path, roots)

    @property
    def _command(self) -> str:
        return hook_command(self._stores.spool_path)

    def _file(self, tool: str) -> HookFile:
        hooks = sources.named(tool).hooks()
        if hooks is None:
            raise UsageError(f"{tool} has no hooks. The tools with hooks are {', '.join(self.tools())}.")
        return hooks.hook_file(self._stores.machine, self._given_root(tool))

    def _given_root(self, tool: str) -> Path | None:
        return next((root.path for root in self._stores.named_roots if root.source == tool), None)


def _by_repository(commit: HookCommit) -> str:
    return commit.repository
