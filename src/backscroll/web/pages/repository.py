"""Pages of a repository: commits, files and the journal, with the sessions behind them."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from backscroll.errors import DataNotFoundError, SessionNotFoundError, UsageError
from backscroll.history.history import History
from backscroll.model.commit import BlameLine, CommitSummary
from backscroll.model.session import SessionSummary
from backscroll.model.text import sanitize
from backscroll.render.html.diff import DiffHtml
from backscroll.render.html.highlighting import CodeHighlighter, highlight_code, language_of_path
from backscroll.render.html.markdown import markdown_to_html
from backscroll.render.journal import without_markers
from backscroll.web.templating import render
from backscroll.web.urls import parse_page, session_url, with_query

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
    repository = _repository_of(request, repositories)
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
        previous_url=_commits_url(repository, number - 1) if number > 1 else None,
        next_url=_commits_url(repository, number + 1) if result.pagination.has_more else None,
    )


def commit_page(history: History, request: Request) -> Response:
    """Return a commit with the evidence for each session, and the prompts that led to it."""
    repository = _repository_of(request, history.commits.repositories())
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


def _sessions(
    history: History, commits: "tuple[CommitSummary, ...] | list[CommitSummary]"
) -> dict[str, SessionSummary]:
    """Return the linked sessions by ref. One that another process has just forgotten is omitted."""
    found: dict[str, SessionSummary] = {}
    for ref in {ref for commit in commits for ref in commit.refs}:
        try:
            found[ref] = history.find(ref)
        except SessionNotFoundError:
            continue
    return found


def _commits_url(repository: str, page: int) -> str:
    return with_query("/commits", {"repo": repository, "page": page})


def _repository_of(request: Request, repositories: list[str]) -> str:
    """Return the repository of a request. Only workspaces of the archive are read, no other folder."""
    given = request.query_params.get("repo", "")
    if not given and repositories:
        return repositories[0]
    if not given:
        raise UsageError("No folder of your sessions is a git repository on this machine.")
    if given not in repositories:
        raise UsageError(f"{given!r} is not a repository with sessions.")
    return given


MAX_FILE_BYTES = 4_000_000
PAGE_LINES = 500  # git compares each line with other files, so the time grows with the lines
MAX_ENTRIES = 2000  # of a folder
MAX_LINE_CHARS = 2000
_MAX_PATH_CHARS = 4096
_MAX_NUMBER_DIGITS = 9


class LineRun(Struct, frozen=True):
    """Adjacent lines with the same commit, session and prompt."""

    first: BlameLine
    session: SessionSummary | None
    is_gone: bool  # the session was forgotten
    lines: list[tuple[int, Markup]]


def file_page(history: History, request: Request) -> Response:
    """Return a folder of a repository, or a file with the session of each line."""
    repositories = history.commits.repositories()
    if not repositories:
        return render(request, "commits.html", repositories=[], repository=None)
    repository = _repository_of(request, repositories)
    path = request.query_params.get("path", "").strip("/")
    ref = request.query_params.get("ref", "") or None
    if len(path) > _MAX_PATH_CHARS:
        raise UsageError("The path is too long.")
    entries = history.commits.folder(path, repository, ref or "HEAD")
    if entries or not path:
        return render(
            request,
            "folder.html",
            **_location(repository, path, ref),
            entries=[(entry, _file_url(repository, entry.path, ref)) for entry in entries[:MAX_ENTRIES]],
            entry_count=len(entries),
        )
    facts = history.commits.file_facts(path, repository, ref=ref, max_bytes=MAX_FILE_BYTES)
    start = _first_line(request, facts.line_count)
    stop = min(start + PAGE_LINES - 1, facts.line_count)
    lines: tuple[BlameLine, ...] = ()
    if facts.line_count:
        lines = history.blame_file(facts.path, repository, lines=(start, stop), ref=ref)
    return render(
        request,
        "file.html",
        **_location(repository, facts.path, ref),
        facts=facts,
        runs=list(_runs(history, facts.path, lines)),
        session_lines=sum(line.session_ref is not None for line in lines),
        start=start,
        stop=stop,
        previous_url=_lines_url(repository, path, ref, max(1, start - PAGE_LINES)) if start > 1 else None,
        next_url=_lines_url(repository, path, ref, stop + 1) if stop < facts.line_count else None,
    )


def _location(repository: str, path: str, ref: str | None) -> dict[str, Any]:
    """Return what the head of the page shows: the folders above, and the commit."""
    parts = path.split("/") if path else []
    folders = [("/".join(parts[:end]), parts[end - 1]) for end in range(1, len(parts))]
    return {
        "repository": repository,
        "path_in_repository": path,
        "ref": ref,
        "crumbs": [(name, _file_url(repository, folder, ref)) for folder, name in folders],
        "root_url": _file_url(repository, "", ref),
        "checkout_url": _file_url(repository, path, None) if ref is not None else None,
    }


def _file_url(repository: str, path: str, ref: str | None) -> str:
    """Return the address of a file or folder."""
    return with_query("/files", {"repo": repository, "path": path, "ref": ref})


def _lines_url(repository: str, path: str, ref: str | None, start: int) -> str:
    return with_query("/files", {"repo": repository, "path": path, "ref": ref, "line": start})


def _first_line(request: Request, line_count: int) -> int:
    given = request.query_params.get("line", "1")
    if not (given.isascii() and given.isdigit() and len(given) <= _MAX_NUMBER_DIGITS and int(given) >= 1):
        raise UsageError(f"{given!r} is not a line. Lines count from 1.")
    if int(given) > max(1, line_count):
        raise UsageError(f"The file has {line_count:,} lines, not {int(given):,}.")
    return int(given)


def _runs(history: History, path: str, lines: Sequence[BlameLine]) -> Iterator[LineRun]:
    html = iter(_html_lines(path, lines))
    sessions: dict[str, SessionSummary | None] = {}
    for _, group in groupby(lines, key=lambda line: (line.sha, line.session_ref, line.prompt_id)):
        members = list(group)
        first = members[0]
        ref = first.session_ref
        if ref is not None and ref not in sessions:
            try:
                sessions[ref] = history.find(ref)
            except SessionNotFoundError:  # forgotten by another process in the meantime
                sessions[ref] = None
        session = sessions[ref] if ref is not None else None
        yield LineRun(
            first, session, ref is not None and session is None, [(m.line, next(html)) for m in members]
        )


def _html_lines(path: str, lines: Sequence[BlameLine]) -> list[Markup]:
    """Return each line as HTML, highlighted if the language is known."""
    texts = [sanitize(line.text[:MAX_LINE_CHARS]).replace("\n", " ") for line in lines]
    html = highlight_code("\n".join(texts), language_of_path(path))
    if html:
        return [Markup(line) for line in html.split("\n")]  # escaped by the highlighter
    return [escape(text) for text in texts]


MAX_DAYS = 366  # in the list; older days have addresses, too
_COMMIT = re.compile(r"<code>([0-9a-f]{40})</code>")
_SESSION = re.compile(rf"<code>((?:{'|'.join(History.source_names())}):[0-9a-f-]{{8,36}})</code>")


def journal_page(history: History, request: Request) -> Response:
    """Return the entries of a day, by default of the last one with entries."""
    repositories = history.commits.repositories()
    if not repositories:
        return render(request, "commits.html", repositories=[], repository=None)
    repository = _repository_of(request, repositories)
    days = [day.isoformat() for day in history.journal.days(repository)]
    given = request.query_params.get("day", "")
    if given and given not in days:
        raise DataNotFoundError(f"The journal has no entries of {given!r}.", given)
    day = given or next(iter(days), None)
    text = history.journal.read(day, repository) if day is not None else None
    return render(
        request,
        "journal.html",
        repositories=[(path, with_query("/journal", {"repo": path})) for path in repositories],
        repository=repository,
        commits_url=with_query("/commits", {"repo": repository}),
        days=[(one, with_query("/journal", {"repo": repository, "day": one})) for one in days[:MAX_DAYS]],
        day=day,
        html=_with_links(markdown_to_html(without_markers(text)), repository) if text is not None else "",
        folder=str(history.journal.folder(repository)),
    )


def _with_links(html: str, repository: str) -> str:
    """Return the HTML with links from hashes to commits, and from refs to sessions."""

    def commit(found: re.Match[str]) -> str:
        url = with_query(f"/commits/{found[1]}", {"repo": repository})
        return f'<a href="{escape(url)}">{found[0]}</a>'

    html = _COMMIT.sub(commit, html)
    return _SESSION.sub(lambda found: f'<a href="{session_url(found[1])}">{found[0]}</a>', html)
