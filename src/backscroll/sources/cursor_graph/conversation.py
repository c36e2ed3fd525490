"""A conversation out of its root: messages as the model saw them, times and typed text from the turns."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Literal

from backscroll.model import Message, Origin, Problem, RecordCounts, ToolResult
from backscroll.readers.json_outline import safe_name
from backscroll.readers.protobuf import Record
from backscroll.sources.cursor_graph import timeline
from backscroll.sources.cursor_graph.blobs import BlobLoader
from backscroll.sources.cursor_graph.calls_without_id import join_results
from backscroll.sources.cursor_graph.compactions import (
    CompactionArchive,
    read_compaction_archives,
    restore_compacted,
)
from backscroll.sources.cursor_graph.message_parts import (
    RecordInfo,
    build_message,
    call_ids,
    decode_message,
    is_summary,
    message_parts,
    message_text,
    model_name,
    parse_parts,
    part_texts,
    user_prompt,
    without_prompt_parts,
)
from backscroll.sources.cursor_graph.pending_calls import CallTracker
from backscroll.sources.cursor_graph.prescan import KnownSteps, scan_message
from backscroll.sources.cursor_graph.prompt_text import is_injected, workspace_folders
from backscroll.sources.cursor_graph.state import ConversationState, MessageRef
from backscroll.sources.cursor_graph.steps import turn_messages
from backscroll.sources.cursor_graph.turns import Step, Turn, read_call_times, read_steps, read_turns

__all__ = ["Conversation", "RecordOutcome"]

RecordOutcome = Literal["parsed", "ignored", "problems"]

_OUTCOME_RANK: dict[RecordOutcome, int] = {"ignored": 0, "problems": 1, "parsed": 2}
_TODO_STATES = {1: "pending", 2: "in_progress", 3: "completed", 4: "cancelled"}
_ROLES = ("system", "user", "assistant", "tool")


class Conversation:
    """One conversation, told once through `items`; the rest of it is known afterwards."""

    def __init__(
        self,
        state: ConversationState,
        blobs: BlobLoader,
        *,
        path: str,
        tally: RecordCounts,
        model: str | None = None,
        started_at: datetime | None = None,
        ended_at: datetime | None = None,
    ) -> None:
        self.state = state
        self.verdicts: dict[
            str, tuple[str, RecordOutcome]
        ] = {}  # of every blob looked at: its kind and what it gave
        self.reasons: dict[str, None] = {}  # why not all of it is here
        self.first_prompt: str | None = None
        self.told_folders: dict[str, None] = {}  # workspace paths that the context names
        self.models: dict[str, None] = {}
        self._blobs = blobs
        self._path = path
        self._tally = tally
        self._model = model
        self._bounds = started_at, ended_at
        self._calls = CallTracker()
        self._uses: dict[str, int] = {}
        self._last_spot: timeline.MessageTime | None = None
        self._last_texts: set[str] = set()  # of the last message that an assistant said

    def items(self, entries: Sequence[MessageRef] | None = None) -> Iterator[Message | ToolResult | Problem]:
        """All that was said. Given `entries`, these are the messages, whatever the root says."""
        return join_results(self._items(entries))

    def _items(self, entries: Sequence[MessageRef] | None) -> Iterator[Message | ToolResult | Problem]:
        state = self.state
        for number in state.unknown_fields:
            self._tally.add_unknown(f"root field {number}")
        archives = read_compaction_archives(state.archives, self._blobs)
        for archive in archives:
            self._mark(archive.id, "blob (archive)", "ignored")
        whole = restore_compacted(archives, state.messages if entries is None else list(entries))
        turns = list(read_turns(state.turns or state.old_turns, self._blobs))
        for turn in turns:
            for id in filter(None, (turn.id, turn.user_id, *turn.step_ids)):
                self._mark(id, "blob (turn)", "ignored")
        if whole:
            yield from self._tell(whole, turns, archives)
        else:
            for number, turn in enumerate(turns):
                yield from self._tell_turn(turn, number)
        yield from self._tell_pending(whole)
        yield from self._damage(whole, [] if whole else turns)

    def _tell(
        self, whole: Sequence[MessageRef], turns: Sequence[Turn], archives: Sequence[CompactionArchive]
    ) -> Iterator[Message | ToolResult | Problem]:
        summaries = {archive.summary_id: archive for archive in archives if archive.summary_id}
        seen = [
            scan_message(message, is_archived=entry.id in summaries) for entry, message in self._each(whole)
        ]
        alignment = timeline.align_turns(seen, turns)
        spots = timeline.assign_times(
            seen,
            turns,
            self.state.timings,
            alignment=alignment,
            call_times=read_call_times(turns, self._blobs),
            started_at=self._bounds[0],
            ended_at=self._bounds[1],
        )
        self._last_spot = spots[-1] and timeline.MessageTime(spots[-1].at, "turn")
        waiting = _before_which(alignment, len(seen))
        told = KnownSteps(seen)
        # A compaction begins the list anew, with the same instructions.
        instructions = {entry.id for entry in (*whole[:1], *self.state.messages[:1])}
        for place, (entry, message) in enumerate(self._each(whole)):
            for number in waiting.get(place, ()):
                yield from self._tell_untold(turns[number], number, told)
            turn = alignment.turns.get(place)
            yield from self._tell_entry(
                entry,
                message,
                spots[place],
                turn=None if turn is None else turns[turn],
                archive=summaries.get(entry.id),
                is_instruction=entry.id in instructions,
            )
        for number in waiting.get(len(seen), ()):
            yield from self._tell_untold(turns[number], number, told)

    def _each(
        self, entries: Sequence[MessageRef]
    ) -> Iterator[tuple[MessageRef, dict[str, Any] | bytes | None]]:
        """Every entry with its message; bytes when it is none, None when its blob is not there."""
        fetched = self._blobs.each(entry.id for entry in entries if entry.data is None)
        for entry in entries:
            data = entry.data if entry.data is not None else next(fetched)[1]
            yield entry, None if data is None else decode_message(data) or data

    def _tell_entry(
        self,
        entry: MessageRef,
        message: dict[str, Any] | bytes | None,
        spot: timeline.MessageTime | None,
        *,
        turn: Turn | None,
        archive: CompactionArchive | None,
        is_instruction: bool,
    ) -> Iterator[Message | ToolResult | Problem]:
        if message is None:
            return  # told as damage at the end
        if isinstance(message, bytes):
            self._mark(entry.id, "blob (message)", "problems")
            self.reasons["a message could not be read"] = None
            yield Problem(
                self._origin(entry.id), "unknown-type", "is not a message: neither JSON nor anything known"
            )
            return
        role = message.get("role")
        if role not in _ROLES:
            self._tally.add_unknown(f"role {safe_name(role)}")
        place = self._place(entry.id, spot)
        if archive is not None or is_summary(message):
            # The message that stands for what a compaction took out: nobody said it.
            told = (archive.summary if archive else "") or message_text(message)
            yield build_message(place, "system", told, kind="compaction")
            self._mark(entry.id, "blob (message)", "parsed")
        elif role == "system" and is_instruction:
            self._mark(entry.id, "blob (system prompt)", "ignored")
        elif role == "system":
            yield build_message(place, "system", message_text(message), kind="context")
            self._mark(entry.id, "blob (message)", "parsed")
        else:
            if role == "user":
                said = list(self._tell_user(message, place, turn))
            else:
                place = self._with_model(message, place, role)
                said = list(parse_parts(message, place, calls=self._calls, tally=self._tally))
            if role == "assistant":
                self._last_texts = part_texts(message)
            known = role in _ROLES and not message.get("content")
            self._mark(entry.id, "blob (message)", "parsed" if said else "ignored" if known else "problems")
            if not said and not known:
                yield Problem(place.origin, "no-content", "says nothing that is understood")
            yield from said

    def _tell_user(
        self, message: dict[str, Any], place: RecordInfo, turn: Turn | None
    ) -> Iterator[Message | ToolResult]:
        prompt = user_prompt(message)
        whole = message_text(message)
        self.told_folders |= dict.fromkeys(workspace_folders(whole))
        rest = without_prompt_parts(message)
        text = prompt.text
        if turn is not None and turn.text.strip() and not prompt.is_quoted:
            text = turn.text.strip()
        if prompt.is_context and not text:
            if whole:
                yield build_message(place, "system", whole, kind="context")
            yield from parse_parts(
                rest, place, calls=self._calls, tally=self._tally, number=1 if whole else 0
            )
            return
        is_synthetic = (turn is not None and turn.is_simulated) or is_injected(text)
        if not is_synthetic:
            self.first_prompt = self.first_prompt or text or None
        kind = "synthetic" if is_synthetic else None
        yield build_message(place, "user", text, kind=kind, attachments=prompt.attachments)
        yield from parse_parts(rest, place, calls=self._calls, tally=self._tally, number=1)

    def _tell_untold(self, turn: Turn, number: int, told: KnownSteps) -> Iterator[Message | Problem]:
        """A turn whose prompt is not among the messages, without those of its steps that are."""
        steps = list(read_steps(turn, self._blobs))
        if steps and steps[0] in told:
            return  # its prompt is there too, in other words
        self.reasons["older messages are kept only as the window shows them"] = None
        yield from self._tell_turn(turn, number, [step for step in steps if step not in told])

    def _tell_turn(
        self, turn: Turn, number: int, steps: Iterable[Step] | None = None
    ) -> Iterator[Message | Problem]:
        """A turn from its steps, for conversations that have no messages of the other kind."""
        timings = self.state.timings
        timed_ms = timings[number].timestamp_ms if number < len(timings) else None
        steps = read_steps(turn, self._blobs) if steps is None else steps
        for said, blob in turn_messages(
            turn, self._noted(steps), calls=self._calls, place=self._place, timed_ms=timed_ms
        ):
            if said.role == "user" and said.kind is None:
                self.first_prompt = self.first_prompt or said.content or None
            self._mark(blob, "blob (turn)", "parsed")
            yield said

    def _noted(self, steps: Iterable[Step]) -> Iterator[Step]:
        for step in steps:
            if step.unknown is not None:
                self._tally.add_unknown(f"step field {step.unknown}")
            yield step

    def _tell_pending(self, whole: Sequence[MessageRef]) -> Iterator[Message | ToolResult | Problem]:
        """The step that was under way; a root written in between repeats it."""
        told = {entry.id for entry in whole}
        for entry in self.state.pending:
            message = decode_message(entry.data or self._blobs.get(entry.id) or b"")
            if message is None:
                yield Problem(
                    Origin(self._path, "root, field 4"), "not-json", "the unfinished step is not JSON"
                )
                continue
            if entry.id in told:
                continue
            place = self._with_model(message, self._place(entry.id, self._last_spot), "assistant")
            left = {"role": "assistant", "content": self._unsaid_parts(message)}
            yield from parse_parts(left, place, calls=self._calls, tally=self._tally)

    def _unsaid_parts(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """The parts of an unfinished step that its first half, already among the messages, did not have."""
        left = []
        for part in message_parts(message):
            known = call_ids({"content": [part]})
            if known and known[0] in self._calls:
                continue
            texts = part_texts({"content": [part]})
            if not texts or not texts <= self._last_texts:
                left.append(part)
        return left

    def _damage(self, whole: Iterable[MessageRef], turns: Iterable[Turn]) -> Iterator[Problem]:
        """What the conversation names and the store does not have, or has differently."""
        needed = {entry.id for entry in whole} | set(self.state.archives)
        needed |= {id for turn in turns for id in (turn.user_id, *turn.step_ids) if id}
        needed |= set(self.state.turns or self.state.old_turns) if not whole else set()
        for id in self._blobs.missing:
            if id in needed:
                self.reasons["messages are missing from the store"] = None
                yield Problem(
                    self._origin(id),
                    "missing-record",
                    "is named by the conversation and missing from the store",
                )
        for id in self._blobs.altered:
            if id in self.verdicts:
                yield Problem(
                    self._origin(id), "altered-record", "is not what its id says: it was changed or damaged"
                )

    def facts(self) -> dict[str, Any]:
        """What the root says besides the conversation."""
        facts = self.state.facts()
        todos = []
        for id, data in self._blobs.each(self.state.todos):
            self._mark(id, "blob (todo)", "ignored")
            record = Record(data or b"")
            if record.text(2):
                status = _TODO_STATES.get(record.number(3) or 0, "unknown")
                todos.append({"content": record.text(2), "status": status})
        if todos:
            facts["todos"] = todos
        for name, of in (("summary", self.state.summary), ("plan", self.state.plan)):
            if of is not None and (data := self._blobs.get(of)) is not None:
                self._mark(of, f"blob ({name})", "ignored")
                facts[name] = Record(data).text(1) or ""
        for file in self.state.tracked_files():
            if file.backup is not None:
                self._mark(file.backup, "blob (file)", "ignored")
        return facts

    def _mark(self, id: str, kind: str, verdict: RecordOutcome) -> None:
        known = self.verdicts.get(id)
        if known is None or _OUTCOME_RANK[verdict] > _OUTCOME_RANK[known[1]]:
            self.verdicts[id] = (kind, verdict)

    def _place(self, id: str, spot: timeline.MessageTime | None) -> RecordInfo:
        """Where a record's messages stand. A record told twice gets a number, since both have one id."""
        self._uses[id] = self._uses.get(id, 0) + 1
        name = id if self._uses[id] == 1 else f"{id}#{self._uses[id]}"
        if spot is None:
            return RecordInfo(name, self._origin(id))
        return RecordInfo(name, self._origin(id), spot.at, spot.source)

    def _with_model(self, message: dict[str, Any], place: RecordInfo, role: Any) -> RecordInfo:
        if role != "assistant":
            return place
        model = model_name(message) or self._model
        if model is not None:
            self.models[model] = None
        return RecordInfo(place.id, place.origin, place.timestamp, place.timestamp_source, model)

    def _origin(self, id: str) -> Origin:
        return Origin(self._path, f"blob {id}")


def _before_which(alignment: timeline.TurnAlignment, end: int) -> dict[int, list[int]]:
    """Before which message each turn belongs that the messages do not hold."""
    waiting: dict[int, list[int]] = {}
    for untold in alignment.untold:
        later = [place for place, turn in alignment.turns.items() if turn > untold]
        waiting.setdefault(min(later, default=end), []).append(untold)
    return waiting
