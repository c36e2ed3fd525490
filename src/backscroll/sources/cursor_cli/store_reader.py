"""Read a session from its ``store.db``."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from backscroll.errors import DatabaseLockedError, DatabaseNotFoundError, DatabaseUnreadableError
from backscroll.model.message import Message, Origin, TimeSource, record_id_of
from backscroll.model.problem import Fault, Problem
from backscroll.model.stream import Agent, Closing, Item, Opening, RecordCounts, SubagentLink, ToolResult
from backscroll.model.text import pluralize
from backscroll.readers import timestamps
from backscroll.readers.json_outline import safe_name
from backscroll.readers.protobuf import Record
from backscroll.readers.sqlite import Database, problem_code
from backscroll.sources.cursor_cli import workspace
from backscroll.sources.cursor_cli.locations import SOURCE, store_name
from backscroll.sources.cursor_cli.metadata import (
    COPY_KEY,
    Sidecar,
    StoreMetadata,
    count_unknown_schema,
    read_meta,
    read_sidecar,
)
from backscroll.sources.cursor_cli.store_rows import StoreIndex, count_blobs, fetch_blobs, scan_store
from backscroll.sources.cursor_graph.blobs import BlobLoader, blob_id
from backscroll.sources.cursor_graph.conversation import Conversation
from backscroll.sources.cursor_graph.message_parts import decode_message
from backscroll.sources.cursor_graph.records import ConversationState, MessageRef, NestedSubagent

_DEFAULT_TITLE = "New Agent"
_MAX_SUBAGENT_DEPTH = 8
_MIN_ID_CHARS = 20
_MAX_RECORD_BYTES = 8 * 1024 * 1024
_REFERENCE_TAG = b"\x0a\x20"  # field 1, 32 bytes
_REFERENCE_BYTES = 34  # tag and id


class _Root(Struct, frozen=True):
    """The root of the conversation."""

    state: ConversationState
    id: str | None = None
    entries: list[MessageRef] | None = None  # the messages, if those of the root are not valid
    fault: Fault | None = None  # why another root is used, or why the root is incomplete


def read_store(path: Path) -> Iterator[Item]:
    """Parse a store: the session, then its nested subagents."""
    counts = RecordCounts()
    with Database(path) as database:
        try:
            index = database.read(scan_store)
        except (DatabaseNotFoundError, DatabaseUnreadableError, sqlite3.Error) as error:
            yield Problem(Origin(str(path), "database"), problem_code(error), str(error))
        else:
            try:
                yield from _read_session(path, database, index, counts)
            except (DatabaseLockedError, DatabaseNotFoundError) as error:
                # Without counted records, the next sync reads the store again.
                counts = RecordCounts()
                yield Problem(Origin(str(path), "database"), problem_code(error), str(error))
                yield Closing(completeness="partial", reasons=("the store could not be read completely",))
    yield counts


def _read_session(path: Path, database: Database, index: StoreIndex, counts: RecordCounts) -> Iterator[Item]:
    meta = read_meta(index.meta)
    header = _SessionHeader(
        path,
        path.parent.name,
        store_name(path.parent),
        meta,
        read_sidecar(path.with_name("meta.json")),
        _modified_at(path),
    )
    yield from header.opening()
    yield from _find_problems(index, header, counts)
    blobs = BlobLoader(lambda ids: fetch_blobs(database, ids, index), sizes=index.sizes)
    root = _find_root(blobs, index, meta)
    reasons = [root.fault.reason] if root.fault is not None else []
    if root.fault is not None:
        yield Problem(Origin(str(path), "root"), *root.fault)
    if index.is_damaged:
        reasons.append("part of the store is damaged")
    conversation = header.conversation(root.state, blobs, counts)
    has_messages = False
    copied = _CopiedMessages(header, blobs)
    for item in conversation.items(root.entries):
        has_messages = has_messages or isinstance(item, Message)
        yield copied.mark(header.with_agent_id(item))
    children = list(_subagent_sessions(header, root.state, blobs, counts))
    yield header.closing(
        conversation,
        [*reasons, *conversation.reasons],
        children,
        is_draft=not (has_messages or reasons or children),
    )
    outcomes = conversation.outcomes
    for child in children:
        yield from map(copied.mark, child.items())
        outcomes = {**child.conversation.outcomes, **outcomes}
    if root.id is not None:
        outcomes = {**outcomes, root.id: ("blob (root)", "ignored")}
    count_blobs(index, outcomes, counts)


def _find_problems(index: StoreIndex, header: "_SessionHeader", counts: RecordCounts) -> Iterator[Problem]:
    """Report problems outside of the conversation, and count the metadata."""
    count_unknown_schema(header.sidecar, counts)
    for name in header.meta.unknown:
        counts.add_unknown(f"meta key {safe_name(name)}")
    for table in index.unknown_tables:
        counts.add_unknown(f"table {safe_name(table)}")
    faults = [Fault("missing-table", f"has no table {table}") for table in index.missing_tables]
    faults += [
        Fault("unexpected-shape", f"has a table {table} without the expected columns")
        for table in index.changed_tables
    ]
    if index.no_unique_id_count:
        faults.append(
            Fault("orphaned-record", f"has {pluralize(index.no_unique_id_count, 'blob')} without a unique id")
        )
    if index.is_damaged:
        faults.append(Fault("damaged-database", "is damaged: rows may be missing"))
    for fault in faults:
        yield Problem(Origin(str(header.path), "database"), *fault)
    if header.sidecar.fault is not None:
        yield Problem(Origin(str(header.path.with_name("meta.json")), "file"), *header.sidecar.fault)
    if header.meta.fault is not None:
        counts.count("meta", "problems", len(index.meta))
        yield Problem(Origin(str(header.path), "meta"), *header.meta.fault)
    elif index.meta:
        counts.count("meta", "ignored", len(index.meta))


def _find_root(blobs: BlobLoader, index: StoreIndex, meta: StoreMetadata) -> _Root:
    """Return the root that the metadata names; if it is missing, damaged or empty, the best other root."""
    root_id = (meta.text("latestRootBlobId") or "").lower()
    data = blobs.get(root_id) if root_id else None
    valid: _Root | None = None
    if data is not None and root_id not in blobs.altered:
        state = ConversationState(data)
        valid = _Root(state, root_id) if state.fault is None else None
        fault = Fault("damaged-record", f"the conversation's root is incomplete: {state.fault}")
        if valid is not None and not state.is_empty:
            return valid
    elif data is not None:
        fault = Fault("altered-record", "the conversation's root is damaged")
    elif root_id:
        fault = Fault("missing-record", "the conversation's root is missing from the store")
    else:
        fault = Fault("missing-record", "the store does not say where the conversation begins")
    if valid is None and not index.sizes:
        return _Root(ConversationState(b""), fault=fault if root_id else None)
    damaged_root = None if valid else data
    recovered = _recover(index.sizes, blobs, named_root_id=root_id, damaged_root=damaged_root)
    if valid is not None and recovered.is_empty:
        return valid
    if valid is not None:
        fault = Fault("missing-record", "the conversation's root is empty, though messages are in the store")
    used_id = root_id if recovered.root_id is None and data is not None else recovered.root_id
    return _Root(recovered.state, used_id, recovered.entries, fault)


def _modified_at(path: Path) -> datetime | None:
    """Return the time of the last write to the store or its write-ahead log."""
    newest: float | None = None
    for file in (path, path.with_name("store.db-wal")):
        try:
            newest = max(newest or 0, file.stat().st_mtime)
        except OSError:
            continue
    return timestamps.from_value(newest)


# Opening, closing and subagents


class _SessionHeader(Struct, frozen=True):
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
        children: Sequence["_SubagentSession"],
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


class _SubagentSession(Struct):
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


def _subagent_sessions(
    header: _SessionHeader, state: ConversationState, blobs: BlobLoader, counts: RecordCounts
) -> Iterator[_SubagentSession]:
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
    header: _SessionHeader,
    id: str,
    nested: NestedSubagent,
    *,
    blobs: BlobLoader,
    counts: RecordCounts,
    parent_id: str | None,
) -> _SubagentSession:
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
    return _SubagentSession(agent, opening, conversation, last_used_at)


# Messages of a session that Backscroll has copied from another one. They count in the original only.


class _CopiedMessages:
    """Marks the messages that the original had when the session was copied.

    These are the messages below the root at that time. If it cannot be read, the time decides.
    """

    def __init__(self, header: _SessionHeader, blobs: BlobLoader) -> None:
        origin = header.meta.fields.get(COPY_KEY)
        self._original_id: str | None = None
        self._record_ids: set[str] | None = None
        self._copied_at: datetime | None = None
        if not isinstance(origin, dict) or not isinstance(origin.get("agentId"), str):
            return
        self._original_id = origin["agentId"]
        self._copied_at = timestamps.from_value(origin.get("at"))
        root_id = origin.get("rootBlobId")
        data = blobs.get(root_id.lower()) if isinstance(root_id, str) and root_id else None
        state = ConversationState(data) if data is not None else None
        if state is not None and state.fault is None and not state.is_empty:
            self._record_ids = set(_record_ids(header, state, blobs))

    def mark(self, item: Item) -> Item:
        """Return the item; a copied message with the session that it was copied from."""
        if self._original_id is None or not isinstance(item, Message) or not self._is_copied(item):
            return item
        return replace(item, copied_from=self._original_id)

    def _is_copied(self, message: Message) -> bool:
        if self._record_ids is not None:
            return record_id_of(message.id) in self._record_ids
        if self._copied_at is None or message.timestamp is None:
            return True
        return message.timestamp <= self._copied_at


def _record_ids(header: _SessionHeader, state: ConversationState, blobs: BlobLoader) -> list[str]:
    """Return the ids of all records of a conversation and its nested subagents."""
    counts = RecordCounts()  # counted when the session itself is read
    conversations = [header.conversation(state, blobs, counts)]
    conversations += [child.conversation for child in _subagent_sessions(header, state, blobs, counts)]
    return [
        record_id_of(item.id)
        for conversation in conversations
        for item in conversation.items()
        if isinstance(item, Message)
    ]


# Recovery if the root is missing or damaged. A store keeps all earlier roots and all messages, so most of the
# conversation can be restored. The session is marked as partial.


class _RecoveredRoot(Struct, frozen=True):
    """The root to use, and the messages if it does not refer to them itself."""

    state: ConversationState
    entries: list[MessageRef] | None
    root_id: str | None

    @property
    def is_empty(self) -> bool:
        return self.state.is_empty and not self.entries


class _Node(Struct, frozen=True):
    """References of a blob that is not a message."""

    id: str
    messages: tuple[str, ...]  # ids in field 1, which refers to messages in roots and archives
    archives: tuple[str, ...]
    is_valid: bool


class _Graph(Struct, frozen=True):
    """The references between the blobs of a store."""

    nodes: dict[str, _Node]
    referenced: set[str]
    messages: dict[str, None]  # ids of message blobs, in the order of the store

    def message_count(self, node: _Node) -> int:
        """Return the number of messages that a root refers to, including archived ones."""
        archived = (
            id for archive in node.archives if archive in self.nodes for id in self._message_ids(archive)
        )
        return len({*self._message_ids(node.id), *archived})

    def _message_ids(self, id: str) -> Iterator[str]:
        return (message for message in self.nodes[id].messages if message in self.messages)

    def best_root(self) -> _Node | None:
        """Return the root with the most messages that is not referenced; the latest of several."""
        roots = [node for node in self.nodes.values() if node.is_valid and any(self._message_ids(node.id))]
        unreferenced = [node for node in roots if node.id not in self.referenced]
        return max(reversed(unreferenced or roots), key=self.message_count, default=None)


def _recover(
    ids: Iterable[str], blobs: BlobLoader, *, named_root_id: str | None, damaged_root: bytes | None
) -> _RecoveredRoot:
    """Return the best root among the blobs with these ids, which are in the order of the store.

    `named_root_id` is the root in the metadata, and `damaged_root` its content. Valid references are read
    from the damaged root, and unreferenced messages replace the invalid ones.
    """
    graph = _build_graph(ids, blobs, excluded_id=named_root_id)
    best = graph.best_root()
    if damaged_root is not None:
        entries = _read_damaged_root(damaged_root, graph)
        if best is None or len(entries) >= graph.message_count(best):
            return _RecoveredRoot(ConversationState(damaged_root), entries, None)
    if best is not None:
        return _RecoveredRoot(ConversationState(blobs.get(best.id) or b""), None, best.id)
    return _RecoveredRoot(ConversationState(b""), [MessageRef(id) for id in graph.messages], None)


def _build_graph(ids: Iterable[str], blobs: BlobLoader, *, excluded_id: str | None) -> _Graph:
    graph = _Graph({}, set(), {})
    for id, data in blobs.each(ids):
        if data is None or id == excluded_id:
            continue
        if data[:1] == b"{" and (message := decode_message(data)) is not None:
            # The content of files is stored too, and may be JSON.
            if "role" in message:
                graph.messages[id] = None
        elif len(data) <= _MAX_RECORD_BYTES:
            record = Record(data)
            graph.referenced.update(_blob_ids(field.value for field in record.fields) - {id})
            archives = tuple(_blob_ids((*record.all(11), *record.all(13))))
            graph.nodes[id] = _Node(id, tuple(_blob_ids(record.all(1))), archives, record.fault is None)
    return graph


def _blob_ids(values: Iterable[int | bytes]) -> set[str]:
    return {id for value in values if isinstance(value, bytes) and (id := blob_id(value)) is not None}


def _read_damaged_root(damaged_root: bytes, graph: _Graph) -> list[MessageRef]:
    """Return the messages of a damaged root. Unreferenced messages replace damaged references."""
    found: list[str | None] = []  # None for a damaged reference
    offset = previous_end = 0
    while (offset := damaged_root.find(_REFERENCE_TAG, offset)) >= 0:
        end = offset + _REFERENCE_BYTES
        if end > len(damaged_root):
            break
        id = damaged_root[offset + len(_REFERENCE_TAG) : end].hex()
        if id in graph.messages:
            found.append(id)
            offset = previous_end = end
        elif offset == previous_end:
            found.append(None)
            offset = previous_end = end
        else:
            offset += 1
    known = set(found) | graph.referenced
    unreferenced = iter([id for id in graph.messages if id not in known])
    filled = [id if id is not None else next(unreferenced, None) for id in found]
    return [MessageRef(id) for id in [*filled, *unreferenced] if id is not None]


# Display names of models

_EFFORT_SUFFIX = r"(?:-(?:low|medium|high|xhigh|max))?"
_CLAUDE_MODEL = re.compile(rf"claude-(\d+(?:\.\d+)?)-([a-z]+){_EFFORT_SUFFIX}(-thinking)?")
_NEWER_CLAUDE_MODEL = re.compile(rf"claude-([a-z]+)-(\d+)(?:-(\d{{1,2}}))?(-thinking)?{_EFFORT_SUFFIX}")
_GPT_MODEL = re.compile(r"gpt-(\d+(?:\.\d+)?o?)((?:-[a-z]+)*)")
_OTHER_MODEL = re.compile(r"(gemini|composer|grok)((?:-(?:[a-z]+|\d+(?:\.\d+)?))+)")


def display_name(model: str) -> str:
    """Return ``Claude Opus 4.5 (Thinking)`` for ``claude-4.5-opus-high-thinking``; unknown ids unchanged."""
    if found := _CLAUDE_MODEL.fullmatch(model):
        return f"Claude {found[2].capitalize()} {found[1]}{' (Thinking)' if found[3] else ''}"
    if found := _NEWER_CLAUDE_MODEL.fullmatch(model):
        version = f"{found[2]}.{found[3]}" if found[3] else found[2]
        return f"Claude {found[1].capitalize()} {version}{' (Thinking)' if found[4] else ''}"
    if found := _GPT_MODEL.fullmatch(model):
        return f"GPT-{found[1]}{_capitalized_words(found[2])}"
    if found := _OTHER_MODEL.fullmatch(model):
        return f"{found[1].capitalize()}{_capitalized_words(found[2])}"
    return model


def _capitalized_words(tail: str) -> str:
    return "".join(f" {word.capitalize()}" for word in tail.split("-") if word)
