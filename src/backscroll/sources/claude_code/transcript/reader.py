"""A transcript, main or subagent's, as a stream.

docs/formats/claude-code.md describes the format and the versions seen. Lines are
taken in file order; only the skeleton of ids, parents and places stays behind.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from backscroll.model import (
    Checkpoint,
    Edit,
    Item,
    Opening,
    Origin,
    Problem,
    RecordCounts,
    Replacement,
    SubagentLink,
    TimeSource,
    TitleHint,
    Unit,
    UsageReport,
)
from backscroll.readers import jsonl, timestamps
from backscroll.sources.claude_code.transcript import (
    assistant_lines,
    state_lines,
    subagent_sidecar,
    system_lines,
    user_lines,
)
from backscroll.sources.claude_code.transcript.branches import Tree
from backscroll.sources.claude_code.transcript.checkpoint import Remembered
from backscroll.sources.claude_code.transcript.closing import closing
from backscroll.sources.claude_code.transcript.line_context import Said, place_of, whole
from backscroll.sources.claude_code.transcript.line_types import (
    STARTS,
    ApiMessage,
    Line,
    decoder,
    is_record,
    text,
)
from backscroll.sources.claude_code.transcript.subagents import agent_id_of, results_folder

__all__ = ["Transcript"]

_SMALL = 2 * 1024 * 1024  # bytes of a file that is read at once, for those who keep it, too
_WEIGHT = {"parsed": 2, "problems": 1, "ignored": 0}

_Verdict: TypeAlias = Literal["parsed", "ignored", "problems"]

# The lines that make up the tree; all others tell of the session's state.
_TELLERS: dict[str, Callable[[Said], None]] = {
    "assistant": assistant_lines.tell,
    "user": user_lines.tell,
    "system": system_lines.system,
    "attachment": system_lines.attachment,
    "progress": system_lines.progress,
}


class Transcript:
    """One file being read. `items` may be called once."""

    def __init__(self, unit: Unit, since: Checkpoint | None = None) -> None:
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
        self.tally = RecordCounts()
        self.sidecar = subagent_sidecar.loaded(self.path) if self.agent_id is not None else {}
        self.proposals: dict[str, tuple[Edit, ...]] = {}  # of the calls in this reading that wait
        self._out: list[Item] = []
        self._once: dict[str, str] = {}
        self._counts: defaultdict[tuple[str, _Verdict], int] = defaultdict(int)  # lines by type and verdict
        self._is_opened = False  # in this reading
        self._is_torn = False

    def items(self) -> Iterator[Item]:
        """Everything from the mark on, the tally last."""
        out, counts = self._out, self._counts
        line: jsonl.Line[Line] | None = None
        for line in self._lines():
            values = line.values
            if line.fault is None and len(values) == 1:  # as nearly all are
                counts[self._record(values[0], line, 0)] += 1
            else:
                self._take_odd(line)
            if out:
                yield from out
                out.clear()
        yield from self._end()
        for (kind, verdict), number in counts.items():
            self.tally.count(kind, verdict, number)
        self.tally.checkpoint = self._mark(line)
        yield self.tally

    def _lines(self) -> Iterator[jsonl.Line[Line]]:
        return jsonl.lines(
            self.path,
            decoder,
            offset=self.offset,
            line=self.line,
            end=self.unit.size or sys.maxsize,
            starts=STARTS,
            is_record=is_record,
            whole=self._whole(),
        )

    def _whole(self) -> bytes:
        """The whole file, where this is its first reading and it is small enough to be held."""
        if self.offset or not 0 < self.unit.size <= _SMALL:
            return b""
        with self.path.open("rb", buffering=0) as file:
            self.tally.file_content = file.read(self.unit.size)
        return self.tally.file_content

    def _mark(self, last: jsonl.Line[Line] | None) -> Checkpoint:
        """Where the next reading begins: behind the last line, or before it while more may be added to it."""
        offset, line = self.offset, self.line
        if last is not None and last.is_final:
            offset, line = last.offset + last.size, last.number
        elif last is not None and last.offset > offset:
            offset, line = last.offset, last.number - 1
        return Checkpoint(offset, line, msgspec.msgpack.encode(self.kept))

    # --- one line -----------------------------------------------------------------------------------------

    def _take_odd(self, line: jsonl.Line[Line]) -> None:
        """Tell what a line says that is broken, or holds more or less than one object."""
        if line.is_blank:
            return
        verdicts = [self._record(value, line, number) for number, value in enumerate(line.values)]
        if line.fault is not None:
            self.kept.faults += line.is_complete
            self._is_torn = not line.is_complete
            self._out.append(Problem(Origin(self.unit.path, f"line {line.number}"), *line.fault))
            self._counts[verdicts[0][0] if verdicts else "(unreadable)", "problems"] += 1
        elif not verdicts:
            self._counts["(not an object)", "ignored"] += 1
        else:
            self._counts[max(verdicts, key=lambda told: _WEIGHT[told[1]])] += 1

    def _record(self, value: Line, line: jsonl.Line[Line], number: int) -> tuple[str, _Verdict]:
        """Tell what a record says. Returns its type and how it counts."""
        kind = value.type
        if isinstance(kind, str):
            tell = _TELLERS.get(kind)
            if tell is None:
                return kind, self._state(kind, value, line, number)
            return kind, self._chain(Said(self, value, line, number), tell)
        if isinstance(value.message, ApiMessage) and value.message.role in ("user", "assistant"):
            role = str(value.message.role)
            return role, self._chain(Said(self, value, line, number), _TELLERS[role])
        return "(no type)", self._unknown("record type (no type)", line)

    def _unknown(self, name: str, line: jsonl.Line[Line]) -> _Verdict:
        """Something of no known kind. A line that is broken anyhow is a problem already."""
        if line.fault is None:
            self.tally.add_unknown(name)
            self._out.append(
                Problem(Origin(self.unit.path, f"line {line.number}"), "unknown-type", f"unknown {name}")
            )
        return "problems"

    def _state(self, kind: str, value: Line, line: jsonl.Line[Line], number: int) -> _Verdict:
        facts = self.kept.facts
        facts.note(value)
        if state_lines.is_opaque(kind):
            return "ignored"
        record = whole(line.value_bytes(number))
        if state_lines.absorb(facts, kind, record):
            return "ignored"
        origin = Origin(self.unit.path, f"line {line.number}")
        place = place_of(line, number)
        if kind == "summary":
            title, leaf = text(record.get("summary")), text(record.get("leafUuid"))
            if title is not None and leaf is not None:
                self._out.append(TitleHint(leaf, title, origin))
            return "ignored"
        if kind == "queue-operation":
            return "parsed" if system_lines.queued(record, origin, place, self) else "ignored"
        if kind in ("tool_use", "tool_result") and record:
            system_lines.bare_tool(record, origin, place, self)
            return "parsed"
        return self._unknown(f"record type {kind}", line)

    # --- chain lines --------------------------------------------------------------------------------------

    def _chain(self, said: Said, tell: Callable[[Said], None]) -> _Verdict:
        kept = self.kept
        kept.facts.note(said.value)
        if kept.parent_id is None and self.agent_id is not None:
            kept.parent_id = text(said.value.session_id)
        before = len(self._out)
        tell(said)
        if said.count or said.is_known:
            self.tree.tell(said.node, said.count, answers=said.answers)
        if kept.first_role is None and said.value.type in ("user", "assistant"):
            kept.first_role = said.value.type
        if kept.model is None:
            kept.model = said.model
        return "parsed" if said.count or said.is_answer else self._without_message(said, before)

    def _without_message(self, said: Said, before: int) -> _Verdict:
        """How a line counts that gave no message and answered nothing; one that should have is a problem."""
        if said.value.type in ("user", "assistant") and (lack := said.lack()) is not None:
            self.note(Problem(said.origin, "no-content", lack))
        told = set(map(type, self._out[before:]))
        if UsageReport in told:
            return "parsed"
        return "problems" if Problem in told else "ignored"

    def same(self, words: Any) -> str | None:
        """One object for a string that every line repeats."""
        if not isinstance(words, str) or not words:
            return None
        return self._once.setdefault(words, words)

    def moment(self, value: Line) -> tuple[datetime | None, TimeSource | None]:
        """A line's time; one without takes that of the line before it."""
        kept = self.kept
        at = timestamps.from_value(value.timestamp) if value.timestamp is not None else None
        if at is None:
            return kept.last_at, "neighbour" if kept.last_at is not None else None
        facts = kept.facts
        if facts.last_at is None or at > facts.last_at:
            facts.last_at = at
        if facts.first_at is None or at < facts.first_at:
            facts.first_at = at
        kept.last_at = at
        return at, "stored"

    def note(self, problem: Problem) -> None:
        """Tell what could not be read of a line."""
        self._out.append(problem)

    def emit(self, item: Item) -> None:
        """Tell something of the session, which this opens."""
        if not self._is_opened:
            self._open()
        self._out.append(item)

    def _open(self) -> None:
        self.kept.is_open = self._is_opened = True
        self._out.append(self._opening())

    def link(self, link: SubagentLink) -> None:
        """Tell which call started an agent, once."""
        if self.kept.agents.is_news(link):
            self._out.append(link)

    def delivered(self, words: str) -> None:
        """Note that a prompt arrived, which is told next: the queue's line of it is not told as well."""
        early = self.kept.queue.deliver(words)
        if early:
            self.tree.told[self.tree.find(early[0])] = 0
            self.tree.dead.update(early[1:])  # of several that arrive as one, the others are told no more
            self.emit(Replacement(early[0]))

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

    # --- the end ------------------------------------------------------------------------------------------

    def _end(self) -> Iterator[Item]:
        for waiting in self.kept.queue.rest():
            system_lines.tell_waiting(waiting, self)
        if (
            self.agent_id is not None
            and (link := subagent_sidecar.link_of(self.agent_id, self.sidecar)) is not None
        ):
            self.link(link)
        if self.kept.is_open and not self._is_opened:
            self._open()
        yield from self._out
        self._out.clear()
        if self.kept.is_open:
            yield closing(self, is_torn=self._is_torn)
