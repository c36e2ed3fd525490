"""Quotes, times and lists as Markdown."""

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, tzinfo

from backscroll.model.code.journal import SECTION_TITLES, JournalEntry, Quote

__all__ = ["bullet_list", "entry_text", "escape_html", "inline_quotes", "quote_block", "short_time"]

_CODE = re.compile(r"(`+)(?:(?!\1).)+\1", re.DOTALL)
_HEADING = re.compile(r"^#{1,3}(?=\s)", re.MULTILINE)
_HTML = re.compile(r"<(?=[A-Za-z/!?])")


def entry_text(entry: JournalEntry, zone: tzinfo | None) -> str:
    """Return an entry with its headings."""
    heading = f"## {entry.at.astimezone(zone):%H:%M} {escape_html(' '.join(entry.subject.split()))}"
    parts = [f"### {SECTION_TITLES[name]}\n\n{_contained(text)}" for name, text in entry.sections.items()]
    if entry.model is not None:
        parts.append(f"Written by {escape_html(entry.model)}; every quote was checked.")
    return "\n\n".join([heading, *parts]) + "\n"


def _contained(text: str) -> str:
    """Return the text of a section without headings of its level and without markers."""
    text = _HEADING.sub("####", text.strip())
    return text.replace("<!-- backscroll:", "<\\!-- backscroll:")


def short_time(at: datetime | None, day: date, zone: tzinfo | None) -> str:
    """Return the time of day, with the date if it is another day; empty if the time is unknown."""
    if at is None:
        return ""
    local = at.astimezone(zone)
    return f"{local:%H:%M}" if local.date() == day else f"{local:%Y-%m-%d %H:%M}"


def escape_html(text: str) -> str:
    """Escape HTML tags and comments outside of code, so that a quote cannot change the page around it."""
    parts: list[str] = []
    end = 0
    for code in _CODE.finditer(text):
        parts += [_HTML.sub(r"\\<", text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, _HTML.sub(r"\\<", text[end:])]).replace("<!--", "<\\!--")


def inline_quotes(quotes: Sequence[Quote], day: date, zone: tzinfo | None) -> str:
    """Return quotes in one line, each group with its speaker and time."""
    parts: list[str] = []
    for index, quote in enumerate(quotes):
        text = f"“{escape_html(' '.join(quote.text.split()))}”"
        is_continued = index + 1 < len(quotes) and _is_same_message(quote, quotes[index + 1])
        if is_continued:
            parts.append(f"{text} …")
            continue
        by = ", ".join(filter(None, (quote.speaker, short_time(quote.at, day, zone))))
        parts.append(f"{text} ({by})")
    return " ".join(parts)


def quote_block(quote: Quote, day: date, zone: tzinfo | None) -> str:
    """Return a quote as a block with its speaker and time."""
    by = ", ".join(filter(None, (f"**{quote.speaker.capitalize()}**", short_time(quote.at, day, zone))))
    lines = escape_html(f"{by}: {quote.text}").splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def bullet_list(items: Iterable[str]) -> str:
    """Return a Markdown list."""
    return "\n".join(f"- {item}" for item in items)


def _is_same_message(one: Quote, other: Quote) -> bool:
    return (one.session_ref, one.position) == (other.session_ref, other.position)
