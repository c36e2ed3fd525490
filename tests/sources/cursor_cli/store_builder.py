"""Build stores blob by blob, and read them with the source."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

from backscroll.model.message import Message
from backscroll.sources.cursor_cli import CursorCli
from backscroll.testing.protobuf import encode_message as record
from tests.oracle.fold import ParsedSession, UnitContent, fold

START = 1_790_000_000_000
CWD = "/home/dev/shop"


class Store:
    """Builder of a ``store.db``."""

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
        """Add a blob. Return its binary id."""
        content = data if isinstance(data, bytes) else json.dumps(data).encode()
        id = sha256(content)
        self.blobs[id.hexdigest()] = content
        return id.digest()

    def root(self, *fields: tuple[int, int | str | bytes]) -> str:
        """Add a root and set it in the metadata. Return its id."""
        id = self.put(record(*fields)).hex()
        self.meta["latestRootBlobId"] = id
        return id

    def with_messages(self, *messages: Mapping[str, Any]) -> "Store":
        """Add messages and a root that refers to them."""
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
        """Execute SQL in the written store. Return its number of records."""
        with closing(sqlite3.connect(self.path)) as db, db:
            for statement in statements:
                db.execute(statement)
            query = "select (select count(*) from blobs) + count(*) from meta"
            record_count: int = db.execute(query).fetchone()[0]
        return record_count

    def read(self, **options: Any) -> UnitContent:
        self.write(**options)
        return read_one(self.folder.parent.parent.parent)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": f"<user_query>\n{text}\n</user_query>"}]}


def assistant(*parts: Mapping[str, Any] | str) -> dict[str, Any]:
    content = [{"type": "text", "text": part} if isinstance(part, str) else dict(part) for part in parts]
    return {"role": "assistant", "id": "1", "content": content}


def call(id: str, name: str = "Shell", **args: Any) -> dict[str, Any]:
    return {"type": "tool-call", "toolCallId": id, "toolName": name, "args": args}


def result(id: str, value: Any = "ok", name: str = "Shell", **fields: Any) -> dict[str, Any]:
    part = {"type": "tool-result", "toolCallId": id, "toolName": name, "result": value}
    return {"role": "tool", "id": id, "content": [part | fields]}


def read_all(root: Path) -> list[UnitContent]:
    source = CursorCli()
    contents = [fold(source.read(unit)) for unit in source.units(root)]
    for content in contents:
        counts = content.counts
        assert counts.records == counts.parsed + counts.ignored + counts.problems
        assert counts.records == sum(counts.kinds.values())
    source.close()
    return contents


def read_one(root: Path) -> UnitContent:
    (content,) = read_all(root)
    return content


def main_session(content: UnitContent) -> ParsedSession:
    """Return the session that is not a subagent."""
    (session,) = [session for session in content.sessions if session.opening.agent_id is None]
    return session


def roles_and_texts(content: UnitContent) -> list[tuple[str, str]]:
    """Return role and text of every message; for a tool call, its name and result."""
    return [(message.role, message_text(message)) for message in main_session(content).messages]


def message_text(message: Message) -> str:
    return f"{message.tool.name}: {message.tool.result}" if message.tool else message.content
