"""Stores written blob by blob, and what the source tells of them."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

from backscroll.model import Message
from backscroll.sources.cursor_cli import CursorCli
from backscroll.testing.protobuf import encode_message as record
from tests.oracle.fold import ParsedSession, UnitContent, fold

START = 1_790_000_000_000
CWD = "/home/dev/shop"


class Store:
    """A ``store.db`` put together by hand."""

    def __init__(
        self, root: Path, *, id: str = "5ec0ffee-0000-4000-8000-000000000001", cwd: str = CWD
    ) -> None:
        self.folder = root / "chats" / md5(cwd.encode(), usedforsecurity=False).hexdigest() / id
        self.path = self.folder / "store.db"
        self.id = id
        self.blobs: dict[str, bytes | None] = {}
        self.meta: dict[str, Any] = {
            "agentId": id,
            "name": "Rename foo",
            "mode": "default",
            "createdAt": START,
        }

    def put(self, data: bytes | Mapping[str, Any]) -> bytes:
        """Keep a blob; returns its id as a root names it."""
        content = data if isinstance(data, bytes) else json.dumps(data).encode()
        id = sha256(content)
        self.blobs[id.hexdigest()] = content
        return id.digest()

    def root(self, *fields: tuple[int, int | str | bytes]) -> str:
        """Keep a root and let the metadata name it."""
        id = self.put(record(*fields)).hex()
        self.meta["latestRootBlobId"] = id
        return id

    def say(self, *messages: Mapping[str, Any]) -> "Store":
        """Keep messages and a root that names just these."""
        self.root(*((1, self.put(message)) for message in messages))
        return self

    def write(self, *, meta: Sequence[tuple[Any, Any]] | None = None, sidecar: Any = None) -> "Store":
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        rows = meta if meta is not None else [("0", json.dumps(self.meta).encode().hex())]
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute("pragma synchronous = off")
            db.execute("create table blobs (id text primary key, data blob)")
            db.execute("create table meta (key text primary key, value text)")
            db.executemany("insert into blobs values (?, ?)", self.blobs.items())
            db.executemany("insert into meta values (?, ?)", rows)
        if sidecar is not None:
            (self.folder / "meta.json").write_text(json.dumps(sidecar))
        return self

    def run(self, *statements: str) -> int:
        """Change the written store behind the tool's back; returns how many records it has then."""
        with closing(sqlite3.connect(self.path)) as db, db:
            for statement in statements:
                db.execute(statement)
            counted: int = db.execute("select (select count(*) from blobs) + count(*) from meta").fetchone()[
                0
            ]
        return counted

    def read(self, **how: Any) -> UnitContent:
        self.write(**how)
        return read_one(self.folder.parent.parent.parent)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": f"<user_query>\n{text}\n</user_query>"}]}


def assistant(*parts: Mapping[str, Any] | str) -> dict[str, Any]:
    content = [{"type": "text", "text": part} if isinstance(part, str) else dict(part) for part in parts]
    return {"role": "assistant", "id": "1", "content": content}


def call(id: str, name: str = "Shell", **args: Any) -> dict[str, Any]:
    return {"type": "tool-call", "toolCallId": id, "toolName": name, "args": args}


def result(id: str, value: Any = "ok", name: str = "Shell", **more: Any) -> dict[str, Any]:
    part = {"type": "tool-result", "toolCallId": id, "toolName": name, "result": value}
    return {"role": "tool", "id": id, "content": [part | more]}


def read_all(root: Path) -> list[UnitContent]:
    source = CursorCli()
    told = [fold(source.read(unit)) for unit in source.units(root)]
    for each in told:
        account = each.counts
        assert account.records == account.parsed + account.ignored + account.problems
        assert account.records == sum(account.kinds.values())
    source.close()
    return told


def read_one(root: Path) -> UnitContent:
    (told,) = read_all(root)
    return told


def only(told: UnitContent) -> ParsedSession:
    """The one session, subagents aside."""
    (reading,) = [reading for reading in told.sessions if reading.opening.agent_id is None]
    return reading


def said(told: UnitContent) -> list[tuple[str, str]]:
    """Role and text of every message; a tool's name and result in place of its text."""
    return [(message.role, words(message)) for message in only(told).messages]


def words(message: Message) -> str:
    return f"{message.tool.name}: {message.tool.result}" if message.tool else message.content
