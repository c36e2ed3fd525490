"""Sessions behind commits and lines."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from os.path import normpath
from pathlib import Path, PurePosixPath, PureWindowsPath

from backscroll import git
from backscroll.archive.annotations import ManualLink
from backscroll.archive.archive import Archive
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.codec import to_milliseconds
from backscroll.commits.blame import blame_file, call_position
from backscroll.commits.commit_graph import read_graph
from backscroll.commits.content import SLACK_MS
from backscroll.commits.context import commit_window, find_open_sessions
from backscroll.commits.lines import line_weight
from backscroll.commits.link import (
    add_manual_links,
    add_tracking,
    link_commits,
    manual_claim,
    patch_key,
)
from backscroll.commits.paths import implied_root, normalize
from backscroll.commits.scan import commit_call, message_edits
from backscroll.errors import RepositoryError, SessionNotFoundError, UsageError
from backscroll.git.repository import find_commit
from backscroll.model.commit import (
    BlameLine,
    ChangedFile,
    CommitDetails,
    CommitSummary,
    CommitTurn,
    FileFacts,
    LinkedSession,
    OpenSession,
)
from backscroll.model.message import Edit, Message
from backscroll.model.session import PaginatedResult, Pagination, SessionSummary
from backscroll.model.sync import Progress
from backscroll.stores.lookup import AnyPath, check_page, find_session, find_session_to_change
from backscroll.stores.stores import Stores

_MIN_LINE_WEIGHT = 0.5  # of all matching lines of a call: one line of 12 characters


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
        repository: AnyPath,
        *,
        limit: int | None = None,
        offset: int = 0,
        since: datetime | None = None,
        until: datetime | None = None,
        ref: str | None = None,
        window: int | None = None,
        progress: Progress | None = None,
    ) -> PaginatedResult[CommitSummary]:
        """Return one page of commits, newest first; all of them if the limit is None. See `History`."""
        check_page(1 if limit is None else limit, offset)
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
        without = [commit for commit in selected if not links[commit.sha]]
        context = self._context(opened, without, commits, window)
        return PaginatedResult(
            tuple(_summary(commit, links[commit.sha], context.get(commit.sha, ())) for commit in selected),
            Pagination(
                len(listed),
                limit if limit is not None else len(listed),
                offset,
                offset + len(selected) < len(listed),
            ),
        )

    def get(
        self,
        revision: str,
        repository: AnyPath,
        progress: Progress | None = None,
        *,
        window: int | None = None,
    ) -> CommitDetails:
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
        context = {} if sessions else self._context(opened, [commit], commits, window)
        found = _summary(commit, sessions, context.get(sha, ()))
        return CommitDetails(
            **{name: getattr(found, name) for name in found.__struct_fields__},
            turns=tuple(turns),
            is_merge=commit.is_merge,
        )

    def open_sessions(
        self, details: CommitDetails, repository: git.Repository
    ) -> tuple[tuple[OpenSession, ...], datetime]:
        """Return the sessions that were open at the time of any commit, and since when that is.

        Those that led to it are omitted.
        """
        commits = git.read_commits(repository, [details.sha, *filter(None, [details.parent])])
        known = {commit.sha: commit for commit in commits}
        minutes = self._stores.settings.commits_window
        commit = known[details.sha]
        without = {linked.session_id for linked in details.sessions}
        archive = self._stores.archive
        found = find_open_sessions(archive, repository, [commit], known, minutes, without=without)
        return found[commit.sha], datetime.fromtimestamp(commit_window(commit, known, minutes)[0] / 1000, UTC)

    def _context(
        self,
        repository: git.Repository,
        selected: Sequence[git.Commit],
        commits: Sequence[git.Commit],
        window: int | None,
    ) -> dict[str, tuple[OpenSession, ...]]:
        minutes = self._stores.settings.commits_window if window is None else window
        if minutes < 0:
            raise UsageError(f"{minutes} is not a number of minutes. Pass 0 or more.")
        known = {commit.sha: commit for commit in commits}
        return find_open_sessions(self._stores.archive, repository, selected, known, minutes)

    def _links(
        self,
        repository: git.Repository,
        commits: Sequence[git.Commit],
        shas: Sequence[str],
        progress: Progress | None,
    ) -> dict[str, tuple[LinkedSession, ...]]:
        links = link_commits(self._stores.archive, repository, commits, shas, progress=progress)
        for source, root in self._stores.roots():
            if (tracking := source.code_tracking()) is not None:
                tracked = tracking.tracked_code(root)
                links = add_tracking(self._stores.archive, repository, commits, links, tracked)
        return add_manual_links(self._stores.archive, repository, commits, links)

    def link(self, revision: str, ref: str, repository: AnyPath = ".") -> LinkedSession:
        """Store that a session led to a commit. It wins over everything that is found. Return the link."""
        return self._set_link(revision, ref, repository, is_linked=True)

    def unlink(self, revision: str, ref: str, repository: AnyPath = ".") -> LinkedSession:
        """Store that a session did not lead to a commit, whatever the evidence is. Return the session."""
        return self._set_link(revision, ref, repository, is_linked=False)

    def _set_link(self, revision: str, ref: str, repository: AnyPath, *, is_linked: bool) -> LinkedSession:
        opened = git.open_repository(Path(repository))
        (commit,) = git.read_commits(opened, [find_commit(opened, revision)])
        archive = self._stores.writable_archive
        summary = find_session_to_change(archive, ref)
        if summary.parent_ref is not None:
            raise UsageError(f"{summary.ref} is a subagent. Name its session: {summary.parent_ref}")
        key = SessionKey(summary.platform, summary.id)
        link = ManualLink(key, commit.sha, commit.authored_at, patch_key(opened, commit), is_linked)
        archive.annotations.set_link(link)
        return manual_claim(summary)

    def blame(
        self,
        path: AnyPath,
        repository: AnyPath | None,
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

    def changed_files(self, sha: str, repository: AnyPath) -> list[ChangedFile]:
        """Return the files that a commit changes, in git's order. A merge has none."""
        opened = git.open_repository(Path(repository))
        sha = find_commit(opened, sha)
        existing = git.list_paths(opened, sha)
        return [
            ChangedFile(file.path, file.added, file.removed, file.path in existing)
            for file in git.read_sizes(opened, sha)
        ]

    def diff(self, sha: str, repository: AnyPath, *, max_lines: int) -> list[Edit]:
        """Return the changed lines of the text files in a commit, up to a number of lines. A merge has none.

        Raises `RepositoryError` or `CommitNotFoundError`.
        """
        opened = git.open_repository(Path(repository))
        return list(git.read_diff(opened, find_commit(opened, sha), max_lines=max_lines))

    def folder(self, path: str, repository: AnyPath, ref: str = "HEAD") -> list[git.FolderEntry]:
        """Return the files and folders in a folder of a commit; none if it is not a folder.

        An empty path is the root. Raises `RepositoryError` or `CommitNotFoundError`.
        """
        opened = git.open_repository(Path(repository))
        path = _path_inside(path, opened) if path else ""
        return git.list_folder(opened, path, find_commit(opened, ref))

    def file_facts(
        self, path: str, repository: AnyPath, *, ref: str | None = None, max_bytes: int
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


def _is_repository(path: str) -> bool:
    try:
        return (Path(path) / ".git").exists()
    except (OSError, ValueError):  # no permission, or not a path of this system
        return False


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


def _path_inside(path: str, repository: git.Repository) -> str:
    """Return a relative path without ``.`` parts. Raises `RepositoryError` if it leads out of the root."""
    parts = PurePosixPath(path).parts
    if not parts or "\0" in path or parts[0] == "/" or ".." in parts or PureWindowsPath(path).drive:
        raise RepositoryError(f"{path!r} is not a path in {repository.folder}.", repository.folder)
    return str(PurePosixPath(*parts))


def _summary(
    commit: git.Commit, sessions: tuple[LinkedSession, ...], context: tuple[OpenSession, ...]
) -> CommitSummary:
    return CommitSummary(
        sha=commit.sha,
        parent=commit.parents[0] if commit.parents else None,
        author=commit.author,
        at=datetime.fromtimestamp(commit.authored_at, UTC),
        subject=commit.subject,
        sessions=sessions,
        context=context,
    )


def find_turns(
    archive: Archive, summary: SessionSummary, commit: git.Commit, lines: set[int], paths: Iterable[str]
) -> list[CommitTurn]:
    """Return the turns whose edits or calls led to a commit, in order.

    ``lines`` are the hashes of the lines that the commit adds, ``paths`` the files that it changes. Without
    an edit that adds one of the lines, the turns that changed the files are returned.
    """
    relevance = _Relevance(commit, lines, paths)
    messages = list(archive.messages.without_usage(summary))
    agents = archive.sessions.subagents(summary)
    found: list[tuple[int, int | None]] = []  # strength and position
    found += [(relevance.strength(message), position) for position, message in enumerate(messages)]
    for agent, call_id in agents:
        for message in archive.messages.without_usage(agent):
            if strength := relevance.strength(message):
                found.append((strength, call_position(call_id, message, messages)))
    placed = [(strength, position) for strength, position in found if strength and position is not None]
    best = max(placed, default=(0, 0))[0]
    positions = sorted({position for strength, position in placed if strength == best})
    starts = archive.messages.turn_starts(summary, [agent.id for agent, _ in agents])
    return list(_turns(summary, messages, starts, positions))


def _turns(
    summary: SessionSummary, messages: list[Message], starts: list[int], positions: list[int]
) -> Iterator[CommitTurn]:
    seen: set[int] = set()
    for position in positions:
        number = bisect_right(starts, position) - 1
        if number in seen:
            continue
        seen.add(number)
        first = starts[number] if number >= 0 else 0
        last = (starts[number + 1] if number + 1 < len(starts) else len(messages)) - 1
        prompt = messages[first].content if number >= 0 else None
        yield CommitTurn(summary.ref, first, last, prompt)


class _Relevance:
    """Compares messages with one commit."""

    def __init__(self, commit: git.Commit, lines: set[int], paths: Iterable[str]) -> None:
        self._commit = commit
        self._lines = lines
        self._paths = list(paths)
        self._subjects = {" ".join(line.split()).casefold() for line in commit.message.splitlines()}
        self._until = max(commit.authored_at, commit.committed_at) * 1000 + SLACK_MS

    def strength(self, message: Message) -> int:
        """Return 2 for a call that wrote lines of the commit or made it, 1 if it changed its files."""
        tool, at = message.tool, to_milliseconds(message.timestamp)
        if tool is None or message.copied_from is not None or (at is not None and at > self._until):
            return 0
        call = commit_call(tool)
        if call is not None:
            if any(self._commit.sha.startswith(printed) for printed in (*call.hashes, *call.shown)):
                return 2
            if any(" ".join(subject.split()).casefold() in self._subjects for subject in call.subjects):
                return 2
        strength = 0
        for path, lines, _ in message_edits(tool):
            if sum(map(line_weight, self._lines.intersection(lines))) >= _MIN_LINE_WEIGHT:
                return 2
            if path and any(implied_root(normalize(path), tracked) is not None for tracked in self._paths):
                strength = 1
        return strength
