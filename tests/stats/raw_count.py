"""Independent count of the records in Claude Code files. It uses no code of Backscroll."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

_TOKEN_FIELDS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class RawCount:
    """Responses, tool calls and prompts below a root, each counted once by its id."""

    def __init__(self, root: Path) -> None:
        self.responses: dict[str, dict[str, int]] = {}
        self.first_times: dict[str, datetime] = {}
        self.models: dict[str, str] = {}
        self.lines_with_usage = 0
        self.calls: dict[str, str] = {}
        self.failed: set[str] = set()
        self._prompts: set[str] = set()
        self._forked_from: dict[str, str] = {}
        for record in _records(root):
            self._add_record(record)

    def _add_record(self, record: dict[str, Any]) -> None:
        if "forkedFrom" in record and "uuid" in record:
            self._forked_from[record["uuid"]] = record["forkedFrom"]["messageUuid"]
        message = record.get("message", {})
        blocks = message.get("content") if isinstance(message.get("content"), list) else []
        if record["type"] == "assistant":
            self._add_usage(record, message)
            self.calls |= {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
        if record["type"] == "user":
            self.failed |= {
                block["tool_use_id"]
                for block in blocks
                if block["type"] == "tool_result" and block.get("is_error")
            }
            is_prompt = not record.get("isMeta") and not record.get("isSidechain")
            if isinstance(message["content"], str) and is_prompt:
                self._prompts.add(record["uuid"])

    def _add_usage(self, record: dict[str, Any], message: dict[str, Any]) -> None:
        usage, id_ = message["usage"], message["id"]
        self.lines_with_usage += 1
        known = self.responses.setdefault(id_, dict.fromkeys(_TOKEN_FIELDS, 0))
        created = usage.get("cache_creation")
        counts = {name: usage.get(name) or 0 for name in _TOKEN_FIELDS}
        if created:
            counts["cache_creation_input_tokens"] = max(
                counts["cache_creation_input_tokens"], sum(created.values())
            )
        for name in _TOKEN_FIELDS:
            known[name] = max(known[name], counts[name])
        at = datetime.fromisoformat(record["timestamp"])
        self.first_times[id_] = min(at, self.first_times.get(id_, at))
        self.models[id_] = message["model"]

    def tokens(self) -> dict[str, int]:
        return {name: sum(counts[name] for counts in self.responses.values()) for name in _TOKEN_FIELDS}

    def by(self, name_of: dict[str, Any]) -> Counter[Any]:
        """Return the total tokens by the name that `name_of` gives each response."""
        totals: Counter[Any] = Counter()
        for id_, counts in self.responses.items():
            totals[name_of[id_]] += sum(counts.values())
        return totals

    def days(self) -> dict[str, str]:
        return {id_: at.strftime("%Y-%m-%d") for id_, at in self.first_times.items()}

    @property
    def prompts(self) -> int:
        return len({self._original(uuid) for uuid in self._prompts})

    def _original(self, uuid: str) -> str:
        while uuid in self._forked_from and self._forked_from[uuid] != uuid:
            uuid = self._forked_from[uuid]
        return uuid


def _records(root: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(root.rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record.get("type") in ("user", "assistant"):
                yield record
