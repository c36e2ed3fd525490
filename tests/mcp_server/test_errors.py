"""Errors have a type and a next step, and the server continues to work."""

import sqlite3
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from backscroll import errors
from backscroll.archive import connection
from backscroll.errors import ArchiveError, BackscrollError, DatabaseLockedError
from backscroll.history import History
from backscroll.mcp.call import Call, CallCancelledError
from backscroll.mcp.errors import failure_for
from backscroll.mcp.workers import WorkerPool
from backscroll.testing.claude_code import Transcript
from tests.mcp_server.server_client import McpClient, environment, start_stdio_server


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("list_sessions", {"limit": 0}, "$.limit"),
        ("list_sessions", {"limit": 1001}, "<= 1000"),
        ("list_sessions", {"offset": -1}, "$.offset"),
        ("list_sessions", {"since": "someday"}, "is not a date"),
        ("list_sessions", {"since": "2026-10", "until": "2026-09"}, "is not before until"),
        ("list_sessions", {"colour": "red"}, "unknown field `colour`"),
        ("list_sessions", {"source": "notepad"}, "$.source"),
        ("search_sessions", {}, "missing required field `query`"),
        ("search_sessions", {"query": ""}, "$.query"),
        ("search_sessions", {"query": "(", "pattern": "regex"}, "("),
        ("get_session", {"ref": ["a"]}, "$.ref"),
        ("get_session", {"ref": "1", "roles": ["king"]}, "$.roles"),
        ("recall", {"task": "x", "token_budget": 1}, "$.token_budget"),
        ("stats", {"by": "mood"}, "$.by"),
    ],
)
def test_invalid_arguments_are_reported(
    mcp_client: McpClient, tool: str, arguments: dict[str, Any], message: str
) -> None:
    error = mcp_client.error(tool, **arguments)
    assert error["type"] == "invalid_arguments"
    assert message in error["message"]
    assert "call again" in error["next"]


def test_a_number_in_a_string_is_accepted(mcp_client: McpClient) -> None:
    assert len(mcp_client.document("list_sessions", limit="2")["data"]) == 2


def test_the_error_for_an_unknown_ref_names_the_tools_that_return_refs(mcp_client: McpClient) -> None:
    for tool in ("get_session", "export_session", "get_agent_session"):
        error = mcp_client.error(tool, ref="zzz")
        assert (error["type"], error["session_id"]) == ("session_not_found", "zzz")
        assert "list_sessions" in error["next"]


def test_the_error_for_an_ambiguous_ref_lists_the_matches(mcp_client: McpClient) -> None:
    error = mcp_client.error("get_session", ref="claude-code:7")
    assert error["type"] == "session_not_found"
    assert "claude-code:7804cbb7" in error["message"]


def test_a_ref_with_a_source_matches_only_this_source(mcp_client: McpClient) -> None:
    for ref in ("claude-code:78", " claude-code:78 "):
        assert mcp_client.document("get_session", ref=ref)["session"]["title"] == "Try an asynchronous poller"
    assert (
        mcp_client.document("get_session", ref="cursor:78")["session"]["title"] == "Lesezeit und Datumsformat"
    )
    assert mcp_client.error("get_session", ref="78")["type"] == "session_not_found"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_sessions", {}),
        ("stats", {}),
        ("recall", {"task": "redis"}),
        ("search_sessions", {"query": "redis"}),
    ],
)
def test_the_error_for_an_unknown_workspace_lists_similar_ones(
    mcp_client: McpClient, tool: str, arguments: dict[str, Any]
) -> None:
    error = mcp_client.error(tool, workspace="/somewhere/tidelin", **arguments)
    assert (error["type"], error["workspace"]) == ("workspace_not_found", "/somewhere/tidelin")
    assert "/projects/tideline" in error["message"].splitlines()[1]
    assert "list_workspaces" in error["next"]


def test_for_a_folder_in_a_workspace_the_workspace_is_suggested_first(
    mcp_client: McpClient, history: History
) -> None:
    (path,) = {workspace.path for workspace in history.list_workspaces() if workspace.name == "tideline"}
    error = mcp_client.error("recall", task="redis", workspace=f"{path}/saltern/src")
    assert error["message"].splitlines()[1].strip() == path


def test_empty_results_have_a_reason(mcp_client: McpClient) -> None:
    past_end = mcp_client.text("get_session", ref="7804cbb7", **{"from": 9999})
    assert "No such position. Positions go from 0 to 15." in past_end
    assert "No message with these roles" in mcp_client.text("get_session", ref="7804cbb7", roles=["thinking"])
    assert mcp_client.text("export_session", ref="7804cbb7", from_char=10**9) == "End of the session."
    assert mcp_client.text("list_sessions", since="2030") == "None of 0 sessions."


def test_an_unknown_tool_is_a_protocol_error(mcp_client: McpClient) -> None:
    with pytest.raises(MCPError, match=r"Unknown tool .sing.\. Available: recall, "):
        mcp_client.call("sing")


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_has_a_type_and_a_next_step(name: str) -> None:
    error_class = getattr(errors, name)
    arguments = ("It is gone.",) if error_class.__init__ is BackscrollError.__init__ else ("It is gone.", "x")
    error = error_class(*arguments)
    failure = failure_for(error)
    assert failure.next
    assert failure.document(error)["message"] == "It is gone."
    assert failure.type != "internal"


def test_a_locked_database_has_the_type_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure_for(DatabaseLockedError("held", "x.db")).type == "locked"
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_SECONDS", 0.2)
    with History(home=tmp_path) as history:
        history.list_sessions()
    other = sqlite3.connect(tmp_path / "archive.db", isolation_level=None)
    try:
        other.execute("pragma locking_mode = exclusive")
        other.execute("begin exclusive")
        with pytest.raises(ArchiveError) as caught, History(home=tmp_path) as history:
            history.list_sessions()
    finally:
        other.close()
    failure = failure_for(caught.value)
    assert failure.type == "locked"
    assert "Retry in a few seconds" in failure.next
    assert failure_for(ValueError("?")).type == "internal"


def test_a_password_that_is_named_in_one_message_is_redacted_in_all(tmp_path: Path) -> None:
    transcript = Transcript("10000000-0000-4000-8000-000000000000", seed=1, cwd="/home/zoe/ferry")
    transcript.user("Try hunter2Xq9vT7 on the lighthouse").assistant("Done.")
    transcript.user("Good: password = hunter2Xq9vT7").assistant("Noted.").write(tmp_path / "claude")
    with start_stdio_server(
        environment(tmp_path / "home", {"claude-code": tmp_path / "claude"})
    ) as mcp_client:
        _wait_for_first_sync(mcp_client)
        for tool, arguments in (
            ("get_session", {"ref": "1", "count": 1}),
            ("search_sessions", {"query": "try lighthouse"}),
            ("search_sessions", {"query": "on the light", "pattern": "exact", "by": "message"}),
            ("recall", {"task": "what was tried on the lighthouse?"}),
            ("export_session", {"ref": "1"}),
        ):
            result = mcp_client.call(tool, **arguments)
            assert "hunter2Xq9vT7" not in f"{result.content}{result.structured_content}", tool
            assert "[redacted: password #1] on the lighthouse" in f"{result.content}", tool
        for prompt, values in (("recall", {"task": "try the lighthouse"}), ("handoff", {"ref": "1"})):
            result = mcp_client.run(lambda client, p=prompt, v=values: client.get_prompt(p, v))
            assert "[redacted: password" in str(result.messages) and "hunter2" not in str(result.messages)


def test_all_calls_succeed_while_another_process_writes_the_archive(
    mcp_client: McpClient, environ: dict[str, str]
) -> None:
    other = sqlite3.connect(Path(environ["BACKSCROLL_HOME"]) / "archive.db", isolation_level=None)
    try:
        other.execute("begin immediate")
        assert mcp_client.document("list_sessions", limit=1)["data"]
        assert mcp_client.document("search_sessions", query="redis")["data"]
        assert mcp_client.document("recall", task="why was redis dropped")["data"]
    finally:
        other.close()


def test_the_next_call_succeeds_after_a_cancelled_call(mcp_client: McpClient) -> None:
    async def call_and_cancel(client: Client) -> bool:
        with anyio.move_on_after(0.001) as scope:
            await client.call_tool("search_sessions", {"query": ".*e.*", "pattern": "regex", "limit": 100})
        return scope.cancelled_caught

    for _ in range(5):
        mcp_client.run(call_and_cancel)
    assert mcp_client.document("list_sessions", limit=1)["data"]


def test_a_call_reports_progress_and_stops_when_cancelled(tmp_path: Path) -> None:
    ended = Event()
    reports: list[float] = []

    def work(call: Call) -> None:
        try:
            for done in range(10_000_000):
                call.report_progress(done, 10_000_000)
        except CallCancelledError:
            ended.set()
            raise

    async def report(done: float, total: float | None) -> None:
        assert total == 10_000_000
        reports.append(done)

    async def main() -> None:
        workers = WorkerPool(lambda: History(home=tmp_path), is_redacted=True)
        with anyio.move_on_after(0.7) as scope:
            await workers.run(work, report)
        assert scope.cancelled_caught
        await anyio.to_thread.run_sync(ended.wait, 5)
        assert await workers.run(lambda call: 7) == 7
        workers.close()

    anyio.run(main)
    assert ended.is_set()
    assert reports == sorted(reports) and reports


KEY = "sk-ant-api03-" + "Qm7xT2vLk9RbWz4pNc8s" * 4 + "-AAAA"


@pytest.fixture
def environ_with_secret(tmp_path: Path) -> dict[str, str]:
    transcript = Transcript("10000000-0000-4000-8000-000000000000", seed=1, cwd="/home/zoe/ferry")
    transcript.user(f"The lighthouse \x1b[31mkey\x1b[0m is {KEY}\u202e, use it")
    transcript.assistant("Thanks for the key.").write(tmp_path / "claude")
    return environment(tmp_path / "home", {"claude-code": tmp_path / "claude"})


@pytest.mark.parametrize("options", [(), ("--no-redact",)], ids=["redacted", "plain"])
def test_results_have_no_secrets_and_no_control_characters(
    environ_with_secret: dict[str, str], options: tuple[str, ...]
) -> None:
    with start_stdio_server(environ_with_secret, *options) as mcp_client:
        _wait_for_first_sync(mcp_client)
        for tool, arguments in (
            ("list_sessions", {}),
            ("get_session", {"ref": "1"}),
            ("export_session", {"ref": "1", "format": "jsonl"}),
            ("search_sessions", {"query": "lighthouse"}),
            ("recall", {"task": "the key of the lighthouse"}),
        ):
            result = mcp_client.call(tool, **arguments)
            output = f"{result.structured_content} {result.content}"
            assert (KEY[:30] in output) is bool(options), tool
            for control_character in ("\x1b", "\u202e"):
                assert control_character not in str(result.structured_content), tool


def test_new_messages_are_found_while_the_server_runs(
    environ_with_secret: dict[str, str], tmp_path: Path
) -> None:
    with start_stdio_server(environ_with_secret) as mcp_client:
        _wait_for_first_sync(mcp_client)
        new = Transcript("20000000-0000-4000-8000-000000000000", seed=2, cwd="/home/zoe/ferry")
        new.user("and now the foghorn").write(tmp_path / "claude")
        found: list[Any] = []
        for _ in range(100):
            found = mcp_client.document("search_sessions", query="foghorn")["data"]
            if found:
                break
            Event().wait(0.1)
        assert [match["session_id"][:1] for match in found] == ["2"]


def _wait_for_first_sync(mcp_client: McpClient) -> None:
    for _ in range(100):
        if mcp_client.document("search_sessions", query="lighthouse")["data"]:
            return
        Event().wait(0.1)
    pytest.fail("the first sync did not end in 10 seconds")
