"""A transcript, main or subagent's, as a stream.

docs/formats/claude-code.md describes the format and the versions seen. Lines are
taken in file order; only the skeleton of ids, parents and places stays behind.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
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
    Tally,
    TimeSource,
    TokenUsage,
    ToolCall,
    Unit,
)
from backscroll.readers import jsonl, lenient, times
from backscroll.sources.claude_code import assistant, notices, sidecar, state, user, workspace
from backscroll.sources.claude_code.agents import (
    Agents,
    Pending,
    agent_id_of,
    link_in_progress,
    results_folder,
)
from backscroll.sources.claude_code.blocks import result_text
from backscroll.sources.claude_code.branches import Skeleton, Tree
from backscroll.sources.claude_code.lines import STARTS, ApiMessage, ForkedFrom, Line, decoder, params, text
from backscroll.sources.claude_code.queue import Queue, Waiting, links_in, prompt_text
from backscroll.sources.claude_code.said import Said

__all__ = ["Remembered", "Transcript"]

_REMEMBERED = 512  # what is written twice is written again soon

_Verdict: TypeAlias = Literal["understood", "silent", "problems"]


class Remembered(msgspec.Struct, array_like=True):
    """What a later reading needs of an earlier one."""

    skeleton: Skeleton = msgspec.field(default_factory=Skeleton)
    facts: state.Facts = msgspec.field(default_factory=state.Facts)
    queue: Queue = msgspec.field(default_factory=Queue)
    agents: Agents = msgspec.field(default_factory=Agents)
    pending: dict[str, Pending] = msgspec.field(default_factory=dict)
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
        self.results_folder = results_folder(self.path, is_agent=self.agent_id is not None)
        self._sidecar = sidecar.loaded(self.path) if self.agent_id is not None else {}
        self._out: list[Item] = []
        self._once: dict[str, str] = {}
        self._repeats: set[tuple[str, str, str]] = set()
        self._costs: dict[str, TokenUsage] = {}
        self._owed: dict[str, Said] = {}
        self._last_at = self.kept.facts.last_at
        self._must_open = self.kept.is_open

    def items(self) -> Iterator[Item]:
        """Everything from the mark on, the tally last."""
        out = self._out
        offset, line_number = self.offset, self.line
        for line in jsonl.lines(self.path, decoder, offset=self.offset, line=self.line, starts=STARTS):
            self._take(line)
            if line.is_complete or line.values:
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
            kind, verdict = self._record(values[0], line)
            self.tally.count(kind, verdict)
            return
        if line.is_blank:
            return
        verdicts = [self._record(value, line) for value in values]
        if line.fault is not None:
            self._out.append(Problem(Origin(self.unit.path, f"line {line.number}"), line.fault))
            self.tally.count(verdicts[0][0] if verdicts else "(unreadable)", "problems")
        elif not verdicts:
            self.tally.count("(not an object)", "silent")
        else:
            self.tally.count(*max(verdicts, key=lambda told: told[1] == "understood"))

    def _record(self, value: Line, line: jsonl.Line[Line]) -> tuple[str, _Verdict]:
        """Tell what a record says. Returns its type and how it counts."""
        kind = value.type
        before = len(self._out)
        match kind:
            case "assistant":
                self._chain(value, line, assistant.tell)
            case "user":
                self._chain(value, line, user.tell)
            case "system":
                self._chain(value, line, self._system)
            case "attachment":
                self._chain(value, line, self._attachment)
            case "progress":
                self._chain(value, line, self._progress)
            case str():
                return kind, self._state(kind, value, line)
            case _ if isinstance(value.message, ApiMessage) and value.message.role in ("user", "assistant"):
                spoken = user.tell if value.message.role == "user" else assistant.tell
                self._chain(value, line, spoken)
                kind = value.message.role
            case _:
                return "(no type)", self._unknown("(no type)", line)
        told = any(isinstance(item, Message | Answer) for item in self._out[before:])
        return kind, "understood" if told else "silent"

    def _unknown(self, kind: str, line: jsonl.Line[Line]) -> _Verdict:
        self.tally.meet(f"record type {kind}")
        self._out.append(
            Problem(Origin(self.unit.path, f"line {line.number}"), f"unknown record type {kind!r}")
        )
        return "problems"

    def _state(self, kind: str, value: Line, line: jsonl.Line[Line]) -> _Verdict:
        record = self._whole(line)
        self._session(value)
        if kind == "summary":
            title, leaf = record.get("summary"), record.get("leafUuid")
            if isinstance(title, str) and isinstance(leaf, str):
                self._out.append(Naming(leaf, title, Origin(self.unit.path, f"line {line.number}")))
            return "silent"
        if kind == "queue-operation":
            return self._queued(record, value, line)
        if kind in ("tool_use", "tool_result"):
            return self._bare_tool(kind, record, line)
        if state.absorb(self.kept.facts, kind, record):
            return "silent"
        return self._unknown(kind, line)

    def _whole(self, line: jsonl.Line[Line]) -> dict[str, Any]:
        """A state line with all its fields; of a line with several records, the first."""
        try:
            record = msgspec.json.decode(line.raw)
        except lenient.FAILURES:
            found = next(lenient.scan(lenient.clean_text(line.raw), STARTS), None)
            record = found[2] if found else {}
        return record if isinstance(record, dict) else {}

    # --- chain lines --------------------------------------------------------------------------------------

    def _chain(self, value: Line, line: jsonl.Line[Line], tell: Callable[[Said], None]) -> None:
        self._session(value)
        said = Said(self, value, line)
        tell(said)
        if self.kept.first_role is None and value.type in ("user", "assistant"):
            self.kept.first_role = value.type
        if self.kept.model is None:
            self.kept.model = said.model
        if said.count > self.tree.told[said.node]:
            self.tree.told[said.node] = said.count
            if said.answers is not None and said.answers >= 0:
                self.tree.answers[said.node] = said.answers

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
            return self._last_at, "neighbour" if self._last_at is not None else None
        facts = self.kept.facts
        if facts.first_at is None or at < facts.first_at:
            facts.first_at = at
        if facts.last_at is None or at > facts.last_at:
            facts.last_at = at
        self._last_at = at
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

    def is_repeat(self, same: str, kind: str, words: str) -> bool:
        """Whether these words were met a short while ago on a line of the same response or moment."""
        key = (same, kind, words)
        if key in self._repeats:
            return True
        if len(self._repeats) > _REMEMBERED:
            self._repeats.clear()
        self._repeats.add(key)
        return False

    def owe(self, said: Said) -> None:
        """Remember a cost whose line gave no message, until another line of the response gives one."""
        if said.response is None:
            self._pay(said)
        elif said.usage is not None and self._costs.get(said.response) != said.usage:
            self._owed[said.response] = said

    def settled(self, response: str, usage: TokenUsage) -> TokenUsage:
        """A response's cost with what its silent lines said of it."""
        if response in self._owed and (owed := self._owed.pop(response).usage) is not None:
            usage = usage.merged(owed)
        if len(self._costs) > _REMEMBERED:
            self._costs.clear()
        self._costs[response] = usage
        return usage

    def _pay(self, said: Said) -> None:
        said.say("assistant", "", kind="empty")
        self.tree.told[said.node] = max(said.count, self.tree.told[said.node])

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
        record = self._whole(said.line)
        told = notices.tell(record)
        if told.subtype is not None:
            self.tally.meet(f"system subtype {told.subtype}")
        if told.retracted:
            self.tree.dead.update(told.retracted)
        if told.kind == "compact_boundary":
            self.kept.facts.compactions += 1
        for kind, role, words in told.said:
            said.say(role, words, kind=kind)

    def _attachment(self, said: Said) -> None:
        said.enter(0)
        found = self._whole(said.line).get("attachment")
        kind = text(found.get("type")) if isinstance(found, dict) else None
        if not isinstance(found, dict) or kind not in notices.ATTACHMENTS:
            self.tally.meet(f"attachment {kind}")
            return
        if kind != "queued_command" or not notices.is_typed(found):
            return
        words = prompt_text(found.get("prompt"))
        if words.strip():
            self.delivered(words)
            said.say("user", words, kind="queued")

    def _progress(self, said: Said) -> None:
        said.enter(0)
        if b"agent_progress" not in said.line.raw:
            return
        record = self._whole(said.line)
        link = link_in_progress(record)
        if link is not None:
            self.link(link)

    def _queued(self, record: dict[str, Any], value: Line, line: jsonl.Line[Line]) -> _Verdict:
        content = record.get("content")
        for link in links_in(content):
            self.link(link)
        words = prompt_text(content)
        at = times.from_value(value.timestamp)
        origin = Origin(self.unit.path, f"line {line.number}")
        if record.get("operation") == "enqueue" and words.strip():
            self.kept.queue.enqueue(words, at, origin, line.number)
        elif record.get("operation") == "remove":
            waiting = self.kept.queue.removed(words or None)
            if waiting is not None:
                self._tell_waiting(waiting)
                return "understood"
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
        call = text(record.get("tool_use_id")) or (waiting[-1] if waiting else f"line-{line.number}")
        self.kept.pending.pop(call, None)
        result = result_text(record.get("output", record.get("content")))[0]
        self.emit(Answer(tool_call_id=call, result=result, origin=origin))
        return "understood"

    # --- the end ------------------------------------------------------------------------------------------

    def _end(self) -> Iterator[Item]:
        for said in list(self._owed.values()):
            self._pay(said)
        for waiting in self.kept.queue.rest():
            waiting.is_told = True
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

    def _with_own(self, agents: tuple[Agent, ...]) -> tuple[Agent, ...]:
        """The agent whose file this is, first; the ones it started itself are below it."""
        own, *started = agents
        return (
            sidecar.with_sidecar(own, self._sidecar, self.kept.model),
            *(replace(agent, parent_agent_id=self.agent_id) for agent in started),
        )

    def _closing(self) -> Closing:
        facts = self.kept.facts
        title, title_source = facts.title
        agents = self.kept.agents.told(
            own := self.path.stem if self.agent_id is None else self.kept.parent_id
        )
        hidden = None
        if self.agent_id is not None:
            agents = self._with_own(agents)
            hidden = sidecar.hidden_because(agents[0], first_role=self.kept.first_role)
        at = facts.first_at
        modified = datetime.fromtimestamp(self.path.stat().st_mtime, UTC) if at is None else None
        metadata = facts.metadata()
        if others := [id_ for id_ in facts.session_ids if id_ != own]:
            metadata["other_session_ids"] = others
        if len(facts.cwds) > 1:
            metadata["cwds"] = facts.cwds
        if (folder := workspace.project_folder(self.path)) is not None:
            metadata["encoded_path"] = folder.name
        return Closing(
            title=title,
            title_source=title_source,
            workspace=workspace.of_session(self.path, own, facts),
            created_at=at or modified,
            created_at_source="stored" if at else "file",
            updated_at=facts.last_at or modified,
            git_branch=facts.branch,
            version=facts.version,
            visibility="listed" if hidden is None else "hidden",
            reasons=() if hidden is None else (hidden,),
            agents=agents,
            abandoned=() if self.agent_id is not None else self.tree.abandoned(),
            tracked_files=tuple(facts.files.values()),
            metadata=metadata,
        )
