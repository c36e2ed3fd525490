"""The ground of a transcript: who it is, its clock and ids, the chain of its lines, and the file."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Self
from uuid import UUID

from backscroll.testing.claude_code.blocks import Record, encode
from backscroll.testing.claude_code.project_key import project_key
from backscroll.testing.claude_code.versions import Era

__all__ = ["START", "Lines", "stamp"]

START = datetime(2026, 10, 3, 7, tzinfo=UTC)

_SLUGS = ("quiet-ferry-lantern", "brave-amber-otter", "slow-paper-river", "round-copper-gate")


def stamp(at: datetime) -> str:
    """A time as Claude Code writes it: UTC with milliseconds and a ``Z``."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


class Lines:
    """A transcript being written.

    ``records`` holds what was written so far, one entry per line: a record that
    may still be changed, or bytes that go to the file as they are. The same
    arguments and the same calls give the same bytes.
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
        place: str | None = None,
    ) -> None:
        self.random = Random(f"{seed}:{session_id}:{agent_id}")
        self.session_id = session_id or self.new_uuid()
        self.era = Era(version)
        self.cwd = cwd
        self.branch = branch
        self.now = start
        self.entrypoint = entrypoint
        self.key = key if key is not None else project_key(cwd)
        self.agent_id = agent_id
        self.slug = self.random.choice(_SLUGS)
        self.records: list[Record | bytes] = []
        self.files: dict[str, bytes] = {}  # what lies beside it, by its path below the root
        self.agents: list[Lines] = []
        self.leaf: str | None = None  # the uuid that the next line of the chain will name as its parent
        self.is_sidechain = agent_id is not None
        self.prompts: list[str] = []  # what a person typed, in order
        self.replies: list[str] = []  # what the assistant said, in order
        self.tool_ids: list[str] = []
        self._place = place or f"projects/{self.key}/{self.session_id}.jsonl"

    @property
    def version(self) -> str:
        return self.era.version

    @property
    def last(self) -> str:
        """The uuid of the line that was written last in the chain."""
        return next(uuid for uuid in map(_uuid, reversed(self.records)) if uuid is not None)

    @property
    def folder(self) -> str:
        """Where a session keeps what does not fit into its file, below the root."""
        return f"projects/{self.key}/{self.session_id}"

    def wait(self, seconds: float) -> Self:
        """Let time pass; a negative number sets the clock back."""
        self.now += timedelta(seconds=seconds)
        return self

    def branch_from(self, uuid: str | None) -> Self:
        """Go on from an earlier line, as a rewind or an edited prompt does; None starts a new root."""
        self.leaf = uuid
        return self

    def raw(self, line: bytes) -> Self:
        """Write a line as it is."""
        self.records.append(line)
        return self

    def line(self, record: Record) -> Self:
        """Write any record."""
        self.records.append(record)
        return self

    def chain(self, body: Record, extra: Record) -> str:
        """Write a line of the chain, and go on from it. Returns its uuid.

        ``extra`` is laid over everything else, so that any field can be set.
        """
        record: Record = {"parentUuid": self.leaf, "isSidechain": self.is_sidechain, **body}
        record |= {"uuid": self.new_uuid(), "timestamp": self.tick(), "userType": "external"}
        if self.era.reached("2.1.70"):
            record["entrypoint"] = self.entrypoint
        record |= {
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": self.version,
            "gitBranch": self.branch,
        }
        if self.era.reached("2.0.50"):
            record["slug"] = self.slug
        if self.era.reached("2.1.207"):
            record["session_id"] = self.session_id
        if self.agent_id is not None:
            record["agentId"] = self.agent_id
        record |= extra
        self.records.append(record)
        self.leaf = str(record["uuid"])
        return self.leaf

    def tick(self) -> str:
        """A moment later, written down."""
        self.now += timedelta(milliseconds=self.random.randrange(40, 6000))
        return stamp(self.now)

    def new_uuid(self) -> str:
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def new_id(self, prefix: str) -> str:
        """An id in the manner of ``msg_01…``, ``toolu_01…``, ``req_01…``."""
        letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"
        return f"{prefix}_01{''.join(self.random.choices(letters, k=22))}"

    def lines(self) -> bytes:
        """The file's bytes."""
        return b"".join((one if isinstance(one, bytes) else encode(one)) + b"\n" for one in self.records)

    def path(self, root: Path) -> Path:
        return root / self._place

    def write(self, root: Path) -> Path:
        """Write the transcript with its subagents and all that lies beside it; returns the transcript's path.

        The file's time is that of its last line, never that of writing.
        """
        path = self._put(root, self._place, self.lines())
        for place, content in self.files.items():
            self._put(root, place, content)
        for agent in self.agents:
            agent.write(root)
        return path

    def change(self, edit: Callable[[Record], None]) -> Self:
        """Change every record in place; lines given as bytes are left alone."""
        for record in self.records:
            if isinstance(record, dict):
                edit(record)
        return self

    def _put(self, root: Path, place: str, content: bytes) -> Path:
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (self.now.timestamp(), self.now.timestamp()))
        return path


def _uuid(record: Any) -> str | None:
    return record.get("uuid") if isinstance(record, dict) else None
