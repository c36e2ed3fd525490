"""Counts with their nouns."""

__all__ = ["pluralize"]


def pluralize(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: ``1 session``, ``1,200 messages``, ``2 matches``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
