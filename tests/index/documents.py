"""Builders for indexed messages, and a search helper."""

from typing import Any, Literal

from backscroll.index.documents import Document
from backscroll.index.query import parse
from backscroll.index.store import Index

NOON = 1_792_929_600_000  # 25 October 2026, 12:00 UTC
DAY = 86_400_000


def message(text: str, session: int = 1, position: int = 0, **more: Any) -> Document:
    """Build a document with default attributes."""
    fields = {"role": "user", "source": "claude-code", "workspace_hash": "unknown", "at": NOON} | more
    return Document(text=text, session=session, position=position, **fields)


def found(index: Index, words: str, *, by: Literal["session", "message"] = "session") -> list[int]:
    """Return the sessions that match a query, best first."""
    return [hit.session for hit in index.search(parse(words), limit=20, by=by).hits]
