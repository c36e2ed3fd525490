"""What somebody sees who has no history yet."""

from collections.abc import Iterator

from backscroll.history import History

__all__ = ["welcome_lines"]


def welcome_lines(history: History) -> Iterator[str]:
    """Where was looked, and how to look around all the same."""
    yield "No history was found. These places were looked at:"
    yield from (f"  {source.name:<12} {path}" for source, path in history.roots())
    yield ""
    yield "To look around with a made-up one: backscroll demo DIR"
