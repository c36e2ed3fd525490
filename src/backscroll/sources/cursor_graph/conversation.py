"""Parse a conversation: messages as sent to the model, with times and typed text from the turns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, Literal

import msgspec
from msgspec import Struct

from backscroll.model.message import Attachment, Message, Origin, Role, TimeSource, ToolCall
from backscroll.model.problem import Problem
from backscroll.model.stream import RecordCounts, ToolResult
from backscroll.readers import lenient_json, timestamps
from backscroll.readers.json_outline import safe_name
from backscroll.readers.protobuf import Record
from backscroll.sources.cursor_graph.blobs import BlobLoader, blob_id
from backscroll.sources.cursor_graph.message_parts import (
    NO_CONTENT_REASON,
    RecordInfo,
    build_message,
    call_ids,
    decode_message,
    is_injected,
    is_summary,
    message_parts,
    message_text,
    model_name,
    parse_parts,
    part_texts,
    user_prompt,
    without_prompt_parts,
    workspace_folders,
)
from backscroll.sources.cursor_graph.records import (
    ConversationState,
    MessageRef,
    Step,
    StepCall,
    Turn,
    TurnTiming,
    linked_messages,
    message_ref,
    read_call_times,
    read_steps,
    read_turns,
)
from backscroll.sources.cursor_graph.tool_calls import CallTracker, join_results, parse_edits, value_text

RecordOutcome = Literal["parsed", "ignored", "problems"]

_MAX_CONTEXT_CHARS = 4_000  # compared with the text of turns
_MIN_TEXT_CHARS = 24  # shorter answers often repeat, so they do not identify a step
_OUTCOME_RANK: dict[RecordOutcome, int] = {"ignored": 0, "problems": 1, "parsed": 2}
_TODO_STATES = {1: "pending", 2: "in_progress", 3: "completed", 4: "cancelled"}
_ROLES = ("system", "user", "assistant", "tool")
_MAX_LINK_DEPTH = 32
_MAX_LEAD_MESSAGES = 4  # system prompt, context, rules, summary
_MIN_SUMMARY_CHARS = 24  # a message that contains a shorter text is not its summary


class _MessageOutline(Struct):
    """The properties of a message that are needed to match turns and assign times."""

    role: str
    prompt: str | None = None  # text that the user typed; None if the message is not a prompt
    call_ids: tuple[str, ...] = ()
    at: datetime | None = None  # from the context
    context: str = ""  # start of the text of a user message without a prompt
    text_hashes: tuple[int, ...] = ()  # of the assistant's texts and thinking


class _MessageTime(Struct, frozen=True):
    """A time and its source."""

    at: datetime
    source: TimeSource


class _TurnAlignment(Struct):
    """Match between the turns and the messages of a conversation."""

    turns: dict[int, int]  # index of a turn by the index of its prompt
    missing: list[int]  # indexes of the turns without messages


class _KnownSteps:
    """Set of the steps that the messages contain too."""

    def __init__(self, outlines: Iterable[_MessageOutline]) -> None:
        self._call_ids: set[str] = set()
        self._text_hashes: set[int] = set()
        for outline in outlines:
            self._call_ids.update(outline.call_ids)
            self._text_hashes.update(outline.text_hashes)

    def __contains__(self, step: Step) -> bool:
        if step.call is not None:
            return step.call.id in self._call_ids
        text = (step.text or step.thinking or "").strip()
        return len(text) >= _MIN_TEXT_CHARS and hash(text) in self._text_hashes


class _CompactionArchive(Struct, frozen=True):
    """The messages that one compaction removed, and the summary that replaced them."""

    id: str
    entries: tuple[MessageRef, ...]
    summary: str
    summary_id: str | None


class Conversation:
    """Parser of one conversation. `items` is called once; the other attributes are complete after it."""

    def __init__(
        self,
        state: ConversationState,
        blobs: BlobLoader,
        *,
        path: str,
        counts: RecordCounts,
        model: str | None = None,
        started_at: datetime | None = None,
        ended_at: datetime | None = None,
    ) -> None:
        self.state = state
        self.outcomes: dict[str, tuple[str, RecordOutcome]] = {}  # kind and outcome by blob id
        self.reasons: dict[str, None] = {}  # why the conversation is incomplete
        self.first_prompt: str | None = None
        self.context_folders: dict[str, None] = {}  # workspace paths in the context
        self.models: dict[str, None] = {}
        self._blobs = blobs
        self._path = path
        self._counts = counts
        self._model = model
        self._started_at = started_at
        self._ended_at = ended_at
        self._calls = CallTracker()
        self._use_counts: dict[str, int] = {}  # by blob id
        self._last_time: _MessageTime | None = None
        self._shortened_ids: set[str] = set()  # of messages without what is nested too deeply
        self._link_ids: set[str] = set()  # of blobs that only link to messages
        self._linked_ids: set[str] = set()
        self._last_texts: set[str] = set()  # of the last assistant message

    def items(self, entries: Sequence[MessageRef] | None = None) -> Iterator[Message | ToolResult | Problem]:
        """Return the whole conversation. `entries` replaces the messages that the root refers to."""
        return join_results(self._parse(entries))

    def _parse(self, entries: Sequence[MessageRef] | None) -> Iterator[Message | ToolResult | Problem]:
        state = self.state
        for field in state.unknown_fields:
            self._counts.add_unknown(f"root field {field}")
        archives = _read_compaction_archives(state.archives, self._blobs)
        for archive in archives:
            self._set_outcome(archive.id, "blob (archive)", "ignored")
        messages = _restore_compacted(archives, state.messages if entries is None else list(entries))
        summaries = _find_summaries(archives, self._load_messages(messages))
        complete = _insert_summaries(archives, messages, summaries)
        turns = list(read_turns(state.turns or state.old_turns, self._blobs))
        for turn in turns:
            for id in filter(None, (turn.id, turn.user_id, *turn.step_ids)):
                self._set_outcome(id, "blob (turn)", "ignored")
        if messages:
            yield from self._parse_messages(complete, turns, summaries)
        else:
            for entry, message in self._load_messages(complete):
                yield from self._parse_message(entry, message, None)
            for index, turn in enumerate(turns):
                yield from self._parse_turn(turn, index)
        yield from self._parse_pending_step(messages)
        yield from self._find_damage(messages, [] if messages else turns)

    def _parse_messages(
        self, messages: Sequence[MessageRef], turns: Sequence[Turn], summaries: dict[str, _CompactionArchive]
    ) -> Iterator[Message | ToolResult | Problem]:
        messages, outlines = self._resolve_links(messages, summaries)
        if not messages:
            return
        alignment = _align_turns(outlines, turns)
        times = _assign_times(
            outlines,
            turns,
            self.state.timings,
            alignment=alignment,
            call_times=read_call_times(turns, self._blobs),
            started_at=self._started_at,
            ended_at=self._ended_at,
        )
        self._last_time = times[-1] and _MessageTime(times[-1].at, "turn")
        missing_turns = _missing_turns_by_position(alignment, len(outlines))
        known_steps = _KnownSteps(outlines)
        # After a compaction, the list starts with the same instructions again.
        instruction_ids = {entry.id for entry in (*messages[:1], *self.state.messages[:1])}
        for position, (entry, message) in enumerate(self._load_messages(messages)):
            for index in missing_turns.get(position, ()):
                yield from self._parse_missing_turn(turns[index], index, known_steps)
            turn_index = alignment.turns.get(position)
            yield from self._parse_message(
                entry,
                message,
                times[position],
                turn=None if turn_index is None else turns[turn_index],
                archive=summaries.get(entry.id),
                is_instruction=entry.id in instruction_ids,
            )
        for index in missing_turns.get(len(outlines), ()):
            yield from self._parse_missing_turn(turns[index], index, known_steps)

    def _resolve_links(
        self, entries: Sequence[MessageRef], summaries: dict[str, _CompactionArchive]
    ) -> tuple[Sequence[MessageRef], list[_MessageOutline]]:
        """Return the messages and their outlines. Blobs that link to messages are replaced by these."""
        for depth in range(_MAX_LINK_DEPTH + 1):
            outlines: list[_MessageOutline] = []
            links: dict[str, list[MessageRef]] = {}
            for entry, message in self._load_messages(entries):
                if (
                    isinstance(message, bytes)
                    and depth < _MAX_LINK_DEPTH
                    and (linked := linked_messages(message, self._blobs))
                ):
                    links[entry.id] = linked
                outlines.append(_outline_message(message, is_summary_of_archive=entry.id in summaries))
            if not links:
                break
            resolved = [part for entry in entries for part in links.get(entry.id, (entry,))]
            self._link_ids |= links.keys()
            entries = [entry for entry in resolved if entry.id not in self._link_ids]
            self._linked_ids.update(entry.id for linked in links.values() for entry in linked)
        for id in self._link_ids:
            self._set_outcome(id, "blob (link)", "ignored")
        return entries, outlines

    def _load_messages(
        self, entries: Sequence[MessageRef]
    ) -> Iterator[tuple[MessageRef, dict[str, Any] | bytes | None]]:
        """Return each entry with its decoded message; bytes if it is not JSON, None if it is missing."""
        fetched = self._blobs.each(entry.id for entry in entries if entry.data is None)
        for entry in entries:
            data = entry.data if entry.data is not None else next(fetched)[1]
            message = decode_message(data) if data is not None else None
            if message is None and data is not None and data[:1] == b"{":
                message = self._decode_shortened(entry.id, data)
            yield entry, message or data

    def _decode_shortened(self, id: str, data: bytes) -> dict[str, Any] | None:
        """Decode a message without what is nested too deeply; None if that is not the reason."""
        text = lenient_json.clean_text(data)
        shortened = lenient_json.limit_depth(text)
        if shortened == text:
            return None
        self._shortened_ids.add(id)
        return decode_message(shortened.encode())

    def _parse_message(
        self,
        entry: MessageRef,
        message: dict[str, Any] | bytes | None,
        time: _MessageTime | None,
        *,
        turn: Turn | None = None,
        archive: _CompactionArchive | None = None,
        is_instruction: bool = False,
    ) -> Iterator[Message | ToolResult | Problem]:
        if message is None:
            return  # reported by _find_damage
        if isinstance(message, bytes):
            self._set_outcome(entry.id, "blob (message)", "problems")
            self.reasons["a message could not be read"] = None
            yield Problem(
                self._origin(entry.id), "unknown-type", "is not a message: neither JSON nor a known record"
            )
            return
        if entry.id in self._shortened_ids:
            self.reasons["part of a message is nested too deeply"] = None
            reason = "has a value that is nested too deeply; the rest was read"
            yield Problem(self._origin(entry.id), "nested-too-deeply", reason)
        role = message.get("role")
        if role not in _ROLES:
            self._counts.add_unknown(f"role {safe_name(role)}")
        info = self._record_info(entry.id, time)
        if archive is not None or is_summary(message):
            # The summary that replaced the messages of a compaction; the user did not write it.
            summary = (archive.summary if archive else "") or message_text(message)
            yield build_message(info, "system", summary, kind="compaction")
            is_archive = entry.id in self.state.archives  # it has the summary itself
            self._set_outcome(entry.id, "blob (archive)" if is_archive else "blob (message)", "parsed")
        elif role == "system" and is_instruction:
            self._set_outcome(entry.id, "blob (system prompt)", "ignored")
        elif role == "system":
            yield build_message(info, "system", message_text(message), kind="context")
            self._set_outcome(entry.id, "blob (message)", "parsed")
        else:
            if role == "user":
                items = list(self._parse_user_message(message, info, turn))
            else:
                info = self._with_model(message, info, role)
                items = list(parse_parts(message, info, calls=self._calls, counts=self._counts))
            if role == "assistant":
                self._last_texts = part_texts(message)
            is_empty = role in _ROLES and not message.get("content")
            outcome: RecordOutcome = "parsed" if items else "ignored" if is_empty else "problems"
            self._set_outcome(entry.id, "blob (message)", outcome)
            if outcome == "problems":
                yield Problem(info.origin, "no-content", NO_CONTENT_REASON)
            yield from items

    def _parse_user_message(
        self, message: dict[str, Any], info: RecordInfo, turn: Turn | None
    ) -> Iterator[Message | ToolResult]:
        prompt = user_prompt(message)
        full_text = message_text(message)
        self.context_folders |= dict.fromkeys(workspace_folders(full_text))
        rest = without_prompt_parts(message)
        text = prompt.text
        if turn is not None and turn.text.strip() and not prompt.is_tagged:
            text = turn.text.strip()
        if prompt.is_context and not text:
            if full_text:
                yield build_message(info, "system", full_text, kind="context")
            yield from parse_parts(
                rest, info, calls=self._calls, counts=self._counts, first_index=1 if full_text else 0
            )
            return
        is_synthetic = (turn is not None and turn.is_simulated) or is_injected(text)
        if not is_synthetic:
            self.first_prompt = self.first_prompt or text or None
        kind = "synthetic" if is_synthetic else None
        yield build_message(info, "user", text, kind=kind, attachments=prompt.attachments)
        yield from parse_parts(rest, info, calls=self._calls, counts=self._counts, first_index=1)

    def _parse_missing_turn(
        self, turn: Turn, index: int, known_steps: _KnownSteps
    ) -> Iterator[Message | Problem]:
        """Parse a turn without a matching prompt. Steps that match a message are omitted."""
        steps = list(read_steps(turn, self._blobs))
        if steps and steps[0] in known_steps:
            return  # the prompt exists too, with a different text
        self.reasons["some older messages are restored from turns"] = None
        yield from self._parse_turn(turn, index, [step for step in steps if step not in known_steps])

    def _parse_turn(
        self, turn: Turn, index: int, steps: Iterable[Step] | None = None
    ) -> Iterator[Message | Problem]:
        """Parse the steps of a turn, if the conversation has no messages for it."""
        timings = self.state.timings
        turn_time_ms = timings[index].timestamp_ms if index < len(timings) else None
        steps = read_steps(turn, self._blobs) if steps is None else steps
        for message, blob in _turn_messages(
            turn,
            self._count_unknown_fields(steps),
            calls=self._calls,
            record_info=self._record_info,
            turn_time_ms=turn_time_ms,
            model=self._model,
        ):
            if message.model is not None:
                self.models[message.model] = None
            if message.role == "user" and message.kind is None:
                self.first_prompt = self.first_prompt or message.content or None
            self._set_outcome(blob, "blob (turn)", "parsed")
            yield message

    def _count_unknown_fields(self, steps: Iterable[Step]) -> Iterator[Step]:
        for step in steps:
            if step.unknown_field is not None:
                self._counts.add_unknown(f"step field {step.unknown_field}")
            yield step

    def _parse_pending_step(self, messages: Sequence[MessageRef]) -> Iterator[Message | ToolResult | Problem]:
        """Parse the unfinished step. An intermediate root may also have it, or a part of it, as a message."""
        parsed_ids = {entry.id for entry in messages}
        for entry in self.state.pending:
            message = decode_message(entry.data or self._blobs.get(entry.id) or b"")
            if message is None:
                yield Problem(
                    Origin(self._path, "root, field 4"), "not-json", "the unfinished step is not JSON"
                )
                continue
            if entry.id in parsed_ids:
                continue
            info = self._with_model(message, self._record_info(entry.id, self._last_time), "assistant")
            new_parts = {"role": "assistant", "content": self._new_parts(message)}
            yield from parse_parts(new_parts, info, calls=self._calls, counts=self._counts)

    def _new_parts(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the parts of an unfinished step that the messages do not contain yet."""
        new_parts = []
        for part in message_parts(message):
            ids = call_ids({"content": [part]})
            if ids and ids[0] in self._calls:
                continue
            texts = part_texts({"content": [part]})
            if not texts or not texts <= self._last_texts:
                new_parts.append(part)
        return new_parts

    def _find_damage(self, messages: Iterable[MessageRef], turns: Iterable[Turn]) -> Iterator[Problem]:
        """Report missing and altered blobs of the conversation."""
        needed = {entry.id for entry in messages} | set(self.state.archives) | self._linked_ids
        needed |= {id for turn in turns for id in (turn.user_id, *turn.step_ids) if id}
        needed |= set(self.state.turns or self.state.old_turns) if not messages else set()
        for id in self._blobs.missing:
            if id in needed:
                self.reasons["messages are missing from the store"] = None
                yield Problem(
                    self._origin(id),
                    "missing-record",
                    "is missing from the store, although the conversation refers to it",
                )
        for id in self._blobs.altered:
            if id in self.outcomes:
                yield Problem(
                    self._origin(id), "altered-record", "does not match its id: it was changed or damaged"
                )

    def facts(self) -> dict[str, Any]:
        """Return metadata of the conversation: fields of the root, todos, summary and plan."""
        facts = self.state.facts()
        todos = []
        for id, data in self._blobs.each(self.state.todos):
            self._set_outcome(id, "blob (todo)", "ignored")
            record = Record(data or b"")
            if record.text(2):
                status = _TODO_STATES.get(record.number(3) or 0, "unknown")
                todos.append({"content": record.text(2), "status": status})
        if todos:
            facts["todos"] = todos
        for name, blob in (("summary", self.state.summary), ("plan", self.state.plan)):
            if blob is not None and (data := self._blobs.get(blob)) is not None:
                self._set_outcome(blob, f"blob ({name})", "ignored")
                facts[name] = Record(data).text(1) or ""
        for file in self.state.tracked_files():
            if file.backup is not None:
                self._set_outcome(file.backup, "blob (file)", "ignored")
        return facts

    def _set_outcome(self, id: str, kind: str, outcome: RecordOutcome) -> None:
        """Record the outcome of a blob, unless a higher-ranked one is recorded."""
        known = self.outcomes.get(id)
        if known is None or _OUTCOME_RANK[outcome] > _OUTCOME_RANK[known[1]]:
            self.outcomes[id] = (kind, outcome)

    def _record_info(self, id: str, time: _MessageTime | None) -> RecordInfo:
        """Return the common fields of a blob's messages. A repeated blob gets a numbered id."""
        self._use_counts[id] = self._use_counts.get(id, 0) + 1
        message_id = id if self._use_counts[id] == 1 else f"{id}#{self._use_counts[id]}"
        if time is None:
            return RecordInfo(message_id, self._origin(id))
        return RecordInfo(message_id, self._origin(id), time.at, time.source)

    def _with_model(self, message: dict[str, Any], info: RecordInfo, role: Any) -> RecordInfo:
        if role != "assistant":
            return info
        model = model_name(message) or self._model
        if model is not None:
            self.models[model] = None
        return RecordInfo(info.id, info.origin, info.timestamp, info.timestamp_source, model)

    def _origin(self, id: str) -> Origin:
        return Origin(self._path, f"blob {id}")


def _missing_turns_by_position(alignment: _TurnAlignment, end: int) -> dict[int, list[int]]:
    """Group missing turns by the position of the message that they precede."""
    found: dict[int, list[int]] = {}
    for missing in alignment.missing:
        later = [position for position, turn in alignment.turns.items() if turn > missing]
        found.setdefault(min(later, default=end), []).append(missing)
    return found


# Turns whose messages are lost


def _turn_messages(
    turn: Turn,
    steps: Iterable[Step],
    *,
    calls: CallTracker,
    record_info: Callable[[str, _MessageTime | None], RecordInfo],
    turn_time_ms: int | None,
    model: str | None = None,
) -> Iterator[tuple[Message, str]]:
    """Return the messages of a turn, each with the id of its blob. Steps do not name their model."""
    stored, timed = timestamps.from_value(turn.timestamp_ms), timestamps.from_value(turn_time_ms)
    start = _MessageTime(stored, "stored") if stored else _MessageTime(timed, "turn") if timed else None
    user_id = turn.user_id or turn.id
    if turn.output is not None:
        tool = ToolCall(None, "Shell", {"command": turn.text}, turn.output, "completed")
        yield build_message(record_info(user_id, start), "tool", "", kind="command", tool=tool), user_id
    elif turn.text.strip() or turn.has_context:
        kind = "synthetic" if turn.is_simulated else None
        # A prompt may be an attachment without text. Its type is unknown without a schema.
        attached = () if turn.text.strip() else (Attachment("context"),)
        prompt = build_message(
            record_info(user_id, start), "user", turn.text.strip(), kind=kind, attachments=attached
        )
        yield prompt, user_id
    for step in steps:
        at = timestamps.from_value(step.timestamp_ms)
        content = _step_content(step, calls)
        if content is None:
            continue
        role, text, tool_call = content
        time = _MessageTime(at, "stored") if at else start and msgspec.structs.replace(start, source="turn")
        info = msgspec.structs.replace(record_info(step.id, time), model=model)
        yield build_message(info, role, text, tool=tool_call), step.id


def _step_content(step: Step, calls: CallTracker) -> tuple[Role, str, ToolCall | None] | None:
    if step.call is not None:
        return "tool", "", _step_tool_call(step.id, step.call, calls)
    if step.thinking:
        return "thinking", step.thinking, None
    if step.text and step.text.strip():
        return "assistant", step.text, None
    return None


def _step_tool_call(step_id: str, call: StepCall, calls: CallTracker) -> ToolCall:
    result = None if call.result is None else value_text(_unwrap_single_field(call.result), [])
    is_done = result is not None or call.completed_ms is not None
    return ToolCall(
        calls.add_call(call.id, step_id),
        call.name,
        call.params,
        result,
        "completed" if is_done else "pending",
        edits=parse_edits(call.name, call.params) if is_done else (),
    )


def _unwrap_single_field(result: Any) -> Any:
    """Remove enclosing records that have a single field."""
    while isinstance(result, dict) and len(result) == 1:
        (result,) = result.values()
    return result


# Compactions


def _read_compaction_archives(ids: Iterable[str], blobs: BlobLoader) -> list[_CompactionArchive]:
    """Return the archives, oldest first. A missing one is omitted and listed in `blobs.missing`."""
    found: list[_CompactionArchive] = []
    for id, data in blobs.each(dict.fromkeys(ids)):
        if data is not None:
            record = Record(data)
            entries = tuple(message_ref(value) for value in record.all(1))
            found.append(
                _CompactionArchive(id, entries, record.text(2) or "", blob_id(record.bytes(4) or b""))
            )
    return found


def _restore_compacted(archives: Sequence[_CompactionArchive], kept: list[MessageRef]) -> list[MessageRef]:
    """Return all messages in order: archived ones, oldest first, then those still in the conversation.

    A compaction keeps the system prompt, the context and its summary. It may also keep the last messages
    that it archived, and a later archive may start with an earlier one. Duplicates are removed.
    """
    summary_ids = {archive.summary_id for archive in archives if archive.summary_id}
    restored: list[MessageRef] = []
    for entries in (*(list(archive.entries) for archive in archives), kept):
        if not restored:
            restored += entries
            continue
        common = _common_prefix_length(restored, entries)  # every list starts with the same instructions
        after_summaries = [index + 1 for index, entry in enumerate(entries) if entry.id in summary_ids]
        # The lead is the number of messages before the overlap. The best lead gives the longest overlap.
        leads = dict.fromkeys([*range(_MAX_LEAD_MESSAGES), common, common + 1, common + 2, *after_summaries])
        lead = max(leads, key=lambda lead: _overlap_length(restored, entries[lead:]))
        overlap = _overlap_length(restored, entries[lead:])
        if not overlap:
            lead = after_summaries[0] - 1 if after_summaries else min(common, 1)
        restored += entries[min(common, lead) : lead] + entries[lead + overlap :]
    return restored


def _common_prefix_length(first: list[MessageRef], second: list[MessageRef]) -> int:
    return next(
        (index for index, (left, right) in enumerate(zip(first, second, strict=False)) if left != right),
        min(len(first), len(second)),
    )


def _overlap_length(before: list[MessageRef], after: list[MessageRef]) -> int:
    """Return the length of the longest end of one list that is the start of the other."""
    for size in range(min(len(before), len(after)), 0, -1):
        if before[-1] == after[size - 1] and before[-size:] == after[:size]:
            return size
    return 0


def _find_summaries(
    archives: Iterable[_CompactionArchive], messages: Iterable[tuple[MessageRef, Any]]
) -> dict[str, _CompactionArchive]:
    """Return the archives by the id of the message that has their summary.

    An archive names this message, or the text of a message contains its summary.
    """
    archives = [archive for archive in archives if archive.summary_id or archive.summary.strip()]
    found: dict[str, _CompactionArchive] = {}
    for entry, message in messages if archives else ():
        for archive in archives:
            if isinstance(message, dict) and _has_summary(entry, message, archive):
                found[entry.id] = archive
    return found


def _has_summary(entry: MessageRef, message: dict[str, Any], archive: _CompactionArchive) -> bool:
    if archive.summary_id:
        return entry.id == archive.summary_id
    if message.get("role") not in ("user", "system"):
        return False
    summary, text = archive.summary.strip(), message_text(message).strip()
    return summary == text or (len(summary) >= _MIN_SUMMARY_CHARS and summary in text)


def _insert_summaries(
    archives: Iterable[_CompactionArchive],
    messages: Sequence[MessageRef],
    found: dict[str, _CompactionArchive],
) -> list[MessageRef]:
    """Return the messages with the summaries that no message has, each after the messages of its archive."""
    complete = list(messages)
    known = {archive.id for archive in found.values()}
    for archive in archives:
        if archive.id in known or not archive.summary.strip():
            continue
        last = next((entry for entry in reversed(archive.entries) if entry in complete), None)
        end = len(complete) - complete[::-1].index(last) if last is not None else min(1, len(complete))
        marked = {"providerOptions": {"cursor": {"isSummary": True}}}
        summary = {"role": "user", "content": archive.summary.strip()} | marked
        complete.insert(end, MessageRef(archive.id, msgspec.json.encode(summary)))
    return complete


# Times: match turns with messages


def _outline_message(
    message: dict[str, Any] | bytes | None, *, is_summary_of_archive: bool
) -> _MessageOutline:
    """Return the outline of a message; an empty one for the summary of a compaction."""
    if not isinstance(message, dict) or is_summary_of_archive or is_summary(message):
        return _MessageOutline("")
    role = str(message.get("role"))
    if role != "user":
        hashes = tuple(hash(text) for text in part_texts(message) if len(text) >= _MIN_TEXT_CHARS)
        return _MessageOutline(role, call_ids=call_ids(message), text_hashes=hashes)
    prompt = user_prompt(message)
    if prompt.is_context:
        return _MessageOutline(role, at=prompt.at, context=message_text(message)[:_MAX_CONTEXT_CHARS])
    return _MessageOutline(role, prompt.text, at=prompt.at)


def _align_turns(outlines: Sequence[_MessageOutline], turns: Sequence[Turn]) -> _TurnAlignment:
    """Match turns with prompts by their text, and by order if the match is unambiguous."""
    prompts = [
        (index, _collapse_whitespace(outline.prompt))
        for index, outline in enumerate(outlines)
        if outline.prompt is not None
    ]
    turn_texts = [_collapse_whitespace(turn.text) for turn in turns]
    matcher = SequenceMatcher(None, [text for _, text in prompts], turn_texts, autojunk=False)
    matched: dict[int, int] = {}
    blocks = matcher.get_matching_blocks()
    for block in blocks:
        for step in range(block.size):
            matched[prompts[block.a + step][0]] = block.b + step
    block_ends = [(0, 0), *((block.a + block.size, block.b + block.size) for block in blocks)]
    contexts = {
        index: _collapse_whitespace(outline.context)
        for index, outline in enumerate(outlines)
        if outline.context
    }
    missing: list[int] = []
    for (from_prompt, from_turn), block in zip(block_ends, blocks, strict=False):
        unmatched_prompts, unmatched_turns = prompts[from_prompt : block.a], range(from_turn, block.b)
        if len(unmatched_prompts) == len(unmatched_turns):
            matched.update(
                {index: turn for (index, _), turn in zip(unmatched_prompts, unmatched_turns, strict=True)}
            )
            continue
        for turn in unmatched_turns:
            turn_text = turn_texts[turn]
            prompt_texts = [text for _, text in unmatched_prompts if text]
            if not turn_text or any(turn_text in text or text in turn_text for text in prompt_texts):
                continue
            # A prompt that the tool wrote itself is part of the context.
            context_index = next((index for index, text in contexts.items() if turn_text in text), None)
            if context_index is None:
                missing.append(turn)
            else:
                matched[context_index] = turn
                del contexts[context_index]
    return _TurnAlignment(matched, missing)


def _collapse_whitespace(text: str | None) -> str:
    return " ".join((text or "").split())


def _assign_times(
    outlines: Sequence[_MessageOutline],
    turns: Sequence[Turn],
    timings: Sequence[TurnTiming],
    *,
    alignment: _TurnAlignment,
    call_times: dict[str, int],
    started_at: datetime | None,
    ended_at: datetime | None,
) -> list[_MessageTime | None]:
    """Return the time of each message; None if nothing is known. ``call_times`` is in milliseconds."""
    times: list[_MessageTime | None] = [None] * len(outlines)
    turn_starts = sorted(
        {index for index, outline in enumerate(outlines) if outline.prompt is not None} | {*alignment.turns}
    )
    for index, outline in enumerate(outlines):
        if outline.at is not None:
            times[index] = _MessageTime(outline.at, "stored")
        started = [
            at for id in outline.call_ids if (at := timestamps.from_value(call_times.get(id))) is not None
        ]
        if started:
            times[index] = _MessageTime(min(started), "stored")
    for start, end in pairwise([*turn_starts, len(outlines)]):
        turn = alignment.turns.get(start)
        timing = timings[turn] if turn is not None and turn < len(timings) else None
        turn_ended_at = _set_prompt_time(times, start, turns[turn] if turn is not None else None, timing)
        _fill_turn(times, start, end, turn_ended_at)
    _fill_remaining(times, started_at, ended_at)
    return times


def _set_prompt_time(
    times: list[_MessageTime | None], index: int, turn: Turn | None, timing: TurnTiming | None
) -> datetime | None:
    """Set the time of the prompt of a turn. Return the end of the turn, if known."""
    stored = timestamps.from_value(turn.timestamp_ms) if turn else None
    timed = timestamps.from_value(timing.timestamp_ms) if timing else None
    if stored is not None:
        times[index] = _MessageTime(stored, "stored")
    elif timed is not None and times[index] is None:
        times[index] = _MessageTime(timed, "turn")
    if timing is None or not timing.duration_ms or timed is None:
        return None
    try:
        return timed + timedelta(milliseconds=timing.duration_ms)
    except OverflowError:
        return None


def _fill_turn(
    times: list[_MessageTime | None], start: int, end: int, turn_ended_at: datetime | None
) -> None:
    """Interpolate within a turn. Messages after the last known time get that time."""
    if times[start] is None:
        return
    last = end - 1
    if turn_ended_at is not None and last > start and times[last] is None:
        known_times = [time.at for time in times[start:end] if time is not None]
        times[last] = _MessageTime(max(turn_ended_at, *known_times), "turn")
    known = [index for index in range(start, end) if times[index] is not None]
    for left, right in pairwise(known):
        _interpolate(times, left, right)
    last_known = times[known[-1]]
    if last_known is not None:
        times[known[-1] + 1 : end] = [_MessageTime(last_known.at, "turn")] * (last - known[-1])


def _interpolate(times: list[_MessageTime | None], left: int, right: int) -> None:
    """Set evenly spaced times between two known times."""
    start, end = times[left], times[right]
    if start is None or end is None or right - left < 2:
        return
    interval = max(end.at - start.at, timedelta(0)) / (right - left)
    for index in range(left + 1, right):
        times[index] = _MessageTime(start.at + interval * (index - left), "interpolated")


def _fill_remaining(
    times: list[_MessageTime | None], started_at: datetime | None, ended_at: datetime | None
) -> None:
    """Set missing times: interpolated between the nearest known ones, including the session's bounds."""
    bounded: list[_MessageTime | None] = [
        _MessageTime(started_at, "session") if started_at else None,
        *times,
        _MessageTime(ended_at, "session") if ended_at else None,
    ]
    known = [index for index, time in enumerate(bounded) if time is not None]
    for left, right in pairwise(known):
        _interpolate(bounded, left, right)
    if known:
        first, last = bounded[known[0]], bounded[known[-1]]
        for index, time in enumerate(bounded):
            if time is None and first is not None and last is not None:
                nearest = first if index < known[0] else last
                source: TimeSource = "session" if nearest.source == "session" else "neighbour"
                bounded[index] = _MessageTime(nearest.at, source)
    times[:] = bounded[1:-1]
