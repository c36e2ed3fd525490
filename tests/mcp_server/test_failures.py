"""What goes wrong is typed, says what to do next, and leaves the server answering."""

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
from backscroll.mcp.call import Call, StoppedError
from backscroll.mcp.errors import failure_of
from backscroll.mcp.workers import WorkerPool
from backscroll.testing.claude_code import Transcript
from tests.mcp_server.serving import Asking, environment, over_stdio


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
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
def test_wrong_arguments_are_said(asking: Asking, tool: str, arguments: dict[str, Any], said: str) -> None:
    error = asking.error(tool, **arguments)
    assert error["type"] == "invalid_arguments"
    assert said in error["message"]
    assert "call again" in error["next"]


def test_a_number_written_as_a_word_is_understood(asking: Asking) -> None:
    assert len(asking.document("list_sessions", limit="2")["data"]) == 2


def test_an_unknown_ref_says_where_refs_come_from(asking: Asking) -> None:
    for tool in ("get_session", "export_session", "get_agent_session"):
        error = asking.error(tool, ref="zzz")
        assert (error["type"], error["session_id"]) == ("session_not_found", "zzz")
        assert "list_sessions" in error["next"]


def test_a_ref_that_may_be_several_names_them(asking: Asking) -> None:
    error = asking.error("get_session", ref="claude-code:7")
    assert error["type"] == "session_not_found"
    assert "claude-code:7804cbb7" in error["message"]


def test_a_source_before_the_id_is_taken_at_its_word(asking: Asking) -> None:
    for ref in ("claude-code:78", " claude-code:78 "):
        assert asking.document("get_session", ref=ref)["session"]["title"] == "Try an asynchronous poller"
    assert asking.document("get_session", ref="cursor:78")["session"]["title"] == "Lesezeit und Datumsformat"
    assert asking.error("get_session", ref="78")["type"] == "session_not_found"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_sessions", {}),
        ("stats", {}),
        ("recall", {"task": "redis"}),
        ("search_sessions", {"query": "redis"}),
    ],
)
def test_a_workspace_that_is_not_there_is_said_with_those_most_like_it(
    asking: Asking, tool: str, arguments: dict[str, Any]
) -> None:
    error = asking.error(tool, workspace="/somewhere/tidelin", **arguments)
    assert (error["type"], error["workspace"]) == ("workspace_not_found", "/somewhere/tidelin")
    assert "/projects/tideline" in error["message"].splitlines()[1]
    assert "list_workspaces" in error["next"]


def test_below_a_workspace_the_workspace_itself_is_named_first(asking: Asking, history: History) -> None:
    (there,) = {one.path for one in history.list_workspaces() if one.name == "tideline"}
    error = asking.error("recall", task="redis", workspace=f"{there}/saltern/src")
    assert error["message"].splitlines()[1].strip() == there


def test_where_there_is_nothing_it_is_said_why(asking: Asking) -> None:
    beyond = asking.text("get_session", ref="7804cbb7", **{"from": 9999})
    assert "No such position. Positions go from 0 to 15." in beyond
    assert "No message with these roles" in asking.text("get_session", ref="7804cbb7", roles=["thinking"])
    assert asking.text("export_session", ref="7804cbb7", from_char=10**9) == "End of the session."
    assert asking.text("list_sessions", since="2030") == "None of 0 sessions."


def test_an_unknown_tool_is_an_error_of_the_protocol(asking: Asking) -> None:
    with pytest.raises(MCPError, match=r"Unknown tool .sing.\. Available: recall, "):
        asking.call("sing")


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_has_a_type_of_its_own_and_a_next_step(name: str) -> None:
    kind = getattr(errors, name)
    error = kind("It is gone.") if kind.__init__ is BackscrollError.__init__ else kind("It is gone.", "this")
    failure = failure_of(error)
    assert failure.next
    assert failure.document(error)["message"] == "It is gone."
    assert failure.type != "internal"


def test_a_locked_database_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure_of(DatabaseLockedError("held", "x.db")).type == "locked"
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
    failure = failure_of(caught.value)
    assert failure.type == "locked"
    assert "Retry in a few seconds" in failure.next
    assert failure_of(ValueError("?")).type == "internal"


def test_a_password_that_has_a_name_elsewhere_is_replaced_where_it_has_none(tmp_path: Path) -> None:
    one = Transcript("10000000-0000-4000-8000-000000000000", seed=1, cwd="/home/zoe/ferry")
    one.user("Try hunter2Xq9vT7 on the lighthouse").assistant("Done.")
    one.user("Good: password = hunter2Xq9vT7").assistant("Noted.").write(tmp_path / "claude")
    with over_stdio(environment(tmp_path / "home", {"claude-code": tmp_path / "claude"})) as asking:
        _read(asking)
        for tool, arguments in (
            ("get_session", {"ref": "1", "count": 1}),
            ("search_sessions", {"query": "try lighthouse"}),
            ("search_sessions", {"query": "on the light", "pattern": "exact", "by": "message"}),
            ("recall", {"task": "what was tried on the lighthouse?"}),
            ("export_session", {"ref": "1"}),
        ):
            result = asking.call(tool, **arguments)
            assert "hunter2Xq9vT7" not in f"{result.content}{result.structured_content}", tool
            assert "[redacted: password #1] on the lighthouse" in f"{result.content}", tool
        for prompt, asked in (("recall", {"task": "try the lighthouse"}), ("handoff", {"ref": "1"})):
            told = asking.run(lambda client, name=prompt, given=asked: client.get_prompt(name, given))
            assert "[redacted: password" in str(told.messages) and "hunter2" not in str(told.messages)


def test_while_another_process_writes_the_archive_everything_is_answered(
    asking: Asking, environ: dict[str, str]
) -> None:
    other = sqlite3.connect(Path(environ["BACKSCROLL_HOME"]) / "archive.db", isolation_level=None)
    try:
        other.execute("begin immediate")
        assert asking.document("list_sessions", limit=1)["data"]
        assert asking.document("search_sessions", query="redis")["data"]
        assert asking.document("recall", task="why was redis dropped")["data"]
    finally:
        other.close()


def test_after_a_call_was_cancelled_the_next_is_answered(asking: Asking) -> None:
    async def hurry(client: Client) -> bool:
        with anyio.move_on_after(0.001) as scope:
            await client.call_tool("search_sessions", {"query": ".*e.*", "pattern": "regex", "limit": 100})
        return scope.cancelled_caught

    for _ in range(5):
        asking.run(hurry)
    assert asking.document("list_sessions", limit=1)["data"]


def test_a_cancelled_call_stops_working_and_tells_how_far_it_was(tmp_path: Path) -> None:
    ended = Event()
    reports: list[float] = []

    def work(call: Call) -> None:
        try:
            for number in range(10_000_000):
                call.step(number, 10_000_000)
        except StoppedError:
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
def secretive(tmp_path: Path) -> dict[str, str]:
    one = Transcript("10000000-0000-4000-8000-000000000000", seed=1, cwd="/home/zoe/ferry")
    one.user(f"The lighthouse \x1b[31mkey\x1b[0m is {KEY}\u202e, use it").assistant("Thanks for the key.")
    one.write(tmp_path / "claude")
    return environment(tmp_path / "home", {"claude-code": tmp_path / "claude"})


@pytest.mark.parametrize("options", [(), ("--no-redact",)], ids=["redacted", "plain"])
def test_history_is_quoted_without_secrets_and_without_escapes(
    secretive: dict[str, str], options: tuple[str, ...]
) -> None:
    with over_stdio(secretive, *options) as asking:
        _read(asking)
        for tool, arguments in (
            ("list_sessions", {}),
            ("get_session", {"ref": "1"}),
            ("export_session", {"ref": "1", "format": "jsonl"}),
            ("search_sessions", {"query": "lighthouse"}),
            ("recall", {"task": "the key of the lighthouse"}),
        ):
            result = asking.call(tool, **arguments)
            told = f"{result.structured_content} {result.content}"
            assert (KEY[:30] in told) is bool(options), tool
            for mark in ("\x1b", "\u202e"):
                assert mark not in str(result.structured_content), tool


def test_what_is_said_while_it_runs_is_found_soon(secretive: dict[str, str], tmp_path: Path) -> None:
    with over_stdio(secretive) as asking:
        _read(asking)
        new = Transcript("20000000-0000-4000-8000-000000000000", seed=2, cwd="/home/zoe/ferry")
        new.user("and now the foghorn").write(tmp_path / "claude")
        found: list[Any] = []
        for _ in range(100):
            found = asking.document("search_sessions", query="foghorn")["data"]
            if found:
                break
            Event().wait(0.1)
        assert [one["session_id"][:1] for one in found] == ["2"]


def _read(asking: Asking) -> None:
    """Wait for the first sync, which no answer waits for."""
    for _ in range(100):
        if asking.document("search_sessions", query="lighthouse")["data"]:
            return
        Event().wait(0.1)
    pytest.fail("the history was not read")
