"""Errors have a type and a next step, and the server continues to work."""

import json
import sqlite3
import time
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
from backscroll.history.history import History
from backscroll.mcp.call import RESULT_DELAY_SECONDS, Call, CallCancelledError, CallWorkers, ServerOptions
from backscroll.mcp.server import failure_for
from backscroll.testing.claude_code import Transcript
from tests.mcp_server.server_client import McpClient, environment, start_stdio_server, wait_for_sync
from tests.mcp_server.write_server import start_read_server


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        (
            "list_sessions",
            {"limit": 0},
            "Invalid value 0 for 'limit': must be an integer from 1 to 1000.\n"
            'Nearest valid call: list_sessions {"limit":1}',
        ),
        ("list_sessions", {"limit": 1001}, 'Nearest valid call: list_sessions {"limit":1000}'),
        ("list_sessions", {"limit": 1e400}, "for 'limit': must be an integer"),
        ("list_sessions", {"offset": -1}, "Invalid value -1 for 'offset': must be an integer from 0 to"),
        ("list_sessions", {"since": "someday"}, "since: 'someday' is not a date. Use 2026-10-03, 2026-10"),
        ("list_sessions", {"since": "2026-10", "until": "2026-09"}, "is not before until"),
        ("list_sessions", {"colour": "red"}, "Unknown parameter 'colour'. list_sessions has: limit, offset,"),
        ("list_sessions", {"query": "x"}, "Unknown parameter 'query'. search_sessions has it."),
        (
            "list_sessions",
            {"source": "notepad"},
            "Invalid value \"notepad\" for 'source': must be one of claude-code, cursor, cursor-cli.\n"
            "Nearest valid call: list_sessions {}",
        ),
        (
            "search_sessions",
            {},
            "Missing parameter 'query': a text of 1 to 4000 characters.\n"
            'Nearest valid call: search_sessions {"query":"…"}',
        ),
        ("search_sessions", {"query": ""}, "for 'query': must be a text of 1 to 4000 characters."),
        ("search_sessions", {"query": " . "}, "contains no words. Example: 'flaky test"),
        ("search_sessions", {"query": "(", "pattern": "regex"}, "("),
        (
            "get_session",
            {"session_id": "7804cbb7", "message_index": 3},
            "Unknown parameter 'session_id'. Did you mean 'ref'?\n"
            "Unknown parameter 'message_index'. Did you mean 'position'?\n"
            'Nearest valid call: get_session {"ref":"7804cbb7","position":3}',
        ),
        ("get_session", {"ref": "1", "from": 2}, 'get_session {"ref":"1","position":2}'),
        ("get_session", {"ref": "1", "postion": 2}, "Unknown parameter 'postion'. Did you mean 'position'?"),
        ("get_session", {"ref": ["a"]}, "Invalid value [\"a\"] for 'ref': must be a text"),
        ("get_session", {"ref": "1", "roles": ["king", "users"]}, '{"ref":"1","roles":["user"]}'),
        ("get_session", {"ref": "1", "roles": "user"}, '{"ref":"1","roles":["user"]}'),
        ("get_session", {"ref": "1", "roles": ["king"]}, "for 'roles': must be a list with values from: "),
        ("recall", {"query": "x" * 600}, "Unknown parameter 'query'. Did you mean 'task'?"),
        (
            "recall",
            {"task": "x", "token_budget": 1},
            "Invalid value 1 for 'token_budget': must be an integer from 200 to 20000.\n"
            'Nearest valid call: recall {"task":"x","token_budget":200}',
        ),
        ("export_session", {"ref": "1", "format": "pdf"}, "must be one of html, json, jsonl, md, txt."),
        ("export_session", {"ref": "1", "format": "HTML5"}, 'export_session {"ref":"1","format":"html"}'),
        ("stats", {"by": "mood"}, "for 'by': must be one of day, model, month,"),
    ],
)
def test_invalid_arguments_are_reported(
    structured_client: McpClient, tool: str, arguments: dict[str, Any], message: str
) -> None:
    error = structured_client.error(tool, **arguments)
    assert error["type"] == "invalid_arguments"
    assert message in error["message"]
    assert "call again" in error["next"]


def test_an_error_is_text_by_default(mcp_client: McpClient) -> None:
    result = mcp_client.call("get_session", session_id="7804cbb7")
    assert result.is_error and result.structured_content is None
    assert mcp_client.text("get_session", session_id="7804cbb7").splitlines() == [
        "invalid_arguments: Unknown parameter 'session_id'. Did you mean 'ref'?",
        'Nearest valid call: get_session {"ref":"7804cbb7"}',
        "Correct the arguments and call again.",
    ]


def test_every_nearest_valid_call_is_valid(structured_client: McpClient) -> None:
    for tool, arguments in (
        ("list_sessions", {"limit": 5000, "workspace_path": "tideline"}),
        ("get_session", {"session_ref": "7804cbb7", "limit": 2, "roles": "users"}),
        ("search_sessions", {"q": "redis", "max_results": 3, "pattern": "Regex"}),
        ("recall", {"question": "why was redis dropped", "max_tokens": 500}),
        ("stats", {"group_by": "month", "limit": "2"}),
    ):
        message = structured_client.error(tool, **arguments)["message"]
        name, _, nearest = message.rpartition("Nearest valid call: ")[2].partition(" ")
        assert name == tool
        assert len(json.loads(nearest)) == len(arguments)
        assert not structured_client.call(tool, **json.loads(nearest)).is_error


def test_no_error_for_a_model_contains_a_shell_command(structured_client: McpClient) -> None:
    messages = [
        structured_client.text("get_session", ref="zzz"),
        structured_client.text("list_sessions", workspace="xyzzy"),
        *(failure_for(getattr(errors, name)(*_error_arguments(name))).next for name in errors.__all__),
        failure_for(ValueError()).next,
    ]
    assert all("'backscroll " not in message and "run: backscroll" not in message for message in messages)
    assert messages[0].startswith("session_not_found: No session matches 'zzz'.\nUse a ref from recall")
    archive_error = ArchiveError("It is damaged.", "x", hint="Run 'backscroll sync'.")
    assert failure_for(archive_error).document(archive_error)["message"] == "It is damaged."
    assert str(archive_error) == "It is damaged. Run 'backscroll sync'."


def _error_arguments(name: str) -> tuple[str, ...]:
    is_plain = getattr(errors, name).__init__ is BackscrollError.__init__
    return ("It is gone.",) if is_plain else ("It is gone.", "x")


def test_a_number_in_a_string_is_accepted(structured_client: McpClient) -> None:
    assert len(structured_client.document("list_sessions", limit="2")["data"]) == 2


def test_the_error_for_an_unknown_ref_names_the_tools_that_return_refs(structured_client: McpClient) -> None:
    for tool in ("get_session", "export_session", "get_agent_session"):
        error = structured_client.error(tool, ref="zzz")
        assert (error["type"], error["ref"]) == ("session_not_found", "zzz")
        assert "list_sessions" in error["next"]


def test_the_error_for_an_ambiguous_ref_lists_the_matches(structured_client: McpClient) -> None:
    error = structured_client.error("get_session", ref="claude-code:7")
    assert error["type"] == "session_not_found"
    assert "claude-code:7804cbb7" in error["message"]


def test_a_ref_with_a_source_matches_only_this_source(structured_client: McpClient) -> None:
    for ref in ("claude-code:78", " claude-code:78 "):
        assert (
            structured_client.document("get_session", ref=ref)["session"]["title"]
            == "Try an asynchronous poller"
        )
    assert (
        structured_client.document("get_session", ref="cursor:78")["session"]["title"]
        == "Lesezeit und Datumsformat"
    )
    assert structured_client.error("get_session", ref="78")["type"] == "session_not_found"


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
    structured_client: McpClient, tool: str, arguments: dict[str, Any]
) -> None:
    error = structured_client.error(tool, workspace="/somewhere/tidelin", **arguments)
    assert (error["type"], error["workspace"]) == ("workspace_not_found", "/somewhere/tidelin")
    assert "/projects/tideline" in error["message"].splitlines()[1]
    assert "list_workspaces" in error["next"]


def test_for_a_folder_in_a_workspace_the_workspace_is_suggested_first(
    structured_client: McpClient, history: History
) -> None:
    (path,) = {workspace.path for workspace in history.list_workspaces() if workspace.name == "tideline"}
    error = structured_client.error("recall", task="redis", workspace=f"{path}/saltern/src")
    assert error["message"].splitlines()[1].strip() == path


def test_empty_results_have_a_reason(mcp_client: McpClient) -> None:
    past_end = mcp_client.text("get_session", ref="7804cbb7", position=9999)
    assert "There is no position 9999. The last position is 15." in past_end
    assert "No message with these roles" in mcp_client.text("get_session", ref="7804cbb7", roles=["thinking"])
    assert mcp_client.text("export_session", ref="7804cbb7", from_char=10**9) == "End of the session."
    assert mcp_client.text("list_sessions", since="2030") == "No session matches."


def test_an_unknown_tool_is_a_protocol_error(mcp_client: McpClient) -> None:
    with pytest.raises(MCPError, match=r"Unknown tool .sing.\. Available: recall, "):
        mcp_client.call("sing")


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_has_a_type_and_a_next_step(name: str) -> None:
    error = getattr(errors, name)(*_error_arguments(name))
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
    with start_read_server(tmp_path / "home", tmp_path / "claude") as mcp_client:
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
        result = mcp_client.run(lambda client: client.get_prompt("handoff", {"ref": "1"}))
        assert "[redacted: password" in str(result.messages) and "hunter2" not in str(result.messages)


def test_all_calls_succeed_while_another_process_writes_the_archive(
    structured_client: McpClient, environ: dict[str, str]
) -> None:
    other = sqlite3.connect(Path(environ["BACKSCROLL_HOME"]) / "archive.db", isolation_level=None)
    try:
        other.execute("begin immediate")
        assert structured_client.document("list_sessions", limit=1)["data"]
        assert structured_client.document("search_sessions", query="redis")["data"]
        assert structured_client.document("recall", task="why was redis dropped")["data"]
    finally:
        other.close()


def test_the_next_call_succeeds_after_a_cancelled_call(structured_client: McpClient) -> None:
    async def call_and_cancel(client: Client) -> bool:
        with anyio.move_on_after(0.001) as scope:
            await client.call_tool("search_sessions", {"query": ".*e.*", "pattern": "regex", "limit": 100})
        return scope.cancelled_caught

    for _ in range(5):
        structured_client.run(call_and_cancel)
    assert structured_client.document("list_sessions", limit=1)["data"]


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
        workers = CallWorkers(lambda: History(home=tmp_path), ServerOptions())
        with anyio.move_on_after(0.7) as scope:
            await workers.run(work, report)
        assert scope.cancelled_caught
        await anyio.to_thread.run_sync(ended.wait, 5)
        assert await workers.run(lambda call: 7) == 7
        workers.close()

    anyio.run(main)
    assert ended.is_set()
    assert reports == sorted(reports) and reports


@pytest.mark.parametrize(("seconds", "is_reported"), [(0.0, False), (0.6, True)], ids=["short", "long"])
def test_the_last_progress_comes_well_before_the_result(
    tmp_path: Path, seconds: float, is_reported: bool
) -> None:
    reported_at: list[float] = []

    def work(call: Call) -> None:
        deadline = time.monotonic() + seconds
        call.report_progress(1, 7)
        while time.monotonic() < deadline:
            time.sleep(0.01)
            call.report_progress(int(time.monotonic() * 1000), 7)

    async def report(done: float, total: float | None) -> None:
        reported_at.append(time.monotonic())

    async def main() -> float:
        workers = CallWorkers(lambda: History(home=tmp_path), ServerOptions())
        await workers.run(work, report)
        ended_at = time.monotonic()
        workers.close()
        return ended_at

    ended_at = anyio.run(main)
    assert bool(reported_at) == is_reported
    assert all(ended_at - at >= RESULT_DELAY_SECONDS for at in reported_at)


KEY = "sk-ant-api03-" + "Qm7xT2vLk9RbWz4pNc8s" * 4 + "-AAAA"


@pytest.fixture
def environ_with_secret(tmp_path: Path) -> dict[str, str]:
    transcript = Transcript("10000000-0000-4000-8000-000000000000", seed=1, cwd="/home/zoe/ferry")
    transcript.user(f"The lighthouse \x1b[31mkey\x1b[0m is {KEY}\u202e, use it")
    transcript.assistant("Thanks for the key.").write(tmp_path / "claude")
    return environment(tmp_path / "home", {"claude-code": tmp_path / "claude"})


@pytest.mark.parametrize("is_redacted", [True, False], ids=["redacted", "plain"])
@pytest.mark.usefixtures("environ_with_secret")
def test_results_have_no_secrets_and_no_control_characters(tmp_path: Path, is_redacted: bool) -> None:
    with start_read_server(tmp_path / "home", tmp_path / "claude", is_redacted=is_redacted) as mcp_client:
        for tool, arguments in (
            ("list_sessions", {}),
            ("get_session", {"ref": "1"}),
            ("export_session", {"ref": "1", "format": "jsonl"}),
            ("search_sessions", {"query": "lighthouse"}),
            ("recall", {"task": "the key of the lighthouse"}),
        ):
            result = mcp_client.call(tool, **arguments)
            output = f"{result.structured_content} {result.content}"
            assert (KEY[:30] in output) is not is_redacted, tool
            for control_character in ("\x1b", "\u202e"):
                assert control_character not in str(result.structured_content), tool


def test_new_messages_are_found_while_the_server_runs(
    environ_with_secret: dict[str, str], tmp_path: Path
) -> None:
    with start_stdio_server(environ_with_secret, "--structured") as mcp_client:
        wait_for_sync(mcp_client)
        new = Transcript("20000000-0000-4000-8000-000000000000", seed=2, cwd="/home/zoe/ferry")
        new.user("and now the foghorn").write(tmp_path / "claude")
        found: list[Any] = []
        for _ in range(100):
            found = mcp_client.document("search_sessions", query="foghorn")["data"]
            if found:
                break
            Event().wait(0.1)
        assert [match["ref"] for match in found] == ["claude-code:20000000-0000-4000-8000-000000000000"]
