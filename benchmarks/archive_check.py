"""Comparison of the archive with an independent count of the source files that uses only a JSON parser."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backscroll.history.history import History
from backscroll.model.session import SessionSummary
from benchmarks.benchmark_context import BenchmarkContext

_PAGE_SIZE = 1000
_TOKEN_FIELDS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_LABELS = {"thinking": "thinking messages", "tool_use": "tool messages"}


def find_differences(context: BenchmarkContext) -> list[str]:
    """Return one sentence for each difference, and the problems that verifying the archive finds."""
    expected = _count_in_files(context.root)
    with context.open_history() as history:
        archived = _count_in_archive(history)
        differences = [
            f"{name}: {expected[name]:,} in the files, {archived[name]:,} in the archive"
            for name in sorted(expected.keys() | archived.keys())
            if expected[name] != archived[name]
        ]
        return differences + history.archive_admin.verify()


def _count_in_archive(history: History) -> Counter[str]:
    counts: Counter[str] = Counter()
    for summary in _all_summaries(history):
        counts["sessions"] += 1
        counts["tokens"] += summary.total_tokens or 0
        for message in history.get_session(summary.ref).messages:
            counts[f"{message.role} messages"] += 1
    del counts["system messages"]
    return counts


def _all_summaries(history: History) -> Iterator[SessionSummary]:
    offset = 0
    while True:
        page = history.list_sessions(limit=_PAGE_SIZE, offset=offset)
        yield from page.data
        offset += _PAGE_SIZE
        if not page.pagination.has_more:
            return


def _count_in_files(root: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    tokens: dict[str, int] = {}  # by response id: several lines and files repeat a response
    for path in root.glob("projects/**/*.jsonl"):
        is_agent = path.stem.startswith("agent-")
        has_message = False
        with path.open("rb") as file:
            for line in file:
                record = json.loads(line)
                message = record.get("message")
                if message is None:
                    continue
                has_message = True
                if "usage" in message:
                    used = sum(message["usage"].get(name) or 0 for name in _TOKEN_FIELDS)
                    tokens[message["id"]] = max(tokens.get(message["id"], 0), used)
                if not is_agent:
                    counts.update(_message_labels(record, message))
        counts["sessions"] += has_message and not is_agent
    counts["tokens"] = sum(tokens.values())
    return counts


def _message_labels(record: dict[str, Any], message: dict[str, Any]) -> Iterator[str]:
    """Yield the counter name of each message that a record contains."""
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text"}]
    is_generated = record.get("isCompactSummary") or record.get("isMeta")
    for block in content:
        match block["type"]:
            case "text" if not is_generated:
                yield f"{record['type']} messages"
            case "thinking" | "tool_use" as kind:
                yield _LABELS[kind]
