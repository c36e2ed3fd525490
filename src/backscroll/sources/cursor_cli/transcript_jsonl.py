"""A transcript as JSON lines: one line per message, without ids or times of its own."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from backscroll.model import Item, Message, Origin, Problem, RecordCounts, TimeSource, ToolResult
from backscroll.readers import jsonl
from backscroll.readers.json_outline import safe_name
from backscroll.sources.cursor_graph.calls_without_id import join_results
from backscroll.sources.cursor_graph.message_parts import (
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

_Verdict = Literal["parsed", "ignored", "problems"]
_HIDDEN = re.compile(r"\s*\[REDACTED\]\s*\Z")
_DECODER = msgspec.json.Decoder(dict[str, Any])


def read(path: Path, *, tally: RecordCounts) -> Iterator[Item]:
    """Every message of a transcript, and every line counted once."""
    return join_results(_items(path, tally))


def _items(path: Path, tally: RecordCounts) -> Iterator[Message | ToolResult | Problem]:
    reader = _Reader(tally)
    for line in jsonl.lines(path, _DECODER):
        if line.is_blank:
            tally.count("blank line", "ignored")
            continue
        place = f"line {line.number}"
        verdicts: list[tuple[str, _Verdict]] = []
        for number, record in enumerate(line.values):
            id = f"line-{line.number}" if not number else f"line-{line.number}-{number + 1}"
            told = list(reader.parse(record, RecordInfo(id, Origin(str(path), place))))
            verdicts.append(_verdict(record, told))
            yield from told
            if verdicts[-1][1] == "problems":
                yield Problem(Origin(str(path), place), "no-content", "says nothing that is understood")
        if line.fault is not None:
            yield Problem(Origin(str(path), place), *line.fault)
        if not verdicts:
            tally.count("(unreadable)", "problems")
        else:
            tally.count(*max(verdicts, key=lambda told: ("ignored", "problems", "parsed").index(told[1])))


def _verdict(record: dict[str, Any], told: list[Message | ToolResult]) -> tuple[str, _Verdict]:
    kind = record.get("role") or record.get("type")
    if told:
        return safe_name(kind), "parsed"
    is_known = kind in ("user", "assistant", "tool", "system", "turn_ended")
    return safe_name(kind), "ignored" if is_known and not _lacks_message(kind, record) else "problems"


def _lacks_message(kind: Any, record: dict[str, Any]) -> bool:
    """Whether a line that is somebody's has not even the place where it would say something."""
    if kind == "turn_ended":
        return False
    message = record.get("message", record.get("content", ...))
    return message is ... or (isinstance(message, dict) and not {"content", "tool_calls"} & message.keys())


class _Reader:
    """Goes through a transcript and remembers when the last prompt was."""

    def __init__(self, tally: RecordCounts) -> None:
        self._tally = tally
        self._calls = CallTracker(are_answered=False)
        self._prompted_at: datetime | None = None
        self._failure: str | None = None  # the last error of this turn

    def parse(self, record: dict[str, Any], place: RecordInfo) -> Iterator[Message | ToolResult]:
        place = self._timed(place, self._prompted_at, "turn")
        content = record.get("message")
        message = content if isinstance(content, dict) else {"content": content or record.get("content")}
        match record.get("role") or record.get("type"):
            case "user":
                yield from self._user(message, place)
            case "assistant" | "tool":
                parts = [part for part in map(_bared, message_parts(message)) if part is not None]
                heard = {**message, "role": "assistant", "content": parts, "tool_calls": None}
                yield from parse_parts(heard, place, calls=self._calls, tally=self._tally)
            case "system":
                if whole := message_text(message):
                    yield build_message(place, "system", whole, kind="context")
            case "turn_ended":
                yield from self._end(record, place)
            case "error":
                self._failure = _reason(record)
                yield build_message(place, "error", self._failure)
            case kind:
                self._tally.add_unknown(f"transcript line {safe_name(kind)}")
                heard = {**message, "role": "unknown"}
                yield from parse_parts(heard, place, calls=self._calls, tally=self._tally)

    def _user(self, message: dict[str, Any], place: RecordInfo) -> Iterator[Message | ToolResult]:
        prompt = user_prompt(message)
        self._failure = None
        if prompt.at is not None:
            self._prompted_at = prompt.at
            place = self._timed(place, prompt.at, "stored")
        number = 0
        if not prompt.is_context:
            kind = "synthetic" if is_injected(prompt.text) else None
            yield build_message(place, "user", prompt.text, kind=kind, attachments=prompt.attachments)
            number = 1
        elif whole := message_text(message):
            yield build_message(place, "system", whole, kind="context")
            number = 1
        rest = without_prompt_parts(message)
        yield from parse_parts(rest, place, calls=self._calls, tally=self._tally, number=number)

    def _end(self, record: dict[str, Any], place: RecordInfo) -> Iterator[Message]:
        match record.get("status"):
            case "error" if _reason(record) == self._failure:
                return  # told by the line before
            case "error":
                yield build_message(place, "error", _reason(record))
            case "aborted":
                yield build_message(place, "system", "The turn was aborted.", kind="interruption")
            case "success" | None:
                return
            case status:
                self._tally.add_unknown(f"turn_ended status {safe_name(status)}")

    def _timed(self, place: RecordInfo, at: datetime | None, source: TimeSource) -> RecordInfo:
        return place if at is None else replace(place, timestamp=at, timestamp_source=source)


def _bared(part: dict[str, Any]) -> dict[str, Any] | None:
    """A part without the placeholder for thinking; None when it was nothing else."""
    text = part.get("text")
    if part.get("type") != "text" or not isinstance(text, str):
        return part
    bare = _HIDDEN.sub("", text)
    return {**part, "text": bare} if bare.strip() else None


def _reason(record: dict[str, Any]) -> str:
    error = record.get("error") or record.get("message")
    if isinstance(error, dict):
        error = error.get("message") or error
    return error if isinstance(error, str) else "" if error is None else msgspec.json.encode(error).decode()
