"""Sessions behind commits and lines."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from os import PathLike
from os.path import normpath
from pathlib import Path, PurePosixPath, PureWindowsPath

from backscroll import git
from backscroll.commits.blame import blame_file
from backscroll.commits.commit_graph import read_graph
from backscroll.commits.link import add_tracking, link_commits
from backscroll.commits.survival import find_survival
from backscroll.commits.turns import find_turns
from backscroll.errors import RepositoryError, SessionNotFoundError
from backscroll.git.repository import find_commit
from backscroll.history.session_refs import find_session
from backscroll.history.stores import Stores
from backscroll.history.survival_rows import survival_rows
from backscroll.model import Edit, Filter, PaginatedResult, Pagination
from backscroll.model.code.commit import (
    BlameLine,
    ChangedFile,
    CommitDetails,
    CommitSummary,
    CommitTurn,
    FileFacts,
    LinkedSession,
    SurvivalBy,
    SurvivalRow,
)
from backscroll.pricing.prices import with_own
from backscroll.sources.capabilities import CodeTracking
from backscroll.sources.capability_lookup import capability
from backscroll.stats.session_costs import session_costs

__all__ = ["Commits"]

Progress = Callable[[int, int], None]  # units of work done, and in total


class Commits:
    """Commits of a repository, and the sessions that led to them."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def repositories(self) -> list[str]:
        """Return the workspaces on this machine that are git repositories, the most recently used first."""
        return [
            workspace.path
            for workspace in self._stores.archive.sessions.workspaces()
            if workspace.host is None and _is_repository(workspace.path)
        ]

    def page(
        self,
        repository: str | PathLike[str],
        *,
        limit: int | None,
        offset: int,
        since: datetime | None,
        until: datetime | None,
        ref: str | None,
        progress: Progress | None,
    ) -> PaginatedResult[CommitSummary]:
        """Return one page of commits, newest first; all of them if the limit is None."""
        opened = git.open_repository(Path(repository))
        commits = git.list_commits(opened, ref=find_commit(opened, ref) if ref is not None else None)
        listed = [
            commit
            for commit in commits
            if not commit.is_merge
            and (since is None or commit.authored_at >= since.timestamp())
            and (until is None or commit.authored_at < until.timestamp())
        ]
        listed.sort(key=lambda commit: commit.authored_at, reverse=True)  # a rebase keeps the author's time
        end = offset + limit if limit is not None else None
        selected = listed[offset:end]
        links = self._links(opened, commits, [commit.sha for commit in selected], progress)
        return PaginatedResult(
            tuple(_summary(commit, links[commit.sha]) for commit in selected),
            Pagination(
                len(listed),
                limit if limit is not None else len(listed),
                offset,
                offset + len(selected) < len(listed),
            ),
        )

    def get(self, revision: str, repository: str | PathLike[str], progress: Progress | None) -> CommitDetails:
        """Return a commit with its sessions and their turns."""
        opened = git.open_repository(Path(repository))
        sha = find_commit(opened, revision)
        commits = git.list_commits(opened)
        if all(commit.sha != sha for commit in commits):  # on no branch, such as a commit before a rebase
            commits = git.list_commits(opened, ref=sha)
        commit = next(commit for commit in commits if commit.sha == sha)
        sessions = self._links(opened, commits, [sha], progress)[sha]
        graph = read_graph(self._stores.archive, opened, [commit], since=0)
        lines, paths = set(graph.lines(sha)), [file.path for file in graph.files(sha)]
        turns: list[CommitTurn] = []
        for linked in sessions:
            try:
                summary = find_session(self._stores.archive, linked.session_ref)
            except SessionNotFoundError:
                continue  # forgotten by another process in the meantime
            turns += find_turns(self._stores.archive, summary, commit, lines, paths)
        found = _summary(commit, sessions)
        return CommitDetails(
            **{name: getattr(found, name) for name in found.__struct_fields__},
            turns=tuple(turns),
            is_merge=commit.is_merge,
        )

    def _links(
        self,
        repository: git.Repository,
        commits: Sequence[git.Commit],
        shas: Sequence[str],
        progress: Progress | None,
    ) -> dict[str, tuple[LinkedSession, ...]]:
        links = link_commits(self._stores.archive, repository, commits, shas, progress=progress)
        for source, root in self._stores.roots():
            if (tracking := capability(source, CodeTracking)) is not None:
                tracked = tracking.tracked_code(root)
                links = add_tracking(self._stores.archive, repository, commits, links, tracked)
        return links

    def blame(
        self,
        path: str | PathLike[str],
        repository: str | PathLike[str] | None,
        *,
        lines: tuple[int, int] | None,
        ref: str | None,
        progress: Progress | None,
    ) -> tuple[BlameLine, ...]:
        """Return the lines of a file with commit, session and prompt."""
        file = Path(path).expanduser()
        opened = _open_repository_of(file) if repository is None else git.open_repository(Path(repository))
        if repository is None or (not (opened.folder / file).exists() and file.exists()):
            file = file.absolute()  # not relative to the root of the repository
        revision = find_commit(opened, ref) if ref is not None else None
        archive = self._stores.archive
        return tuple(blame_file(archive, opened, file, lines=lines, revision=revision, progress=progress))

    def changed_files(self, sha: str, repository: str | PathLike[str]) -> list[ChangedFile]:
        """Return the files that a commit changes, in git's order. A merge has none."""
        opened = git.open_repository(Path(repository))
        sha = find_commit(opened, sha)
        existing = git.list_paths(opened, sha)
        return [
            ChangedFile(file.path, file.added, file.removed, file.path in existing)
            for file in git.read_sizes(opened, sha)
        ]

    def diff(self, sha: str, repository: str | PathLike[str], *, max_lines: int) -> list[Edit]:
        """Return the changed lines of the text files in a commit, up to a number of lines. A merge has none.

        Raises `RepositoryError` or `CommitNotFoundError`.
        """
        opened = git.open_repository(Path(repository))
        return list(git.read_diff(opened, find_commit(opened, sha), max_lines=max_lines))

    def folder(self, path: str, repository: str | PathLike[str], ref: str = "HEAD") -> list[git.FolderEntry]:
        """Return the files and folders in a folder of a commit; none if it is not a folder.

        An empty path is the root. Raises `RepositoryError` or `CommitNotFoundError`.
        """
        opened = git.open_repository(Path(repository))
        path = _path_inside(path, opened) if path else ""
        return git.list_folder(opened, path, find_commit(opened, ref))

    def file_facts(
        self, path: str, repository: str | PathLike[str], *, ref: str | None = None, max_bytes: int
    ) -> FileFacts:
        """Return size and lines of a tracked text file, in the checkout or in a commit.

        Raises `RepositoryError` if it is outside of the repository, larger than ``max_bytes`` or not text.
        """
        opened = git.open_repository(Path(repository))
        path = _path_inside(path, opened)
        revision = find_commit(opened, ref or "HEAD") if ref is not None or opened.is_bare else None
        size = git.file_size(opened, path, revision)
        if size > max_bytes:
            raise RepositoryError(f"{path} is too large: {size / 1e6:,.1f} MB.", opened.folder)
        content = git.read_file(opened, path, revision)
        lines = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
        return FileFacts(path, size, lines)

    def survival(
        self,
        repository: str | PathLike[str] = ".",
        *,
        by: SurvivalBy = "session",
        since: datetime | None = None,
        ref: str | None = None,
        zone: tzinfo | None = None,
        progress: Progress | None = None,
    ) -> tuple[SurvivalRow, ...]:
        """Return how many lines of sessions were committed and are alive, by session, model or month.

        Sessions that wrote no line into the repository are omitted. With ``since``, only lines written and
        money spent from then on count. Lines are alive in ``ref``, by default HEAD. Months are those of
        ``zone``, or of this machine. Raises `RepositoryError` or `CommitNotFoundError`.
        """
        opened = git.open_repository(Path(repository))
        revision = "HEAD"  # a checkout can have lines before its first commit
        if ref is not None or (opened.is_bare and opened.has_branches):
            revision = find_commit(opened, ref or "HEAD")
        archive = self._stores.archive
        counted = archive.statistics(Filter(with_unlisted=True, since=since))
        costs = session_costs(counted, with_own(self._stores.settings.prices), zone=zone)
        calls = find_survival(
            archive,
            opened,
            ref=revision,
            since=since,
            fragment_ids=counted.fragment_ids(),
            progress=progress,
        )
        return survival_rows(calls, costs, by, self._stores.archive, zone)


def _path_inside(path: str, repository: git.Repository) -> str:
    """Return a relative path without ``.`` parts. Raises `RepositoryError` if it leads out of the root."""
    parts = PurePosixPath(path).parts
    if not parts or "\0" in path or parts[0] == "/" or ".." in parts or PureWindowsPath(path).drive:
        raise RepositoryError(f"{path!r} is not a path in {repository.folder}.", repository.folder)
    return str(PurePosixPath(*parts))


def _open_repository_of(file: Path) -> git.Repository:
    try:
        return git.open_repository(_folder_of(file))
    except RepositoryError as error:
        if file.absolute().parent.is_dir():
            raise
        raise RepositoryError(f"{file} does not exist.", file) from error


def _folder_of(file: Path) -> Path:
    """Return the nearest folder that exists: the file can be deleted, or be in a folder that is."""
    path = Path(normpath(file.absolute()))
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def _summary(commit: git.Commit, sessions: tuple[LinkedSession, ...]) -> CommitSummary:
    return CommitSummary(
        sha=commit.sha,
        parent=commit.parents[0] if commit.parents else None,
        author=commit.author,
        at=datetime.fromtimestamp(commit.authored_at, UTC),
        subject=commit.subject,
        sessions=sessions,
    )


def _is_repository(path: str) -> bool:
    try:
        return (Path(path) / ".git").exists()
    except (OSError, ValueError):  # no permission, or not a path of this system
        return False
