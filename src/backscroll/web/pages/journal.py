"""The journal of a repository, one day at a time."""

import re

from markupsafe import escape
from starlette.requests import Request
from starlette.responses import Response

from backscroll.errors import DataNotFoundError
from backscroll.history import History
from backscroll.render.code.journal import without_markers
from backscroll.render.html.markdown import markdown_to_html
from backscroll.web.pages.commits import repository_of
from backscroll.web.templating import render
from backscroll.web.urls import session_url, with_query

__all__ = ["journal_page"]

MAX_DAYS = 366  # in the list; older days have addresses, too
_COMMIT = re.compile(r"<code>([0-9a-f]{40})</code>")
_SESSION = re.compile(rf"<code>((?:{'|'.join(History.source_names())}):[0-9a-f-]{{8,36}})</code>")


def journal_page(history: History, request: Request) -> Response:
    """Return the entries of a day, by default of the last one with entries."""
    repositories = history.commits.repositories()
    if not repositories:
        return render(request, "commits.html", repositories=[], repository=None)
    repository = repository_of(request, repositories)
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
