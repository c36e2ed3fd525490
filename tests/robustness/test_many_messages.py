"""A very long history through the server: ``make soak`` makes it a million messages."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp import Client

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from tests.mcp_server.server_client import McpClient, environment, start_stdio_server

MESSAGES_PER_SESSION = 1000
SESSIONS = int(os.environ.get("MESSAGES", "10000")) // MESSAGES_PER_SESSION
# The last digits of all ids of a session, and of the word in its prompts.
SESSION_SPECIFIC = re.compile(
    rb"(?<=needle)ffff|(?<=-[0-9a-f]{8})[0-9a-f]{4}(?=\")|(?<=(?:msg|req)_01\w{18})\w{4}(?=\")"
)


def write(root: Path) -> None:
    """Write copies of one session, each with its own ids and its own word."""
    one = Transcript("70000000-0000-4000-8000-00000000ffff", seed=7, cwd="/home/zoe/many", version="1.0.30")
    for number in range(MESSAGES_PER_SESSION // 2):
        one.user(f"needleffff: what about part {number} of the harbour?").assistant(f"Part {number} holds.")
    file = one.write(root)
    pieces = SESSION_SPECIFIC.split(file.read_bytes())
    file.unlink()
    for number in range(SESSIONS):
        own = b"%04x" % number
        file.with_name(f"70000000-0000-4000-8000-00000000{own.decode()}.jsonl").write_bytes(own.join(pieces))


@pytest.fixture(scope="module")
def mcp_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpClient]:
    folder: Path = tmp_path_factory.mktemp("many")
    write(folder / "claude")
    with History(roots=[NamedRoot("claude-code", folder / "claude")], home=folder / "home") as history:
        history.sync()
    environ = environment(folder / "home", {"claude-code": folder / "claude"})
    with start_stdio_server(environ, "--structured") as mcp_client:
        yield mcp_client


def test_stats_count_every_message(mcp_client: McpClient) -> None:
    total = mcp_client.document("stats")["total"]
    assert (total["sessions"], total["messages"]) == (SESSIONS, SESSIONS * MESSAGES_PER_SESSION)


def test_every_session_is_listed_once(mcp_client: McpClient) -> None:
    found = [one["ref"] for page in mcp_client.pages("list_sessions", limit=300) for one in page["data"]]
    assert len(found) == len(set(found)) == SESSIONS


def test_every_message_of_a_session_is_read_once(mcp_client: McpClient) -> None:
    ref = f"70000000-0000-4000-8000-00000000{SESSIONS // 2:04x}"
    assert mcp_client.positions(ref, count=200) == list(range(MESSAGES_PER_SESSION))


def test_a_word_in_one_session_is_found(mcp_client: McpClient) -> None:
    for number in (0, SESSIONS // 3, SESSIONS - 1):
        own = f"{number:04x}"
        page = mcp_client.document("search_sessions", query=f"needle{own}", limit=20)
        assert [one["ref"][-4:] for one in page["data"]] == [own]
        assert page["data"][0]["match_count"] == MESSAGES_PER_SESSION // 2
        best, *_ = mcp_client.document("recall", task=f"what did needle{own} say about the harbour?")["data"]
        assert best["ref"].endswith(own)


def test_paging_through_many_matches_gives_no_duplicates(mcp_client: McpClient) -> None:
    found: list[tuple[str, int]] = []
    for _ in range(5):
        page = mcp_client.document(
            "search_sessions", query="harbour", by="message", limit=100, offset=len(found), context=0
        )
        found += [(one["ref"], one["position"]) for one in page["data"]]
    assert len(set(found)) == 500
    assert page["pagination"]["total"] == SESSIONS * MESSAGES_PER_SESSION // 2


def test_a_long_call_reports_progress_and_can_be_cancelled(mcp_client: McpClient) -> None:
    reports: list[float] = []

    async def report(done: float, total: float | None, message: str | None) -> None:
        reports.append(done)

    async def hurry(client: Client) -> bool:
        with anyio.move_on_after(1.0) as scope:
            await client.call_tool(
                "search_sessions", {"query": "h.rb..rs", "pattern": "regex"}, progress_callback=report
            )
        return scope.cancelled_caught

    was_cancelled = mcp_client.run(hurry)
    assert reports == sorted(reports)
    assert reports or not was_cancelled
    for tool, arguments in (
        ("stats", {"by": "day"}),
        ("recall", {"task": "which part of the harbour holds"}),
    ):

        async def leave(client: Client, tool: str = tool, arguments: dict[str, str] = arguments) -> None:
            with anyio.move_on_after(0.05):
                await client.call_tool(tool, arguments)

        for _ in range(8):
            mcp_client.run(leave)
    assert mcp_client.document("list_sessions", limit=1)["data"]


@pytest.mark.soak
def test_fifty_concurrent_calls_all_succeed(mcp_client: McpClient) -> None:
    calls = [
        ("list_sessions", {"limit": 5}),
        ("search_sessions", {"query": "harbour part"}),
        ("recall", {"task": "which part of the harbour holds"}),
        ("get_session", {"ref": "1"}),
        ("list_workspaces", {}),
    ]

    async def ask(client: Client) -> int:
        answered = 0

        async def one(number: int) -> None:
            nonlocal answered
            result = await client.call_tool(*calls[number % len(calls)])
            assert not result.is_error, result.content
            answered += 1

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(one, number)
        return answered

    assert mcp_client.run(ask) == 50
