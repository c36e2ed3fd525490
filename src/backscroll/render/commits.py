"""Commits, lines of files and surviving lines with the sessions behind them, as terminal text and JSON."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from backscroll.documents import to_document
from backscroll.model.commit import (
    BlameLine,
    CommitDetails,
    CommitSummary,
    CommitTurn,
    LinkedSession,
    OpenSession,
    SurvivalBy,
    SurvivalRow,
)
from backscroll.model.session import PaginatedResult, SessionSummary
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.humanize import format_usd, short_id, short_ref, short_sha
from backscroll.render.terminal_text import Style, cell_width, pad, truncate, wrap

_PROMPT_CHARS = 200
_PIPE_PROMPT_CHARS = 500  # in tab-separated rows
_TITLE_CHARS = 60
_NO_SESSION = "no session"
_UNCOMMITTED = "uncommitted"
_ALSO_OPEN = "also open at the time"
_SURVIVAL_HEADINGS = ("written", "committed", "alive", "cost", "per line")


def commit_document(commit: CommitDetails) -> dict[str, Any]:
    """Return a commit as in `commit --json`."""
    document = _with_context(commit)
    del document["is_merge"]
    return document | {"turns": [_turn_document(turn) for turn in commit.turns]}


def commits_document(page: PaginatedResult[CommitSummary]) -> dict[str, Any]:
    """Return a page of commits as in `commits --json`."""
    return to_document(page) | {"data": [_with_context(commit) for commit in page.data]}


def _with_context(commit: CommitSummary) -> dict[str, Any]:
    return to_document(commit) | {"context": [_turn_document(each) for each in commit.context]}


def _turn_document(value: CommitTurn | OpenSession | BlameLine) -> dict[str, Any]:
    """Return a turn, or what has one: the positions of the messages are ``from`` and ``to``."""
    names = {"first": "from", "last": "to"}
    return {names.get(name, name): field for name, field in to_document(value).items()}


def commits_lines(
    commits: Sequence[CommitSummary],
    titles: Mapping[str, SessionSummary],
    *,
    style: Style,
) -> Iterator[str]:
    """Yield each commit in one line, followed by its sessions. ``titles`` are the sessions by ref."""
    for commit in commits:
        yield f"{_commit_head(commit, style)}  {sanitize(commit.subject)}"
        for session in commit.sessions:
            kinds = ", ".join(evidence.kind for evidence in session.evidence)
            yield f"    {_session_head(session, titles, style)}  {style('dim', kinds)}"
        for opened in commit.context:
            yield f"    {_session_name(opened, titles)}  {style('dim', _ALSO_OPEN)}"


def commit_lines(
    commit: CommitDetails, titles: Mapping[str, SessionSummary], *, style: Style
) -> Iterator[str]:
    """Yield a commit with its sessions, their evidence and their turns."""
    yield f"{_commit_head(commit, style)}  {sanitize(commit.author)}"
    yield style("title", sanitize(commit.subject))
    if not commit.sessions:
        yield ""
        yield "No session was found for this commit."
        if commit.is_merge:
            yield "The lines of a merge are not compared. See the commits that it merges."
    if commit.context:
        yield ""
        yield f"{_ALSO_OPEN.capitalize()}:"
    for opened in commit.context:
        place = style("dim", f"messages {opened.first} to {opened.last}")
        yield f"  {_session_name(opened, titles)}  {place}"
    for session in commit.sessions:
        yield ""
        yield _session_head(session, titles, style)
        for evidence in session.evidence:
            yield f"  {evidence.weight:.2f}  {evidence.kind:<9}  {sanitize(evidence.detail)}"
        for turn in commit.turns:
            if turn.session_ref == session.session_ref:
                place = style("dim", f"messages {turn.first} to {turn.last}")
                yield f"  {place}  {one_line(turn.prompt or '(before the first prompt)', _PROMPT_CHARS)}"


def _commit_head(commit: CommitSummary, style: Style) -> str:
    at = commit.at.astimezone()
    return f"{style('accent', short_sha(commit.sha))}  {style('dim', f'{at:%Y-%m-%d %H:%M}')}"


def _session_head(session: LinkedSession, titles: Mapping[str, SessionSummary], style: Style) -> str:
    return f"{session.score:.2f}  {_session_name(session, titles)}"


def _session_name(session: LinkedSession | OpenSession, titles: Mapping[str, SessionSummary]) -> str:
    summary = titles.get(session.session_ref)
    title = summary.title or summary.first_message_preview or "" if summary is not None else ""
    return f"{short_ref(session.session_ref)}  {one_line(title, _TITLE_CHARS)}".rstrip()


def blame_document(lines: Sequence[BlameLine]) -> dict[str, Any]:
    """Return the lines of a file as in `blame --json`."""
    return {"data": [_turn_document(line) for line in lines]}


def blame_rows(lines: Sequence[BlameLine], *, style: Style) -> Iterator[str]:
    """Yield one row per line, separated by tabs: number, hash, session, message, prompt, text.

    Unknown values are empty.
    """
    for line in lines:
        cells = (
            str(line.line),
            style("accent", line.sha or ""),
            line.session_ref or "",
            line.message_id or "",
            style("dim", one_line(line.prompt or "", _PIPE_PROMPT_CHARS)),
            sanitize(line.text),
        )
        yield "\t".join(cells)


def blame_terminal_lines(
    lines: Sequence[BlameLine],
    titles: Mapping[str, SessionSummary],
    *,
    style: Style,
    width: int,
) -> Iterator[str]:
    """Yield the lines in groups with the same commit and prompt, below a heading.

    ``titles`` are the sessions by ref.
    """
    digits = len(str(lines[-1].line)) if lines else 0
    is_first = True
    for _, group in groupby(lines, key=lambda line: (line.sha, line.session_ref, line.prompt_id)):
        members = list(group)
        if not is_first:
            yield ""
        is_first = False
        yield from _blame_heading(members[0], titles, style, width)
        for line in members:
            text = truncate(sanitize(line.text.expandtabs(4)), width - digits - 2)
            yield f"{style('dim', f'{line.line:>{digits}}')}  {text}".rstrip()


def _blame_heading(
    line: BlameLine, titles: Mapping[str, SessionSummary], style: Style, width: int
) -> Iterator[str]:
    sha = short_sha(line.sha) if line.sha is not None else _UNCOMMITTED
    date = f"{line.at.astimezone():%Y-%m-%d}" if line.at is not None else ""
    name, title = _line_author(line, titles)
    date = date if cell_width(f"{sha}  {date}  {name}") <= width else ""
    start = f"{sha}  {date}".rstrip()
    space = width - cell_width(start) - cell_width(name) - 4
    shown = truncate(one_line(title, max(space, 1)), space)
    styled = [style("accent", sha), style("dim", date), truncate(name, width - cell_width(start) - 2)]
    if line.session_ref is None:
        yield "  ".join(filter(None, [*styled[:2], style("dim", f"{styled[2]}  {shown}".rstrip())]))
        return
    yield "  ".join(filter(None, [*styled, style("title", shown)]))
    prompt = line.prompt or "(before the first prompt)"
    yield style("user", truncate(f"> {one_line(prompt, width)}", width))


def _line_author(line: BlameLine, titles: Mapping[str, SessionSummary]) -> tuple[str, str]:
    """Return who wrote a line: a session and its title, or the author of the commit."""
    if line.session_ref is None:
        return f"({_NO_SESSION})", line.author or ""
    summary = titles.get(line.session_ref)
    title = summary.title or summary.first_message_preview or "" if summary is not None else ""
    return short_ref(line.session_ref), title


def survival_document(rows: Sequence[SurvivalRow]) -> dict[str, Any]:
    """Return the rows as in `survival --json`."""
    documents = []
    for row in rows:
        documents.append(to_document(row) | {"cost_per_alive_line_usd": row.cost_per_alive_line})
    return {"data": documents}


def survival_rows(rows: Sequence[SurvivalRow]) -> Iterator[str]:
    """Yield one line per row, separated by tabs. Unknown values are empty."""
    for row in rows:
        costs = (f"{usd:.6f}" if usd is not None else "" for usd in (row.cost_usd, row.cost_per_alive_line))
        counts = map(str, (row.lines_written, row.lines_committed, row.lines_alive))
        yield "\t".join([row.key or "", *counts, *costs])


def survival_lines(
    rows: Sequence[SurvivalRow],
    by: SurvivalBy,
    titles: Mapping[str, SessionSummary],
    *,
    style: Style,
    width: int,
) -> Iterator[str]:
    """Yield a table with a heading and a total. ``titles`` are the sessions by ref."""
    total = _survival_total(rows)
    table = [_survival_cells(row) for row in (*rows, total)]
    widths = [
        max(len(heading), *(len(cells[column]) for cells in table))
        for column, heading in enumerate(_SURVIVAL_HEADINGS)
    ]
    names = [_survival_name(row, titles) for row in rows]
    space = max(10, width - sum(widths) - 2 * len(widths))
    name_width = min(space, max(map(cell_width, (by, "total", *names))))
    heading = "  ".join(
        pad(text, width, is_right=True) for text, width in zip(_SURVIVAL_HEADINGS, widths, strict=True)
    )
    yield style("dim", f"{pad(by, name_width)}  {heading}")
    for name, cells in zip(names, table[:-1], strict=True):
        yield f"{pad(truncate(name, name_width), name_width)}  {_joined(cells, widths)}"
    if len(rows) > 1:
        yield style("strong", f"{pad('total', name_width)}  {_joined(table[-1], widths)}")
    if total.cost_usd is not None:
        yield ""
        for line in wrap(_survival_note(total), width):
            yield style("dim", line)


def _survival_note(total: SurvivalRow) -> str:
    """Return by what the cost per line divides."""
    alive = pluralize(total.priced_lines_alive, "alive line")
    note = f"Cost per line: divided by the {alive} of sessions with a known cost."
    others = total.lines_alive - total.priced_lines_alive
    if not others:
        return note
    verb = "is" if others == 1 else "are"
    return f"{note} {pluralize(others, 'alive line')} of other sessions {verb} left out."


def _survival_name(row: SurvivalRow, titles: Mapping[str, SessionSummary]) -> str:
    if row.key is None:
        return "(unknown)"
    summary = titles.get(row.key)
    if summary is None:
        return row.key
    title = one_line(summary.title or summary.first_message_preview or "", 60)
    return f"{summary.source}:{short_id(summary.id)}  {title}".rstrip()


def _survival_cells(row: SurvivalRow) -> list[str]:
    counts = (row.lines_written, row.lines_committed, row.lines_alive)
    per_line = row.cost_per_alive_line
    return [
        *(f"{count:,}" for count in counts),
        format_usd(row.cost_usd) if row.cost_usd is not None else "-",
        f"${per_line:,.4f}" if per_line is not None else "-",
    ]


def _survival_total(rows: Sequence[SurvivalRow]) -> SurvivalRow:
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    return SurvivalRow(
        key=None,
        lines_written=sum(row.lines_written for row in rows),
        lines_committed=sum(row.lines_committed for row in rows),
        lines_alive=sum(row.lines_alive for row in rows),
        cost_usd=sum(costs) if costs else None,
        priced_lines_alive=sum(row.priced_lines_alive for row in rows),
    )


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(pad(cell, width, is_right=True) for cell, width in zip(cells, widths, strict=True))
