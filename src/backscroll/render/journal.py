"""Entries of the journal as JSON and as terminal text."""

from typing import Any

from backscroll.documents import to_document
from backscroll.model.journal import SECTION_TITLES, BackfillResult, JournalEntry, JournalResult, Quote
from backscroll.model.text import pluralize
from backscroll.render.humanize import short_sha

_SKIP_REASONS = {"merge": "is a merge: no entry", "journal-only": "changes only the journal: no entry"}


def journal_document(result: JournalResult) -> dict[str, Any]:
    """Return the entry of a commit as in `journal --json`."""
    entry = result.entry
    return {
        "sha": result.sha,
        "path": str(result.path) if result.path is not None else None,
        "is_new": result.is_new,
        "is_changed": result.is_changed,
        "sections": dict(entry.sections) if entry is not None else {},
        "quotes": [quote_document(quote) for quote in entry.quotes] if entry is not None else [],
        "model": entry.model if entry is not None else None,
        "skipped": result.skipped,
        "message": result.message,
    }


def quote_document(quote: Quote) -> dict[str, Any]:
    """Return a quote as JSON."""
    document = to_document(quote)
    document["message_index"] = document.pop("position")
    return document


def entry_markdown(entry: JournalEntry) -> str:
    """Return the sections of an entry with their headings."""
    return (
        "\n\n".join(f"### {SECTION_TITLES[name]}\n\n{text}" for name, text in entry.sections.items()) + "\n"
    )


def without_markers(text: str) -> str:
    """Return the text of a file without the comments that mark entries and notes."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("<!-- backscroll:"))


def result_line(result: JournalResult) -> str:
    """Return what was done for a commit, as one line."""
    sha = short_sha(result.sha)
    if result.skipped in _SKIP_REASONS:
        return f"{sha} {_SKIP_REASONS[result.skipped]}."
    if result.skipped == "edited":
        return f"{sha} is in {result.path}. You edited the entry, so it was kept."
    if result.is_new:
        return f"Wrote the entry of {sha} to {result.path}"
    if result.is_changed:
        return f"Updated the entry of {sha} in {result.path}"
    return f"{sha} is already in {result.path}"


def backfill_lines(result: BackfillResult) -> list[str]:
    """Return what was done for a period."""
    counts = [f"{pluralize(len(result.written), 'entry', 'entries')} written"]
    counts += [f"{result.existing:,} already there"] if result.existing else []
    counts += [f"{pluralize(result.skipped, 'commit')} of the journal skipped"] if result.skipped else []
    lines = [f"{', '.join(counts)}. Journal: {result.folder}"]
    if result.is_summary_edited:
        lines.append(f"You edited {result.summary_path}, so it was kept.")
    elif result.summary_path is not None:
        lines.append(f"Summary: {result.summary_path}")
    return lines
