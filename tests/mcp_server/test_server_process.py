"""The server process: output, invalid input, locks, cancellation and exit."""

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
from backscroll.archive.sync_state import sync_lock
from backscroll.history.history import History
from backscroll.mcp.call import Call, CallCancelledError, CallWorkers, ServerOptions
from backscroll.mcp.server import McpServer
from backscroll.testing.claude_code import Transcript
from tests.mcp_server.server_client import COMMAND, INITIALIZE_REQUEST, McpClient, environment


class Server:
    """A server process that is used line by line."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.process = process
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    def send(self, message: bytes | dict[str, Any]) -> None:
        self.stdin.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
        self.stdin.flush()

    def call(self, request_id: int, tool: str, **arguments: Any) -> None:
        params = {"name": tool, "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})

    def read_response(self) -> dict[str, Any]:
        response: dict[str, Any] = json.loads(self.stdout.readline())
        return response


@pytest.fixture
def server(environ: dict[str, str]) -> Iterator[Server]:
    with start_server(environ) as server:
        yield server


@contextmanager
def start_server(environ: dict[str, str]) -> Iterator[Server]:
    process = subprocess.Popen(
        [COMMAND, "mcp"],
        env=os.environ | environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        server = Server(process)
        server.send(INITIALIZE_REQUEST)
        assert server.read_response()["result"]["serverInfo"]["name"] == "backscroll"
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield server
        if process.poll() is None:
            process.kill()


def test_invalid_input_is_ignored_and_only_responses_are_written(server: Server) -> None:
    server.send(b"nonsense")
    server.send(b'{"jsonrpc": "2.0"}')
    server.send(b"\xff\xfe")
    server.call(2, "list_sessions", limit=1)
    assert server.read_response()["id"] == 2
    server.stdin.close()
    assert server.process.wait(timeout=20) == 0
    assert (server.stdout.read(), server.stderr.read()) == (b"", b"")


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_the_server_exits_on_a_signal(server: Server, signal_number: signal.Signals) -> None:
    server.process.send_signal(signal_number)
    assert server.process.wait(timeout=20) == 128 + signal_number
    assert server.stderr.read() == b""


def test_the_server_exits_without_a_traceback_if_the_client_closes_the_pipe(server: Server) -> None:
    server.stdout.close()
    server.call(2, "list_sessions")
    server.stdin.close()
    assert server.process.wait(timeout=20) == 0
    assert b"Traceback" not in server.stderr.read()


def test_results_mention_that_the_first_sync_is_still_running(tmp_path: Path) -> None:
    transcript = Transcript("10000000-0000-4000-8000-000000000000", seed=1, cwd="/home/zoe/ferry")
    transcript.user("Is the lighthouse lit?").assistant("It is.").write(tmp_path / "claude")
    home = tmp_path / "home"
    home.mkdir()
    with (
        sync_lock(home / "archive.db", None),
        start_server(environment(home, {"claude-code": tmp_path / "claude"})) as server,
    ):
        for request_id in (2, 3):
            server.call(request_id, "list_sessions")
            assert "The first sync is still running" in str(server.read_response()["result"]["content"])
            time.sleep(3)  # longer than a short sync takes
    with start_server(environment(home, {"claude-code": tmp_path / "claude"})) as server:
        text = ""
        while "1 to 1 of 1 session." not in text:
            server.call(2, "list_sessions")
            text = str(server.read_response()["result"]["content"])


def test_a_call_waits_while_the_archive_is_locked_briefly(tmp_path: Path) -> None:
    with History(home=tmp_path) as history:
        history.list_sessions()
    other = sqlite3.connect(tmp_path / "archive.db", isolation_level=None, check_same_thread=False)
    other.execute("pragma locking_mode = exclusive")
    other.execute("begin exclusive")
    with start_server(environment(tmp_path, {"claude-code": tmp_path / "none"})) as server:
        started_at = time.monotonic()
        Timer(1.0, other.close).start()
        server.call(2, "list_sessions", limit=1)
        assert server.read_response()["result"]["content"][0]["text"].startswith("No session matches.")
        assert time.monotonic() - started_at >= 0.9


def test_an_archive_that_stays_locked_is_an_error_of_type_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_SECONDS", 0.2)
    with History(home=tmp_path) as history:
        history.list_sessions()
    other = sqlite3.connect(tmp_path / "archive.db", isolation_level=None)
    mcp_server = McpServer(lambda: History(home=tmp_path))

    async def call_tools() -> None:
        async with Client(mcp_server.server) as client:
            for tool, arguments in (("list_sessions", {}), ("stats", {}), ("recall", {"task": "x"})):
                result = await client.call_tool(tool, arguments)
                assert result.is_error
                assert getattr(result.content[0], "text", "").startswith("locked: ")
            other.close()
            assert not (await client.call_tool("list_sessions", {})).is_error

    try:
        other.execute("pragma locking_mode = exclusive")
        other.execute("begin exclusive")
        anyio.run(call_tools)
    finally:
        other.close()
        mcp_server.workers.close()


def test_a_file_that_is_not_an_archive_is_reported(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "archive.db").write_bytes(b"hello" * 1000)
    with start_server(environ | {"BACKSCROLL_HOME": str(tmp_path)}) as server:
        server.call(2, "list_sessions")
        error = server.read_response()["result"]["content"][0]["text"]
        assert error.startswith("archive: ")
        assert "is not an archive" in error
        assert "backscroll sync" not in error


def test_a_running_query_is_interrupted_when_its_call_is_cancelled(tmp_path: Path) -> None:
    ended = Event()

    def count(call: Call) -> None:
        # A query without an end, during which no progress is reported.
        endless_query = (
            "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
        )
        try:
            call.history._stores.archive._db.execute(endless_query).fetchone()
        except sqlite3.OperationalError as error:
            assert "interrupted" in str(error)
            ended.set()
            raise

    async def main() -> None:
        workers = CallWorkers(lambda: History(home=tmp_path), ServerOptions())
        with anyio.move_on_after(0.3) as scope:
            await workers.run(count)
        assert scope.cancelled_caught
        assert await anyio.to_thread.run_sync(ended.wait, 10)
        assert await workers.run(lambda call: call.history.list_sessions().pagination.total) == 0
        workers.close()

    anyio.run(main)


def test_a_cancelled_recall_stops_at_the_next_progress_report(history: History) -> None:
    reports: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        reports.append((done, total))
        if done == 2:
            raise CallCancelledError

    with pytest.raises(CallCancelledError):
        history.recall("why did the import of readings fail at night", progress=progress)
    assert reports == [(0, 2), (1, 2), (2, 2)]


def test_the_message_of_an_unexpected_error_is_not_passed_on(
    mcp_client: McpClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(history: History, *_: object, **__: object) -> None:
        raise ValueError("a secret of the history")

    monkeypatch.setattr(History, "list_sessions", fail)
    mcp_server = McpServer(lambda: History(home=tmp_path))

    async def call_tool() -> Any:
        async with Client(mcp_server.server) as client:
            return await client.call_tool("list_sessions", {})

    try:
        result = anyio.run(call_tool)
    finally:
        mcp_server.workers.close()
    assert result.is_error
    assert getattr(result.content[0], "text", "").startswith("internal: ")
    assert "secret" not in str(result)
    stderr = capsys.readouterr().err
    assert stderr.startswith("backscroll mcp: ValueError in fail, line ") and "secret" not in stderr
