"""Opening and closing of a session in a store, and the subagents that the store contains."""

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
from backscroll.sources.cursor_graph.blobs import BlobLoader
from backscroll.sources.cursor_graph.conversation import Conversation
from backscroll.sources.cursor_graph.state import ConversationState, NestedSubagent

__all__ = ["SessionHeader", "SubagentSession", "subagent_sessions"]

_DEFAULT_TITLE = "New Agent"
_MAX_SUBAGENT_DEPTH = 8
_MIN_ID_CHARS = 20


class SessionHeader(Struct, frozen=True):
    """The properties of a session that are known before its conversation is parsed."""

    path: Path
    id: str
    store: str
    meta: StoreMetadata
    sidecar: Sidecar
    modified_at: datetime | None  # of the store's files

    @property
    def agent_id(self) -> str | None:
        """The session's id if it is a subagent."""
        is_subagent = self.meta.subagent or self.sidecar.fields.get("isSubagent") is True
        return self.id if is_subagent else None

    @property
    def parent_id(self) -> str | None:
        """The session that a subagent belongs to, also for a subagent of a subagent."""
        return self.meta.subagent_text("rootParentAgentId") or self.meta.subagent_text("parentAgentId")

    @property
    def model(self) -> str | None:
        name = self.meta.text("lastUsedModel")
        return None if name == "default" else name

    def opening(self) -> Iterator[Item]:
        yield Opening(
            source=SOURCE, id=self.id, store=self.store, agent_id=self.agent_id, parent_id=self.parent_id
        )
        call_id = self.meta.subagent.get("toolCallId")
        if self.agent_id is not None and isinstance(call_id, str) and call_id:
            yield SubagentLink(
                agent_id=self.agent_id, tool_call_id=call_id, evidence="store metadata", strength=1
            )

    def conversation(self, state: ConversationState, blobs: BlobLoader, counts: RecordCounts) -> Conversation:
        started_at, _ = self.start_time(state)
        return Conversation(
            state,
            blobs,
            path=str(self.path),
            counts=counts,
            model=self.model,
            started_at=started_at,
            ended_at=self.ended_at if started_at else None,
        )

    def with_agent_id(self, item: Message | ToolResult | Problem) -> Item:
        """Return an item, with the agent id if the session is a subagent."""
        if self.agent_id is None or not isinstance(item, Message):
            return item
        return replace(item, agent_id=self.agent_id)

    def start_time(self, state: ConversationState) -> tuple[datetime | None, TimeSource | None]:
        stored = (state.started_ms, self.meta.fields.get("createdAt"), self.sidecar.fields.get("createdAtMs"))
        at = next((found for value in stored if (found := timestamps.from_value(value)) is not None), None)
        return at, "stored" if at else None

    @property
    def ended_at(self) -> datetime | None:
        return timestamps.from_value(self.sidecar.fields.get("updatedAtMs")) or self.modified_at

    def closing(
        self,
        conversation: Conversation,
        reasons: Sequence[str],
        children: Sequence["SubagentSession"],
        *,
        is_draft: bool,
    ) -> Closing:
        state = conversation.state
        title, title_source = self._title()
        created_at, created_at_source = self.start_time(state)
        if created_at is None and self.modified_at is not None:
            created_at, created_at_source = self.modified_at, "file"
        agents = [self._agent(conversation, created_at)] if self.agent_id else []
        return Closing(
            title=title,
            title_source=title_source,
            workspace=workspace.store_workspace(
                self.sidecar.text("cwd"),
                state.workspace_uris,
                conversation.context_folders,
                folder_name=self.path.parent.parent.name,
            ),
            created_at=created_at,
            created_at_source=created_at_source,
            updated_at=self.ended_at,
            git_branch=state.branch,
            completeness="partial" if reasons else "complete",
            reasons=tuple(dict.fromkeys(reasons)),
            visibility="draft" if is_draft else "listed",
            agents=(*agents, *(child.agent for child in children)),
            tracked_files=state.tracked_files(),
            metadata=self._metadata(conversation),
        )

    def _title(self) -> tuple[str | None, str | None]:
        name = self.meta.text("name")
        if name and name != _DEFAULT_TITLE:
            return name, "name"
        title = self.sidecar.text("title")
        return (title, "meta.json") if title and title != _DEFAULT_TITLE else (None, None)

    def _agent(self, conversation: Conversation, started_at: datetime | None) -> Agent:
        info = self.meta.subagent
        kind, call_id = info.get("typeName"), info.get("toolCallId")
        parent = self.meta.subagent_text("parentAgentId")
        return Agent(
            agent_id=self.id,
            parent_session_id=self.parent_id,
            parent_agent_id=parent if parent != self.parent_id else None,
            tool_call_id=call_id if isinstance(call_id, str) else None,
            prompt=conversation.first_prompt,
            model=next(iter(conversation.models), self.model),
            kind=kind if isinstance(kind, str) else None,
            started_at=started_at,
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
    """A subagent with its conversation in the store of its parent."""

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
    header: SessionHeader, state: ConversationState, blobs: BlobLoader, counts: RecordCounts
) -> Iterator[SubagentSession]:
    """Return the subagents of a root and their subagents, each once."""
    seen = {header.id}
    pending: list[tuple[ConversationState, str | None, int]] = [(state, None, 0)]
    while pending:
        parent_state, parent_id, depth = pending.pop(0)
        for nested in parent_state.nested_subagents():
            # Some keys are ids, others are numbers that are unique only in their session.
            id = nested.key if len(nested.key) >= _MIN_ID_CHARS else f"{header.id}-{nested.key or 'agent'}"
            data = blobs.get(nested.blob) if nested.blob is not None else nested.data
            if data is None or id in seen:
                continue
            seen.add(id)
            child = _subagent_session(
                header,
                id,
                nested if nested.blob is None else nested.resolved(data),
                blobs=blobs,
                counts=counts,
                parent_id=parent_id,
            )
            yield child
            if depth + 1 < _MAX_SUBAGENT_DEPTH:
                pending.append((child.conversation.state, id, depth + 1))


def _subagent_session(
    header: SessionHeader,
    id: str,
    nested: NestedSubagent,
    *,
    blobs: BlobLoader,
    counts: RecordCounts,
    parent_id: str | None,
) -> SubagentSession:
    state = ConversationState(nested.data or b"")
    started_at = timestamps.from_value(nested.created_ms) or timestamps.from_value(state.started_ms)
    last_used_at = timestamps.from_value(nested.last_used_ms)
    conversation = Conversation(
        state,
        blobs,
        path=str(header.path),
        counts=counts,
        model=header.model,
        started_at=started_at,
        ended_at=last_used_at if started_at else None,
    )
    agent = Agent(
        agent_id=id,
        parent_session_id=header.id,
        parent_agent_id=parent_id,
        kind=nested.kind,
        started_at=started_at,
    )
    opening = Opening(source=SOURCE, id=id, store=header.store, agent_id=id, parent_id=header.id)
    return SubagentSession(agent, opening, conversation, last_used_at)
