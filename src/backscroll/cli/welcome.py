"""What somebody sees who has no history yet."""

from collections.abc import Iterator

from backscroll.history import History

__all__ = ["welcome_lines"]


def welcome_lines(history: History, *, no_sync: bool = False) -> Iterator[str]:
    """Where was looked, and how to look around all the same; without a sync, that one is due."""
    if no_sync:
        yield "The archive is empty. backscroll sync reads what there is."
        return
    yield "No history was found. These places were looked at:"
    yield from (f"  {source.name:<12} {path}" for source, path in history.roots())
    yield ""
    yield "To look around with a made-up one: backscroll demo DIR"
