"""Recover the content of a session that has lost its messages."""

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

__all__ = ["ContentItem", "RecoveredContent", "recover"]

ContentItem: TypeAlias = Message | ToolResult | Problem


class RecoveredContent(NamedTuple):
    """Recovered items, their store, and why the session is incomplete."""

    store: str
    items: Iterable[ContentItem]
    reason: str


def recover(
    user_data: UserData,
    facts: SessionFacts,
    agent_record: AgentRecord,
    storage_ids: tuple[str, ...],
    latest: datetime,
) -> RecoveredContent | None:
    """Return the content of the agent's record, else of the search index, else of the prompt log."""
    started_at, ended_at = session_facts.stored_times(facts, latest)
    if items := _unless_empty(agent_record.items(started_at, ended_at)):
        return RecoveredContent(
            "graph", items, "its messages are gone; this is what the agent remembers of them"
        )
    is_ghost = session_facts.visibility(facts, has_messages=False) == "ghost"
    if not is_ghost and len(memoryview(facts.composer.full_conversation_headers_only)) <= len(b"null"):
        return None
    if text := user_data.side_databases.search_text(facts.session_id):
        message = Message(
            id=f"{facts.session_id}.text",
            role="assistant",
            content=text,
            origin=Origin(
                str(locations.search_database(user_data.root)), f"conversations {facts.session_id}"
            ),
            kind="recovered",
        )
        return RecoveredContent("search", [message], "only the text in Cursor's search index remains")
    paths = {file.storage_id: file.path for file in user_data.databases() if file.storage_id}
    for storage_id in storage_ids:
        if storage_id in paths and (
            prompts := prompt_log.prompts_between(user_data, paths[storage_id], started_at, ended_at, latest)
        ):
            return RecoveredContent("prompts", prompts, "only the prompt log remains")
    return None


def _unless_empty(items: Iterator[ContentItem]) -> Iterator[ContentItem] | None:
    """Return the items unchanged; None if all messages are system messages."""
    read_items: list[ContentItem] = []
    for item in items:
        read_items.append(item)
        if isinstance(item, Message) and item.role != "system":
            return chain(read_items, items)
    return None
