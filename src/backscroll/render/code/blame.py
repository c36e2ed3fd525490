"""The lines of a file with their commits, sessions and prompts."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import groupby
from typing import Any

from backscroll.model import SessionSummary
from backscroll.model.code.commit import BlameLine
from backscroll.model.dates import iso
from backscroll.model.text import one_line, sanitize
from backscroll.render.terminal.humanize import short_id
from backscroll.render.terminal.style import Style
from backscroll.render.terminal.width import cell_width, truncate

__all__ = ["NO_SESSION", "blame_document", "blame_rows", "blame_terminal_lines"]

NO_SESSION = "no session"
_UNCOMMITTED = "uncommitted"
_SHA_CHARS = 9
_MAX_PROMPT_CHARS = 500


def blame_document(lines: Sequence[BlameLine]) -> dict[str, Any]:
    """Return the lines of a file as in `blame --json`."""
    return {
        "data": [
            {
                "line": line.line,
                "text": line.text,
                "sha": line.sha,
                "session_ref": line.session_ref,
                "message_id": line.message_id,
                "prompt": line.prompt,
                "prompt_id": line.prompt_id,
                "from": line.first,
                "to": line.last,
                "agent_ref": line.agent_ref,
                "author": line.author,
                "at": iso(line.at) if line.at is not None else None,
                "subject": line.subject,
            }
            for line in lines
        ]
    }


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
            style("dim", one_line(line.prompt or "", _MAX_PROMPT_CHARS)),
            sanitize(line.text),
        )
        yield "\t".join(cells)


def blame_terminal_lines(
    lines: Sequence[BlameLine],
    titles: Mapping[str, SessionSummary],
    *,
    style: Style,
    width: int,
    zone: tzinfo | None = None,
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
        yield from _heading(members[0], titles, style, width, zone)
        for line in members:
            text = truncate(sanitize(line.text.expandtabs(4)), width - digits - 2)
            yield f"{style('dim', f'{line.line:>{digits}}')}  {text}".rstrip()


def _heading(
    line: BlameLine, titles: Mapping[str, SessionSummary], style: Style, width: int, zone: tzinfo | None
) -> Iterator[str]:
    sha = line.sha[:_SHA_CHARS] if line.sha is not None else _UNCOMMITTED
    date = f"{line.at.astimezone(zone):%Y-%m-%d}" if line.at is not None else ""
    name, title = _origin(line, titles)
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


def _origin(line: BlameLine, titles: Mapping[str, SessionSummary]) -> tuple[str, str]:
    """Return who wrote a line: a session and its title, or the author of the commit."""
    if line.session_ref is None:
        return f"({NO_SESSION})", line.author or ""
    source, _, id_ = line.session_ref.partition(":")
    summary = titles.get(line.session_ref)
    title = summary.title or summary.first_message_preview or "" if summary is not None else ""
    return f"{source}:{short_id(id_)}", title
