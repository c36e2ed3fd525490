"""A straightforward count over the lines of Claude Code's files, which knows nothing of Backscroll."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

__all__ = ["Recount"]

_KINDS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class Recount:
    """Every response, call and prompt below a root, each once by the tool's own ids."""

    def __init__(self, root: Path) -> None:
        self.responses: dict[str, dict[str, int]] = {}
        self.first_at: dict[str, datetime] = {}
        self.models: dict[str, str] = {}
        self.lines_with_usage = 0
        self.calls: dict[str, str] = {}
        self.failed: set[str] = set()
        self._prompts: set[str] = set()
        self._origin: dict[str, str] = {}
        for record in _records(root):
            self._take(record)

    def _take(self, record: dict[str, Any]) -> None:
        if "forkedFrom" in record and "uuid" in record:
            self._origin[record["uuid"]] = record["forkedFrom"]["messageUuid"]
        message = record.get("message", {})
        blocks = message.get("content") if isinstance(message.get("content"), list) else []
        if record["type"] == "assistant":
            self._spend(record, message)
            self.calls |= {one["id"]: one["name"] for one in blocks if one["type"] == "tool_use"}
        if record["type"] == "user":
            self.failed |= {
                one["tool_use_id"] for one in blocks if one["type"] == "tool_result" and one.get("is_error")
            }
            is_persons = not record.get("isMeta") and not record.get("isSidechain")
            if isinstance(message["content"], str) and is_persons:
                self._prompts.add(record["uuid"])

    def _spend(self, record: dict[str, Any], message: dict[str, Any]) -> None:
        usage, id_ = message["usage"], message["id"]
        self.lines_with_usage += 1
        known = self.responses.setdefault(id_, dict.fromkeys(_KINDS, 0))
        created = usage.get("cache_creation")
        counts = {name: usage.get(name) or 0 for name in _KINDS}
        if created:
            counts["cache_creation_input_tokens"] = max(
                counts["cache_creation_input_tokens"], sum(created.values())
            )
        for name in _KINDS:
            known[name] = max(known[name], counts[name])
        at = datetime.fromisoformat(record["timestamp"])
        self.first_at[id_] = min(at, self.first_at.get(id_, at))
        self.models[id_] = message["model"]

    def tokens(self) -> dict[str, int]:
        return {name: sum(one[name] for one in self.responses.values()) for name in _KINDS}

    def by(self, name_of: dict[str, Any]) -> Counter[Any]:
        """All tokens, added up by what a response is called there."""
        counts: Counter[Any] = Counter()
        for id_, one in self.responses.items():
            counts[name_of[id_]] += sum(one.values())
        return counts

    def days(self) -> dict[str, str]:
        return {id_: at.strftime("%Y-%m-%d") for id_, at in self.first_at.items()}

    @property
    def prompts(self) -> int:
        return len({self._first(uuid) for uuid in self._prompts})

    def _first(self, uuid: str) -> str:
        while uuid in self._origin and self._origin[uuid] != uuid:
            uuid = self._origin[uuid]
        return uuid


def _records(root: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(root.rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record.get("type") in ("user", "assistant"):
                yield record
