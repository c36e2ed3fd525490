"""Servers in this process, on small histories, with and without ``--allow-writes``."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp_types import Implementation

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.mcp.call import ServerOptions
from backscroll.mcp.server import McpServer
from backscroll.mcp.tools.plans import PlanStore
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript
from tests.mcp_server.server_client import McpClient

CLAUDE_ID = "10000000-0000-4000-8000-000000000001"
OTHER_ID = "20000000-0000-4000-8000-000000000002"


class Stage:
    """Histories of Claude Code and Cursor, an archive, and a folder to move sessions to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.claude, self.cursor, self.home = folder / "claude", folder / "cursor", folder / "home"
        self.old, self.new = folder / "ferry", folder / "boat"
        self.old.mkdir()
        self.new.mkdir()
        self.transcripts = {
            session_id: self._write_session(session_id) for session_id in (CLAUDE_ID, OTHER_ID)
        }
        prompt = {"display": "Rename tz.py", "timestamp": 1, "project": str(self.old), "sessionId": CLAUDE_ID}
        (self.claude / "history.jsonl").write_text(json.dumps(prompt) + "\n")
        ide = cursor.Home(self.cursor)
        ide.composer(
            [cursor.user("mend the basket"), cursor.assistant("Done.")], workspace=cursor.SHOP, name="Basket"
        )
        ide.write()
        with self.history() as history:
            history.sync()

    def _write_session(self, session_id: str) -> Path:
        session = Transcript(session_id=session_id, cwd=str(self.old))
        return session.user("Rename tz.py, please").assistant("Done.").write(self.claude)

    @property
    def roots(self) -> dict[str, Path]:
        return {"claude-code": self.claude, "cursor": self.cursor}

    def history(self) -> History:
        return History(roots=[NamedRoot(name, path) for name, path in self.roots.items()], home=self.home)

    def cursor_ref(self) -> str:
        with self.history() as history:
            return next(one.ref for one in history.all_sessions() if one.source == "cursor")

    def files(self) -> dict[str, bytes]:
        """Return the content of the files of all tools, by path."""
        return {
            str(path): path.read_bytes()
            for root in self.roots.values()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }


class WriteClient(McpClient):
    """Client that reads plans."""

    def plan(self, tool: str, **arguments: Any) -> str:
        """Return the id of a new plan."""
        document = self.document(tool, **arguments)
        assert document["status"] == "planned", document
        plan_id: str = document["plan_id"]
        assert f"plan_id={plan_id}" in " ".join(document["hints"])
        return plan_id

    def apply(self, tool: str, **arguments: Any) -> Any:
        """Make a plan and apply it. Return the result."""
        document = self.document(tool, **arguments, plan_id=self.plan(tool, **arguments))
        assert document["status"] == "applied", document
        return document["result"]


class Place(Protocol):
    """An archive and the histories that it reads."""

    home: Path

    def history(self) -> History: ...


@contextmanager
def start_read_server(home: Path, claude_root: Path, *, is_redacted: bool = True) -> Iterator[McpClient]:
    """Sync a root of Claude Code. Start a server in this process, without a background sync."""

    def open_history() -> History:
        return History(roots=[NamedRoot("claude-code", claude_root)], home=home)

    with open_history() as history:
        history.sync()
    server = McpServer(open_history, ServerOptions(is_structured=True, is_redacted=is_redacted))
    with start_blocking_portal() as portal:
        mcp_client = Client(server.server)
        with portal.wrap_async_context_manager(mcp_client):
            yield McpClient(portal, mcp_client)
    server.workers.close()


@contextmanager
def start_write_server(
    stage: Place, *, client: str = "test", plans: PlanStore | None = None, is_structured: bool = True
) -> Iterator[WriteClient]:
    """Start a server in this process, without a background sync."""
    options = ServerOptions(
        allow_writes=True, is_structured=is_structured, command=("backscroll", "--home", str(stage.home))
    )
    server = McpServer(stage.history, options, plans)
    with start_blocking_portal() as portal:
        mcp_client = Client(server.server, client_info=Implementation(name=client, version="1"))
        with portal.wrap_async_context_manager(mcp_client):
            yield WriteClient(portal, mcp_client)
    server.workers.close()
