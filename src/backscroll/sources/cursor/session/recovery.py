"""What can still be had of a session whose messages have no rows."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import NamedTuple, TypeAlias

from backscroll.model import Message, Origin, Problem, ToolResult
from backscroll.sources.cursor import locations, prompt_log
from backscroll.sources.cursor.session import session_facts
from backscroll.sources.cursor.session.agent_record import AgentRecord
from backscroll.sources.cursor.session.session_facts import SessionFacts
from backscroll.sources.cursor.user_data import UserData

__all__ = ["RecoveredContent", "recover"]


_Said: TypeAlias = Message | ToolResult | Problem


class RecoveredContent(NamedTuple):
    """What was found, in which store, and what is wrong with it."""

    store: str
    items: Iterable[_Said]
    reason: str


def recover(
    user_data: UserData,
    facts: SessionFacts,
    agent_record: AgentRecord,
    storages: tuple[str, ...],
    latest: datetime,
) -> RecoveredContent | None:
    """The best of what is left: the agent's own record, the search index, the log of prompts."""
    started_at, ended_at = session_facts.stored_times(facts, latest)
    if remembered := _speaking(agent_record.items(started_at, ended_at)):
        return RecoveredContent(
            "graph", remembered, "its messages are gone; this is what the agent remembers of them"
        )
    is_gone = session_facts.visibility(facts, has_messages=False) == "ghost"
    if not is_gone and len(memoryview(facts.composer.full_conversation_headers_only)) <= len(b"null"):
        return None
    if body := user_data.side_databases.body(facts.session):
        message = Message(
            id=f"{facts.session}.text",
            role="assistant",
            content=body,
            origin=Origin(str(locations.search_database(user_data.root)), f"conversations {facts.session}"),
            kind="recovered",
        )
        return RecoveredContent("search", [message], "only the text in Cursor's search index is left")
    known = {file.storage: file.path for file in user_data.databases() if file.storage}
    for storage in storages:
        if storage in known and (
            typed := prompt_log.prompts_between(user_data, known[storage], started_at, ended_at, latest)
        ):
            return RecoveredContent("prompts", typed, "only the log of prompts is left")
    return None


def _speaking(items: Iterator[_Said]) -> Iterator[_Said] | None:
    """The same items, unless nobody says anything in them."""
    first: list[_Said] = []
    for item in items:
        first.append(item)
        if isinstance(item, Message) and item.role != "system":
            return chain(first, items)
    return None
