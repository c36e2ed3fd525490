"""Commits of a repository, and the sessions that led to them."""

from markupsafe import Markup
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.model.code.commit import CommitSummary
from backscroll.render.html.diff import DiffHtml
from backscroll.render.html.highlighting import CodeHighlighter
from backscroll.web.templating import render
from backscroll.web.urls import parse_page, with_query

__all__ = ["commit_page", "commits_page", "repository_of"]

PAGE_SIZE = 30
MAX_FILES = 200
MAX_DIFF_LINES = 5000
MAX_OPEN_LINES = 400  # of all changes; those of a larger commit are folded
MAX_HIGHLIGHTED_CHARS = 50_000  # takes about 0.2 s
_MAX_PAGE = 100_000


def commits_page(history: History, request: Request) -> Response:
    """Return one page of commits, newest first. Without a repository, the most recently used one."""
    repositories = history.commits.repositories()
    if not repositories:
        return render(request, "commits.html", repositories=[], repository=None)
    repository = repository_of(request, repositories)
    number = parse_page(request.query_params.get("page", "1"), _MAX_PAGE)
    offset = (number - 1) * PAGE_SIZE
    result = history.list_commits(repository, limit=PAGE_SIZE, offset=offset)
    return render(
        request,
        "commits.html",
        repositories=[(path, with_query("/commits", {"repo": path})) for path in repositories],
        repository=repository,
        journal_url=with_query("/journal", {"repo": repository}),
        files_url=with_query("/files", {"repo": repository}),
        commits=result.data,
        total=result.pagination.total,
        first=offset + 1,
        last=offset + len(result.data),
        sessions=_sessions(history, result.data),
        previous_url=_page_url(repository, number - 1) if number > 1 else None,
        next_url=_page_url(repository, number + 1) if result.pagination.has_more else None,
    )


def commit_page(history: History, request: Request) -> Response:
    """Return a commit with the evidence for each session, and the prompts that led to it."""
    repository = repository_of(request, history.commits.repositories())
    commit = history.get_commit(request.path_params["sha"], repository)
    files = history.commits.changed_files(commit.sha, repository)
    diffs = _diffs(history, commit.sha, repository)
    return render(
        request,
        "commit.html",
        repository=repository,
        commit=commit,
        sessions=_sessions(history, [commit]),
        files=[
            (
                file,
                with_query("/files", {"repo": repository, "path": file.path, "ref": commit.sha}),
                diffs.get(file.path),
            )
            for file in files[:MAX_FILES]
        ],
        has_diffs=bool(diffs),
        is_open=sum((file.added or 0) + (file.removed or 0) for file in files) <= MAX_OPEN_LINES,
        file_count=len(files),
        turns={
            linked.session_ref: [turn for turn in commit.turns if turn.session_ref == linked.session_ref]
            for linked in commit.sessions
        },
    )


def _diffs(history: History, sha: str, repository: str) -> dict[str, Markup]:
    """Return the changes of each file as HTML, by path."""
    diff_html = DiffHtml(CodeHighlighter(MAX_HIGHLIGHTED_CHARS))
    edits = history.commits.diff(sha, repository, max_lines=MAX_DIFF_LINES)
    # The kind is shown in the list of files.
    return {edit.path: Markup(diff_html.render([replace(edit, kind="update")])) for edit in edits}


def repository_of(request: Request, repositories: list[str]) -> str:
    """Return the repository of a request. Only workspaces of the archive are read, no other folder."""
    given = request.query_params.get("repo", "")
    if not given and repositories:
        return repositories[0]
    if not given:
        raise UsageError("No folder of your sessions is a git repository on this machine.")
    if given not in repositories:
        raise UsageError(f"{given!r} is not a repository with sessions.")
    return given


def _sessions(
    history: History, commits: "tuple[CommitSummary, ...] | list[CommitSummary]"
) -> dict[str, SessionSummary]:
    """Return the linked sessions by ref. One that another process has just forgotten is omitted."""
    found: dict[str, SessionSummary] = {}
    for ref in {linked.session_ref for commit in commits for linked in commit.sessions}:
        try:
            found[ref] = history.find(ref)
        except SessionNotFoundError:
            continue
    return found


def _page_url(repository: str, page: int) -> str:
    return with_query("/commits", {"repo": repository, "page": page})
