"""A server in a process of its own: what it writes, what it survives, and how it ends."""

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Timer
from typing import Any

import anyio
import pytest
from mcp import Client

from backscroll.archive import connection
from backscroll.archive.sync_lock import sync_lock
from backscroll.history import History
from backscroll.mcp.call import Call, StoppedError
from backscroll.mcp.server import McpServer
from backscroll.mcp.workers import WorkerPool
from backscroll.testing.claude_code import Transcript
from tests.mcp_server.serving import COMMAND, HELLO, Asking, environment


class Server:
    """A server, spoken to line by line."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.process = process
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    def send(self, message: bytes | dict[str, Any]) -> None:
        self.stdin.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
        self.stdin.flush()

    def call(self, number: int, tool: str, **arguments: Any) -> None:
        asked = {"name": tool, "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": asked})

    def answer(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.stdout.readline())
        return told


@pytest.fixture
def server(environ: dict[str, str]) -> Iterator[Server]:
    with started(environ) as server:
        yield server


@contextmanager
def started(environ: dict[str, str]) -> Iterator[Server]:
    process = subprocess.Popen(
        [COMMAND, "mcp"],
        env=os.environ | environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        server = Server(process)
        server.send(HELLO)
        assert server.answer()["result"]["serverInfo"]["name"] == "backscroll"
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield server
        if process.poll() is None:
            process.kill()


def test_what_makes_no_sense_is_passed_over_and_only_answers_are_written(server: Server) -> None:
    server.send(b"nonsense")
    server.send(b'{"jsonrpc": "2.0"}')
    server.send(b"\xff\xfe")
    server.call(2, "list_sessions", limit=1)
    assert server.answer()["id"] == 2
    server.stdin.close()
    assert server.process.wait(timeout=20) == 0
    assert (server.stdout.read(), server.stderr.read()) == (b"", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_somebody_ends_it(server: Server, number: signal.Signals) -> None:
    server.process.send_signal(number)
    assert server.process.wait(timeout=20) == 128 + number
    assert server.stderr.read() == b""


def test_it_ends_without_a_word_when_nobody_listens(server: Server) -> None:
    server.stdout.close()
    server.call(2, "list_sessions")
    server.stdin.close()
    assert server.process.wait(timeout=20) == 0
    assert b"Traceback" not in server.stderr.read()


def test_while_another_process_reads_the_history_it_is_said_that_there_may_be_more(tmp_path: Path) -> None:
    one = Transcript("10000000-0000-4000-8000-000000000000", seed=1, cwd="/home/zoe/ferry")
    one.user("Is the lighthouse lit?").assistant("It is.").write(tmp_path / "claude")
    home = tmp_path / "home"
    home.mkdir()
    with (
        sync_lock(home / "archive.db", None),
        started(environment(home, {"claude-code": tmp_path / "claude"})) as server,
    ):
        for number in (2, 3):
            server.call(number, "list_sessions")
            assert "The first sync is still running" in str(server.answer()["result"]["content"])
            time.sleep(3)  # longer than a short sync takes
    with started(environment(home, {"claude-code": tmp_path / "claude"})) as server:
        told = ""
        while "1 to 1 of 1 session." not in told:
            server.call(2, "list_sessions")
            told = str(server.answer()["result"]["content"])


def test_a_call_waits_while_the_archive_is_held_for_a_moment(tmp_path: Path) -> None:
    with History(home=tmp_path) as history:
        history.list_sessions()
    other = sqlite3.connect(tmp_path / "archive.db", isolation_level=None, check_same_thread=False)
    other.execute("pragma locking_mode = exclusive")
    other.execute("begin exclusive")
    with started(environment(tmp_path, {"claude-code": tmp_path / "none"})) as server:
        begun = time.monotonic()
        Timer(1.0, other.close).start()
        server.call(2, "list_sessions", limit=1)
        assert server.answer()["result"]["structuredContent"]["data"] == []
        assert time.monotonic() - begun >= 0.9


def test_an_archive_that_is_held_for_long_is_called_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_SECONDS", 0.2)
    with History(home=tmp_path) as history:
        history.list_sessions()
    other = sqlite3.connect(tmp_path / "archive.db", isolation_level=None)
    desk = McpServer(lambda: History(home=tmp_path))

    async def ask() -> None:
        async with Client(desk.server) as client:
            for tool, arguments in (("list_sessions", {}), ("stats", {}), ("recall", {"task": "x"})):
                result = await client.call_tool(tool, arguments)
                assert result.is_error
                assert result.structured_content["error"]["type"] == "locked"
            other.close()
            assert not (await client.call_tool("list_sessions", {})).is_error

    try:
        other.execute("pragma locking_mode = exclusive")
        other.execute("begin exclusive")
        anyio.run(ask)
    finally:
        other.close()
        desk.workers.close()


def test_a_file_that_is_no_archive_is_said(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "archive.db").write_bytes(b"hello" * 1000)
    with started(environ | {"BACKSCROLL_HOME": str(tmp_path)}) as server:
        server.call(2, "list_sessions")
        error = server.answer()["result"]["structuredContent"]["error"]
        assert error["type"] == "archive"
        assert "is not an archive" in error["message"]


def test_what_the_archive_is_asked_for_a_call_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    ended = Event()

    def count(call: Call) -> None:
        # As long as anything in the archive may take, and without a step in between.
        endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
        try:
            call.history._stores.archive._db.execute(endless).fetchone()
        except sqlite3.OperationalError as error:
            assert "interrupted" in str(error)
            ended.set()
            raise

    async def main() -> None:
        crew = WorkerPool(lambda: History(home=tmp_path), is_redacted=True)
        with anyio.move_on_after(0.3) as scope:
            await crew.run(count)
        assert scope.cancelled_caught
        assert await anyio.to_thread.run_sync(ended.wait, 10)
        assert await crew.run(lambda call: call.history.list_sessions().pagination.total) == 0
        crew.close()

    anyio.run(main)


def test_a_recollection_that_nobody_waits_for_ends(history: History) -> None:
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        if done == 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        history.recall("why did the import of readings fail at night", progress=progress)
    assert told == [(0, 4), (1, 4), (2, 4)]


def test_what_an_unexpected_error_says_is_not_passed_on(
    asking: Asking, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(history: History, *_: object, **__: object) -> None:
        raise ValueError("a secret of the history")

    monkeypatch.setattr(History, "list_sessions", fail)
    desk = McpServer(lambda: History(home=tmp_path))

    async def ask() -> Any:
        async with Client(desk.server) as client:
            return await client.call_tool("list_sessions", {})

    try:
        result = anyio.run(ask)
    finally:
        desk.workers.close()
    assert result.is_error
    assert result.structured_content["error"]["type"] == "internal"
    assert "secret" not in str(result)
    told = capsys.readouterr().err
    assert told.startswith("backscroll mcp: ValueError in fail, line ") and "secret" not in told
