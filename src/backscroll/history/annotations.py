"""What a person adds to sessions, in the archive only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backscroll.errors import (
    UsageError,
)
from backscroll.history.sessions import Sessions

if TYPE_CHECKING:
    from backscroll.archive.session_key import SessionKey as Noted
    from backscroll.model import SessionSummary

__all__ = ["Noting"]

_LONGEST_TAG = 100


def _key(summary: SessionSummary) -> Noted:
    from backscroll.archive.session_key import SessionKey as Noted

    return Noted(summary.platform, summary.id)


def _tag(text: str) -> str:
    """A tag as it is kept: what is shown of it is all of it, so that typing that finds it."""
    name = text.strip().lstrip("#").lower()
    if not name or any(map(str.isspace, name)) or "*" in name:
        raise UsageError(f"{text!r} is no tag; a tag is one word without *")
    if not name.isprintable():
        raise UsageError(f"{text!r} is no tag; there are signs in it that cannot be seen")
    if len(name) > _LONGEST_TAG:
        raise UsageError(f"a tag has at most {_LONGEST_TAG} characters, not {len(name):,}")
    return name


def _worded(text: str, what: str) -> str:
    if not text.strip():
        raise UsageError(f"{what} needs words")
    return text.strip()


class Noting(Sessions):
    """What a person adds to sessions, in the archive only."""

    def tag_session(self, ref: str, add: Sequence[str] = (), *, take: Sequence[str] = ()) -> SessionSummary:
        """Give a session tags and take others away, in the archive only. They are kept through rebuilds."""
        summary = self._own(ref)
        self._archive.annotations.update_tags(_key(summary), add=map(_tag, add), remove=map(_tag, take))
        return self._noted(summary)

    def star_session(self, ref: str, is_starred: bool = True) -> SessionSummary:
        """Mark a session as one to come back to, or no longer."""
        summary = self._own(ref)
        self._archive.annotations.set_star(_key(summary), is_starred=is_starred)
        return self.find(summary.ref)

    def add_note(self, ref: str, text: str) -> SessionSummary:
        """Write something down about a session, in the archive only. Notes are searched like messages."""
        summary = self._own(ref)
        self._archive.annotations.add_note(_key(summary), _worded(text, "a note"))
        return self._noted(summary)

    def edit_note(self, ref: str, number: int, text: str | None) -> SessionSummary:
        """Write a note anew, or delete it without a text. Raises `UsageError` when it has no such number."""
        summary = self._own(ref)
        text = None if text is None else _worded(text, "a note")
        numbers = [note.number for note in summary.notes]
        if number not in numbers or not self._archive.annotations.edit_note(_key(summary), number, text):
            known = ", ".join(map(str, numbers))
            raise UsageError(
                f"{summary.ref} has no note {number}; it has {known}"
                if known
                else f"{summary.ref} has no notes"
            )
        return self._noted(summary)

    def rename_session(self, ref: str, title: str | None) -> SessionSummary:
        """Show a session under a title of one's own, or under the tool's again, in the archive only."""
        summary = self._own(ref)
        title = None if title is None else " ".join(_worded(title, "a title").split())
        self._archive.annotations.set_title(_key(summary), title)
        return self._noted(summary)

    def tags(self) -> dict[str, int]:
        """Every tag there is, with how many sessions have it."""
        return self._archive.annotations.tags()

    def _own(self, ref: str) -> SessionSummary:
        """A session that can be added to; a subagent has nothing of its own."""
        summary = self.find(ref)
        if summary.parent_ref is not None:
            raise UsageError(f"{summary.ref} is a subagent; note it with its session: {summary.parent_ref}")
        return summary

    def _noted(self, summary: SessionSummary) -> SessionSummary:
        self._update_index()
        return self.find(summary.ref)
