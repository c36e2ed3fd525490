"""Base class of a transcript builder: ids, clock, lines linked by ``parentUuid``, and files."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Self
from uuid import UUID

from backscroll.testing.claude_code.blocks import Record, encode
from backscroll.testing.claude_code.project_key import project_key
from backscroll.testing.claude_code.versions import Release

START = datetime(2026, 10, 3, 7, tzinfo=UTC)

_SLUGS = ("quiet-ferry-lantern", "brave-amber-otter", "slow-paper-river", "round-copper-gate")


def format_time(at: datetime) -> str:
    """Format a time as Claude Code does: UTC with milliseconds and a ``Z``."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


class Lines:
    """Lines of a transcript.

    ``records`` has one entry per line: a record that can still be changed, or bytes that
    are written unchanged. The same arguments and calls give the same bytes.
    """

    def __init__(
        self,
        session_id: str | None = None,
        *,
        version: str = "2.1.288",
        cwd: str = "/home/zoe/ferry",
        branch: str = "main",
        start: datetime = START,
        seed: int = 0,
        entrypoint: str = "cli",
        key: str | None = None,
        agent_id: str | None = None,
        relative_path: str | None = None,
    ) -> None:
        self.random = Random(f"{seed}:{session_id}:{agent_id}")
        self.session_id = session_id or self.new_uuid()
        self.release = Release(version)
        self.cwd = cwd
        self.branch = branch
        self.now = start
        self.entrypoint = entrypoint
        self.key = key if key is not None else project_key(cwd)
        self.agent_id = agent_id
        self.slug = self.random.choice(_SLUGS)
        self.records: list[Record | bytes] = []
        self.files: dict[str, bytes] = {}  # side files by their path below the root
        self.agents: list[Lines] = []
        self.leaf: str | None = None  # parent uuid of the next linked line
        self.is_sidechain = agent_id is not None
        self.prompts: list[str] = []  # typed by the user, in order
        self.replies: list[str] = []  # text of the assistant, in order
        self.tool_ids: list[str] = []
        self._relative_path = relative_path or f"projects/{self.key}/{self.session_id}.jsonl"

    @property
    def version(self) -> str:
        return self.release.version

    @property
    def last_uuid(self) -> str:
        """Uuid of the last linked line."""
        return next(uuid for uuid in map(_uuid, reversed(self.records)) if uuid is not None)

    @property
    def folder(self) -> str:
        """Folder of the session's side files, relative to the root."""
        return f"projects/{self.key}/{self.session_id}"

    def wait(self, seconds: float) -> Self:
        """Advance the clock. A negative number sets it back."""
        self.now += timedelta(seconds=seconds)
        return self

    def branch_from(self, uuid: str | None) -> Self:
        """Continue from an earlier line, as a rewind or an edited prompt does. None starts a new root."""
        self.leaf = uuid
        return self

    def raw(self, line: bytes) -> Self:
        """Add a line of arbitrary bytes."""
        self.records.append(line)
        return self

    def line(self, record: Record) -> Self:
        """Add a record unchanged."""
        self.records.append(record)
        return self

    def linked_line(self, body: Record, extra: Record) -> str:
        """Add a line whose parent is the previous linked line. Return its uuid.

        The fields in ``extra`` override all others.
        """
        record: Record = {"parentUuid": self.leaf, "isSidechain": self.is_sidechain, **body}
        record |= {"uuid": self.new_uuid(), "timestamp": self.tick(), "userType": "external"}
        if self.release.is_at_least("2.1.70"):
            record["entrypoint"] = self.entrypoint
        record |= {
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": self.version,
            "gitBranch": self.branch,
        }
        if self.release.is_at_least("2.0.50"):
            record["slug"] = self.slug
        if self.release.is_at_least("2.1.207"):
            record["session_id"] = self.session_id
        if self.agent_id is not None:
            record["agentId"] = self.agent_id
        record |= extra
        self.records.append(record)
        self.leaf = str(record["uuid"])
        return self.leaf

    def tick(self) -> str:
        """Advance the clock by up to six seconds and return the time as text."""
        self.now += timedelta(milliseconds=self.random.randrange(40, 6000))
        return format_time(self.now)

    def new_uuid(self) -> str:
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def new_id(self, prefix: str) -> str:
        """Return an id such as ``msg_01…``, ``toolu_01…`` or ``req_01…``."""
        letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"
        return f"{prefix}_01{''.join(self.random.choices(letters, k=22))}"

    def lines(self) -> bytes:
        """Return the bytes of the file."""
        lines = (record if isinstance(record, bytes) else encode(record) for record in self.records)
        return b"".join(line + b"\n" for line in lines)

    def path(self, root: Path) -> Path:
        return root / self._relative_path

    def write(self, root: Path) -> Path:
        """Write the transcript, its subagents and its side files. Return the path of the transcript.

        The modification time is the time of the last line.
        """
        path = self._write_file(root, self._relative_path, self.lines())
        for relative_path, content in self.files.items():
            self._write_file(root, relative_path, content)
        for agent in self.agents:
            agent.write(root)
        return path

    def change(self, edit: Callable[[Record], None]) -> Self:
        """Change every record in place. Lines that are bytes stay unchanged."""
        for record in self.records:
            if isinstance(record, dict):
                edit(record)
        return self

    def _write_file(self, root: Path, relative_path: str, content: bytes) -> Path:
        path = root / relative_path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (self.now.timestamp(), self.now.timestamp()))
        return path


def _uuid(record: Any) -> str | None:
    return record.get("uuid") if isinstance(record, dict) else None
