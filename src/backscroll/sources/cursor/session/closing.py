"""Closing of a session: the facts that are known after its last message."""

from collections import Counter
from datetime import datetime
from typing import Any, NamedTuple

from backscroll.model import Agent, Closing, Completeness, Message, TimeSource, Workspace
from backscroll.model.text import pluralize
from backscroll.sources.cursor.database.decode import as_list, as_map, as_text
from backscroll.sources.cursor.session import session_facts
from backscroll.sources.cursor.session.session_facts import SessionFacts
from backscroll.sources.cursor.user_data import UserData

__all__ = ["ContentLoss", "MessageStats", "build_closing"]


class MessageStats:
    """Statistics of the messages for the closing, collected while they are emitted."""

    def __init__(self) -> None:
        self.first_at: datetime | None = None
        self.last_at: datetime | None = None
        self.prompt: str | None = None  # first active prompt typed by the user
        self.first_user_text: str | None = None  # also inactive or simulated; the prompt of a subagent
        self.model: str | None = None
        self.total_tokens = 0
        self.tool_call_count = 0
        self.message_count = 0

    def add(self, message: Message) -> None:
        """Add one message. A placeholder of a lost message does not increase the count."""
        if message.kind != "missing":
            self.message_count += 1
        if message.usage is not None:
            self.total_tokens += message.usage.total
        if message.role == "tool":
            self.tool_call_count += 1
        if message.role == "user" and self.prompt is None and message.content.strip():
            self.first_user_text = self.first_user_text or message.content
            if message.is_active and message.kind != "simulated":
                self.prompt = message.content
        if self.model is None and message.model is not None:
            self.model = message.model
        at = message.timestamp
        if at is None or message.timestamp_source == "session":
            return
        if self.first_at is None or at < self.first_at:
            self.first_at = at
        if self.last_at is None or at > self.last_at:
            self.last_at = at


class ContentLoss(NamedTuple):
    """Lost content of a session, and the store of the remaining content."""

    missing_count: int = 0  # listed messages without a row
    emptied_count: int = 0  # rows that are NULL or cannot be read
    orphan_count: int = 0  # inactive messages
    is_order_inferred: bool = False
    reasons: tuple[str, ...] = ()
    store: str = ""


def build_closing(
    user_data: UserData,
    facts: SessionFacts,
    stats: MessageStats,
    workspace: Workspace | None,
    loss: ContentLoss,
    decisions: Counter[str],
    parent_id: str | None,
    latest: datetime,
    *,
    is_subagent: bool,
) -> Closing:
    """Return the closing of a session."""
    started_at, updated_at = session_facts.stored_times(facts, latest)
    created_at_source: TimeSource | None = "stored" if started_at else "neighbour" if stats.first_at else None
    title = session_facts.stored_title(facts) or user_data.side_databases.title(facts.session_id)
    if title is None and stats.prompt:
        title = (session_facts.title_from_text(stats.prompt), "first message")
    has_messages = stats.message_count > 0 or loss.missing_count > 0
    visibility = session_facts.visibility(facts, has_messages=has_messages)
    completeness, reasons = _completeness(loss)
    if visibility == "ghost":
        completeness, reasons = "partial", ("it is listed, and nothing of it is here",)
    metadata: dict[str, Any] = session_facts.metadata(facts)
    if decisions:
        metadata["decision_evidence"] = dict(decisions)
    if loss.orphan_count:
        metadata["orphans"] = loss.orphan_count
    is_loser = False
    if facts.composer.is_best_of_n_subcomposer is True or facts.header.is_best_of_n_subcomposer is True:
        verdict = facts.composer.best_of_n_judge_winner
        is_loser = verdict is False
        metadata["best_of_n"] = "winner" if verdict is True else "loser" if is_loser else "candidate"
    return Closing(
        title=title[0] if title else None,
        title_source=title[1] if title else None,
        workspace=workspace,
        created_at=started_at or stats.first_at,
        created_at_source=created_at_source,
        updated_at=max((at for at in (updated_at, stats.last_at) if at is not None), default=started_at),
        git_branch=session_facts.git_branch(facts),
        completeness=completeness,
        reasons=reasons,
        visibility=visibility,
        is_discarded=is_loser,
        agents=(_agent(facts, stats, parent_id, started_at, title),) if is_subagent else (),
        child_ids=_child_ids(facts),
        metadata=metadata,
    )


def _completeness(loss: ContentLoss) -> tuple[Completeness, tuple[str, ...]]:
    reasons = list(loss.reasons)
    if loss.missing_count and loss.store != "graph":
        reasons.append(f"{pluralize(loss.missing_count, 'listed message')} missing")
    if loss.emptied_count:
        reasons.append(f"{pluralize(loss.emptied_count, 'message')} empty or unreadable")
    if loss.is_order_inferred:
        reasons.append("the order of messages is inferred from their times")
    if loss.store in ("prompts", "search"):
        return "lossy", tuple(reasons)
    return "partial" if reasons else "complete", tuple(reasons)


def _child_ids(facts: SessionFacts) -> tuple[str, ...]:
    """Return the ids of subagents and of best-of-N candidates, which are separate sessions."""
    ids = [*as_list(facts.composer.subagent_composer_ids), *as_list(facts.composer.sub_composer_ids)]
    child_ids = [child_id for child_id in map(as_text, ids) if child_id and child_id != facts.session_id]
    return tuple(dict.fromkeys(child_ids))


def _agent(
    facts: SessionFacts,
    stats: MessageStats,
    parent_id: str | None,
    started_at: datetime | None,
    title: tuple[str, str] | None,
) -> Agent:
    record = as_map(facts.header.subagent_info) or as_map(facts.composer.subagent_info)
    call_id = as_text(record.get("toolCallId"))
    if not call_id and facts.session_id.startswith("task-"):
        call_id = facts.session_id.removeprefix("task-")
    kind = as_text(record.get("subagentTypeName")) or (facts.entry.agent_kind if facts.entry else None)
    is_candidate = True in (facts.header.is_best_of_n_subcomposer, facts.composer.is_best_of_n_subcomposer)
    return Agent(
        agent_id=facts.session_id,
        parent_session_id=parent_id,
        tool_call_id=call_id or None,
        prompt=stats.prompt or stats.first_user_text,
        model=stats.model,
        kind=kind or ("best of n" if is_candidate else None),
        description=title[0] if title else None,
        total_tokens=stats.total_tokens or None,
        total_tool_use_count=stats.tool_call_count,
        started_at=started_at or stats.first_at,
    )
