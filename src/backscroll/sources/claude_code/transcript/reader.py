"""Stream the content of a transcript of a session or subagent.

docs/formats/claude-code.md describes the format and the versions seen. Lines are parsed in file order. Only
ids, parents and positions stay in memory.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from backscroll.model.message import Edit, Message, Origin, TimeSource
from backscroll.model.problem import Problem
from backscroll.model.store import Unit
from backscroll.model.stream import (
    Agent,
    Checkpoint,
    Closing,
    Item,
    Opening,
    RecordCounts,
    Replacement,
    SubagentLink,
    TitleHint,
    UsageReport,
)
from backscroll.model.text import pluralize
from backscroll.readers import jsonl, timestamps
from backscroll.sources.claude_code.transcript import queue, state_lines, subagents
from backscroll.sources.claude_code.transcript.branches import SIDECHAIN, Tree
from backscroll.sources.claude_code.transcript.copies import TIMED_TYPES, content_key, is_before_2, state_time
from backscroll.sources.claude_code.transcript.line_parsers import (
    RECORD_PARSERS,
    TREE_PARSERS,
    TreeParser,
    is_ignored,
)
from backscroll.sources.claude_code.transcript.line_structs import (
    RECORD_START,
    ApiMessage,
    Line,
    as_text,
    decoder,
    is_record,
)
from backscroll.sources.claude_code.transcript.state import (
    LineContext,
    ReaderState,
    full_record,
    record_position,
)
from backscroll.sources.claude_code.transcript.state_lines import reported_totals
from backscroll.sources.claude_code.transcript.subagents import ProgressAgents, agent_id_of, results_folder
from backscroll.sources.claude_code.workspace import find_workspace, project_folder

MAX_BUFFERED_BYTES = 2 * 1024 * 1024  # smaller files are read once, for the parser and the archive
_PRECEDENCE = {"parsed": 2, "problems": 1, "ignored": 0}  # for a line with several records

_Verdict: TypeAlias = Literal["parsed", "ignored", "problems"]


class Transcript:
    """Reader of one transcript. `items` can be called once."""

    def __init__(self, unit: Unit, since: Checkpoint | None = None) -> None:
        self.unit = unit
        self.path = Path(unit.path)
        self.offset, self.line = (since.offset, since.line) if since else (0, 0)
        self.state = (
            msgspec.msgpack.decode(since.state, type=ReaderState) if since and since.state else ReaderState()
        )
        self.agent_id = agent_id_of(self.path) if unit.kind == "agent" else None
        self.session_id = self.path.stem
        if self.agent_id is not None and since is None:
            self.state.parent_id = unit.session_id
            self.state.agents.inline[self.agent_id] = None
        self.tree = Tree(self.state.tree)
        self.counts = RecordCounts()
        self.sidecar = subagents.load_sidecar(self.path) if self.agent_id is not None else {}
        self.progress_agents = ProgressAgents(self)
        self.proposals: dict[str, tuple[Edit, ...]] = {}  # by call without a result; not in the checkpoint
        self._buffer: list[Item] = []
        self._interned: dict[str, str] = {}
        self._line_counts: defaultdict[tuple[str, _Verdict], int] = defaultdict(int)
        self._is_opened = False  # whether this reader emitted an opening
        self.is_from_progress_lines = False  # a subagent in the file of its parent
        self._is_truncated = False

    def subagent(self, agent_id: str, state: ReaderState | None) -> "Transcript":
        """Return a reader for a subagent that has no file, continued from its state."""
        reader = Transcript(self.unit)
        reader.is_from_progress_lines = True
        reader.agent_id = agent_id
        reader.state = state or ReaderState(parent_id=self.session_id)
        reader.state.agents.inline.setdefault(agent_id, None)
        reader.tree = Tree(reader.state.tree)
        return reader

    def items(self) -> Iterator[Item]:
        """Yield everything after the checkpoint, the record counts last."""
        buffer, line_counts = self._buffer, self._line_counts
        line: jsonl.Line[Line] | None = None
        for line in self._lines():
            values = line.values
            if line.fault is None and len(values) == 1:  # the common case
                line_counts[self.parse_record(values[0], line, 0)] += 1
            else:
                self._parse_irregular_line(line)
            if buffer:
                yield from buffer
                buffer.clear()
        yield from self.finish()
        yield from self.progress_agents.items()
        for (kind, verdict), count in line_counts.items():
            self.counts.count(kind, verdict, count)
        self.counts.checkpoint = self._checkpoint(line)
        yield self.counts

    def _lines(self) -> Iterator[jsonl.Line[Line]]:
        return jsonl.lines(
            self.path,
            decoder,
            offset=self.offset,
            line=self.line,
            end=self.unit.size or sys.maxsize,
            starts=RECORD_START,
            is_record=is_record,
            whole=self._read_file(),
        )

    def _read_file(self) -> bytes:
        """Return the content of a small file that is read from its start, else b""."""
        if self.offset or not 0 < self.unit.size <= MAX_BUFFERED_BYTES:
            return b""
        with self.path.open("rb", buffering=0) as file:
            self.counts.file_content = file.read(self.unit.size)
        return self.counts.file_content

    def _checkpoint(self, last: jsonl.Line[Line] | None) -> Checkpoint:
        """Return the position after the last line, or before it if it may still grow."""
        offset, line = self.offset, self.line
        if last is not None and last.is_final:
            offset, line = last.offset + last.size, last.number
        elif last is not None and last.offset > offset:
            offset, line = last.offset, last.number - 1
        return Checkpoint(offset, line, msgspec.msgpack.encode(self.state))

    def _parse_irregular_line(self, line: jsonl.Line[Line]) -> None:
        """Parse a line that is damaged, or does not contain exactly one object."""
        if line.is_blank:
            return
        verdicts = [self.parse_record(value, line, index) for index, value in enumerate(line.values)]
        if line.fault is not None:
            self.state.fault_count += line.is_complete
            self._is_truncated = not line.is_complete
            self._buffer.append(Problem(Origin(self.unit.path, f"line {line.number}"), *line.fault))
            self._line_counts[verdicts[0][0] if verdicts else "(unreadable)", "problems"] += 1
        elif not verdicts:
            self._line_counts["(not an object)", "ignored"] += 1
        else:
            self._line_counts[max(verdicts, key=lambda counted: _PRECEDENCE[counted[1]])] += 1

    def parse_record(self, value: Line, line: jsonl.Line[Line], index: int) -> tuple[str, _Verdict]:
        """Parse one record. Return its type and verdict."""
        kind = value.type
        if isinstance(kind, str):
            parse = TREE_PARSERS.get(kind)
            if parse is None:
                return kind, self._parse_state_line(kind, value, line, index)
            return kind, self._parse_tree_line(LineContext(self, value, line, index), parse)
        if isinstance(value.message, ApiMessage) and value.message.role in ("user", "assistant"):
            role = str(value.message.role)
            return role, self._parse_tree_line(LineContext(self, value, line, index), TREE_PARSERS[role])
        return "(no type)", self._add_unknown("record type (no type)", line)

    def _add_unknown(self, name: str, line: jsonl.Line[Line]) -> _Verdict:
        """Count an unknown type. A damaged line already has a problem."""
        if line.fault is None:
            self.counts.add_unknown(name)
            self._buffer.append(
                Problem(Origin(self.unit.path, f"line {line.number}"), "unknown-type", f"unknown {name}")
            )
        return "problems"

    def _parse_state_line(self, kind: str, value: Line, line: jsonl.Line[Line], index: int) -> _Verdict:
        facts = self.state.facts
        facts.update(value)
        if is_ignored(kind):
            if kind == "api-request":
                self.state.copies.add_request(value.id)
            return "ignored"
        record = full_record(line.value_bytes(index))
        if kind in TIMED_TYPES:
            self.state.copies.add_state_time(state_time(record))
        if state_lines.apply_state_line(facts, kind, record):
            return "ignored"
        parse = RECORD_PARSERS.get(kind)
        if parse is None or not record:
            return self._add_unknown(f"record type {kind}", line)
        origin = Origin(self.unit.path, f"line {line.number}")
        return "parsed" if parse(record, origin, record_position(line, index), self) else "ignored"

    def _parse_tree_line(self, context: LineContext, parse: TreeParser) -> _Verdict:
        state = self.state
        value = context.value
        state.facts.update(value)
        if self.agent_id is None:
            if state.copies.may_be_copied(value, context.at, self.session_id):
                state.copies.add_line(value, context.at, self.session_id, state.facts.first_at)
        elif state.parent_id is None:
            state.parent_id = as_text(value.session_id)
        key = content_key(value) if is_before_2(value) and self.agent_id is None else None
        if key is not None and self._is_repeated(context, key):
            return "ignored"
        buffered_count = len(self._buffer)
        parse(context)
        if key is not None:
            state.conversation.lines.append((key, context.node))
            state.copies.add_old_line(value, context.at)
        if context.message_count or context.is_known:
            self.tree.set_message_count(context.node, context.message_count, call_node=context.call_node)
        if state.first_role is None and value.type in ("user", "assistant"):
            state.first_role = value.type
        if state.model is None:
            state.model = context.model
        return (
            "parsed"
            if context.message_count or context.has_tool_result or context.has_subagent_message
            else self._verdict_without_message(context, buffered_count)
        )

    def _is_repeated(self, context: LineContext, key: bytes) -> bool:
        """Add a line to the tree without messages if the conversation already contains it."""
        tree = self.tree
        if tree.find(context.id) >= 0:
            return False  # the line itself is repeated
        original = self.state.conversation.find_original(key, context.id, context.parent)
        if original < 0:
            return False
        message = context.value.message
        context.response = as_text(message.id) if isinstance(message, ApiMessage) else None
        context.add_to_tree(tree.flags[original])
        tree.follow(tree.ids[original], context.node)
        return True

    def _verdict_without_message(self, context: LineContext, buffered_count: int) -> _Verdict:
        """Return the verdict of a line without messages and tool results. A missing part is a problem.

        ``buffered_count`` is the number of buffered items before the line was parsed.
        """
        if context.value.type in ("user", "assistant") and (missing := context.missing_part()) is not None:
            self.add_problem(Problem(context.origin, "no-content", missing))
        emitted = set(map(type, self._buffer[buffered_count:]))
        if UsageReport in emitted or Message in emitted:
            return "parsed"
        return "problems" if Problem in emitted else "ignored"

    def intern(self, text: Any) -> str | None:
        """Return the same object for equal strings, which many lines repeat."""
        if not isinstance(text, str) or not text:
            return None
        return self._interned.setdefault(text, text)

    def timestamp(self, value: Line) -> tuple[datetime | None, TimeSource | None]:
        """Return the timestamp of a line, by default that of the line before it."""
        state = self.state
        at = timestamps.from_value(value.timestamp) if value.timestamp is not None else None
        if at is None:
            return state.last_at, "neighbour" if state.last_at is not None else None
        facts = state.facts
        if facts.last_at is None or at > facts.last_at:
            facts.last_at = at
        if facts.first_at is None or at < facts.first_at:
            facts.first_at = at
        state.last_at = at
        return at, "stored"

    def add_problem(self, problem: Problem) -> None:
        """Emit a problem without opening the session."""
        self._buffer.append(problem)

    def add_title_hint(self, hint: TitleHint) -> None:
        """Emit the title of the session that contains a message, without opening this session."""
        self._buffer.append(hint)

    def emit(self, item: Item) -> None:
        """Emit an item of the session. The first one opens the session."""
        if not self._is_opened:
            self._open()
        self._buffer.append(item)

    def _open(self) -> None:
        self.state.is_open = self._is_opened = True
        self._buffer.append(self._opening())

    def link(self, link: SubagentLink) -> None:
        """Emit the link between a subagent and its call, once."""
        if self.state.agents.is_new_link(link):
            self._buffer.append(link)

    def mark_delivered(self, text: str) -> None:
        """Mark a queued prompt as delivered. The message added next replaces the one of the queue."""
        if message_ids := self.state.queue.deliver(text):
            self.replace_emitted(message_ids)

    def replace_emitted(self, message_ids: Sequence[str]) -> None:
        """Let the next message replace the first of these. The others are retracted."""
        self.tree.message_counts[self.tree.find(message_ids[0])] = 0
        self.tree.retracted_ids.update(message_ids[1:])
        self.emit(Replacement(message_ids[0]))

    def emit_refused_commands(self) -> None:
        """Emit queued commands of which the file contains only the reason for their refusal."""
        for prompt in self.state.queue.take_refused():
            queue.emit_queued_prompt(prompt, self, role="system", kind="command")

    @property
    def results_folder(self) -> Path:
        return results_folder(self.path, self.state.parent_id)

    def _opening(self) -> Opening:
        if self.agent_id is None:
            return Opening(source=self.unit.source, id=self.path.stem, store="lines")
        return Opening(
            source=self.unit.source,
            id=self.agent_id,
            store="progress" if self.is_from_progress_lines else "lines",
            agent_id=self.agent_id,
            parent_id=self.state.parent_id,
        )

    def finish(self) -> Iterator[Item]:
        """Yield what is left: queued prompts, links and the closing."""
        for prompt in self.state.queue.take_undelivered():
            queue.emit_queued_prompt(prompt, self)
        for prompt in self.state.queue.take_withdrawn():
            queue.emit_queued_prompt(prompt, self, role="system", kind="withdrawn")
        if (
            self.agent_id is not None
            and (link := subagents.sidecar_link(self.agent_id, self.sidecar)) is not None
        ):
            self.link(link)
        if self.state.is_open and not self._is_opened:
            self._open()
        if self.state.is_open and self.state.facts.cost_states:
            self._buffer.append(reported_totals(self.state.facts))
        yield from self._buffer
        self._buffer.clear()
        if self.state.is_open:
            yield _build_closing(self, is_truncated=self._is_truncated)


# The closing: facts that are known at the end of the file


def _build_closing(transcript: Transcript, *, is_truncated: bool = False) -> Closing:
    """Return the closing of a transcript. ``is_truncated`` means that its last line is incomplete."""
    state, tree, path = transcript.state, transcript.tree, transcript.path
    facts = state.facts
    is_agent = transcript.agent_id is not None
    title, title_source = facts.title
    session_id = state.parent_id if is_agent else path.stem
    folder = project_folder(path)
    agents = _agents(transcript, session_id, folder)
    hidden = _find_hidden_reason(transcript, agents[0] if is_agent else None, folder)
    reasons = [hidden.reason] if hidden is not None else []
    fault_count = state.fault_count + is_truncated
    if fault_count:
        reasons.append(f"{pluralize(fault_count, 'line')} cannot be read")
    if transcript.is_from_progress_lines:
        reasons.append("its file is missing; only its prompt and tool calls are left, in its session's file")
    first_at = facts.first_at
    modified_at = (
        datetime.fromtimestamp(Path(transcript.unit.path).stat().st_mtime, UTC) if first_at is None else None
    )
    return Closing(
        title=title,
        title_source=title_source,
        workspace=find_workspace(folder, session_id, facts),
        created_at=first_at or modified_at,
        created_at_source="stored" if first_at else "file",
        updated_at=facts.last_at or modified_at,
        git_branch=facts.branch,
        version=facts.version,
        completeness="partial" if fault_count or transcript.is_from_progress_lines else "complete",
        reasons=tuple(reasons),
        visibility="listed" if hidden is None else "hidden",
        is_unlinked=hidden is not None and hidden.is_unlinked,
        agents=agents,
        abandoned=tree.removed_message_ids() if is_agent else tree.inactive_message_ids(),
        tracked_files=tuple(facts.files.values()),
        copied=() if is_agent else tuple(state.copies.spans),
        last_record_id=None if is_agent else tree.last_id_without_message(),
        metadata=_metadata(transcript, session_id, folder),
    )


def _agents(transcript: Transcript, session_id: str | None, folder: Path | None) -> tuple[Agent, ...]:
    """Return the subagents. In the file of a subagent the first is the subagent itself."""
    agents = transcript.state.agents.all_agents(session_id, transcript.agent_id)
    if transcript.agent_id is None:
        return agents
    first, *others = agents
    first = subagents.with_sidecar(first, transcript.sidecar, transcript.state.model)
    first = replace(first, is_hidden=_find_hidden_reason(transcript, first, folder) is not None)
    return (first, *(replace(agent, parent_agent_id=transcript.agent_id) for agent in others))


def _find_hidden_reason(
    transcript: Transcript, agent: Agent | None, folder: Path | None
) -> subagents.HiddenReason | None:
    """Return why a conversation is hidden from lists; None if it is listed."""
    if agent is None:
        tree = transcript.tree
        has_messages = any(
            count and not flags & SIDECHAIN
            for count, flags in zip(tree.message_counts, tree.flags, strict=True)
        )
        return None if has_messages else subagents.HiddenReason("contains only subagent lines")
    is_flat = folder == transcript.path.parent and not transcript.is_from_progress_lines
    is_bare_answer = transcript.state.first_role == "assistant" and is_flat and not transcript.sidecar
    return subagents.find_hidden_reason(agent, is_bare_answer=is_bare_answer)


def _metadata(transcript: Transcript, session_id: str | None, folder: Path | None) -> dict[str, Any]:
    facts = transcript.state.facts
    metadata = facts.metadata()
    if other_ids := [id_ for id_ in facts.session_ids if id_ != session_id]:
        metadata["other_session_ids"] = other_ids
    if len(facts.cwds) > 1:
        metadata["cwds"] = list(facts.cwds)
    if folder is not None:
        metadata["encoded_path"] = folder.name
    return metadata
