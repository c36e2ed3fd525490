"""The end of a session's stream: what is known once all of it was said."""

from collections import Counter
from datetime import datetime
from typing import Any, NamedTuple

from backscroll.model import Agent, Closing, Completeness, Message, TimeSource, Workspace
from backscroll.sources.cursor.database.decode import as_list, as_map, as_text
from backscroll.sources.cursor.session import session_facts
from backscroll.sources.cursor.session.session_facts import Facts
from backscroll.sources.cursor.user_data import Library

__all__ = ["Digest", "Remains", "close"]


class Digest:
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


class Remains(NamedTuple):
    """What is not as it was when it was said."""

    missing: int = 0
    emptied: int = 0
    orphans: int = 0
    is_inferred: bool = False
    reasons: tuple[str, ...] = ()
    store: str = ""


def close(
    library: Library,
    facts: Facts,
    digest: Digest,
    home: Workspace | None,
    remains: Remains,
    decisions: Counter[str],
    parent: str | None,
    latest: datetime,
    *,
    is_child: bool,
) -> Closing:
    """The closing of one session."""
    begun, changed = session_facts.span(facts, latest)
    source: TimeSource | None = "stored" if begun else "neighbour" if digest.first else None
    title = session_facts.title(facts) or library.side.title(facts.session)
    if title is None and digest.prompt:
        title = (session_facts.opening_line(digest.prompt), "first message")
    has_messages = digest.count > 0 or remains.missing > 0
    visibility = session_facts.standing(facts, has_messages=has_messages)
    completeness, reasons = _completeness(remains)
    if visibility == "ghost":
        completeness, reasons = "partial", ("it is listed, and nothing of it is here",)
    metadata: dict[str, Any] = session_facts.facts(facts)
    if decisions:
        metadata["decision_evidence"] = dict(decisions)
    if remains.orphans:
        metadata["orphans"] = remains.orphans
    if facts.composer.is_best_of_n_subcomposer is True or facts.head.is_best_of_n_subcomposer is True:
        verdict = facts.composer.best_of_n_judge_winner
        metadata["best_of_n"] = "winner" if verdict is True else "loser" if verdict is False else "candidate"
    return Closing(
        title=title[0] if title else None,
        title_source=title[1] if title else None,
        workspace=home,
        created_at=begun or digest.first,
        created_at_source=source,
        updated_at=max((at for at in (changed, digest.last) if at is not None), default=begun),
        git_branch=session_facts.branch(facts),
        completeness=completeness,
        reasons=reasons,
        visibility=visibility,
        agents=(_agent(facts, digest, parent, begun, title),) if is_child else (),
        child_ids=_children(facts),
        metadata=metadata,
    )


def _completeness(remains: Remains) -> tuple[Completeness, tuple[str, ...]]:
    reasons = list(remains.reasons)
    if remains.missing and remains.store != "graph":
        reasons.append(f"{remains.missing} messages are listed and gone")
    if remains.emptied:
        reasons.append(f"{remains.emptied} messages were emptied or cannot be read")
    if remains.is_inferred:
        reasons.append("the order of messages is inferred from their times")
    if remains.store in ("prompts", "search"):
        return "lossy", tuple(reasons)
    return "partial" if reasons else "complete", tuple(reasons)


def _children(facts: Facts) -> tuple[str, ...]:
    """Subagents and the candidates of a best-of-N run; each is a session of its own."""
    ids = [*as_list(facts.composer.subagent_composer_ids), *as_list(facts.composer.sub_composer_ids)]
    named = [name for name in map(as_text, ids) if name and name != facts.session]
    return tuple(dict.fromkeys(named))


def _agent(
    facts: Facts, digest: Digest, parent: str | None, begun: datetime | None, title: tuple[str, str] | None
) -> Agent:
    record = as_map(facts.head.subagent_info) or as_map(facts.composer.subagent_info)
    call = as_text(record.get("toolCallId"))
    if not call and facts.session.startswith("task-"):
        call = facts.session.removeprefix("task-")
    kind = as_text(record.get("subagentTypeName")) or (facts.entry.agent_kind if facts.entry else None)
    is_candidate = True in (facts.head.is_best_of_n_subcomposer, facts.composer.is_best_of_n_subcomposer)
    return Agent(
        agent_id=facts.session,
        parent_session_id=parent,
        tool_call_id=call or None,
        prompt=digest.prompt or digest.opening,
        model=digest.model,
        kind=kind or ("best of n" if is_candidate else None),
        description=title[0] if title else None,
        total_tokens=digest.tokens or None,
        total_tool_use_count=digest.calls,
        started_at=begun or digest.first,
    )
