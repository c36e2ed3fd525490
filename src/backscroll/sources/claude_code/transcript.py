"""A transcript, main or subagent's, as a stream.

docs/formats/claude-code.md describes the format and the versions seen. Lines are
taken in file order; only the skeleton of ids, parents and places stays behind.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from backscroll.model import (
    Agent,
    Answer,
    Closing,
    Item,
    Link,
    Mark,
    Message,
    Naming,
    Opening,
    Origin,
    Problem,
    Spent,
    Tally,
    TimeSource,
    ToolCall,
    Unit,
)
from backscroll.readers import jsonl, times
from backscroll.sources.claude_code import assistant, notices, sidecar, state, user
from backscroll.sources.claude_code.agents import (
    Agents,
    Pending,
    agent_id_of,
    link_in_progress,
    results_folder,
)
from backscroll.sources.claude_code.blocks import odd_result_text
from backscroll.sources.claude_code.branches import SIDE, Skeleton, Tree
from backscroll.sources.claude_code.lines import (
    STARTS,
    ApiMessage,
    ForkedFrom,
    Line,
    decoder,
    is_record,
    params,
    text,
)
from backscroll.sources.claude_code.queue import Queue, Waiting, links_in, prompt_text
from backscroll.sources.claude_code.said import Said, whole
from backscroll.sources.claude_code.workspace import of_session, project_folder

__all__ = ["Remembered", "Transcript"]

_REMEMBERED = 512  # what is written twice, or in the wrong order, is soon written
_LARGEST_EARLY = 1024 * 1024
_WEIGHT = {"understood": 2, "problems": 1, "silent": 0}

_Verdict: TypeAlias = Literal["understood", "silent", "problems"]


class Remembered(msgspec.Struct, array_like=True):
    """What a later reading needs of an earlier one."""

    skeleton: Skeleton = msgspec.field(default_factory=Skeleton)
    facts: state.Facts = msgspec.field(default_factory=state.Facts)
    queue: Queue = msgspec.field(default_factory=Queue)
    agents: Agents = msgspec.field(default_factory=Agents)
    pending: dict[str, Pending] = msgspec.field(default_factory=dict)
    early: dict[str, user.Early] = msgspec.field(default_factory=dict)
    repeats: dict[bytes, str] = msgspec.field(default_factory=dict)
    last_at: datetime | None = None
    faults: int = 0
    parent_id: str | None = None
    model: str | None = None  # of the first answer
    first_role: str | None = None
    is_open: bool = False


class Transcript:
    """One file being read. `items` may be called once."""

    def __init__(self, unit: Unit, since: Mark | None = None) -> None:
        self.unit = unit
        self.path = Path(unit.path)
        self.offset, self.line = (since.offset, since.line) if since else (0, 0)
        self.kept = (
            msgspec.msgpack.decode(since.state, type=Remembered) if since and since.state else Remembered()
        )
        self.agent_id = agent_id_of(self.path) if unit.kind == "agent" else None
        if self.agent_id is not None and since is None:
            self.kept.parent_id = unit.session_id
            self.kept.agents.inline[self.agent_id] = None
        self.tree = Tree(self.kept.skeleton)
        self.tally = Tally()
        self._sidecar = sidecar.loaded(self.path) if self.agent_id is not None else {}
        self._out: list[Item] = []
        self._once: dict[str, str] = {}
        self._must_open = self.kept.is_open

    def items(self) -> Iterator[Item]:
        """Everything from the mark on, the tally last."""
        out = self._out
        offset, line_number = self.offset, self.line
        for line in jsonl.lines(
            self.path, decoder, offset=self.offset, line=self.line, starts=STARTS, is_record=is_record
        ):
            self._take(line)
            if line.is_settled:
                offset, line_number = line.offset + line.size, line.number
            if out:
                yield from out
                out.clear()
        yield from self._end()
        self.tally.mark = Mark(offset, line_number, msgspec.msgpack.encode(self.kept))
        yield self.tally

    # --- one line -----------------------------------------------------------------------------------------

    def _take(self, line: jsonl.Line[Line]) -> None:
        values = line.values
        if line.fault is None and len(values) == 1:
            kind, verdict = self._record(values[0], line, 0)
            self.tally.count(kind, verdict)
            return
        if line.is_blank:
            return
        verdicts = [self._record(value, line, number) for number, value in enumerate(values)]
        if line.fault is not None:
            self.kept.faults += line.is_complete
            self._out.append(Problem(Origin(self.unit.path, f"line {line.number}"), line.fault))
            self.tally.count(verdicts[0][0] if verdicts else "(unreadable)", "problems")
        elif not verdicts:
            self.tally.count("(not an object)", "silent")
        else:
            self.tally.count(*max(verdicts, key=lambda told: _WEIGHT[told[1]]))

    def _record(self, value: Line, line: jsonl.Line[Line], number: int) -> tuple[str, _Verdict]:
        """Tell what a record says. Returns its type and how it counts."""
        kind = value.type
        before = len(self._out)
        match kind:
            case "assistant":
                self._chain(Said(self, value, line, number), assistant.tell)
            case "user":
                self._chain(Said(self, value, line, number), user.tell)
            case "system":
                self._chain(Said(self, value, line, number), self._system)
            case "attachment":
                self._chain(Said(self, value, line, number), self._attachment)
            case "progress":
                self._chain(Said(self, value, line, number), self._progress)
            case str():
                return kind, self._state(kind, value, line, number)
            case _ if isinstance(value.message, ApiMessage) and value.message.role in ("user", "assistant"):
                spoken = user.tell if value.message.role == "user" else assistant.tell
                self._chain(Said(self, value, line, number), spoken)
                kind = str(value.message.role)
            case _:
                return "(no type)", self._unknown("record type (no type)", line)
        new = self._out[before:]
        if any(isinstance(item, Message | Answer | Spent) for item in new):
            return kind, "understood"
        return kind, "problems" if any(isinstance(item, Problem) for item in new) else "silent"

    def _unknown(self, name: str, line: jsonl.Line[Line]) -> _Verdict:
        """Something of no known kind. A line that is broken anyhow is a problem already."""
        if line.fault is None:
            self.tally.meet(name)
            self._out.append(Problem(Origin(self.unit.path, f"line {line.number}"), f"unknown {name}"))
        return "problems"

    def _state(self, kind: str, value: Line, line: jsonl.Line[Line], number: int) -> _Verdict:
        record = whole(line.text_of(number))
        self._session(value)
        if kind == "summary":
            title, leaf = text(record.get("summary")), text(record.get("leafUuid"))
            if title is not None and leaf is not None:
                self._out.append(Naming(leaf, title, Origin(self.unit.path, f"line {line.number}")))
            return "silent"
        if kind == "queue-operation":
            return self._queued(record, value, line)
        if kind in ("tool_use", "tool_result"):
            return self._bare_tool(kind, record, line)
        if state.absorb(self.kept.facts, kind, record):
            return "silent"
        return self._unknown(f"record type {kind}", line)

    # --- chain lines --------------------------------------------------------------------------------------

    def _chain(self, said: Said, tell: Callable[[Said], None]) -> None:
        self._session(said.value)
        tell(said)
        tree = self.tree
        before = tree.told[said.node]
        if said.count > before:
            tree.told[said.node] = said.count
            if said.answers is not None and said.answers >= 0:
                tree.answers[said.node] = said.answers
        elif said.count < before:  # written again with less in it
            tree.dead.update(f"{said.id}.{number}" for number in range(max(said.count, 1), before))
        if self.kept.first_role is None and said.value.type in ("user", "assistant"):
            self.kept.first_role = said.value.type
        if self.kept.model is None:
            self.kept.model = said.model

    def _session(self, value: Line) -> None:
        """Note what a line says of its session: id, version, folder, branch."""
        facts = self.kept.facts
        session_id = value.session_id
        if isinstance(session_id, str):
            if session_id in facts.session_ids:
                facts.session_ids[session_id] += 1
            else:
                facts.session_ids[session_id] = 1
                if self.kept.parent_id is None and self.agent_id is not None:
                    self.kept.parent_id = session_id
        cwd = value.cwd
        if isinstance(cwd, str) and cwd and cwd not in self._once:
            self._once[cwd] = cwd
            if cwd not in facts.cwds:
                facts.cwds.append(cwd)
        version = value.version
        if isinstance(version, str) and version != facts.last_version:
            facts.last_version = version
            if facts.version is None:
                facts.version = version
        if facts.branch is None and isinstance(value.git_branch, str) and value.git_branch:
            facts.branch = value.git_branch
        if facts.entrypoint is None and isinstance(value.entrypoint, str):
            facts.entrypoint = value.entrypoint
        if facts.slug is None and isinstance(value.slug, str):
            facts.slug = value.slug
        if facts.session_kind is None and isinstance(value.session_kind, str):
            facts.session_kind = value.session_kind
        if isinstance(value.forked_from, ForkedFrom) and facts.forked_from is None:
            facts.forked_from = text(value.forked_from.session_id)

    def same(self, words: Any) -> str | None:
        """One object for a string that every line repeats."""
        if not isinstance(words, str) or not words:
            return None
        return self._once.setdefault(words, words)

    def moment(self, value: Line) -> tuple[datetime | None, TimeSource | None]:
        """A line's time; one without takes that of the line before it."""
        at = times.from_value(value.timestamp) if value.timestamp is not None else None
        if at is None:
            return self.kept.last_at, "neighbour" if self.kept.last_at is not None else None
        facts = self.kept.facts
        if facts.first_at is None or at < facts.first_at:
            facts.first_at = at
        if facts.last_at is None or at > facts.last_at:
            facts.last_at = at
        self.kept.last_at = at
        return at, "stored"

    def emit(self, item: Item) -> None:
        if not self.kept.is_open or self._must_open:
            self.kept.is_open, self._must_open = True, False
            self._out.append(self._opening())
        self._out.append(item)

    def link(self, link: Link) -> None:
        """Tell which call started an agent, once."""
        if self.kept.agents.is_news(link):
            self._out.append(link)

    def delivered(self, words: str) -> None:
        """Note that a prompt arrived, so that the queue's line of it is not told as well."""
        early = self.kept.queue.deliver(words)
        if early is not None:
            self.tree.dead.add(f"queued-{early}")

    def is_repeat(self, words: str, id_: str) -> bool:
        """Whether these words were met a short while ago on another line."""
        key = blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        known = self.kept.repeats.get(key)
        if known is not None:
            return known != id_
        if len(self.kept.repeats) >= _REMEMBERED:
            del self.kept.repeats[next(iter(self.kept.repeats))]
        self.kept.repeats[key] = id_
        return False

    def remember(self, call: str, early: user.Early) -> None:
        """Keep an answer whose call may still come."""
        if len(self.kept.early) >= _REMEMBERED:
            del self.kept.early[next(iter(self.kept.early))]
        if len(early.raw) <= _LARGEST_EARLY:
            self.kept.early[call] = early

    @property
    def results_folder(self) -> Path:
        return results_folder(self.path, self.kept.parent_id)

    def _opening(self) -> Opening:
        if self.agent_id is None:
            return Opening(source=self.unit.source, id=self.path.stem, store="lines")
        return Opening(
            source=self.unit.source,
            id=self.agent_id,
            store="lines",
            agent_id=self.agent_id,
            parent_id=self.kept.parent_id,
        )

    # --- everything else ----------------------------------------------------------------------------------

    def _system(self, said: Said) -> None:
        said.enter(0)
        told = notices.tell(said.whole())
        if told.subtype is not None:
            self.tally.meet(f"system subtype {told.subtype}")
            if not told.said:
                self._out.append(Problem(said.origin, f"unknown system subtype {told.subtype}"))
        self.tree.dead.update(told.retracted)
        if told.kind == "compact_boundary":
            self.kept.facts.compactions += 1
        for kind, role, words in told.said:
            said.say(role, words, kind=kind)

    def _attachment(self, said: Said) -> None:
        said.enter(0)
        found = said.whole().get("attachment")
        kind = text(found.get("type")) if isinstance(found, dict) else None
        if not isinstance(found, dict) or not notices.is_known(kind):
            self.tally.meet(f"attachment {kind}")
            self._out.append(Problem(said.origin, f"unknown attachment {kind}"))
            return
        if kind != "queued_command" or not notices.is_typed(found):
            return
        words, came_along = notices.prompt(found)
        if words.strip() or came_along:
            self.delivered(words)
            said.say("user", words, kind="queued", attachments=came_along)

    def _progress(self, said: Said) -> None:
        said.enter(0)
        if b"agent_progress" in said.raw and (link := link_in_progress(said.whole())) is not None:
            self.link(link)

    def _queued(self, record: dict[str, Any], value: Line, line: jsonl.Line[Line]) -> _Verdict:
        content = record.get("content")
        for link in links_in(content):
            self.link(link)
        words = prompt_text(content)
        operation = record.get("operation")
        if operation == "enqueue" and words.strip():
            origin = Origin(self.unit.path, f"line {line.number}")
            self.kept.queue.enqueue(words, times.from_value(value.timestamp), origin, line.number)
            return "understood"
        if operation == "remove" and (words.strip() or content is None):
            waiting = self.kept.queue.removed(words or None)
            if waiting is not None:
                self._tell_waiting(waiting)
        return "silent"

    def _tell_waiting(self, waiting: Waiting) -> None:
        """Words that only the queue has, as far as is known yet."""
        id_ = f"queued-{waiting.line}"
        self.tree.told[self.tree.add(id_, None, 0, None)] = 1
        self.emit(
            Message(
                id=id_,
                role="user",
                content=waiting.words,
                origin=waiting.origin,
                kind="queued",
                timestamp=waiting.at,
                timestamp_source="stored" if waiting.at else None,
                agent_id=self.agent_id,
                is_sidechain=self.agent_id is not None,
            )
        )

    def _bare_tool(self, kind: str, record: dict[str, Any], line: jsonl.Line[Line]) -> _Verdict:
        """Tool lines outside any message, as some other writers leave them."""
        origin = Origin(self.unit.path, f"line {line.number}")
        name = text(record.get("name")) or "unknown"
        if kind == "tool_use":
            call = text(record.get("id")) or f"line-{line.number}"
            self.kept.pending[call] = Pending(name, -1, None)
            tool = ToolCall(call, name, params(record.get("input")))
            self.emit(Message(id=f"line-{line.number}", role="tool", content="", origin=origin, tool=tool))
            return "understood"
        waiting = [id_ for id_, call in self.kept.pending.items() if call.name == name]
        call = text(record.get("tool_use_id")) or (waiting[0] if waiting else f"line-{line.number}")
        self.kept.pending.pop(call, None)
        result = odd_result_text(record.get("output", record.get("content")))
        self.emit(Answer(tool_call_id=call, result=result, origin=origin))
        return "understood"

    # --- the end ------------------------------------------------------------------------------------------

    def _end(self) -> Iterator[Item]:
        for waiting in self.kept.queue.rest():
            self._tell_waiting(waiting)
        if self.agent_id is not None and (link := sidecar.link_of(self.agent_id, self._sidecar)) is not None:
            self.link(link)
        if self._must_open:
            self._must_open = False
            self._out.append(self._opening())
        yield from self._out
        self._out.clear()
        if self.kept.is_open:
            yield self._closing()

    def _agents(self, own: str | None) -> tuple[Agent, ...]:
        """Subagents; in a subagent's own file it comes first, and the ones it started are below it."""
        told = self.kept.agents.told(own, self.agent_id)
        if self.agent_id is None:
            return told
        first, *started = told
        first = sidecar.with_sidecar(first, self._sidecar, self.kept.model)
        first = replace(first, is_hidden=self._hidden_because(first) is not None)
        return (first, *(replace(agent, parent_agent_id=self.agent_id) for agent in started))

    def _hidden_because(self, agent: Agent | None) -> str | None:
        """Why nobody would look for this conversation."""
        if agent is None:
            spoken = any(n and not f & SIDE for n, f in zip(self.tree.told, self.tree.flags, strict=True))
            return None if spoken else "nothing but subagents' lines"
        is_flat = project_folder(self.path) == self.path.parent
        is_bare = self.kept.first_role == "assistant" and is_flat and not self._sidecar
        return sidecar.hidden_because(agent, is_bare_answer=is_bare)

    def _closing(self) -> Closing:
        facts = self.kept.facts
        title, title_source = facts.title
        own = self.path.stem if self.agent_id is None else self.kept.parent_id
        agents = self._agents(own)
        hidden = self._hidden_because(agents[0] if self.agent_id is not None else None)
        reasons = [hidden] if hidden is not None else []
        if self.kept.faults:
            reasons.append(f"{self.kept.faults} lines cannot be read")
        at = facts.first_at
        modified = datetime.fromtimestamp(self.path.stat().st_mtime, UTC) if at is None else None
        return Closing(
            title=title,
            title_source=title_source,
            workspace=of_session(self.path, own, facts),
            created_at=at or modified,
            created_at_source="stored" if at else "file",
            updated_at=facts.last_at or modified,
            git_branch=facts.branch,
            version=facts.version,
            completeness="partial" if self.kept.faults else "complete",
            reasons=tuple(reasons),
            visibility="listed" if hidden is None else "hidden",
            agents=agents,
            abandoned=self.tree.abandoned() if self.agent_id is None else self.tree.retracted(),
            tracked_files=tuple(facts.files.values()),
            metadata=self._metadata(own),
        )

    def _metadata(self, own: str | None) -> dict[str, Any]:
        facts = self.kept.facts
        found = facts.metadata()
        if others := [id_ for id_ in facts.session_ids if id_ != own]:
            found["other_session_ids"] = others
        if len(facts.cwds) > 1:
            found["cwds"] = facts.cwds
        if (folder := project_folder(self.path)) is not None:
            found["encoded_path"] = folder.name
        return found
