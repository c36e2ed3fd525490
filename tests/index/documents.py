"""Builders for indexed messages; write and search them."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Literal

from backscroll.index.documents import IndexMessage, IndexSession, encode_message
from backscroll.index.query import parse
from backscroll.index.store import Index
from backscroll.index.writer import Writer

NOON = 1_792_929_600_000  # 25 October 2026, 12:00 UTC
DAY = 86_400_000


class Document(IndexMessage, frozen=True, kw_only=True, gc=False):
    """A message together with its session."""

    session: int
    source: str
    title: str | None = None  # set on the first message of a session only
    workspace_hash: str
    workspace_name: str | None = None


def message(text: str, session: int = 1, position: int = 0, **more: Any) -> Document:
    """Build a document with default attributes."""
    fields = {"role": "user", "source": "claude-code", "workspace_hash": "unknown", "at": NOON} | more
    return Document(text=text, session=session, position=position, **fields)


def write(
    index: Index, documents: Iterable[Document], *, delete: Iterable[int] = (), watermark: str | None = None
) -> bool:
    """Delete sessions, then add messages, in one commit. Return False if another process is writing.

    Without a watermark, the one of the last commit stays.
    """
    with index.writer(is_small=True) as writer:
        if writer is None:
            return False
        writer.delete_sessions(delete)
        add(writer, documents)
        writer.commit(watermark if watermark is not None else index.watermark)
    return True


def add(writer: Writer, documents: Iterable[Document]) -> None:
    """Add messages of any sessions."""
    for _, group in groupby(documents, key=lambda document: document.session):
        messages = list(group)
        first = messages[0]
        session = IndexSession(
            session=first.session,
            source=first.source,
            title=first.title,
            workspace_hash=first.workspace_hash,
            workspace_name=first.workspace_name,
        )
        writer.add_session(session, map(encode_message, messages))


def found(index: Index, words: str, *, by: Literal["session", "message"] = "session") -> list[int]:
    """Return the sessions that match a query, best first."""
    return [hit.session for hit in index.search(parse(words), limit=20, by=by).hits]
