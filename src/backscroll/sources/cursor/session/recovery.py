"""What can still be had of a session whose messages have no rows."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import NamedTuple, TypeAlias

from backscroll.model import Message, Origin, Problem, ToolResult
from backscroll.sources.cursor import locations, prompt_log
from backscroll.sources.cursor.session import session_facts
from backscroll.sources.cursor.session.agent_record import Memory
from backscroll.sources.cursor.session.session_facts import Facts
from backscroll.sources.cursor.user_data import Library

__all__ = ["Rescue", "recover"]


_Said: TypeAlias = Message | ToolResult | Problem


class Rescue(NamedTuple):
    """What was found, in which store, and what is wrong with it."""

    store: str
    items: Iterable[_Said]
    reason: str


def recover(
    library: Library, facts: Facts, memory: Memory, storages: tuple[str, ...], latest: datetime
) -> Rescue | None:
    """The best of what is left: the agent's own record, the search index, the log of prompts."""
    begun, ended = session_facts.span(facts, latest)
    if remembered := _speaking(memory.items(begun, ended)):
        return Rescue("graph", remembered, "its messages are gone; this is what the agent remembers of them")
    is_gone = session_facts.standing(facts, has_messages=False) == "ghost"
    if not is_gone and len(memoryview(facts.composer.full_conversation_headers_only)) <= len(b"null"):
        return None
    if body := library.side.body(facts.session):
        message = Message(
            id=f"{facts.session}.text",
            role="assistant",
            content=body,
            origin=Origin(str(locations.search_database(library.root)), f"conversations {facts.session}"),
            kind="recovered",
        )
        return Rescue("search", [message], "only the text in Cursor's search index is left")
    known = {mark.storage: mark.path for mark in library.databases() if mark.storage}
    for storage in storages:
        if storage in known and (typed := prompt_log.between(library, known[storage], begun, ended, latest)):
            return Rescue("prompts", typed, "only the log of prompts is left")
    return None


def _speaking(items: Iterator[_Said]) -> Iterator[_Said] | None:
    """The same items, unless nobody says anything in them."""
    first: list[_Said] = []
    for item in items:
        first.append(item)
        if isinstance(item, Message) and item.role != "system":
            return chain(first, items)
    return None
