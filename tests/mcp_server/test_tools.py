"""Every tool, called by a client of a server in a separate process."""

import json
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from mcp import Client

from backscroll.history import History
from backscroll.mcp.quoting import NOTICE
from backscroll.mcp.server import tool_list
from backscroll.mcp.tools.registry import TOOLS
from tests.mcp_server.server_client import McpClient, start_stdio_server

GOLDEN = Path(__file__).parent.parent / "golden" / "mcp" / "tools.json"

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("recall", {"task": "why did we drop the redis cache"}),
    ("search_sessions", {"query": "asyncio"}),
    ("search_sessions", {"query": "fold=0)", "pattern": "exact", "by": "message"}),
    ("search_sessions", {"query": r"TS\d{4}", "pattern": "regex", "role": "tool"}),
    ("list_sessions", {"limit": 3, "workspace": "tideline", "since": "2026-09", "until": "2026-10-31"}),
    ("get_session", {"ref": "7804cbb7"}),
    ("get_agent_session", {}),
    ("export_session", {"ref": "7804cbb7", "format": "txt"}),
    ("list_workspaces", {}),
    ("stats", {"by": "month", "source": "claude-code"}),
]


def test_the_schemas_match_the_golden_file(mcp_client: McpClient, update_golden: bool) -> None:
    tools = mcp_client.run(lambda client: client.list_tools()).tools
    schemas = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]
    if update_golden:
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(schemas, indent=1) + "\n", encoding="utf-8")
    assert schemas == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_every_tool_is_read_only_and_has_a_description() -> None:
    for tool in tool_list():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint and tool.annotations.idempotent_hint
        assert not tool.annotations.destructive_hint
        assert tool.title and len(tool.description or "") > 60
        properties = tool.input_schema["properties"].values()
        assert all("description" in json.dumps(schema) for schema in properties), tool.name
        assert tool.input_schema["additionalProperties"] is False


def test_every_tool_is_called_in_these_tests() -> None:
    assert {name for name, _ in CALLS} == set(TOOLS)


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=[name for name, _ in CALLS])
def test_the_result_of_a_tool_matches_its_schema(
    mcp_client: McpClient, history: History, tool: str, arguments: dict[str, Any]
) -> None:
    if tool == "get_agent_session":
        arguments = {"ref": history.find("f841ceec").agent_ids[0]}
    result = mcp_client.call(tool, **arguments)  # the client validates the document
    assert not result.is_error
    assert result.structured_content["notice"] == NOTICE
    (content,) = result.content
    assert getattr(content, "text", "").startswith(NOTICE)
    assert len(getattr(content, "text", "")) > len(NOTICE) + 40


def test_all_pages_together_list_every_session(mcp_client: McpClient, history: History) -> None:
    pages = mcp_client.pages("list_sessions", limit=7)
    found = [summary["ref"] for page in pages for summary in page["data"]]
    assert found == [summary.ref for summary in history.all_sessions()]


def test_a_filter_does_not_change_the_index_of_a_session(mcp_client: McpClient, history: History) -> None:
    indexes = {summary.ref: summary.index for summary in history.all_sessions()}
    listed = mcp_client.document("list_sessions", workspace="tideline", offset=1, limit=3)["data"]
    assert [summary["index"] for summary in listed] == [indexes[summary["ref"]] for summary in listed]
    assert [summary["index"] for summary in listed] != [2, 3, 4]
    found = mcp_client.document("search_sessions", query="redis")["data"]
    assert [match["session_index"] for match in found] == [indexes[match["session_ref"]] for match in found]
    session = mcp_client.document("get_session", ref=listed[0]["ref"])["session"]
    assert session["index"] == listed[0]["index"]


def test_all_pages_together_have_every_message_of_a_session(mcp_client: McpClient, history: History) -> None:
    for ref in ("c227dcf8", "f77d1fed", "856e8aed"):
        found = mcp_client.positions(ref, count=4)
        messages = history.get_session(ref).messages
        assert found == [
            position
            for position, message in enumerate(messages)
            if message.is_active and message.role != "thinking"
        ]


def test_all_pages_together_have_every_match(mcp_client: McpClient, history: History) -> None:
    found: list[tuple[str, int]] = []
    for page in mcp_client.pages("search_sessions", query="redis", by="message", limit=9):
        found += [(match["session_ref"], match["message_index"]) for match in page["data"]]
    assert len(found) == page["pagination"]["total"] == len(set(found))


def test_a_search_for_a_substring_can_ignore_case(mcp_client: McpClient) -> None:
    arguments = {"query": "FOLD=0)", "pattern": "exact"}
    assert mcp_client.document("search_sessions", **arguments)["data"] == []
    assert mcp_client.document("search_sessions", **arguments, ignore_case=True)["data"]


def test_only_messages_with_the_requested_roles_are_returned(mcp_client: McpClient) -> None:
    page = mcp_client.document("get_session", ref="7804cbb7", roles=["user", "assistant"])
    assert {message["role"] for message in page["messages"]} == {"user", "assistant"}


def test_a_long_result_can_be_read_in_parts(mcp_client: McpClient, history: History) -> None:
    session = history.get_session("7804cbb7")
    position, message = next(
        (position, message) for position, message in enumerate(session.messages) if message.tool is not None
    )
    assert message.tool is not None and message.tool.result is not None
    page = mcp_client.document("get_session", ref="7804cbb7", count=3)
    cut = next(each for each in page["messages"] if each["position"] == position)
    assert cut["cut_chars"] > 0
    result = ""
    while len(result) < len(message.tool.result):
        part = mcp_client.document(
            "get_session", ref="7804cbb7", count=1, max_chars=300, from_char=len(result), **{"from": position}
        )
        result += part["messages"][0]["tool_result"]
    assert result == message.tool.result


@pytest.mark.parametrize("format", ["md", "txt", "json", "jsonl", "html"])
def test_the_parts_of_an_export_are_the_whole_export(
    mcp_client: McpClient, history: History, format: Any
) -> None:
    text, start = "", 0
    while start is not None:
        part = mcp_client.document(
            "export_session", ref="7804cbb7", format=format, max_chars=3000, from_char=start
        )
        text += part.get("text", "")
        start = part.get("next_from_char")
    assert text == "".join(history.export_session("7804cbb7", format))


def test_totals_match_those_of_the_library(mcp_client: McpClient, history: History) -> None:
    total = mcp_client.document("stats")["total"]
    assert total["sessions"] == history.statistics.report().total.sessions
    assert total["messages"] == history.statistics.report().total.messages


def test_all_pages_together_have_every_row_of_the_statistics(mcp_client: McpClient, history: History) -> None:
    found: list[str] = []
    for page in mcp_client.pages("stats", by="day", limit=9):
        found += [row["key"] for row in page["data"]]
        assert page["total"]["sessions"] == history.statistics.report().total.sessions
    assert found == [row.key for row in reversed(history.statistics.report(by="day").rows)]
    assert len(found) == page["pagination"]["total"] > 9
    assert "9 of " in mcp_client.text("stats", by="day", limit=9)


def test_recall_stays_within_the_token_budget(mcp_client: McpClient) -> None:
    for budget in (300, 900):
        document = mcp_client.document("recall", task="why is the import slow", token_budget=budget)
        assert len(msgspec.json.encode(document["data"])) / 4 <= budget


def test_clients_of_the_older_protocol_get_the_same_results(
    mcp_client: McpClient, environ: dict[str, str]
) -> None:
    with start_stdio_server(environ, mode="legacy") as legacy_client:
        assert legacy_client.run(lambda client: client.list_tools()).tools
        for tool, arguments in (call for call in CALLS if call[1]):
            new, legacy = mcp_client.document(tool, **arguments), legacy_client.document(tool, **arguments)
            assert {**new, "took_ms": 0} == {**legacy, "took_ms": 0}
        assert legacy_client.error("get_session", ref="zzz")["type"] == "session_not_found"
        assert legacy_client.run(lambda client: client.list_resources()).resources
        assert legacy_client.run(lambda client: client.get_prompt("handoff", {"ref": "f77d1fed"})).messages


def test_fifty_concurrent_calls_all_succeed(mcp_client: McpClient) -> None:
    async def call_all(client: Client) -> list[Any]:
        succeeded: list[Any] = []
        calls = [call for call in CALLS if call[1]]

        async def call_one(index: int) -> None:
            tool, arguments = calls[index % len(calls)]
            result = await client.call_tool(tool, arguments)
            assert not result.is_error
            succeeded.append(tool)

        async with anyio.create_task_group() as group:
            for index in range(50):
                group.start_soon(call_one, index)
        return succeeded

    assert len(mcp_client.run(call_all)) == 50
