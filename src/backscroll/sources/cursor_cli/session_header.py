"""Who a stored session is: opening, closing, and the subagents kept within it."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model import (
    Agent,
    Closing,
    Item,
    Message,
    Opening,
    Problem,
    RecordCounts,
    SubagentLink,
    TimeSource,
    ToolResult,
)
from backscroll.readers import timestamps
from backscroll.sources.cursor_cli import workspace
from backscroll.sources.cursor_cli.locations import SOURCE
from backscroll.sources.cursor_cli.metadata import Sidecar, StoreMetadata
from backscroll.sources.cursor_cli.model_names import display_name
from backscroll.sources.cursor_graph import BlobLoader, Conversation, ConversationState, NestedSubagent

__all__ = ["SessionHeader", "SubagentSession", "subagent_sessions"]

_DEFAULT_NAME = "New Agent"
_MAX_SUBAGENT_DEPTH = 8
_MIN_ID_CHARS = 20


class SessionHeader(Struct, frozen=True):
    """What is known of a session before its conversation is read."""

    path: Path
    id: str
    store: str
    meta: StoreMetadata
    sidecar: Sidecar
    written_at: datetime | None

    @property
    def agent_id(self) -> str | None:
        """The session's own id when it is a subagent's."""
        is_agent = self.meta.subagent or self.sidecar.fields.get("isSubagent") is True
        return self.id if is_agent else None

    @property
    def parent_id(self) -> str | None:
        """The session that a subagent belongs to, however many subagents lie between."""
        return self.meta.agent("rootParentAgentId") or self.meta.agent("parentAgentId")

    @property
    def model(self) -> str | None:
        name = self.meta.text("lastUsedModel")
        return None if name == "default" else name

    def opening(self) -> Iterator[Item]:
        yield Opening(
            source=SOURCE, id=self.id, store=self.store, agent_id=self.agent_id, parent_id=self.parent_id
        )
        call = self.meta.subagent.get("toolCallId")
        if self.agent_id is not None and isinstance(call, str) and call:
            yield SubagentLink(
                agent_id=self.agent_id, tool_call_id=call, evidence="store metadata", strength=1
            )

    def conversation(self, state: ConversationState, blobs: BlobLoader, tally: RecordCounts) -> Conversation:
        started, _ = self.started(state)
        return Conversation(
            state,
            blobs,
            path=str(self.path),
            tally=tally,
            model=self.model,
            started_at=started,
            ended_at=self.ended_at if started else None,
        )

    def owned(self, item: Message | ToolResult | Problem) -> Item:
        """An item as the subagent's own, when the session is one's."""
        if self.agent_id is None or not isinstance(item, Message):
            return item
        return replace(item, agent_id=self.agent_id)

    def started(self, state: ConversationState) -> tuple[datetime | None, TimeSource | None]:
        stored = (state.started_ms, self.meta.fields.get("createdAt"), self.sidecar.fields.get("createdAtMs"))
        at = next((found for value in stored if (found := timestamps.from_value(value)) is not None), None)
        return at, "stored" if at else None

    @property
    def ended_at(self) -> datetime | None:
        return timestamps.from_value(self.sidecar.fields.get("updatedAtMs")) or self.written_at

    def closing(
        self,
        conversation: Conversation,
        reasons: Sequence[str],
        children: Sequence["SubagentSession"],
        *,
        is_begun: bool,
    ) -> Closing:
        state = conversation.state
        title, title_source = self._title()
        created, created_source = self.started(state)
        if created is None and self.written_at is not None:
            created, created_source = self.written_at, "file"
        agents = [self._agent(conversation, created)] if self.agent_id else []
        return Closing(
            title=title,
            title_source=title_source,
            workspace=workspace.store_workspace(
                self.sidecar.text("cwd"),
                state.workspace_uris,
                conversation.told_folders,
                folder_hash=self.path.parent.parent.name,
            ),
            created_at=created,
            created_at_source=created_source,
            updated_at=self.ended_at,
            git_branch=state.branch,
            completeness="partial" if reasons else "complete",
            reasons=tuple(dict.fromkeys(reasons)),
            visibility="listed" if is_begun else "draft",
            agents=(*agents, *(child.agent for child in children)),
            tracked_files=state.tracked_files(),
            metadata=self._metadata(conversation),
        )

    def _title(self) -> tuple[str | None, str | None]:
        name = self.meta.text("name")
        if name and name != _DEFAULT_NAME:
            return name, "name"
        title = self.sidecar.text("title")
        return (title, "meta.json") if title and title != _DEFAULT_NAME else (None, None)

    def _agent(self, conversation: Conversation, started: datetime | None) -> Agent:
        info = self.meta.subagent
        kind, call = info.get("typeName"), info.get("toolCallId")
        starter = self.meta.agent("parentAgentId")
        return Agent(
            agent_id=self.id,
            parent_session_id=self.parent_id,
            parent_agent_id=starter if starter != self.parent_id else None,
            tool_call_id=call if isinstance(call, str) else None,
            prompt=conversation.first_prompt,
            model=next(iter(conversation.models), self.model),
            kind=kind if isinstance(kind, str) else None,
            started_at=started,
        )

    def _metadata(self, conversation: Conversation) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "window": f"cli:{self.path.parent.parent.name}",
            "cli_mode": self.meta.text("mode"),
            "approval_mode": self.meta.text("approvalMode"),
            "runs_everything": self.meta.fields.get("isRunEverything") is True,
            "plan_uri": self.meta.text("currentPlanUri"),
            "model_names": {model: display_name(model) for model in conversation.models},
        }
        agent_id = self.meta.text("agentId")
        if agent_id and agent_id != self.id:
            facts["agent_id"] = agent_id
        return {key: value for key, value in facts.items() if value} | conversation.facts()


class SubagentSession(Struct):
    """A subagent whose conversation its parent's store keeps."""

    agent: Agent
    opening: Opening
    conversation: Conversation
    updated_at: datetime | None

    def items(self) -> Iterator[Item]:
        yield self.opening
        for item in self.conversation.items():
            yield replace(item, agent_id=self.agent.agent_id) if isinstance(item, Message) else item
        reasons = tuple(self.conversation.reasons)
        agent = replace(
            self.agent,
            prompt=self.conversation.first_prompt,
            model=next(iter(self.conversation.models), None),
        )
        yield Closing(
            created_at=agent.started_at,
            created_at_source="stored" if agent.started_at else None,
            updated_at=self.updated_at,
            completeness="partial" if reasons else "complete",
            reasons=reasons,
            agents=(agent,),
            tracked_files=self.conversation.state.tracked_files(),
            metadata=self.conversation.facts(),
        )


def subagent_sessions(
    head: SessionHeader, state: ConversationState, blobs: BlobLoader, tally: RecordCounts
) -> Iterator[SubagentSession]:
    """The subagents that a root tells of, and theirs, each once."""
    known = {head.id}
    waiting: list[tuple[ConversationState, str | None, int]] = [(state, None, 0)]
    while waiting:
        within, parent, depth = waiting.pop(0)
        for nested in within.nested():
            # Some keys are ids, others only count within their session.
            key = nested.key if len(nested.key) >= _MIN_ID_CHARS else f"{head.id}-{nested.key or 'agent'}"
            data = blobs.get(nested.blob) if nested.blob is not None else nested.data
            if data is None or key in known:
                continue
            known.add(key)
            child = _subagent_session(
                head, key, nested if nested.blob is None else nested.resolved(data), blobs, tally, parent
            )
            yield child
            if depth + 1 < _MAX_SUBAGENT_DEPTH:
                waiting.append((child.conversation.state, key, depth + 1))


def _subagent_session(
    head: SessionHeader,
    key: str,
    nested: NestedSubagent,
    blobs: BlobLoader,
    tally: RecordCounts,
    parent: str | None,
) -> SubagentSession:
    state = ConversationState(nested.data or b"")
    started = timestamps.from_value(nested.created_ms) or timestamps.from_value(state.started_ms)
    used = timestamps.from_value(nested.used_ms)
    conversation = Conversation(
        state,
        blobs,
        path=str(head.path),
        tally=tally,
        model=head.model,
        started_at=started,
        ended_at=used if started else None,
    )
    agent = Agent(
        agent_id=key,
        parent_session_id=head.id,
        parent_agent_id=parent,
        kind=nested.kind,
        started_at=started,
    )
    opening = Opening(source=SOURCE, id=key, store=head.store, agent_id=key, parent_id=head.id)
    return SubagentSession(agent, opening, conversation, used)
