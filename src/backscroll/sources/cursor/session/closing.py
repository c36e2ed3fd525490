"""The end of a session's stream: what is known once all of it was said."""

from collections import Counter
from datetime import datetime
from typing import Any, NamedTuple

from backscroll.model import Agent, Closing, Completeness, Message, TimeSource, Workspace
from backscroll.sources.cursor.database.decode import as_list, as_map, as_text
from backscroll.sources.cursor.session import session_facts
from backscroll.sources.cursor.session.session_facts import SessionFacts
from backscroll.sources.cursor.user_data import UserData

__all__ = ["ContentLoss", "MessageStats", "close"]


class MessageStats:
    """What the closing needs to know of the messages, taken as they pass."""

    def __init__(self) -> None:
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.prompt: str | None = None  # the first that a person said and the conversation still leads to
        self.opening: str | None = None  # the first of whatever kind: what a subagent was asked
        self.model: str | None = None
        self.tokens = 0
        self.calls = 0
        self.count = 0

    def take(self, message: Message) -> None:
        """Note one message; what the list alone still tells of a lost one counts as nothing said."""
        if message.kind != "missing":
            self.count += 1
        if message.usage is not None:
            self.tokens += message.usage.total
        if message.role == "tool":
            self.calls += 1
        if message.role == "user" and self.prompt is None and message.content.strip():
            self.opening = self.opening or message.content
            if message.is_active and message.kind != "simulated":
                self.prompt = message.content
        if self.model is None and message.model is not None:
            self.model = message.model
        at = message.timestamp
        if at is None or message.timestamp_source == "session":
            return
        if self.first is None or at < self.first:
            self.first = at
        if self.last is None or at > self.last:
            self.last = at


class ContentLoss(NamedTuple):
    """What is not as it was when it was said."""

    missing: int = 0
    emptied: int = 0
    orphans: int = 0
    is_inferred: bool = False
    reasons: tuple[str, ...] = ()
    store: str = ""


def close(
    user_data: UserData,
    facts: SessionFacts,
    stats: MessageStats,
    home: Workspace | None,
    loss: ContentLoss,
    decisions: Counter[str],
    parent: str | None,
    latest: datetime,
    *,
    is_child: bool,
) -> Closing:
    """The closing of one session."""
    started_at, changed = session_facts.stored_times(facts, latest)
    source: TimeSource | None = "stored" if started_at else "neighbour" if stats.first else None
    title = session_facts.stored_title(facts) or user_data.side_databases.title(facts.session)
    if title is None and stats.prompt:
        title = (session_facts.title_from_text(stats.prompt), "first message")
    has_messages = stats.count > 0 or loss.missing > 0
    visibility = session_facts.visibility(facts, has_messages=has_messages)
    completeness, reasons = _completeness(loss)
    if visibility == "ghost":
        completeness, reasons = "partial", ("it is listed, and nothing of it is here",)
    metadata: dict[str, Any] = session_facts.metadata(facts)
    if decisions:
        metadata["decision_evidence"] = dict(decisions)
    if loss.orphans:
        metadata["orphans"] = loss.orphans
    if facts.composer.is_best_of_n_subcomposer is True or facts.header.is_best_of_n_subcomposer is True:
        verdict = facts.composer.best_of_n_judge_winner
        metadata["best_of_n"] = "winner" if verdict is True else "loser" if verdict is False else "candidate"
    return Closing(
        title=title[0] if title else None,
        title_source=title[1] if title else None,
        workspace=home,
        created_at=started_at or stats.first,
        created_at_source=source,
        updated_at=max((at for at in (changed, stats.last) if at is not None), default=started_at),
        git_branch=session_facts.git_branch(facts),
        completeness=completeness,
        reasons=reasons,
        visibility=visibility,
        agents=(_agent(facts, stats, parent, started_at, title),) if is_child else (),
        child_ids=_children(facts),
        metadata=metadata,
    )


def _completeness(loss: ContentLoss) -> tuple[Completeness, tuple[str, ...]]:
    reasons = list(loss.reasons)
    if loss.missing and loss.store != "graph":
        reasons.append(f"{loss.missing} messages are listed and gone")
    if loss.emptied:
        reasons.append(f"{loss.emptied} messages were emptied or cannot be read")
    if loss.is_inferred:
        reasons.append("the order of messages is inferred from their times")
    if loss.store in ("prompts", "search"):
        return "lossy", tuple(reasons)
    return "partial" if reasons else "complete", tuple(reasons)


def _children(facts: SessionFacts) -> tuple[str, ...]:
    """Subagents and the candidates of a best-of-N run; each is a session of its own."""
    ids = [*as_list(facts.composer.subagent_composer_ids), *as_list(facts.composer.sub_composer_ids)]
    named = [name for name in map(as_text, ids) if name and name != facts.session]
    return tuple(dict.fromkeys(named))


def _agent(
    facts: SessionFacts,
    stats: MessageStats,
    parent: str | None,
    started_at: datetime | None,
    title: tuple[str, str] | None,
) -> Agent:
    record = as_map(facts.header.subagent_info) or as_map(facts.composer.subagent_info)
    call = as_text(record.get("toolCallId"))
    if not call and facts.session.startswith("task-"):
        call = facts.session.removeprefix("task-")
    kind = as_text(record.get("subagentTypeName")) or (facts.entry.agent_kind if facts.entry else None)
    is_candidate = True in (facts.header.is_best_of_n_subcomposer, facts.composer.is_best_of_n_subcomposer)
    return Agent(
        agent_id=facts.session,
        parent_session_id=parent,
        tool_call_id=call or None,
        prompt=stats.prompt or stats.opening,
        model=stats.model,
        kind=kind or ("best of n" if is_candidate else None),
        description=title[0] if title else None,
        total_tokens=stats.tokens or None,
        total_tool_use_count=stats.calls,
        started_at=started_at or stats.first,
    )
