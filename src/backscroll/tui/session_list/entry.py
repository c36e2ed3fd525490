"""An entry of the list: a session, or a session where something was found."""

from datetime import datetime

from msgspec import Struct

from backscroll.model import SearchMatch, SessionSummary
from backscroll.model.sanitize import one_line, sanitize
from backscroll.render.annotations import format_tags, starred_title
from backscroll.render.terminal.humanize import compact_number, format_age

__all__ = ["Entry", "of_match", "of_session"]

_WIDTH = 400
_BEFORE = 24  # characters before what was found, so that it is seen in the narrowest list


class Entry(Struct, frozen=True):
    """What the list shows in two lines, or three with what was found."""

    ref: str
    title: str
    facts: str
    found: str = ""
    marks: tuple[tuple[int, int], ...] = ()  # what is to be marked in it
    position: int | None = None  # of the message that was found


def of_session(summary: SessionSummary, now: datetime) -> Entry:
    """A session as the list shows it."""
    number = summary.message_count
    facts = [
        format_age(summary.updated_at, now),
        summary.workspace_name or "no workspace",
        summary.source,
        "1 message" if number == 1 else f"{compact_number(number)} messages",
        f"{compact_number(summary.total_tokens)} tokens" if summary.total_tokens else "",
        "gone" if summary.is_gone else "",
        "" if summary.completeness == "complete" else summary.completeness,
        format_tags(summary),
    ]
    unnamed = summary.first_message_preview or "(no words)"
    return Entry(
        summary.ref,
        starred_title(summary, _WIDTH, unnamed),
        " · ".join(one_line(fact, _WIDTH) for fact in facts if fact),
    )


def of_match(match: SearchMatch, now: datetime) -> Entry:
    """A session where something was found."""
    number = match.match_count
    facts = [
        format_age(match.timestamp, now),
        match.workspace_name or "no workspace",
        match.source,
        "note" if match.is_note else match.role,
        f"{number:,} matches" if number > 1 else "",
    ]
    found, marks = _part(match)
    return Entry(
        match.session_ref,
        one_line(match.title or match.session_ref, _WIDTH),
        " · ".join(one_line(fact, _WIDTH) for fact in facts if fact),
        found,
        marks,
        None if match.is_note else match.message_index,
    )


def _part(match: SearchMatch) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The line around what was found, safe to show, and what is to be marked in it."""
    text, start = match.match, 0
    if match.highlights and match.highlights[0][0] > _BEFORE:
        start = match.highlights[0][0] - _BEFORE
    start += len(text[start:]) - len(text[start:].lstrip())
    pieces, marks, at = ["…" if text[:start].strip() else ""], [], start
    for begin, end in match.highlights:
        if begin < at or begin - start > _WIDTH:
            continue
        pieces.append(_flat(text[at:begin]))
        before = sum(map(len, pieces))
        pieces.append(_flat(text[begin:end]))
        marks.append((before, before + len(pieces[-1])))
        at = end
    pieces.append(_flat(text[at : start + _WIDTH]))
    return "".join(pieces), tuple(marks)


def _flat(text: str) -> str:
    return sanitize(text).replace("\n", " ").replace("\t", " ")
