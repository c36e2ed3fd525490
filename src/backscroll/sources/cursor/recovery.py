"""What can still be had of a session whose messages have no rows."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from backscroll.model import Message, Origin
from backscroll.sources.cursor import places, prompts, summary
from backscroll.sources.cursor.bubble import Voice
from backscroll.sources.cursor.library import Library
from backscroll.sources.cursor.summary import Facts

__all__ = ["Rescue", "recover"]


class Rescue(NamedTuple):
    store: str
    messages: Iterable[Message]
    reason: str


def recover(
    library: Library, path: Path, facts: Facts, voice: Voice, storages: tuple[str, ...], latest: datetime
) -> Rescue | None:
    """The best of what is left: the agent's own record, the search index, the log of prompts."""
    if (
        summary.standing(facts, has_messages=False) != "ghost"
        and not facts.composer.full_conversation_headers_only
    ):
        return None
    if body := library.side.body(facts.session):
        message = Message(
            id=f"{facts.session}.text",
            role="assistant",
            content=body,
            origin=Origin(str(places.search_database(library.root)), f"conversations {facts.session}"),
            kind="recovered",
        )
        return Rescue("search", [message], "only the text in Cursor's search index is left")
    begun, ended = summary.span(facts, latest)
    known = {mark.storage: mark.path for mark in library.databases() if mark.storage}
    for storage in storages:
        if storage in known and (typed := prompts.between(library, known[storage], begun, ended, latest)):
            return Rescue("prompts", typed, "only the log of prompts is left")
    return None
