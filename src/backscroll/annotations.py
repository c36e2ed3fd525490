"""Tags, stars, notes and titles that users add, in the archive only."""

from collections.abc import Sequence

from backscroll.archive.session_key import SessionKey
from backscroll.errors import UsageError
from backscroll.model.session import SessionSummary
from backscroll.stores.lookup import find_session, find_session_to_change
from backscroll.stores.stores import Stores

_MAX_TAG_CHARS = 100


class Annotations:
    """Tags, stars, notes and titles that users add, in the archive only. They survive rebuilds.

    Each change returns the updated summary.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def tag(self, ref: str, add: Sequence[str] = (), *, remove: Sequence[str] = ()) -> SessionSummary:
        """Add and remove tags. A text is one tag."""
        summary = self._session(ref)
        self._stores.archive.annotations.update_tags(
            _key(summary), add=_checked_tags(add), remove=_checked_tags(remove)
        )
        return self._indexed(summary)

    def star(self, ref: str, is_starred: bool = True) -> SessionSummary:
        """Add or remove the star."""
        summary = self._session(ref)
        self._stores.archive.annotations.set_star(_key(summary), is_starred=is_starred)
        return find_session(self._stores.archive, summary.ref)

    def add_note(self, ref: str, text: str) -> SessionSummary:
        """Add a note. Notes are searched like messages."""
        summary = self._session(ref)
        self._stores.archive.annotations.add_note(_key(summary), _checked_text(text, "note"))
        return self._indexed(summary)

    def edit_note(self, ref: str, number: int, text: str | None) -> SessionSummary:
        """Replace the text of a note; None deletes it. Raises `UsageError` if there is no such note."""
        summary = self._session(ref)
        text = None if text is None else _checked_text(text, "note")
        numbers = [note.number for note in summary.notes]
        if number not in numbers or not self._stores.archive.annotations.edit_note(
            _key(summary), number, text
        ):
            known = f"Its notes are {', '.join(map(str, numbers))}." if numbers else "It has no notes."
            raise UsageError(f"{summary.ref} has no note {number}. {known}")
        return self._indexed(summary)

    def rename(self, ref: str, title: str | None) -> SessionSummary:
        """Replace the title; None restores the tool's title."""
        summary = self._session(ref)
        title = None if title is None else " ".join(_checked_text(title, "title").split())
        self._stores.archive.annotations.set_title(_key(summary), title)
        return self._indexed(summary)

    def tags(self) -> dict[str, int]:
        """Return every tag with the number of its sessions."""
        return self._stores.archive.annotations.tags()

    def _session(self, ref: str) -> SessionSummary:
        summary = find_session_to_change(self._stores.archive, ref)
        if summary.parent_ref is not None:
            raise UsageError(f"{summary.ref} is a subagent. Annotate its session: {summary.parent_ref}")
        return summary

    def _indexed(self, summary: SessionSummary) -> SessionSummary:
        self._stores.index.update()
        return find_session(self._stores.archive, summary.ref)


def _key(summary: SessionSummary) -> SessionKey:
    return SessionKey(summary.platform, summary.id)


def _checked_tags(tags: Sequence[str]) -> list[str]:
    return [_checked_tag(tag) for tag in ([tags] if isinstance(tags, str) else tags)]


def _checked_tag(text: str) -> str:
    """Return a tag as it is stored: lower case, without ``#``."""
    name = text.strip().lstrip("#").lower()
    if not name or any(map(str.isspace, name)) or "*" in name:
        raise UsageError(f"{text!r} is not a tag. A tag is one word without *.")
    if not name.isprintable():
        raise UsageError(f"{text!r} is not a tag. It contains invisible characters.")
    if len(name) > _MAX_TAG_CHARS:
        raise UsageError(f"A tag has at most {_MAX_TAG_CHARS} characters, not {len(name):,}.")
    return name


def _checked_text(text: str, what: str) -> str:
    if not text.strip():
        raise UsageError(f"The {what} is empty.")
    return text.strip()
