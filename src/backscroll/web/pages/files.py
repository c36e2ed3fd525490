"""Files of a repository with the session and the prompt behind each line."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.model.code.commit import BlameLine
from backscroll.model.text import sanitize
from backscroll.render.html.highlighting import highlight_code, language_of_path
from backscroll.web.pages.commits import repository_of
from backscroll.web.templating import render
from backscroll.web.urls import with_query

__all__ = ["file_page"]

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
    repository = repository_of(request, repositories)
    path = request.query_params.get("path", "").strip("/")
    ref = request.query_params.get("ref", "") or None
    if len(path) > _MAX_PATH_CHARS:
        raise UsageError("The path is too long.")
    entries = history.commits.folder(path, repository, ref or "HEAD")
    if entries or not path:
        return render(
            request,
            "folder.html",
            **_place(repository, path, ref),
            entries=[(entry, file_url(repository, entry.path, ref)) for entry in entries[:MAX_ENTRIES]],
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
        **_place(repository, facts.path, ref),
        facts=facts,
        runs=list(_runs(history, facts.path, lines)),
        session_lines=sum(line.session_ref is not None for line in lines),
        start=start,
        stop=stop,
        previous_url=_page_url(repository, path, ref, max(1, start - PAGE_LINES)) if start > 1 else None,
        next_url=_page_url(repository, path, ref, stop + 1) if stop < facts.line_count else None,
    )


def file_url(repository: str, path: str, ref: str | None) -> str:
    """Return the address of a file or folder."""
    return with_query("/files", {"repo": repository, "path": path, "ref": ref})


def _page_url(repository: str, path: str, ref: str | None, start: int) -> str:
    return with_query("/files", {"repo": repository, "path": path, "ref": ref, "line": start})


def _place(repository: str, path: str, ref: str | None) -> dict[str, Any]:
    """Return what the head of the page shows: the folders above, and the commit."""
    parts = path.split("/") if path else []
    folders = [("/".join(parts[:end]), parts[end - 1]) for end in range(1, len(parts))]
    return {
        "repository": repository,
        "path_in_repository": path,
        "ref": ref,
        "crumbs": [(name, file_url(repository, folder, ref)) for folder, name in folders],
        "root_url": file_url(repository, "", ref),
        "checkout_url": file_url(repository, path, None) if ref is not None else None,
    }


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
