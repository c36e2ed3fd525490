"""Parse a transcript of JSON lines: one message per line, without ids and times."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from backscroll.model import Item, Message, Origin, Problem, RecordCounts, TimeSource, ToolResult
from backscroll.readers import jsonl
from backscroll.readers.json_outline import safe_name
from backscroll.sources.cursor_graph.calls_without_id import join_results
from backscroll.sources.cursor_graph.conversation import RecordOutcome
from backscroll.sources.cursor_graph.message_parts import (
    NO_CONTENT_REASON,
    RecordInfo,
    build_message,
    message_parts,
    message_text,
    parse_parts,
    user_prompt,
    without_prompt_parts,
)
from backscroll.sources.cursor_graph.pending_calls import CallTracker
from backscroll.sources.cursor_graph.prompt_text import is_injected

__all__ = ["read"]

_OUTCOMES_BY_RANK: tuple[RecordOutcome, ...] = ("ignored", "problems", "parsed")
_THINKING_PLACEHOLDER = re.compile(r"\s*\[REDACTED\]\s*\Z")
_DECODER = msgspec.json.Decoder(dict[str, Any])


def read(path: Path, *, counts: RecordCounts) -> Iterator[Item]:
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
