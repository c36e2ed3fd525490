"""Whether the archive says what the files say: an independent count, with nothing but a JSON parser."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backscroll.history import History
from backscroll.model import SessionSummary
from benchmarks.stage import Stage

__all__ = ["disagreements"]

_PAGE = 1000


def disagreements(stage: Stage) -> list[str]:
    """What does not agree, a sentence each; empty when all is well."""
    wanted = _counted(stage.root)
    with stage.history() as history:
        found = _told(history)
        wrong = [
            f"{name}: {wanted[name]:,} in the files, {found[name]:,} in the archive"
            for name in sorted(wanted.keys() | found.keys())
            if wanted[name] != found[name]
        ]
        return wrong + history.archive_admin.verify()


def _told(history: History) -> Counter[str]:
    """What the library says, session by session."""
    told: Counter[str] = Counter()
    for summary in _summaries(history):
        told["sessions"] += 1
        told["tokens"] += summary.total_tokens or 0
        for message in history.get_session(summary.ref).messages:
            told[f"{message.role} messages"] += 1
    del told["system messages"]
    return told


def _summaries(history: History) -> Iterator[SessionSummary]:
    offset = 0
    while True:
        page = history.list_sessions(limit=_PAGE, offset=offset)
        yield from page.data
        offset += _PAGE
        if not page.pagination.has_more:
            return


def _counted(root: Path) -> Counter[str]:
    """What the files say."""
    counted: Counter[str] = Counter()
    tokens: dict[str, int] = {}  # of every response, which several lines and several files repeat
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
                    used = sum(message["usage"].get(name) or 0 for name in _COUNTS)
                    tokens[message["id"]] = max(tokens.get(message["id"], 0), used)
                if not is_agent:
                    counted.update(_said(record, message))
        counted["sessions"] += has_message and not is_agent
    counted["tokens"] = sum(tokens.values())
    return counted


_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_ROLES = {"thinking": "thinking messages", "tool_use": "tool messages"}


def _said(record: dict[str, Any], message: dict[str, Any]) -> Iterator[str]:
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text"}]
    is_told = record.get("isCompactSummary") or record.get("isMeta")
    for block in content:
        match block["type"]:
            case "text" if not is_told:
                yield f"{record['type']} messages"
            case "thinking" | "tool_use" as kind:
                yield _ROLES[kind]
