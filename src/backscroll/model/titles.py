"""Which of several titles of one session to take."""

from collections.abc import Iterable

from backscroll.model.stream import Closing

__all__ = ["OWN_TITLES", "best_title", "is_titled", "title_rank"]

# Titles that one from another file does not replace, the most deliberate first.
OWN_TITLES = ("custom-title", "desktop-title", "ai-title")


def title_rank(closing: Closing) -> int:
    """How deliberate a session's title is, 0 the most; its first words come late, and no title last."""
    if not is_titled(closing):
        return len(OWN_TITLES) + (closing.title is None) + 1
    source = closing.title_source
    return OWN_TITLES.index(source) if source in OWN_TITLES else len(OWN_TITLES)


def best_title(closings: Iterable[Closing]) -> Closing | None:
    """Of what several accounts say of a session, the one with the title to take; the first when in doubt."""
    return min(filter(is_titled, closings), key=title_rank, default=None)


def is_titled(closing: Closing) -> bool:
    """Whether a session has a title that somebody gave it; its first words are only better than nothing."""
    return closing.title is not None and closing.title_source != "first message"
