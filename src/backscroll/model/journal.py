"""Entries of the journal."""

from datetime import datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct

Speaker = Literal["user", "assistant"]
SectionName = Literal[
    "summary",
    "synopsis",
    "accomplishments",
    "frustrations",
    "decisions",
    "open",
    "discussion",
    "files",
    "commit",
]
NoteKind = Literal["reflection", "context"]
PeriodKind = Literal["day", "week", "month", "quarter", "year"]
# Why a commit has no new entry: it is a merge, it changes only the journal, or the user edited its entry.
SkipReason = Literal["merge", "journal-only", "edited"]

# Sections of an entry in their order.
SECTION_TITLES: dict[SectionName, str] = {
    "summary": "Summary",
    "synopsis": "Technical synopsis",
    "accomplishments": "Accomplishments",
    "frustrations": "Frustrations",
    "decisions": "Decisions",
    "open": "Open",
    "discussion": "Discussion",
    "files": "Files discussed",
    "commit": "Commit",
}


class Quote(Struct, frozen=True):
    """A verbatim part of a message."""

    speaker: Speaker
    text: str
    at: datetime | None
    session_ref: str
    position: int  # of the message in its session, from 0
    has_inferred_time: bool = False


class QuoteProblem(Struct, frozen=True):
    """A text that is presented as a quote and is in no message."""

    text: str
    suggestion: str | None  # the most similar sentence, if there is one


class JournalEntry(Struct, frozen=True, kw_only=True):
    """The record of one commit."""

    sha: str
    patch_id: str  # the same for a rewritten commit with the same changes
    subject: str
    at: datetime
    sections: dict[SectionName, str]  # Markdown, without headings; empty sections are missing
    quotes: tuple[Quote, ...]
    model: str | None = None  # the language model or assistant that wrote it; None if it was extracted


class JournalResult(Struct, frozen=True, kw_only=True):
    """What was done for one commit."""

    sha: str
    path: Path | None = None  # the file with the entry; None without one
    is_new: bool = False  # the entry did not exist before
    is_changed: bool = False  # the file was written
    entry: JournalEntry | None = None  # None if the commit was skipped
    skipped: SkipReason | None = None
    message: str | None = None  # for people: why no model was used, or which quotes were removed


class BackfillResult(Struct, frozen=True, kw_only=True):
    """What was done for the commits of a period."""

    written: tuple[str, ...]  # hashes of commits with a new entry
    existing: int
    skipped: int  # merges are not counted; commits that change only the journal are
    folder: Path
    summary_path: Path | None = None  # of the period
    is_summary_edited: bool = False  # the user edited the summary, so it was kept
    message: str | None = None  # for people: why no model was used


class JournalNote(Struct, frozen=True):
    """A reflection or a captured context that was appended to a day."""

    kind: NoteKind
    text: str
    at: datetime
    path: Path


class JournalContext(Struct, frozen=True, kw_only=True):
    """Everything that an assistant needs to write the entry of a commit."""

    entry: JournalEntry  # as extracted, without a model
    path: Path | None  # of the existing entry
    instructions: str
    material: str  # the commit and the conversation as text
    notes: tuple[JournalNote, ...]  # reflections and captured context since the parent commit
