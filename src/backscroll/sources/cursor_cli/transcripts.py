"""Read transcripts: lossy text copies of sessions, which the CLI and the IDE's agent write per project."""

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from backscroll.model.message import Message, Origin, TimeSource, ToolCall
from backscroll.model.problem import Problem
from backscroll.model.stream import Agent, Closing, Item, Opening, RecordCounts, ToolResult
from backscroll.readers import jsonl, timestamps
from backscroll.readers.json_outline import safe_name
from backscroll.readers.read_faults import read_fault
from backscroll.sources.cursor_cli import workspace
from backscroll.sources.cursor_cli.locations import (
    SOURCE,
    TranscriptPath,
    find_transcripts,
    parse_transcript_path,
)
from backscroll.sources.cursor_cli.metadata import read_sidecar
from backscroll.sources.cursor_graph.conversation import RecordOutcome
from backscroll.sources.cursor_graph.message_parts import (
    NO_CONTENT_REASON,
    RecordInfo,
    build_message,
    is_injected,
    message_parts,
    message_text,
    parse_parts,
    parse_prompt,
    user_prompt,
    without_prompt_parts,
)
from backscroll.sources.cursor_graph.tool_calls import (
    CallTracker,
    decode_nested_json,
    join_results,
    parse_edits,
)

_LOSSY_REASON = "a transcript keeps no tool results, no thinking and no times but those of prompts"
_AMBIGUOUS_REASON = "another project has a different transcript with the same id"
_PATH_PARAMS = (
    "path",
    "file_path",
    "target_file",
    "targetFile",
    "target_directory",
    "working_directory",
    "cwd",
)
_MAX_MENTIONED_PATHS = 200
_CHUNK_BYTES = 1024 * 1024


class RootCatalog:
    """Cache of the sessions and transcripts below a root."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @cached_property
    def _cwds(self) -> dict[str, str]:
        """Working directories by session id."""
        sidecars = (*self._root.glob("chats/*/*/meta.json"), *self._root.glob("acp-sessions/*/meta.json"))
        cwds = {path.parent.name: read_sidecar(path).text("cwd") for path in sorted(sidecars)}
        known = {id: cwd for id, cwd in cwds.items() if cwd}
        # Older versions write no metadata. The name of the folder is the MD5 of the working directory.
        by_hash = {workspace.folder_hash(cwd): cwd for cwd in known.values()}
        for folder in sorted(self._root.glob("chats/*/*")):
            if folder.parent.name in by_hash:
                known.setdefault(folder.name, by_hash[folder.parent.name])
        return known

    @cached_property
    def _known_slugs(self) -> frozenset[str]:
        return frozenset(slug for folder in self.folders() for slug in workspace.project_slugs(folder))

    @cached_property
    def _transcripts(self) -> dict[tuple[str | None, str], list[Path]]:
        return {key: list(map(Path, paths)) for key, paths in find_transcripts(self._root).items()}

    def folders(self) -> list[str]:
        """Return the working directories of all sessions."""
        return list(dict.fromkeys(self._cwds.values()))

    def same_session(self, path: Path, parsed: TranscriptPath) -> list[Path]:
        """Return all transcripts of the same session, the active one first.

        The active one is in the project of the session's folder. If that is unknown, it is in the project of
        a folder that other sessions name, and the newest of these.
        """
        cwd = self._cwds.get(parsed.parent or parsed.id)
        slugs: Collection[str] = workspace.project_slugs(cwd) if cwd is not None else self._known_slugs
        found = self._transcripts.get((parsed.parent, parsed.id), [path])
        return sorted(
            found if path in found else [*found, path],
            key=lambda each: (_project(each) not in slugs, -_modified_ns(each), str(each)),
        )


def read_transcript(path: Path, catalog: RootCatalog) -> Iterator[Item]:
    """Read a session from its transcript. If it only repeats another one, its lines are counted."""
    counts = RecordCounts()
    parsed = parse_transcript_path(path) or TranscriptPath("", path.stem)
    transcripts = catalog.same_session(path, parsed)
    if transcripts[0] != path and _is_prefix_of(path, transcripts[0]):
        yield from _count_lines(path, counts)
    else:
        yield from _read_session(path, parsed, catalog=catalog, transcripts=transcripts, counts=counts)
    yield counts


def _read_session(
    path: Path,
    parsed: TranscriptPath,
    *,
    catalog: RootCatalog,
    transcripts: list[Path],
    counts: RecordCounts,
) -> Iterator[Item]:
    agent_id = parsed.id if parsed.parent is not None else None
    yield Opening(source=SOURCE, id=parsed.id, store="transcript", agent_id=agent_id, parent_id=parsed.parent)
    # The same id in two projects can be two conversations. Both are kept, and one is active.
    is_active = transcripts[0] == path
    id_prefix = parsed.id if is_active else f"{parsed.id}:{parsed.project.replace('.', '_')}"
    parse = _read_text if path.suffix == ".txt" else _read_json_lines
    first_timestamp: datetime | None = None
    prompt: str | None = None
    mentioned_paths: dict[str, None] = {}
    has_messages = False
    try:
        for item in parse(path, counts):
            if isinstance(item, Message):
                has_messages = True
                first_timestamp = first_timestamp or item.timestamp
                if prompt is None and item.role == "user" and item.kind is None:
                    prompt = item.content
                if item.tool is not None and len(mentioned_paths) < _MAX_MENTIONED_PATHS:
                    mentioned_paths |= dict.fromkeys(_path_params(item.tool.params))
                yield replace(item, id=f"{id_prefix}:{item.id}", agent_id=agent_id, is_active=is_active)
            else:
                yield item
    except OSError as error:
        yield Problem(Origin(str(path), "file"), *read_fault(error))
    modified_at = timestamps.from_value(_modified_ns(path) / 1e9)
    agent = Agent(
        agent_id=parsed.id,
        parent_session_id=parsed.parent,
        parent_agent_id=parsed.parent_agent,
        prompt=prompt,
        started_at=first_timestamp,
    )
    metadata: dict[str, Any] = {"project": parsed.project, "window": f"cli:{parsed.project}"}
    reasons = [_LOSSY_REASON]
    if len(transcripts) > 1:
        metadata["ambiguous_transcripts"] = [str(each) for each in transcripts]
        if not all(_is_prefix_of(each, path) for each in transcripts[1:]):
            reasons.append(_AMBIGUOUS_REASON)
    found_workspace = workspace.project_workspace(parsed.project, catalog.folders(), mentioned_paths)
    yield Closing(
        workspace=found_workspace if is_active else None,
        created_at=first_timestamp or modified_at,
        created_at_source="stored" if first_timestamp else "file" if modified_at else None,
        updated_at=modified_at if is_active else None,
        completeness="lossy",
        reasons=tuple(reasons),
        visibility="listed" if has_messages else "draft",
        agents=(agent,) if agent_id is not None else (),
        metadata=metadata,
    )


def _is_prefix_of(path: Path, other_path: Path) -> bool:
    try:
        with path.open("rb") as file, other_path.open("rb") as other_file:
            while chunk := file.read(_CHUNK_BYTES):
                if other_file.read(len(chunk)) != chunk:
                    return False
    except OSError:
        return False
    return True


def _count_lines(path: Path, counts: RecordCounts) -> Iterator[Problem]:
    try:
        with path.open("rb") as file:
            line_count = sum(1 for _ in file)
    except OSError as error:
        yield Problem(Origin(str(path), "file"), *read_fault(error))
        return
    if line_count:
        counts.count("line of a copy", "ignored", line_count)


def _project(path: Path) -> str:
    parsed = parse_transcript_path(path)
    return parsed.project if parsed is not None else ""


def _path_params(params: dict[str, Any]) -> list[str]:
    return [value for key in _PATH_PARAMS if isinstance(value := params.get(key), str)]


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


# Transcripts of JSON lines: one message per line, without ids and times

_OUTCOMES_BY_RANK: tuple[RecordOutcome, ...] = ("ignored", "problems", "parsed")
_THINKING_PLACEHOLDER = re.compile(r"\s*\[REDACTED\]\s*\Z")
_DECODER = msgspec.json.Decoder(dict[str, Any])


def _read_json_lines(path: Path, counts: RecordCounts) -> Iterator[Item]:
    """Parse a transcript. Every line is counted once."""
    return join_results(_parse_lines(path, counts))


def _parse_lines(path: Path, counts: RecordCounts) -> Iterator[Message | ToolResult | Problem]:
    parser = _RecordParser(counts)
    for line in jsonl.lines(path, _DECODER):
        if line.is_blank:
            counts.count("blank line", "ignored")
            continue
        origin = Origin(str(path), f"line {line.number}")
        outcomes: list[tuple[str, RecordOutcome]] = []
        for index, record in enumerate(line.values):
            id = f"line-{line.number}" if not index else f"line-{line.number}-{index + 1}"
            items = list(parser.parse(record, RecordInfo(id, origin)))
            outcomes.append(_kind_and_outcome(record, items))
            yield from items
            if outcomes[-1][1] == "problems":
                yield Problem(origin, "no-content", NO_CONTENT_REASON)
        if line.fault is not None:
            yield Problem(origin, *line.fault)
        if not outcomes:
            counts.count("(unreadable)", "problems")
        else:
            counts.count(*max(outcomes, key=lambda each: _OUTCOMES_BY_RANK.index(each[1])))


def _kind_and_outcome(record: dict[str, Any], items: list[Message | ToolResult]) -> tuple[str, RecordOutcome]:
    kind = record.get("role") or record.get("type")
    if items:
        return safe_name(kind), "parsed"
    is_known = kind in ("user", "assistant", "tool", "system", "turn_ended")
    return safe_name(kind), "ignored" if is_known and not _has_no_content_field(kind, record) else "problems"


def _has_no_content_field(kind: Any, record: dict[str, Any]) -> bool:
    """Return whether a message has no field for content. Then its format is unknown."""
    if kind == "turn_ended":
        return False
    message = record.get("message", record.get("content", ...))
    return message is ... or (isinstance(message, dict) and not {"content", "tool_calls"} & message.keys())


class _RecordParser:
    """Parses the records of a transcript in order. Each one gets the time of the last prompt."""

    def __init__(self, counts: RecordCounts) -> None:
        self._counts = counts
        self._calls = CallTracker(has_results=False)
        self._prompted_at: datetime | None = None
        self._last_error: str | None = None  # in the current turn

    def parse(self, record: dict[str, Any], info: RecordInfo) -> Iterator[Message | ToolResult]:
        info = self._with_time(info, self._prompted_at, "turn")
        content = record.get("message")
        message = content if isinstance(content, dict) else {"content": content or record.get("content")}
        match record.get("role") or record.get("type"):
            case "user":
                yield from self._parse_user(message, info)
            case "assistant" | "tool":
                parts = map(_without_thinking_placeholder, message_parts(message))
                content_parts = [part for part in parts if part is not None]
                answer = {**message, "role": "assistant", "content": content_parts, "tool_calls": None}
                yield from parse_parts(answer, info, calls=self._calls, counts=self._counts)
            case "system":
                if text := message_text(message):
                    yield build_message(info, "system", text, kind="context")
            case "turn_ended":
                yield from self._parse_turn_end(record, info)
            case "error":
                self._last_error = _error_text(record)
                yield build_message(info, "error", self._last_error)
            case kind:
                self._counts.add_unknown(f"transcript line {safe_name(kind)}")
                unknown = {**message, "role": "unknown"}
                yield from parse_parts(unknown, info, calls=self._calls, counts=self._counts)

    def _parse_user(self, message: dict[str, Any], info: RecordInfo) -> Iterator[Message | ToolResult]:
        prompt = user_prompt(message)
        self._last_error = None
        if prompt.at is not None:
            self._prompted_at = prompt.at
            info = self._with_time(info, prompt.at, "stored")
        first_index = 0
        if not prompt.is_context:
            kind = "synthetic" if is_injected(prompt.text) else None
            yield build_message(info, "user", prompt.text, kind=kind, attachments=prompt.attachments)
            first_index = 1
        elif text := message_text(message):
            yield build_message(info, "system", text, kind="context")
            first_index = 1
        rest = without_prompt_parts(message)
        yield from parse_parts(rest, info, calls=self._calls, counts=self._counts, first_index=first_index)

    def _parse_turn_end(self, record: dict[str, Any], info: RecordInfo) -> Iterator[Message]:
        match record.get("status"):
            case "error" if _error_text(record) == self._last_error:
                return  # repeats the error line
            case "error":
                yield build_message(info, "error", _error_text(record))
            case "aborted":
                yield build_message(info, "system", "The turn was aborted.", kind="interruption")
            case "success" | None:
                return
            case status:
                self._counts.add_unknown(f"turn_ended status {safe_name(status)}")

    def _with_time(self, info: RecordInfo, at: datetime | None, source: TimeSource) -> RecordInfo:
        return info if at is None else replace(info, timestamp=at, timestamp_source=source)


def _without_thinking_placeholder(part: dict[str, Any]) -> dict[str, Any] | None:
    """Remove the placeholder for thinking; None if nothing else remains."""
    text = part.get("text")
    if part.get("type") != "text" or not isinstance(text, str):
        return part
    answer = _THINKING_PLACEHOLDER.sub("", text)
    return {**part, "text": answer} if answer.strip() else None


def _error_text(record: dict[str, Any]) -> str:
    error = record.get("error") or record.get("message")
    if isinstance(error, dict):
        error = error.get("message") or error
    return error if isinstance(error, str) else "" if error is None else msgspec.json.encode(error).decode()


# Plain-text transcripts, the oldest format: role lines, and tagged lines for thinking and tools

_TAG = re.compile(r"\[(Thinking|Tool call|Tool result)\][ \t]*(.*)")
_PARAM = re.compile(r"\s+([\w.\-]+):\s?(.*)")
_ROLE_LINES = ("user:", "assistant:")


class _Block(Struct):
    """A run of lines of one kind."""

    kind: str  # "user", "assistant", "Thinking", "Tool call", "Tool result", or "" before the first role
    name: str  # the text after the tag: name of a tool, or thinking
    line_number: int
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")


def _read_text(path: Path, counts: RecordCounts) -> Iterator[Item]:
    """Parse a transcript. Every block is counted once."""
    calls = CallTracker()  # by tool name, because the calls have no ids
    message_ids: dict[str, str] = {}  # of the messages with calls, by call id
    batch_id = ""  # message id of the first call in a row of calls
    turn_info = RecordInfo("", Origin("", ""))  # has the time of the last prompt
    for block in _blocks(path):
        info = replace(
            turn_info, id=f"line-{block.line_number}", origin=Origin(str(path), f"line {block.line_number}")
        )
        item: Message | ToolResult | None
        if block.kind == "user":
            item = _parse_user_block(block, info)
            if item is not None and item.timestamp is not None:
                turn_info = replace(turn_info, timestamp=item.timestamp, timestamp_source="turn")
        elif block.kind == "Tool result" and (call := calls.add_result(block.name, block.text)) is not None:
            item = ToolResult(tool_call_id=message_ids[call.id], result=block.text, origin=info.origin)
        else:
            item = _parse_block(block, info)
        if block.kind == "Tool call":
            batch_id = batch_id or info.id
            message_ids[calls.add_call(block.name, batch_id) or ""] = info.id
        else:
            batch_id = ""
        if item is not None:
            yield item
        counts.count(f"text ({block.kind or 'before the first role'})", "parsed" if item else "ignored")


def _blocks(path: Path) -> Iterator[_Block]:
    """Split a transcript into blocks. An empty block before the first role is omitted."""
    quoted_lines = _role_lines_in_prompts(path)
    block = _Block("", "", 1, [])
    with path.open(encoding="utf-8", errors="replace", newline=None) as file:
        for line_number, raw in enumerate(file, start=1):
            line = raw.rstrip("\n").removeprefix("\ufeff")
            tag = _TAG.match(line) if block.kind not in ("", "user") else None
            if line.rstrip() in _ROLE_LINES and line_number not in quoted_lines:
                next_block = _Block(line.rstrip()[:-1], "", line_number, [])
            elif tag is not None:
                next_block = _Block(tag[1], tag[2].strip(), line_number, [])
            elif line.strip() and not line[:1].isspace() and _ends_at_unindented_line(block):
                next_block = _Block("assistant", "", line_number, [line])
            else:
                block.lines.append(line)
                continue
            if block.kind or block.text.strip():
                yield block
            block = next_block
    if block.kind or block.text.strip():
        yield block


def _role_lines_in_prompts(path: Path) -> set[int]:
    """Return the numbers of lines that look like a role but are part of a typed prompt."""
    found: set[int] = set()
    in_query: list[int] | None = None  # role lines since the last opening tag; None outside of tags
    with path.open(encoding="utf-8", errors="replace", newline=None) as file:
        for line_number, line in enumerate(file, start=1):
            if "<user_query>" in line:
                in_query = []
            if "</user_query>" in line:
                found.update(in_query or ())
                in_query = None
            elif in_query is not None and line.rstrip() in _ROLE_LINES:
                in_query.append(line_number)
    return found


def _ends_at_unindented_line(block: _Block) -> bool:
    """Return whether an unindented line ends the block.

    Arguments are indented. A result starts on the first line after its tag, or it is empty.
    """
    if block.kind == "Tool result":
        return bool(block.lines) and not block.text.strip()
    return block.kind == "Tool call"


def _parse_user_block(block: _Block, info: RecordInfo) -> Message | None:
    prompt = parse_prompt(block.text)
    if prompt.at is not None:
        info = replace(info, timestamp=prompt.at, timestamp_source="stored")
    if prompt.is_context:
        text = block.text.strip()
        return build_message(info, "system", text, kind="context") if text else None
    kind = "synthetic" if is_injected(prompt.text) else None
    return build_message(info, "user", prompt.text, kind=kind, attachments=prompt.attachments)


def _parse_block(block: _Block, info: RecordInfo) -> Message | None:
    text = _THINKING_PLACEHOLDER.sub("", block.text).strip()
    match block.kind:
        case "Thinking":
            thinking = "\n".join(filter(None, (block.name, text)))
            return build_message(info, "thinking", thinking) if thinking else None
        case "Tool call":
            params = _parse_params(block)
            tool = ToolCall(info.id, block.name or "unknown", params, edits=parse_edits(block.name, params))
            return build_message(info, "tool", "", tool=tool)
        case "Tool result":
            tool = ToolCall(None, block.name or "unknown", result=block.text, status="completed")
            return build_message(info, "tool", "", tool=tool)
        case "assistant" if text:
            return build_message(info, "assistant", text)
        case "" if text:
            return build_message(info, "system", text, kind="context")
    return None


def _parse_params(block: _Block) -> dict[str, Any]:
    """Parse JSON, or indented ``name: value`` lines. Any other line continues the value before it."""
    decoded = decode_nested_json(block.text.strip())
    if isinstance(decoded, dict):
        return decoded
    params: dict[str, Any] = {}
    last = ""
    for line in block.lines:
        found = _PARAM.match(line)
        if found is not None:
            last = found[1]
            params[last] = found[2]
        elif last:
            params[last] = f"{params[last]}\n{line.strip()}" if line.strip() else params[last]
        elif line.strip():
            params["raw"] = f"{params['raw']}\n{line.strip()}" if "raw" in params else line.strip()
    return params
